package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/mig-cli/mig/scripts/lab/internal/process"
)

// What the nodes' and the addons' pods are made of.
const (
	PauseImage   = "registry.test/pause:1"
	CoreDNSImage = "registry.test/coredns:1"
)

// UpAddons makes what a cluster needs beyond Kubernetes: storage and DNS.
func (c Cluster) UpAddons(ctx context.Context) error {
	if err := c.Apply(ctx, c.renderClasses()+c.renderDNS()); err != nil {
		return err
	}
	if err := os.MkdirAll(c.dir("volumes"), 0o755); err != nil {
		return err
	}
	if err := c.ensure(ctx, listening{Daemon: c.provisioner()}); err != nil {
		return err
	}
	return c.Rollout(ctx, "kube-system", "deployment/coredns")
}

func (c Cluster) provisioner() process.Daemon {
	return c.daemon("provisioner", c.dir("control-plane"),
		"--kubeconfig="+c.Admin(),
		"--name="+ProvisionerName,
		"--base="+c.dir("volumes"),
		"--node="+c.nodeName(1),
	)
}

func (c Cluster) renderClasses() string {
	var all strings.Builder
	for _, class := range c.Classes {
		mode, parameters := "Immediate", ""
		if class.Wait {
			mode = "WaitForFirstConsumer"
		}
		if class.Sized {
			parameters = "\nparameters: {sized: \"true\"}"
		}
		fmt.Fprintf(&all, `---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: %s, annotations: {storageclass.kubernetes.io/is-default-class: "%t"}}
provisioner: %s
reclaimPolicy: Delete
volumeBindingMode: %s%s
`, class.Name, class.Default, ProvisionerName, mode, parameters)
	}
	return all.String()
}

// renderDNS makes the manifests of the cluster's DNS. It knows the cluster's names and refuses all others: there is
// nobody to forward them to.
func (c Cluster) renderDNS() string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: ServiceAccount
metadata: {name: coredns, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: system:coredns}
rules:
- {apiGroups: [""], resources: [endpoints, services, pods, namespaces], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: system:coredns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:coredns}
subjects: [{kind: ServiceAccount, name: coredns, namespace: kube-system}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
      errors
      ready
      kubernetes cluster.local in-addr.arpa ip6.arpa
      cache 30
    }
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: coredns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec:
  replicas: 1
  selector: {matchLabels: {k8s-app: kube-dns}}
  template:
    metadata: {labels: {k8s-app: kube-dns}}
    spec:
      serviceAccountName: coredns
      priorityClassName: system-cluster-critical
      dnsPolicy: Default
      containers:
      - name: coredns
        image: %[1]s
        imagePullPolicy: IfNotPresent
        args: [-conf, /etc/coredns/Corefile]
        ports:
        - {name: dns, containerPort: 53, protocol: UDP}
        - {name: dns-tcp, containerPort: 53, protocol: TCP}
        readinessProbe: {httpGet: {path: /ready, port: 8181}, periodSeconds: 2}
        volumeMounts: [{name: config, mountPath: /etc/coredns, readOnly: true}]
      volumes: [{name: config, configMap: {name: coredns}}]
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system, labels: {k8s-app: kube-dns, kubernetes.io/cluster-service: "true"}}
spec:
  clusterIP: %[2]s
  selector: {k8s-app: kube-dns}
  ports:
  - {name: dns, port: 53, protocol: UDP}
  - {name: dns-tcp, port: 53, protocol: TCP}
`, CoreDNSImage, c.dnsIP())
}
