package velero

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// NodeAgentDaemonSet is the name that Velero's installers give its node-agent.
const NodeAgentDaemonSet = "node-agent"

// hostPodsVolume is the volume by which node-agent sees what the kubelet has
// mounted for the pods of its node (velero pkg/install/daemonset.go).
const hostPodsVolume = "host-pods"

// keysVolume is the volume with the Secret that has the keys of locations that
// name none of their own, and keysKey the key in it (the same file).
const (
	keysVolume = "cloud-credentials"
	keysKey    = "cloud"
)

// proxies are the variables that say how a program reaches the object store.
var proxies = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"} //nolint:gochecknoglobals // a constant list

// NodeAgentOf reads from a node-agent's DaemonSet what stage pods take over.
func NodeAgentOf(ds *appsv1.DaemonSet) NodeAgent {
	spec := ds.Spec.Template.Spec
	agent := NodeAgent{Tolerations: spec.Tolerations, NodeSelector: spec.NodeSelector, ServiceAccount: spec.ServiceAccountName, PullSecrets: spec.ImagePullSecrets}
	if len(spec.Containers) > 0 {
		agent.Image = spec.Containers[0].Image
		agent.SecurityContext = spec.Containers[0].SecurityContext
		agent.Proxies = slices.DeleteFunc(slices.Clone(spec.Containers[0].Env), func(v corev1.EnvVar) bool { return !slices.Contains(proxies, v.Name) })
	}
	for _, v := range spec.Volumes {
		if v.Name == hostPodsVolume && v.HostPath != nil {
			agent.HostPods = v.HostPath.Path
		}
		if v.Name == keysVolume && v.Secret != nil {
			keys := secretKey(v.Secret.SecretName, keysKey)
			agent.Keys = &keys
		}
	}
	return agent
}
