package quiesce

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/mig-cli/mig/internal/naming"
)

func pod(name, ownerKind, ownerUID string, claims ...string) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	if ownerKind != "" {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: ownerKind, Name: ownerUID, UID: types.UID(ownerUID), Controller: ptr.To(true)}}
	}
	for _, c := range claims {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: c, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c},
		}})
	}
	return p
}

func owned(t *testing.T, kind, apiVersion, name, ownerKind, owner string) Workload {
	t.Helper()
	w := workload(t, "{apiVersion: "+apiVersion+", kind: "+kind+", metadata: {name: "+name+"}}")
	w.SetUID(types.UID(name))
	if owner != "" {
		w.SetOwnerReferences([]metav1.OwnerReference{{Kind: ownerKind, Name: owner, UID: types.UID(owner), Controller: ptr.To(true)}})
	}
	return w
}

// complete is the job after its end: then only pods that are there count.
func complete(w Workload) Workload {
	w.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	return w
}

func TestAJobBetweenTwoTriesStillWrites(t *testing.T) {
	scope := Scope{Copied: map[string]bool{"shop/data": true}}
	job := workload(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: import, uid: import}, spec: {template: {spec: {volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}}}}`)
	failed := pod("import-a", "Job", "import", "data")
	failed.Status.Phase = corev1.PodFailed
	got := Writers([]corev1.Pod{failed}, []Workload{job}, scope)
	if len(got) != 1 || got[0].Hope != Stays || got[0].Name != "import" {
		t.Errorf("got %v, want the Job", got)
	}
	if got := Writers([]corev1.Pod{pod("import-b", "Job", "import", "data")}, []Workload{job}, scope); len(got) != 1 || got[0].Kind != "pod" {
		t.Errorf("got %v, want its pod alone", got)
	}
	if got := Writers(nil, []Workload{owned(t, "CronJob", "batch/v1", "tick", "", ""), owned(t, "Job", "batch/v1", "tick-1", "CronJob", "tick")}, scope); len(got) != 1 || got[0].Hope != Finishes {
		t.Errorf("got %v, want the Job of the CronJob, waited for", got)
	}
	if got := Writers(nil, []Workload{complete(job)}, scope); len(got) != 0 {
		t.Errorf("a Job that is complete: got %v", got)
	}
}

func TestThePodsThatStillWrite(t *testing.T) {
	workloads := []Workload{
		owned(t, "Deployment", "apps/v1", "web", "", ""),
		owned(t, "ReplicaSet", "apps/v1", "web-1", "Deployment", "web"),
		owned(t, "Deployment", "apps/v1", "monitor", "", ""),
		owned(t, "ReplicaSet", "apps/v1", "monitor-1", "Deployment", "monitor"),
		owned(t, "ReplicaSet", "apps/v1", "canary-1", "Rollout", "canary"),
		owned(t, "CronJob", "batch/v1", "tick", "", ""),
		complete(owned(t, "Job", "batch/v1", "tick-1", "CronJob", "tick")),
		complete(owned(t, "Job", "batch/v1", "import", "", "")),
	}
	scope := Scope{Copied: map[string]bool{"shop/data": true, "shop/db-0-cache": true}, Except: map[string]bool{"Deployment/shop/monitor": true}}
	terminating := pod("web-a", "ReplicaSet", "web-1", "data")
	terminating.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 10, 0, 30, 0, time.UTC)}
	terminating.DeletionGracePeriodSeconds = ptr.To(int64(30))
	terminating.Finalizers = []string{"shop.test/guard"}
	done := pod("old", "", "", "data")
	done.Status.Phase = corev1.PodSucceeded
	stage := pod("stage", "", "", "data")
	stage.Labels = map[string]string{naming.LabelCreatedBy: naming.CreatedBy}
	ephemeral := pod("db-0", "", "")
	ephemeral.Spec.Volumes = []corev1.Volume{{Name: "cache", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}

	for name, tc := range map[string]struct {
		pod  corev1.Pod
		hope Hope // 0: not a writer
		why  string
	}{
		"one on its way out, held by a finalizer":   {terminating, Leaves, "terminating since 10:00:00 (30s to end by itself), held by finalizer shop.test/guard"},
		"one that its workload has not deleted yet": {pod("web-b", "ReplicaSet", "web-1"), Leaves, "not yet deleted by its Deployment shop/web"},
		"a finished one":                              {done, 0, ""},
		"a stage pod of mig":                          {stage, 0, ""},
		"of an excepted workload":                     {pod("m", "ReplicaSet", "monitor-1"), 0, ""},
		"of an excepted workload that mounts a claim": {pod("m", "ReplicaSet", "monitor-1", "data"), Stays, "excepted"},
		"of a cron job's job":                         {pod("t", "Job", "tick-1", "data"), Finishes, "Job shop/tick-1 of CronJob shop/tick runs to its end"},
		"of a job with a claim":                       {pod("i", "Job", "import", "data"), Stays, "Job shop/import still runs"},
		"of a job without a claim":                    {pod("i", "Job", "import", "tmp"), Harmless, "Job shop/import"},
		"a bare one with a claim":                     {pod("b", "", "", "tmp", "data"), Stays, "no workload owns it: mig cannot stop it"},
		"a bare one with an ephemeral claim":          {ephemeral, Stays, "no workload owns it"},
		"a bare one without":                          {pod("b", "", ""), Harmless, "no workload owns it"},
		"of an operator's own kind":                   {pod("k", "StrimziPodSet", "kafka", "data"), Stays, "owned by StrimziPodSet shop/kafka"},
		"of a replica set that somebody else scales":  {pod("c", "ReplicaSet", "canary-1", "data"), Stays, "owned by Rollout shop/canary"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Writers([]corev1.Pod{tc.pod}, workloads, scope)
			if tc.hope == 0 {
				if len(got) != 0 {
					t.Fatalf("taken for a writer: %v", got)
				}
				return
			}
			if len(got) != 1 || got[0].Hope != tc.hope || !strings.Contains(got[0].Why, tc.why) {
				t.Errorf("got %+v, want hope %d, %q", got, tc.hope, tc.why)
			}
		})
	}
}

func TestPodsThatHaveEndedAreWaitedForUntilTheirNamesAreFree(t *testing.T) {
	going := pod("web-a", "ReplicaSet", "web-1", "data")
	going.Status.Phase, going.DeletionTimestamp = corev1.PodFailed, &metav1.Time{Time: time.Date(2026, 1, 1, 10, 0, 30, 0, time.UTC)}
	held := *going.DeepCopy()
	held.Name, held.Finalizers = "held", []string{"shop.test/guard"}
	done := pod("old", "Job", "import", "data")
	done.Status.Phase = corev1.PodSucceeded
	if got := Ended([]corev1.Pod{going, held, done, pod("db-0", "StatefulSet", "db")}); !slices.Equal(got, []string{"shop/web-a"}) {
		t.Errorf("waits for %v, want the one that is about to go", got)
	}
}

func TestAWriterNamesItsClaims(t *testing.T) {
	got := Writers([]corev1.Pod{pod("b", "", "", "data")}, nil, Scope{Copied: map[string]bool{"shop/data": true}})
	if want := "pod shop/b (mounts shop/data): no workload owns it: mig cannot stop it"; len(got) != 1 || got[0].String() != want {
		t.Errorf("got %v, want %q", got, want)
	}
}
