package step

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/velero"
)

func backupIn(phase velerov1.BackupPhase) *velerov1.Backup {
	return &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "velero", Name: "mig-shop-stage"}, Status: velerov1.BackupStatus{Phase: phase}}
}

func volume(claim string, phase velerov1.PodVolumeBackupPhase) velero.Capture {
	if phase == "" {
		return velero.Capture{Claim: claim}
	}
	return velero.Capture{Claim: claim, Backup: &velerov1.PodVolumeBackup{Status: velerov1.PodVolumeBackupStatus{Phase: phase, SnapshotID: "s", Message: "disk on fire"}}}
}

func back(claim string, phase velerov1.PodVolumeRestorePhase) velero.Capture {
	c := volume(claim, velerov1.PodVolumeBackupPhaseCompleted)
	if phase != "" {
		c.Restore = &velerov1.PodVolumeRestore{Status: velerov1.PodVolumeRestoreStatus{Phase: phase, Message: "disk on fire"}}
		c.Restore.Spec.Pod.Namespace = "shop-prod"
	}
	return c
}

func check(t *testing.T, name string, d pipeline.Decision, verdict pipeline.Verdict, says string) {
	t.Helper()
	if d.Verdict != verdict || !strings.Contains(d.Note.Text(), says) {
		t.Errorf("%s: verdict %d %q, want %d and %q in it", name, d.Verdict, d.Note.Text(), verdict, says)
	}
}

func TestAnInitialBackupWithVolumeDataIsNeverTakenForGood(t *testing.T) {
	pvb := []velerov1.PodVolumeBackup{{ObjectMeta: metav1.ObjectMeta{Name: "pvb-1"}}}
	check(t, "volume data", decideInitialBackup(backupIn(velerov1.BackupPhaseCompleted), pvb, "InitialBackupCreated"), pipeline.Failed, "pvb-1")
	check(t, "objects only", decideInitialBackup(backupIn(velerov1.BackupPhaseCompleted), nil, "InitialBackupCreated"), pipeline.Done, "")
	check(t, "partly failed", decideInitialBackup(backupIn(velerov1.BackupPhasePartiallyFailed), nil, "InitialBackupCreated"), pipeline.Failed, "PartiallyFailed")
	check(t, "unknown phase", decideInitialBackup(backupIn("Tomorrow"), nil, "InitialBackupCreated"), pipeline.Wait, "Tomorrow")
}

func TestAStageBackupIsDoneOnlyWhenEveryClaimIsInIt(t *testing.T) {
	completed := velerov1.PodVolumeBackupPhaseCompleted
	for name, c := range map[string]struct {
		phase   velerov1.BackupPhase
		volumes []velero.Capture
		verdict pipeline.Verdict
		says    string
	}{
		"all captured":                      {velerov1.BackupPhaseCompleted, []velero.Capture{volume("shop/a", completed), volume("shop/b", completed)}, pipeline.Done, "2 volumes"},
		"left out though Completed":         {velerov1.BackupPhaseCompleted, []velero.Capture{volume("shop/a", completed), volume("shop/b", "")}, pipeline.Failed, "left out shop/b"},
		"still uploading though Completed":  {velerov1.BackupPhaseCompleted, []velero.Capture{volume("shop/a", velerov1.PodVolumeBackupPhaseInProgress)}, pipeline.Failed, "left out shop/a"},
		"running":                           {velerov1.BackupPhaseInProgress, []velero.Capture{volume("shop/a", "")}, pipeline.Wait, "InProgress"},
		"a volume failed, backup runs on":   {velerov1.BackupPhaseInProgress, []velero.Capture{volume("shop/a", velerov1.PodVolumeBackupPhaseFailed)}, pipeline.Failed, "shop/a: Failed: disk on fire"},
		"a volume was canceled":             {velerov1.BackupPhasePartiallyFailed, []velero.Capture{volume("shop/a", velerov1.PodVolumeBackupPhaseCanceled)}, pipeline.Failed, "shop/a"},
		"PartiallyFailed, volumes captured": {velerov1.BackupPhasePartiallyFailed, []velero.Capture{volume("shop/a", completed)}, pipeline.Failed, "PartiallyFailed"},
	} {
		check(t, name, decideStageBackup(backupIn(c.phase), c.volumes), c.verdict, c.says)
	}
}

