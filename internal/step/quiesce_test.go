package step

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
)

const shopWorkloads = `
{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web, uid: web}, spec: {replicas: 7, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}}}, status: {readyReplicas: 7}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {namespace: shop, name: web}, spec: {minReplicas: 2, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {namespace: shop, name: web-1, uid: web-1, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: web, controller: true}]}, spec: {replicas: 0, selector: {matchLabels: {app: web}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: idle, uid: idle}, spec: {replicas: 0, selector: {matchLabels: {app: idle}}, template: {}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: monitor, uid: monitor}, spec: {replicas: 1, selector: {matchLabels: {app: monitor}}, template: {}}, status: {readyReplicas: 1}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: shop, name: db, uid: db}, spec: {replicas: 3, serviceName: db, selector: {matchLabels: {app: db}}, template: {}, persistentVolumeClaimRetentionPolicy: {whenScaled: Delete, whenDeleted: Retain}}, status: {replicas: 3, readyReplicas: 3}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: shop, name: sensor, uid: sensor}, spec: {selector: {matchLabels: {app: sensor}}, template: {spec: {containers: [], nodeSelector: {zone: a}}}}, status: {currentNumberScheduled: 1, numberMisscheduled: 0, numberReady: 1, desiredNumberScheduled: 1}}
---
{apiVersion: batch/v1, kind: CronJob, metadata: {namespace: shop, name: tick, uid: tick}, spec: {schedule: "* * * * *", suspend: false, jobTemplate: {}}}
---
{apiVersion: batch/v1, kind: CronJob, metadata: {namespace: shop, name: paused, uid: paused}, spec: {schedule: "* * * * *", suspend: true, jobTemplate: {}}}
`

func noneReady(t *testing.T, r Run) {
	t.Helper()
	edit(t, r.Source, "apps/v1", "Deployment", "shop", "web", int64(0), "status", "readyReplicas")
	edit(t, r.Source, "apps/v1", "StatefulSet", "shop", "db", int64(0), "status", "readyReplicas")
	edit(t, r.Source, "apps/v1", "DaemonSet", "shop", "sensor", int64(0), "status", "numberReady")
	edit(t, r.Source, "apps/v1", "DaemonSet", "shop", "sensor", int64(0), "status", "desiredNumberScheduled")
}

func allReady(t *testing.T, r Run) {
	t.Helper()
	edit(t, r.Source, "apps/v1", "Deployment", "shop", "web", int64(7), "status", "readyReplicas")
	edit(t, r.Source, "apps/v1", "StatefulSet", "shop", "db", int64(3), "status", "readyReplicas")
	edit(t, r.Source, "apps/v1", "DaemonSet", "shop", "sensor", int64(1), "status", "numberReady")
	edit(t, r.Source, "apps/v1", "DaemonSet", "shop", "sensor", int64(1), "status", "desiredNumberScheduled")
}

func facts(notes []progress.Note, reason string) []string {
	var out []string
	for _, n := range notes {
		if n.Reason() == reason {
			out = append(out, n.Regarding().Kind+" "+n.Regarding().Name+": "+n.Text())
		}
	}
	slices.Sort(out)
	return out
}

func TestAnApplicationIsStoppedAndComesBackAsItWas(t *testing.T) {
	r := bed(t, shopWorkloads, "")
	before := snapshot(t, r.Source, "shop")

	d := settle(t, QuiesceApplications(r))
	check(t, "quiesce", d, pipeline.Done, "stopped: 4 workloads")
	want := []string{
		"CronJob tick: suspend false → true",
		"DaemonSet sensor: runs on no node",
		"Deployment web: replicas 7 → 0; HorizontalPodAutoscaler web (2 to 9) does nothing at 0",
		"StatefulSet db: replicas 3 → 0",
	}
	if got := facts(d.Facts, "Quiescing"); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	noneReady(t, r)
	check(t, "gate", settle(t, EnsureQuiesced(r)), pipeline.Done, "no writer is left")
	if err := StillQuiesced(t.Context(), r); err != nil {
		t.Errorf("the gate does not hold: %v", err)
	}
	down, err := Stopped(t.Context(), r)
	if err != nil || !down {
		t.Errorf("not known to be stopped (%v)", err)
	}

	d = settle(t, UnquiesceApplications(r))
	if got := len(facts(d.Facts, "Unquiesced")); d.Verdict != pipeline.Done || got != 4 {
		t.Errorf("%d workloads told to be back, want 4: %v", got, d.Note)
	}
	edit(t, r.Source, "apps/v1", "DaemonSet", "shop", "sensor", int64(1), "status", "desiredNumberScheduled")
	check(t, "not ready yet", settle(t, EnsureUnquiesced(r)), pipeline.Wait, "Deployment shop/web 0/7 ready: no pod is made yet")
	allReady(t, r)
	check(t, "ready again", settle(t, EnsureUnquiesced(r)), pipeline.Done, "as ready as it was")
	sameWorkloads(t, snapshot(t, r.Source, "shop"), before)
	check(t, "a second time", settle(t, UnquiesceApplications(r)), pipeline.Done, "nothing on the source is stopped")
}

