package compare

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = o.UnmarshalJSON(raw)
	}
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return o
}

var shopToProd = Mapping{Namespaces: map[string]string{"shop": "shop-prod"}, Classes: map[string]string{"gp2": "fast"}}

func TestWhatMustDifferIsNoDifference(t *testing.T) {
	for name, c := range map[string]struct{ source, destination string }{
		"what no two objects share": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, uid: a, resourceVersion: "7", creationTimestamp: x, managedFields: [{manager: kubectl}]}, data: {a: b}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop-prod, uid: b, resourceVersion: "9", creationTimestamp: y}, data: {a: b}}`,
		},
		"marks of mig, of Velero and of those who look after objects": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, labels: {app: a}, annotations: {mig-cli.github.io/migrated-to: dst/shop-prod}}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop-prod, labels: {app: a, velero.io/restore-name: r, velero.io/backup-name: b}}}`,
		},
		"addresses and node ports of a Service": {
			`{apiVersion: v1, kind: Service, metadata: {name: s, namespace: shop}, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80, nodePort: 30001}]}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: s, namespace: shop-prod}, spec: {clusterIP: 10.9.0.1, clusterIPs: [10.9.0.1], ports: [{port: 80, nodePort: 31001}]}}`,
		},
		"a claim in the plan's class, and larger": {
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: p, namespace: shop, annotations: {pv.kubernetes.io/bind-completed: "yes"}}, spec: {storageClassName: gp2, volumeName: pv-1, resources: {requests: {storage: 1Gi}}}}`,
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: p, namespace: shop-prod}, spec: {storageClassName: fast, volumeName: pv-2, resources: {requests: {storage: 2Gi}}}}`,
		},
		"the class in a StatefulSet's template": {
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: d, namespace: shop}, spec: {volumeClaimTemplates: [{spec: {storageClassName: gp2}}]}, status: {replicas: 0}}`,
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: d, namespace: shop-prod}, spec: {volumeClaimTemplates: [{spec: {storageClassName: fast}}]}, status: {replicas: 3}}`,
		},
		"the namespace of whom a role is given to": {
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: r, namespace: shop}, subjects: [{kind: ServiceAccount, name: a, namespace: shop}, {kind: User, name: u}]}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: r, namespace: shop-prod}, subjects: [{kind: ServiceAccount, name: a, namespace: shop-prod}, {kind: User, name: u}]}`,
		},
		"the tokens of a ServiceAccount": {
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: shop}, secrets: [{name: a-token-1}]}`,
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: shop-prod}, secrets: [{name: a-token-2}]}`,
		},
		"nothing, written in two ways": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, labels: {}}, data: {}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop-prod}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			source := object(t, c.source)
			was := source.DeepCopy()
			if got := Differences(source, object(t, c.destination), shopToProd); len(got) > 0 {
				t.Errorf("got %+v", got)
			}
			if !reflect.DeepEqual(source, was) {
				t.Error("the source's object was changed")
			}
		})
	}
}

func TestEveryOtherDifferenceIsNamedByItsField(t *testing.T) {
	for name, c := range map[string]struct {
		source, destination string
		want                []Difference
	}{
		"a value": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: w, namespace: shop}, spec: {replicas: 3, template: {spec: {containers: [{image: "web:1"}]}}}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: w, namespace: shop-prod}, spec: {replicas: 1, template: {spec: {containers: [{image: "web:2"}]}}}}`,
			[]Difference{{"spec.replicas", "3", "1"}, {"spec.template.spec.containers[0].image", "web:1", "web:2"}},
		},
		"what is missing and what came to it": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, labels: {team: a}}, data: {x: "1"}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop-prod}, data: {x: "1", z: "2"}}`,
			[]Difference{{"data.z", "", "2"}, {"metadata.labels", "map[team:a]", ""}},
		},
		"another namespace than the plan's": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}}`,
			[]Difference{{"metadata.namespace", "shop-prod", "shop"}},
		},
		"an address where there was to be none": {
			`{apiVersion: v1, kind: Service, metadata: {name: s, namespace: shop}, spec: {clusterIP: None}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: s, namespace: shop-prod}, spec: {clusterIP: 10.9.0.1}}`,
			[]Difference{{"spec.clusterIP", "None", ""}},
		},
		"a port, beside node ports": {
			`{apiVersion: v1, kind: Service, metadata: {name: s, namespace: shop}, spec: {ports: [{port: 80, nodePort: 30001}]}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: s, namespace: shop-prod}, spec: {ports: [{port: 81, nodePort: 30001}, {port: 82}]}}`,
			[]Difference{{"spec.ports[0].port", "80", "81"}, {"spec.ports[1]", "", "map[port:82]"}},
		},
		"a smaller claim of another class": {
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: p, namespace: shop}, spec: {storageClassName: gp2, resources: {requests: {storage: 2Gi}}}}`,
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: p, namespace: shop-prod}, spec: {storageClassName: gp2, resources: {requests: {storage: 1Gi}}}}`,
			[]Difference{{"spec.resources.requests.storage", "2Gi", "1Gi"}, {"spec.storageClassName", "fast", "gp2"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Differences(object(t, c.source), object(t, c.destination), shopToProd); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestWhatASecretHoldsIsNeverTold(t *testing.T) {
	got := Differences(object(t, `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}, data: {key: UGw0bnRlZA==}}`),
		object(t, `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop-prod}, data: {key: QW5vdGhlcg==}}`), shopToProd)
	if len(got) != 1 || got[0].Path != "data.key" || strings.Contains(got[0].Source+got[0].Destination, "=") {
		t.Errorf("got %+v", got)
	}
}

func TestWhatEveryClusterMakesByItselfIsNotLookedFor(t *testing.T) {
	for text, want := range map[string]bool{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt}}`:                                true,
		`{apiVersion: v1, kind: Secret, metadata: {name: a-token}, type: kubernetes.io/service-account-token}`: true,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}`:                                        false,
		`{apiVersion: v1, kind: Secret, metadata: {name: db}, type: Opaque}`:                                   false,
	} {
		if got := MadeByCluster(object(t, text)); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
}