func TestAStageRestoreIsDoneOnlyWhenEveryVolumeIsBackBoundAndClean(t *testing.T) {
	restoreIn := func(p velerov1.RestorePhase) *velerov1.Restore {
		return &velerov1.Restore{ObjectMeta: metav1.ObjectMeta{Name: "mig-shop-stage"}, Status: velerov1.RestoreStatus{Phase: p}}
	}
	completed := velerov1.PodVolumeRestorePhaseCompleted
	bound := map[string]corev1.PersistentVolumeClaimPhase{"shop/a": corev1.ClaimBound}
	waiting := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-prod", Name: "db-0"}}
	waiting.Status.InitContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	for name, c := range map[string]struct {
		state   stageState
		verdict pipeline.Verdict
		says    string
	}{
		"all back": {stageState{restore: restoreIn(velerov1.RestorePhaseCompleted), captures: []velero.Capture{back("shop/a", completed)}, claims: bound}, pipeline.Done, "1 volume,"},
		"Completed without data, because the pod was there": {stageState{restore: restoreIn(velerov1.RestorePhaseCompleted), captures: []velero.Capture{back("shop/a", "")}, claims: bound}, pipeline.Failed, "left out the data of shop/a"},
		"claim not bound":               {stageState{restore: restoreIn(velerov1.RestorePhaseCompleted), captures: []velero.Capture{back("shop/a", completed)}}, pipeline.Wait, "shop/a (absent)"},
		"Velero's mark still there":     {stageState{restore: restoreIn(velerov1.RestorePhaseCompleted), captures: []velero.Capture{back("shop/a", completed)}, claims: bound, pods: []corev1.Pod{waiting}}, pipeline.Wait, "shop-prod/db-0"},
		"a volume failed":               {stageState{restore: restoreIn(velerov1.RestorePhaseInProgress), captures: []velero.Capture{back("shop/a", velerov1.PodVolumeRestorePhaseFailed)}}, pipeline.Failed, "disk on fire"},
		"progress 100 %, still running": {stageState{restore: restoreIn(velerov1.RestorePhaseInProgress), captures: []velero.Capture{back("shop/a", velerov1.PodVolumeRestorePhaseInProgress)}, claims: bound}, pipeline.Wait, "InProgress"},
		"PartiallyFailed":               {stageState{restore: restoreIn(velerov1.RestorePhasePartiallyFailed), captures: []velero.Capture{back("shop/a", completed)}, claims: bound}, pipeline.Failed, "PartiallyFailed"},
	} {
		check(t, name, decideStageRestore(c.state), c.verdict, c.says)
	}
}

func TestAWaitForARestoreNamesThePodThatCannotStart(t *testing.T) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-prod", Name: "db-0"}}
	pod.Status.Phase = corev1.PodPending
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "unbound claims"}}
	d := decideStageRestore(stageState{restore: &velerov1.Restore{Status: velerov1.RestoreStatus{Phase: velerov1.RestorePhaseInProgress}}, pods: []corev1.Pod{pod}})
	check(t, "pending", d, pipeline.Wait, "shop-prod/db-0: Unschedulable: unbound claims")
}

func TestAStalledRestoreSaysThatANodeAgentHasLostItsPlace(t *testing.T) {
	prepared, inProgress := velerov1.PodVolumeRestorePhasePrepared, velerov1.PodVolumeRestorePhaseInProgress
	on := func(c velero.Capture, node string) velero.Capture {
		c.Restore.Namespace, c.Restore.Status.Node = "velero", node
		return c
	}
	for name, c := range map[string]struct {
		captures []velero.Capture
		says     string // empty: nothing
	}{
		"none is begun": {
			[]velero.Capture{on(back("shop/a", prepared), "node-1"), on(back("shop/b", prepared), "node-1")},
			"by the node-agent of node-1: shop/a, shop/b.",
		},
		"one is begun, the other waits for its turn": {[]velero.Capture{on(back("shop/a", inProgress), "node-1"), on(back("shop/b", prepared), "node-1")}, ""},
		"their pods do not run yet":                  {[]velero.Capture{on(back("shop/a", velerov1.PodVolumeRestorePhaseAccepted), "node-1")}, ""},
		"not made yet":                               {[]velero.Capture{volume("shop/a", velerov1.PodVolumeBackupPhaseCompleted)}, ""},
	} {
		d := decideStageRestore(stageState{restore: &velerov1.Restore{Status: velerov1.RestoreStatus{Phase: velerov1.RestorePhaseInProgress}}, captures: c.captures})
		if (d.Stall != nil) != (c.says != "") || d.Stall != nil && !strings.Contains(d.Stall.Text(), c.says) {
			t.Errorf("%s: stalled it says %v", name, d.Stall)
		}
		if d.Verdict != pipeline.Wait || strings.Contains(d.Note.Text(), "lost its place") {
			t.Errorf("%s: says %q before it has stalled", name, d.Note.Text())
		}
	}
}

