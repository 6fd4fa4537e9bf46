//go:build e2e

package cases

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/mig-cli/mig/internal/plan"
)

func TestAClassThatTheDestinationLacksIsNamedWithThoseThatItHas(t *testing.T) {
	p := open(t, scenario{"B01", "storage-class", api})
	p.given(p.src(), storageClass("velvet", "looms.example"), namespace("weaver"),
		claim("weaver", "patterns", "velvet"), deployment("weaver", "loom", mountsClaim("patterns")))
	p.given(p.dst(), storageClass("linen", "cloth.example"), storageClass("hemp", "cloth.example"))
	p.planned("weaver")

	c := p.wantBlocked(p.validated(), "StorageClassMissing", "weaver/patterns", "velvet", "linen", "hemp")
	if c.Hint == "" {
		t.Error("it is not told what to do")
	}
	p.exits(blocked, "migrate")

	p.editPlan("weaver", func(p *plan.Plan) { p.Spec.StorageClasses = map[string]string{"velvet": "linen"} })
	p.wantReady(p.validated())
	row := p.discovered().of("weaver/patterns")
	if row.StorageClass != "velvet" || row.DestinationClass != "linen" || row.Why == "" {
		t.Errorf("want class, proposal and reason of the claim: %+v", row)
	}
}

func TestAClassOfTheSameMakerOrTheDefaultOneIsProposedWithItsReason(t *testing.T) {
	p := open(t, scenario{"B01", "storage-class", api})
	p.given(p.src(), storageClass("silk", "worms.example"), storageClass("wool", "sheep.example"), namespace("tailor"),
		claim("tailor", "ties", "silk"), claim("tailor", "coats", "wool"))
	p.given(p.dst(), storageClass("silk-2", "worms.example"), asDefault(storageClass("cotton", "plants.example")))
	p.planned("tailor")
	p.wantReady(p.validated())
	d := p.discovered()
	for claim, class := range map[string]string{"tailor/ties": "silk-2", "tailor/coats": "cotton"} {
		if row := d.of(claim); row.DestinationClass != class || row.Why == "" {
			t.Errorf("want %s for %s, with a reason: %+v", class, claim, row)
		}
	}
}

func TestAClaimThatWaitsForAPodThatNobodyMakesIsTold(t *testing.T) {
	p := open(t, scenario{"B03", "storage-class", api})
	p.given(p.src(), storageClass("eager", "cloth.example"), namespace("cloak"),
		claim("cloak", "trunk", "eager"), deployment("cloak", "room"))
	p.given(p.dst(), patient("patient", "cloth.example"))
	p.planned("cloak")
	p.wantReady(p.validated())
	row := p.discovered().of("cloak/trunk")
	if row.Action != "copy" || row.DestinationClass != "patient" || len(row.MountedBy) != 0 {
		t.Errorf("an unmounted claim is copied into a class that waits for pods: %+v", row)
	}
}

func TestTheTemplateOfAStatefulSetIsNotForgottenWhereTheClassIsGone(t *testing.T) {
	p := open(t, scenario{"B04", "storage-class", api})
	p.given(p.src(), storageClass("brass", "mines.example"), namespace("bandstand"), band("bandstand", "brass"))
	p.given(p.dst(), storageClass("tin", "smiths.example"))
	p.planned("bandstand")
	p.wantBlocked(p.validated(), "StorageClassMissing", "bandstand/notes-horns-0", "brass", "tin")
	p.editPlan("bandstand", func(p *plan.Plan) { p.Spec.StorageClasses = map[string]string{"brass": "tin"} })
	p.wantReady(p.validated())
}

func TestATemplateWithoutClaimsYetIsNotForgottenWhereItsClassIsGone(t *testing.T) {
	p := open(t, scenario{"B04", "storage-class", api})
	asleep := band("band", "brass")
	asleep.Spec.Replicas = ptr.To(int32(0))
	p.given(p.src(), storageClass("brass", "mines.example"), namespace("band"), asleep)
	p.given(p.dst(), storageClass("tin", "smiths.example"))
	p.planned("band")
	p.wantFound(p.validated(), "TemplateClassGone", "horns", "brass")
	p.editPlan("band", func(p *plan.Plan) { p.Spec.StorageClasses = map[string]string{"brass": "tin"} })
	if found := p.validated().of("TemplateClassGone"); len(found) > 0 {
		t.Errorf("the template's class is mapped: %+v", found)
	}
}

// band is a StatefulSet of one with a claim template.
func band(namespace, class string) *appsv1.StatefulSet {
	labels := map[string]string{"app": "horns"}
	s := &appsv1.StatefulSet{ObjectMeta: in(namespace, "horns")}
	s.Spec = appsv1.StatefulSetSpec{
		Replicas: ptr.To(int32(1)), ServiceName: "horns", Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()},
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*claim("", "notes", class)},
	}
	s.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "notes", MountPath: "/notes"}}
	return s
}

func TestAReadOnlyClaimIsNamedBeforeNothingCanBeWrittenIntoIt(t *testing.T) {
	p := open(t, scenario{"B06", "storage-class", api})
	maps := claim("library", "maps", "shelf")
	maps.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
	p.given(p.src(), storageClass("shelf", "wood.example"), namespace("library"), maps,
		deployment("library", "reader", readOnly(mountsClaim("maps"))))
	p.given(p.dst(), storageClass("shelf", "wood.example"))
	p.planned("library")
	p.wantBlocked(p.validated(), "ReadOnlyClaim", "library/maps")
	p.editPlan("library", func(p *plan.Plan) { p.Spec.Volumes[0].Destination.AccessModes = []string{"ReadWriteMany"} })
	if found := p.validated().of("ReadOnlyClaim"); len(found) > 0 {
		t.Errorf("a claim that is made writable can be restored: %+v", found)
	}
}