func TestAKillBetweenAnyTwoWritesLosesNothing(t *testing.T) {
	const writes = 5 // three workloads, and the StatefulSet twice
	for n := range writes + 1 {
		t.Run(fmt.Sprintf("after %d writes of stopping", n), func(t *testing.T) {
			r := bed(t, shopWorkloads, "")
			before := snapshot(t, r.Source, "shop")
			first := r
			first.Source.Cluster = killedAfter(t, r.Source.Cluster, n)
			for s := QuiesceApplications(first); ; {
				if err := s.Act(t.Context()); errors.Is(err, errKilled) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				if d, err := s.Next(t.Context()); err == nil && d.Verdict == pipeline.Done {
					break
				}
			}
			settle(t, QuiesceApplications(r)) // another process goes on
			settle(t, UnquiesceApplications(r))
			settle(t, EnsureUnquiesced(r))
			sameWorkloads(t, snapshot(t, r.Source, "shop"), before)
		})
		t.Run(fmt.Sprintf("after %d writes of bringing back", n), func(t *testing.T) {
			r := bed(t, shopWorkloads, "")
			before := snapshot(t, r.Source, "shop")
			settle(t, QuiesceApplications(r))
			second := r
			second.Source.Cluster = killedAfter(t, r.Source.Cluster, n)
			_ = UnquiesceApplications(second).Act(t.Context())
			_ = EnsureUnquiesced(second).Act(t.Context())
			settle(t, UnquiesceApplications(r))
			settle(t, EnsureUnquiesced(r))
			sameWorkloads(t, snapshot(t, r.Source, "shop"), before)
		})
	}
}

func TestASetIsScaledOnlyWhenItsClaimsAreKnownToStay(t *testing.T) {
	r := bed(t, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: shop, name: db, generation: 1}, spec: {replicas: 3, serviceName: db, selector: {}, template: {}, persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}}, status: {replicas: 3, observedGeneration: 1}}`, "")
	s := QuiesceApplications(r)
	if err := s.Act(t.Context()); err != nil {
		t.Fatal(err)
	}
	edit(t, r.Source, "apps/v1", "StatefulSet", "shop", "db", int64(2), "metadata", "generation") // as a real server does
	check(t, "not observed", settle(t, s), pipeline.Wait, "the claims of StatefulSet shop/db are to be kept")
	edit(t, r.Source, "apps/v1", "StatefulSet", "shop", "db", int64(2), "status", "observedGeneration")
	check(t, "observed", settle(t, s), pipeline.Done, "")
}

func TestTheGate(t *testing.T) {
	pod := func(name, spec string) string {
		return fmt.Sprintf("\n---\n{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: %s%s}, status: {phase: Running}}", name, spec)
	}
	const data = `}, spec: {containers: [], volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]`
	const cache = `}, spec: {containers: [], volumes: [{name: d, persistentVolumeClaim: {claimName: cache}}]`
	const ofWeb = `, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: web-1, controller: true}]`
	for name, c := range map[string]struct {
		pods    string
		verdict pipeline.Verdict
		says    string
	}{
		"a pod that its Deployment has still to delete": {pod("web-a", ofWeb), pipeline.Wait, "pod shop/web-a: not yet deleted by its Deployment shop/web"},
		"a bare pod with the data":                      {pod("shell", data), pipeline.Blocked, "pod shop/shell (mounts shop/data): no workload owns it"},
		"a bare pod with what is skipped":               {pod("shell", cache), pipeline.Done, ""},
		"a stage pod":                                   {pod("stage", `, labels: {mig-cli.github.io/created-by: mig}`+data), pipeline.Done, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := bed(t, shopWorkloads+c.pods, "")
			settle(t, QuiesceApplications(r))
			noneReady(t, r)
			check(t, name, settle(t, EnsureQuiesced(r)), c.verdict, c.says)
		})
	}
}

func TestTheGateIsBrokenByWhoeverScalesUp(t *testing.T) {
	r := bed(t, shopWorkloads, "")
	settle(t, QuiesceApplications(r))
	edit(t, r.Source, "apps/v1", "Deployment", "shop", "web", int64(2), "spec", "replicas")
	var broken *GateError
	if err := StillQuiesced(t.Context(), r); !errors.As(err, &broken) || broken.Note.Reason() != "SourceScaledUp" || broken.Note.Regarding().Name != "web" {
		t.Errorf("got %v, want SourceScaledUp about web", err)
	}
	check(t, "before the copy", settle(t, EnsureQuiesced(r)), pipeline.Failed, "Deployment shop/web on the source came up again (replicas 2)")
	check(t, "resumed", settle(t, QuiesceApplications(r)), pipeline.Failed, "came up again")

	settle(t, UnquiesceApplications(r))
	w := snapshot(t, r.Source, "shop")["Deployment/shop/web"]
	if spec, _ := w["spec"].(map[string]any); spec["replicas"] != int64(2) {
		t.Errorf("what a person has scaled is left at their number, got %v", spec["replicas"])
	}
}

func TestAWorkloadThatAppearsBeforeTheGateIsStoppedToo(t *testing.T) {
	r := bed(t, "", "")
	settle(t, QuiesceApplications(r))
	late := objects(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: late}, spec: {replicas: 2, selector: {}, template: {}}}`)[0]
	if err := r.Source.Create(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	check(t, "gate", settle(t, EnsureQuiesced(r)), pipeline.Done, "stopped: 1 workload")
}

