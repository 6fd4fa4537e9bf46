package compare

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mig-cli/mig/internal/naming"
)

// everywhere are the fields that no two objects share.
func everywhere() []string {
	return []string{
		"metadata.uid", "metadata.resourceVersion", "metadata.generation", "metadata.creationTimestamp", "metadata.selfLink",
		"metadata.managedFields", "metadata.finalizers", "metadata.ownerReferences", "status",
	}
}

// byKind are the fields that the cluster itself fills in.
func byKind(kind string) []string {
	return map[string][]string{
		"Service":               {"spec.clusterIP", "spec.clusterIPs", "spec.healthCheckNodePort"},
		"PersistentVolumeClaim": {"spec.volumeName"},
		"ServiceAccount":        {"secrets", "imagePullSecrets"},
		"Job":                   {"spec.selector", "spec.template.metadata.labels"}, // made of its uid
	}[kind]
}

// isUpkeep says whether a label or an annotation is written by those who carry
// an object or look after it, not by its owner.
func isUpkeep(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	return strings.HasPrefix(key, naming.Prefix) ||
		slices.Contains([]string{"velero.io", "migration.openshift.io", "pv.kubernetes.io", "control-plane.alpha.kubernetes.io"}, prefix) ||
		slices.Contains([]string{
			"kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation", "volume.kubernetes.io/storage-provisioner",
			"volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/selected-node", "openshift.io/migrate-type",
			"openshift.io/target-storage-class", "openshift.io/target-access-mode",
		}, key)
}

// MadeByCluster says whether every cluster makes an object like this by itself,
// so that the source's is not to be found on the destination.
func MadeByCluster(o *unstructured.Unstructured) bool {
	switch o.GetKind() {
	case "ConfigMap":
		return slices.Contains([]string{"kube-root-ca.crt", "openshift-service-ca.crt"}, o.GetName())
	case "Secret":
		kind, _, _ := unstructured.NestedString(o.Object, "type")
		return kind == string(corev1.SecretTypeServiceAccountToken)
	default:
		return false
	}
}

// apply makes of a source's object what the plan wants on the destination.
func (m Mapping) apply(o *unstructured.Unstructured) {
	if to, ok := m.Namespaces[o.GetNamespace()]; ok {
		o.SetNamespace(to)
	}
	if subjects, ok, _ := unstructured.NestedSlice(o.Object, "subjects"); ok && o.GetKind() == "RoleBinding" {
		for _, s := range subjects {
			if subject, ok := s.(map[string]any); ok {
				m.replace(subject, "namespace", m.Namespaces)
			}
		}
		o.Object["subjects"] = subjects
	}
	spec, _ := o.Object["spec"].(map[string]any)
	switch o.GetKind() {
	case "PersistentVolumeClaim":
		m.replace(spec, "storageClassName", m.Classes)
	case "StatefulSet":
		templates, _ := spec["volumeClaimTemplates"].([]any)
		for _, t := range templates {
			if template, ok := t.(map[string]any); ok {
				of, _ := template["spec"].(map[string]any)
				m.replace(of, "storageClassName", m.Classes)
			}
		}
	}
}

func (Mapping) replace(in map[string]any, key string, by map[string]string) {
	if was, ok := in[key].(string); ok && by[was] != "" {
		in[key] = by[was]
	}
}

// forget takes off what says nothing of what the object's owner wants.
func forget(o *unstructured.Unstructured) {
	for _, path := range slices.Concat(everywhere(), byKind(o.GetKind())) {
		fields := strings.Split(path, ".")
		if value, _, _ := unstructured.NestedString(o.Object, fields...); value == corev1.ClusterIPNone {
			continue // asked for: a Service without an address
		}
		unstructured.RemoveNestedField(o.Object, fields...)
	}
	o.SetLabels(withoutUpkeep(o.GetLabels()))
	o.SetAnnotations(withoutUpkeep(o.GetAnnotations()))
	ports, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports")
	for _, p := range ports {
		if port, ok := p.(map[string]any); ok && o.GetKind() == "Service" {
			delete(port, "nodePort")
		}
	}
	if len(ports) > 0 && o.GetKind() == "Service" {
		_ = unstructured.SetNestedSlice(o.Object, ports, "spec", "ports") // it was read there
	}
}

func withoutUpkeep(all map[string]string) map[string]string {
	for key := range all {
		if isUpkeep(key) {
			delete(all, key)
		}
	}
	return all
}

// forgetPairs takes off what may differ in one direction: a claim may be larger
// on the destination, where its class makes no smaller ones.
func forgetPairs(want, have *unstructured.Unstructured) {
	if want.GetKind() != "PersistentVolumeClaim" {
		return
	}
	path := []string{"spec", "resources", "requests", "storage"}
	here, _, _ := unstructured.NestedString(want.Object, path...)
	there, _, _ := unstructured.NestedString(have.Object, path...)
	asked, err := resource.ParseQuantity(here)
	got, errThere := resource.ParseQuantity(there)
	if err == nil && errThere == nil && got.Cmp(asked) >= 0 {
		unstructured.RemoveNestedField(want.Object, path...)
		unstructured.RemoveNestedField(have.Object, path...)
	}
}