func TestABackupIsReplicatedOnlyWithAllItsVolumes(t *testing.T) {
	for name, c := range map[string]struct {
		rep     replica
		verdict pipeline.Verdict
	}{
		"unknown there":             {replica{}, pipeline.Act},
		"known with its volumes":    {replica{destination: &velerov1.Backup{}, volumes: named("v1"), there: map[string]bool{"v1": true}}, pipeline.Done},
		"known before its volumes":  {replica{destination: &velerov1.Backup{}, volumes: named("v1", "v2"), there: map[string]bool{"v1": true}}, pipeline.Act},
		"known, and has no volumes": {replica{destination: &velerov1.Backup{}}, pipeline.Done},
	} {
		if d := decideReplica(backupNote{}, c.rep); d.Verdict != c.verdict {
			t.Errorf("%s: verdict %d, want %d", name, d.Verdict, c.verdict)
		}
	}
}

func named(names ...string) []velerov1.PodVolumeBackup {
	var out []velerov1.PodVolumeBackup
	for _, n := range names {
		out = append(out, velerov1.PodVolumeBackup{ObjectMeta: metav1.ObjectMeta{Name: n}})
	}
	return out
}

func TestAReplicaBelongsToItsOwnClustersBackupAndLocation(t *testing.T) {
	src := backupIn(velerov1.BackupPhaseCompleted)
	src.UID, src.Spec.StorageLocation = "src-uid", "here"
	src.Spec.Hooks.Resources = []velerov1.BackupResourceHookSpec{{Name: "freeze"}}
	b := backupReplica(src, "velero-dst", "there")
	if b.Namespace != "velero-dst" || b.Spec.StorageLocation != "there" || b.Labels[naming.VeleroStorage] != "there" || len(b.Spec.Hooks.Resources) != 0 || b.UID != "" {
		t.Errorf("got %+v", b.ObjectMeta)
	}
	b.UID = "dst-uid"
	v := volumeReplica(velerov1.PodVolumeBackup{ObjectMeta: metav1.ObjectMeta{
		Name: "v", Labels: map[string]string{naming.VeleroBackupUID: "src-uid"}, Finalizers: []string{"velero.io/pod-volume-finalizer"},
		OwnerReferences: []metav1.OwnerReference{{Name: "b", UID: "src-uid"}},
	}}, "velero-dst", "there")
	if len(v.OwnerReferences) != 0 || len(v.Finalizers) != 0 || v.Spec.BackupStorageLocation != "there" {
		t.Errorf("the source's ties went along: %+v", v.ObjectMeta)
	}
	belongTo(v, b)
	if v.Labels[naming.VeleroBackupUID] != "dst-uid" || v.OwnerReferences[0].UID != "dst-uid" {
		t.Errorf("not tied to the destination's backup: %+v", v.ObjectMeta)
	}
}

