//go:build e2e

package cases

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/mig-cli/mig/internal/plan"
)

func TestDataOnTheNodesOwnDiskIsNamedAndNeedsConsent(t *testing.T) {
	p := open(t, scenario{"D01", "volume-coverage", api})
	reel := claim("cinema", "reel", "by-hand")
	reel.Spec.VolumeName = "shelf-9"
	shelf := volumeFor(reel, corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv/shelf-9"}})
	shelf.Name = "shelf-9"
	p.given(p.src(), shelf, namespace("cinema"), reel,
		deployment("cinema", "projector", mountsHostPath("posters", "/srv/posters"), readOnly(mountsHostPath("zone", "/etc/localtime"))),
		deployment("cinema", "cutter", mountsClaim("reel")))
	p.given(p.dst(), asDefault(storageClass("plain", "cloth.example")))
	p.planned("cinema")

	v := p.validated()
	c := p.wantFound(v, "HostPathData", "projector", "/srv/posters", "/posters")
	if !c.blocks() {
		t.Error("it goes on without a word from the user")
	}
	if c.names("/etc/localtime") {
		t.Errorf("a file of every node is no data of the user's: %+v", c)
	}
	if row := p.discovered().of("cinema/reel"); row.Backend != "hostPath" || row.Action != "" || strings.Contains(strings.Join(row.Supported, " "), "copy") {
		t.Errorf("a claim on a node's disk is copied by nobody: %+v", row)
	}
	p.wantFound(v, "ActionsChosen", "cinema/reel")
	p.exits(blocked, "migrate")

	p.editPlan("cinema", func(p *plan.Plan) {
		p.Spec.Volumes[0].Action = plan.Skip
		for _, o := range c.Objects {
			p.Spec.Accept = append(p.Spec.Accept, plan.Accept{Type: c.Type, Object: o, Why: "posters are printed anew"})
		}
	})
	p.wantReady(p.validated())
}

func TestABlockVolumeIsNamedAndTheRestOfThePlanStaysUsable(t *testing.T) {
	p := open(t, scenario{"D09", "volume-coverage", api})
	slab := claim("quarry", "slab", "rock")
	slab.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
	p.given(p.src(), storageClass("rock", "stone.example"), namespace("quarry"), slab, claim("quarry", "ledger", "rock"),
		deployment("quarry", "saw", mountsDevice("slab"), mountsClaim("ledger")))
	p.given(p.dst(), storageClass("rock", "stone.example"))
	p.planned("quarry")

	p.wantBlocked(p.validated(), "ActionsChosen", "quarry/slab")
	d := p.discovered()
	if row := d.of("quarry/slab"); row.VolumeMode != "Block" || !strings.Contains(row.Why, "block") || row.Action != "" {
		t.Errorf("mode and reason are to be told: %+v", row)
	}
	if row := d.of("quarry/ledger"); row.Action != "copy" {
		t.Errorf("the other claim is copied: %+v", row)
	}
	p.editPlan("quarry", copying("quarry/slab"))
	p.wantBlocked(p.validated(), "BlockVolume", "quarry/slab")
	p.editPlan("quarry", func(p *plan.Plan) {
		for i := range p.Spec.Volumes {
			if p.Spec.Volumes[i].Claim == "quarry/slab" {
				p.Spec.Volumes[i].Action = plan.Skip
			}
		}
	})
	p.wantReady(p.validated())
}

// copying chooses copy for a claim.
func copying(claim string) func(*plan.Plan) {
	return func(p *plan.Plan) {
		for i := range p.Spec.Volumes {
			if p.Spec.Volumes[i].Claim == claim {
				p.Spec.Volumes[i].Action = plan.Copy
			}
		}
	}
}

func TestAClaimOfFinishedPodsIsToldFromOneThatIsInUse(t *testing.T) {
	p := open(t, scenario{"D03", "volume-coverage", api})
	p.given(p.src(), storageClass("rock", "stone.example"), namespace("kiln"), claim("kiln", "pots", "rock"), finishedJob("kiln", "firing", "pots"))
	p.given(p.dst(), storageClass("rock", "stone.example"))
	p.planned("kiln")
	p.wantReady(p.validated())
	row := p.discovered().of("kiln/pots")
	if row.Action != "copy" || !strings.Contains(row.Why, "helper pod") || !strings.Contains(row.Why, "finished") {
		t.Errorf("a claim that only a finished pod mounts is copied through a helper pod, and it is told: %+v", row)
	}
}

func finishedJob(namespace, name, claim string) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: in(namespace, name)}
	j.Spec.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{phaseAnnotation: string(corev1.PodSucceeded)}},
		Spec:       podSpec(mountsClaim(claim)),
	}
	j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return j
}

func TestClaimsThatNoPodMountsAreToldApart(t *testing.T) {
	p := open(t, scenario{"D05", "volume-coverage", api})
	asleep := deployment("harbour", "crane", mountsClaim("hook"))
	asleep.Spec.Replicas = ptr.To(int32(0))
	p.given(p.src(), storageClass("rock", "stone.example"), patient("tides", "sea.example"), namespace("harbour"),
		claim("harbour", "anchor", "rock"), claim("harbour", "hook", "rock"), claim("harbour", "someday", "tides"), asleep)
	p.given(p.dst(), storageClass("rock", "stone.example"), patient("tides", "sea.example"))
	p.planned("harbour")

	d := p.discovered()
	for _, claim := range []string{"harbour/anchor", "harbour/hook"} {
		if row := d.of(claim); row.Action != "copy" || !strings.Contains(row.Why, "no pod") {
			t.Errorf("%s is copied although no pod mounts it: %+v", claim, row)
		}
	}
	row := d.of("harbour/someday")
	if row.Phase != "Pending" || !strings.Contains(row.Why, "no data") {
		t.Errorf("a claim without a volume has no data: %+v", row)
	}
}

func TestAClaimThatLivesAndDiesWithItsPodIsNotCopied(t *testing.T) {
	p := open(t, scenario{"D11", "volume-coverage", api})
	d := deployment("studio", "easel", mountsClaim("canvas"), scratch("palette", "rock"), empty("rags"))
	p.given(p.src(), storageClass("rock", "stone.example"), namespace("studio"), claim("studio", "canvas", "rock"), d)
	p.given(p.dst(), storageClass("rock", "stone.example"))
	p.planned("studio")
	p.wantReady(p.validated())
	for _, row := range p.discovered().Claims {
		switch {
		case row.Claim == "studio/canvas":
			if row.Action != "copy" {
				t.Errorf("the claim is copied: %+v", row)
			}
		case row.Action == "copy":
			t.Errorf("a claim that its pod makes again is not copied: %+v", row)
		}
	}
}

// scratch is a generic ephemeral volume: the pod makes its own claim.
func scratch(name, class string) mounting {
	spec := claim("", name, class).Spec
	return mounting{volume: corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: spec},
	}}}}
}

func empty(name string) mounting {
	limit := resource.MustParse("8Mi")
	return mounting{volume: corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}}}}
}