func TestOneThatCannotBeBroughtBackDoesNotKeepTheOthersDown(t *testing.T) {
	r := bed(t, shopWorkloads, "")
	settle(t, QuiesceApplications(r))
	for _, key := range []string{naming.RefPreQuiesceReplicas, naming.AnnQuiesceReady} {
		edit(t, r.Source, "apps/v1", "StatefulSet", "shop", "db", "lost", "metadata", "annotations", key)
	}
	err := UnquiesceApplications(r).Act(t.Context())
	if err == nil || !strings.Contains(err.Error(), "StatefulSet shop/db") {
		t.Errorf("got %v, want an error that names the set", err)
	}
	web := snapshot(t, r.Source, "shop")["Deployment/shop/web"]
	if spec, _ := web["spec"].(map[string]any); spec["replicas"] != int64(7) {
		t.Errorf("web has %v replicas, want 7", spec["replicas"])
	}
}

func TestMarksCopiedToAReplicaSetGo(t *testing.T) {
	r := bed(t, shopWorkloads, "")
	settle(t, QuiesceApplications(r))
	web := snapshot(t, r.Source, "shop")["Deployment/shop/web"]
	meta, _ := web["metadata"].(map[string]any)
	edit(t, r.Source, "apps/v1", "ReplicaSet", "shop", "web-1", meta["annotations"], "metadata", "annotations")
	noneReady(t, r)
	settle(t, UnquiesceApplications(r))
	settle(t, EnsureUnquiesced(r))
	marks := func() any {
		rs, _ := snapshot(t, r.Source, "shop")["ReplicaSet/shop/web-1"]["metadata"].(map[string]any)
		return rs["annotations"]
	}
	if marks() == nil {
		t.Error("removed while the Deployment still bears them: its controller would copy them again")
	}
	allReady(t, r)
	settle(t, EnsureUnquiesced(r))
	if left := marks(); left != nil {
		t.Errorf("left on the ReplicaSet: %v", left)
	}
}

func TestTheHistoryOfADaemonSetLosesTheQuiescedTemplate(t *testing.T) {
	revision := func(name, plan, selector string) string {
		return fmt.Sprintf("\n---\n{apiVersion: apps/v1, kind: ControllerRevision, metadata: {namespace: shop, name: %s, annotations: {mig-cli.github.io/quiesce-plan-uid: %s}, ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: sensor, uid: sensor, controller: true}]}, revision: 1, data: {spec: {template: {spec: {nodeSelector: {%s: x}}}}}}", name, plan, selector)
	}
	r := bed(t, shopWorkloads+
		revision("quiesced", "5f0c3d9e-27b1", "mig-cli.github.io/quiesced")+
		revision("older", "5f0c3d9e-27b1", "zone")+
		revision("theirs", "another-plan", "mig-cli.github.io/quiesced"), "")
	settle(t, QuiesceApplications(r))
	settle(t, EnsureUnquiesced(r))
	if !exists(t, r.Source, "apps/v1", "ControllerRevision", "shop", "quiesced") {
		t.Error("removed while it is the template in use")
	}
	settle(t, UnquiesceApplications(r))
	settle(t, EnsureUnquiesced(r))
	for name, want := range map[string]bool{"quiesced": false, "older": true, "theirs": true} {
		if got := exists(t, r.Source, "apps/v1", "ControllerRevision", "shop", name); got != want {
			t.Errorf("revision %s is there: %v, want %v", name, got, want)
		}
	}
}

// A stage pod bears the name of the pod that the claim was last copied through;
// where that is not free, everything is copied again.
func TestTheGateWaitsUntilEndedPodsAreGone(t *testing.T) {
	r := bed(t, "", "")
	ended := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-a", DeletionTimestamp: &metav1.Time{Time: time.Now()}}}
	ended.Status.Phase = corev1.PodFailed
	check(t, "ended", decideQuiesced(nil, []corev1.Pod{ended}, r.Owner, r.scope()), pipeline.Wait, "shop/web-a")
	check(t, "gone", decideQuiesced(nil, nil, r.Owner, r.scope()), pipeline.Done, "")
}
