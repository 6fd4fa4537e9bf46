package velero

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
)

func sourceClaim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "data", UID: "1", Finalizers: []string{"kubernetes.io/pvc-protection"},
			Labels: map[string]string{"app": "db", naming.LabelStagedBy: "x"},
			Annotations: map[string]string{
				"team": "a", "pv.kubernetes.io/bind-completed": "yes", "volume.kubernetes.io/selected-node": "node-1",
				"volume.beta.kubernetes.io/storage-provisioner": "p", naming.AnnMigratedTo: "elsewhere",
			},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: "pv-1", StorageClassName: ptr.To("gp2"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeMode: ptr.To(corev1.PersistentVolumeFilesystem),
			Selector: &metav1.LabelSelector{}, DataSource: &corev1.TypedLocalObjectReference{Kind: "VolumeSnapshot", Name: "s"},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}},
		},
	}
}

func TestAClaimOfTheDestinationIsTheSourcesWithoutWhatBindsItThere(t *testing.T) {
	p := shop(t)
	v := p.Copied()[0]
	v.Claim, v.Destination = "shop/data", plan.VolumeDestination{StorageClass: "fast", Size: "20Gi", AccessModes: []string{"ReadWriteMany"}}
	got := DestinationClaim(owner, p, v, sourceClaim())
	if got.Namespace != p.DestinationNamespace("shop") || got.Name != "data" || got.UID != "" || len(got.Finalizers) > 0 {
		t.Errorf("got %+v", got.ObjectMeta)
	}
	if got.Labels["app"] != "db" || got.Labels[naming.LabelStagedBy] != "" || got.Annotations["team"] != "a" || len(got.Annotations) != 2 {
		t.Errorf("labels %v, annotations %v", got.Labels, got.Annotations)
	}
	s := got.Spec
	size := s.Resources.Requests[corev1.ResourceStorage]
	if s.VolumeName != "" || s.Selector != nil || s.DataSource != nil || *s.StorageClassName != "fast" || size.String() != "20Gi" || s.AccessModes[0] != corev1.ReadWriteMany || s.VolumeMode == nil {
		t.Errorf("got %+v", s)
	}
	if !IsStaged(got, owner.PlanUID) || IsStaged(got, "another") {
		t.Error("it is not known for the plan's")
	}
	got.Annotations[naming.AnnMigratedFrom] = "src/shop/data"
	if IsStaged(got, owner.PlanUID) {
		t.Error("a claim that was migrated with is taken for one that was staged only")
	}
}

func TestAClaimThatThePlanWantsOtherwiseNowDoesNotSuit(t *testing.T) {
	want := sourceClaim()
	for name, c := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		suits  bool
	}{
		"as it was": {func(*corev1.PersistentVolumeClaim) {}, true},
		"the same size": {func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("10240Mi")
		}, true},
		"another class": {func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = ptr.To("gp3") }, false},
		"another size": {func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("9Gi")
		}, false},
		"another mode": {func(c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes[0] = corev1.ReadWriteMany }, false},
		"one mode too many": {func(c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = append(c.Spec.AccessModes, corev1.ReadOnlyMany)
		}, false},
	} {
		have := sourceClaim()
		c.change(have)
		if got := SuitsClaim(have, want); got != c.suits {
			t.Errorf("%s: suits %v", name, got)
		}
	}
}