func TestAStagePodBearsTheNameThatKopiaFindsTheParentBy(t *testing.T) {
	backup := func(pod, uid string, at int64, phase velerov1.PodVolumeBackupPhase) velerov1.PodVolumeBackup {
		b := velerov1.PodVolumeBackup{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Unix(at, 0)}}
		b.Spec.Pod.Name, b.Spec.Tags, b.Status.Phase = pod, map[string]string{"pvc-uid": uid}, phase
		return b
	}
	done := velerov1.PodVolumeBackupPhaseCompleted
	backups := []velerov1.PodVolumeBackup{
		backup("db-old", "u", 1, done), backup("db-0", "u", 2, done), backup("db-new", "u", 3, velerov1.PodVolumeBackupPhaseFailed), backup("other", "x", 4, done),
	}
	own := naming.StagePod("shop", "data")
	for name, c := range map[string]struct {
		backups []velerov1.PodVolumeBackup
		pods    map[string]bool
		want    string
	}{
		"never backed up":         {nil, nil, own},
		"last completed backup":   {backups, nil, "db-0"},
		"our own pod bears it":    {backups, map[string]bool{"shop/db-0": true}, "db-0"},
		"somebody's pod bears it": {backups, map[string]bool{"shop/db-0": false}, own},
	} {
		if got := stagePodName("shop", "data", "u", c.backups, c.pods); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestStagePodsAreDoneWhenEveryClaimIsMounted(t *testing.T) {
	pod := func(claim string, ready bool) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: claim[5:], Annotations: map[string]string{naming.AnnClaim: claim}}}
		status := corev1.ConditionFalse
		if ready {
			status = corev1.ConditionTrue
		}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image"}}}}
		return p
	}
	claims := []string{"shop/a", "shop/b"}
	check(t, "all run", decideStagePods([]corev1.Pod{pod("shop/a", true), pod("shop/b", true)}, claims), pipeline.Done, "2 claims")
	check(t, "one cannot start", decideStagePods([]corev1.Pod{pod("shop/a", true), pod("shop/b", false)}, claims), pipeline.Wait, "shop/b: ErrImagePull: no such image")
	check(t, "one was deleted", decideStagePods([]corev1.Pod{pod("shop/a", true)}, claims), pipeline.Failed, "shop/b")
}

func TestNobodyWaitsInAQueueWithTheSourceDown(t *testing.T) {
	restore := velerov1.Restore{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Status: velerov1.RestoreStatus{Phase: velerov1.RestorePhaseInProgress}}
	check(t, "busy destination", decideQueues(nil, []velerov1.Restore{restore}), pipeline.Wait, "restore theirs")
	check(t, "busy source", decideQueues([]velerov1.Backup{*backupIn(velerov1.BackupPhaseQueued)}, nil), pipeline.Wait, "backup mig-shop-stage (Queued)")
	restore.Status.Phase = velerov1.RestorePhaseFailed
	check(t, "idle", decideQueues([]velerov1.Backup{*backupIn(velerov1.BackupPhaseCompleted)}, []velerov1.Restore{restore}), pipeline.Done, "idle")
}

func TestEveryWarningOfTheFinalRestoreIsNamed(t *testing.T) {
	restore := &velerov1.Restore{ObjectMeta: metav1.ObjectMeta{Name: "final"}, Status: velerov1.RestoreStatus{Phase: velerov1.RestorePhaseCompleted, Warnings: 2}}
	results := velero.Results{Warnings: []velero.Finding{{Namespace: "shop", Message: "ConfigMap:kube-root-ca.crt already exists"}, {Namespace: "shop", Message: "Service:web already exists"}}}
	d := decideFinalRestore(restore, backupNote{}, results, nil)
	if d.Verdict != pipeline.Done || len(d.Warnings) != 1 || d.Warnings[0].Reason() != ReasonLeftOut || !strings.Contains(d.Warnings[0].Text(), "Service:web") {
		t.Errorf("verdict %d, warnings %v", d.Verdict, d.Warnings)
	}
	if d := decideFinalRestore(restore, backupNote{}, velero.Results{}, errors.New("no route to host")); len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0].Text(), "no route to host") {
		t.Errorf("warnings that nobody could read were kept quiet: %v", d.Warnings)
	}
	restore.Status.Phase, restore.Status.Errors = velerov1.RestorePhasePartiallyFailed, 1
	check(t, "partly failed", decideFinalRestore(restore, backupNote{}, velero.Results{Errors: []velero.Finding{{Message: "boom"}}}, nil), pipeline.Failed, "boom")
}

func TestABlockedPlanMakesNoNamespace(t *testing.T) {
	s := Prepare(Run{}, func(context.Context) (Findings, error) {
		return Findings{Blocking: []string{"select an action for shop/data"}}, nil
	})
	d, err := s.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check(t, "not ready", d, pipeline.Blocked, "select an action for shop/data")
}

func TestAVolumeNoteSaysWhichClaimHowMuchAndHowLong(t *testing.T) {
	n := volumeNote{Why: "VolumeBackedUp", On: claimRef("source", "shop/data-db-0"), Bytes: 1 << 20, Took: 3 * time.Second}
	if got, want := n.Text(), "shop/data-db-0: 1.0 MiB in 3s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
