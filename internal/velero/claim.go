package velero

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
)

// StepDestinationClaims is the step that makes claims on the destination itself.
const StepDestinationClaims = "EnsureDestinationClaims"

// DestinationClaim is the source's claim as the plan wants it on the
// destination, to be filled there: what binds it to the source's volume, and
// what other controllers wrote on it, stays behind, as with Velero's own restore
// (velero pkg/restore/pv_restorer.go and actions/pvc_action.go).
func DestinationClaim(o naming.Owner, p plan.Valid, v plan.Volume, src *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	labels, annotations := maps.Clone(src.Labels), maps.Clone(src.Annotations)
	if labels == nil {
		labels = map[string]string{}
	}
	delete(labels, naming.LabelStagedBy)
	maps.Copy(labels, o.Labels(StepDestinationClaims))
	maps.DeleteFunc(annotations, func(key, _ string) bool { return staysBehind(key) })
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, o.Annotations())
	spec := src.Spec.DeepCopy()
	spec.VolumeName, spec.DataSource, spec.DataSourceRef, spec.Selector, spec.VolumeAttributesClassName = "", nil, nil, nil, nil
	if class := p.DestinationClass(v); class != "" {
		spec.StorageClassName = &class
	}
	if len(v.Destination.AccessModes) > 0 {
		spec.AccessModes = nil
		for _, m := range v.Destination.AccessModes {
			spec.AccessModes = append(spec.AccessModes, corev1.PersistentVolumeAccessMode(m))
		}
	}
	if q, err := resource.ParseQuantity(v.Destination.Size); err == nil { // validated with the plan
		spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: q}
	}
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.DestinationNamespace(v.Namespace()), Name: v.Name(), Labels: labels, Annotations: annotations},
		Spec:       *spec,
	}
}

// staysBehind says of an annotation of a claim that it is the source's alone.
func staysBehind(key string) bool {
	return strings.HasPrefix(key, "pv.kubernetes.io/") || strings.HasPrefix(key, "volume.kubernetes.io/") ||
		strings.HasPrefix(key, "volume.beta.kubernetes.io/") || strings.HasPrefix(key, naming.Prefix)
}

// IsStaged says whether a claim of the destination was made for a plan to be
// filled there, and nothing has been migrated with it yet.
func IsStaged(claim metav1.Object, planUID string) bool {
	return naming.OfPlanUID(claim.GetLabels()) == planUID && claim.GetLabels()[naming.LabelStep] == StepDestinationClaims &&
		claim.GetAnnotations()[naming.AnnMigratedFrom] == ""
}

// SuitsClaim says whether a claim that is there is what the plan wants now.
func SuitsClaim(have, want *corev1.PersistentVolumeClaim) bool {
	if want.Spec.StorageClassName != nil && (have.Spec.StorageClassName == nil || *have.Spec.StorageClassName != *want.Spec.StorageClassName) {
		return false
	}
	if !sameModes(have.Spec.AccessModes, want.Spec.AccessModes) {
		return false
	}
	a, b := have.Spec.Resources.Requests[corev1.ResourceStorage], want.Spec.Resources.Requests[corev1.ResourceStorage]
	return a.Cmp(b) == 0
}

func sameModes(a, b []corev1.PersistentVolumeAccessMode) bool {
	if len(a) != len(b) {
		return false
	}
	has := map[corev1.PersistentVolumeAccessMode]bool{}
	for _, m := range a {
		has[m] = true
	}
	for _, m := range b {
		if !has[m] {
			return false
		}
	}
	return true
}
