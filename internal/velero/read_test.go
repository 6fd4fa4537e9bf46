package velero

import (
	"bytes"
	"compress/gzip"
	"testing"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOnlyCompletedIsSuccessAndAnUnknownPhaseIsWaitedFor(t *testing.T) {
	for phase, want := range map[velerov1.BackupPhase]Outcome{
		"": Running, velerov1.BackupPhaseNew: Running, velerov1.BackupPhaseQueued: Running, velerov1.BackupPhaseInProgress: Running,
		velerov1.BackupPhaseFinalizing: Running, velerov1.BackupPhaseFinalizingPartiallyFailed: Running, "SomethingOfNextYear": Running,
		velerov1.BackupPhaseCompleted: Succeeded, velerov1.BackupPhasePartiallyFailed: Broken, velerov1.BackupPhaseFailed: Broken,
		velerov1.BackupPhaseFailedValidation: Broken, velerov1.BackupPhaseDeleting: Broken,
	} {
		if got := BackupOutcome(&velerov1.Backup{Status: velerov1.BackupStatus{Phase: phase}}); got != want {
			t.Errorf("backup phase %q: got %d, want %d", phase, got, want)
		}
	}
	for phase, want := range map[velerov1.RestorePhase]Outcome{
		"": Running, velerov1.RestorePhaseInProgress: Running, velerov1.RestorePhaseFinalizing: Running, "SomethingOfNextYear": Running,
		velerov1.RestorePhaseCompleted: Succeeded, velerov1.RestorePhasePartiallyFailed: Broken, velerov1.RestorePhaseFailed: Broken, velerov1.RestorePhaseFailedValidation: Broken,
	} {
		if got := RestoreOutcome(&velerov1.Restore{Status: velerov1.RestoreStatus{Phase: phase}}); got != want {
			t.Errorf("restore phase %q: got %d, want %d", phase, got, want)
		}
	}
}

func pvb(claimUID, pod, snapshot string, phase velerov1.PodVolumeBackupPhase, at int64) velerov1.PodVolumeBackup {
	return velerov1.PodVolumeBackup{
		ObjectMeta: metav1.ObjectMeta{Name: pod + snapshot, CreationTimestamp: metav1.Unix(at, 0)},
		Spec:       velerov1.PodVolumeBackupSpec{Pod: corev1.ObjectReference{Namespace: "shop", Name: pod}, Volume: "data", Tags: map[string]string{"pvc-uid": claimUID}},
		Status:     velerov1.PodVolumeBackupStatus{Phase: phase, SnapshotID: snapshot},
	}
}

func pvr(pod, snapshot string, phase velerov1.PodVolumeRestorePhase) velerov1.PodVolumeRestore {
	return velerov1.PodVolumeRestore{
		Spec:   velerov1.PodVolumeRestoreSpec{SourceNamespace: "shop", Pod: corev1.ObjectReference{Namespace: "shop-prod", Name: pod}, Volume: "data", SnapshotID: snapshot},
		Status: velerov1.PodVolumeRestoreStatus{Phase: phase},
	}
}

func TestAVolumeIsCapturedAndRestoredOnlyWhenVeleroSaysSoOfThatVolume(t *testing.T) {
	uids := map[string]string{"shop/a": "u-a", "shop/b": "u-b", "shop/c": "u-c", "shop/d": "u-d"}
	order := []string{"shop/a", "shop/b", "shop/c", "shop/d"}
	backups := []velerov1.PodVolumeBackup{
		pvb("u-a", "pod-a", "s1", velerov1.PodVolumeBackupPhaseCompleted, 1),
		pvb("u-b", "pod-b", "s2", velerov1.PodVolumeBackupPhaseInProgress, 1),
		pvb("u-c", "pod-c", "", velerov1.PodVolumeBackupPhaseCompleted, 1),
		pvb("someone-else", "pod-d", "s4", velerov1.PodVolumeBackupPhaseCompleted, 1),
	}
	restores := []velerov1.PodVolumeRestore{
		pvr("pod-a", "s1", velerov1.PodVolumeRestorePhaseCompleted),
		pvr("pod-b", "older", velerov1.PodVolumeRestorePhaseCompleted),
	}
	got := Captures(uids, order, backups, restores)
	for i, want := range []struct{ captured, empty, restored bool }{
		{true, false, true},   // both ways
		{false, false, false}, // still going out; a restore of an older snapshot proves nothing
		{true, true, true},    // an empty volume has no snapshot and needs no restore
		{false, false, false}, // Velero has left it out
	} {
		if c := got[i]; c.Captured() != want.captured || c.Empty() != want.empty || c.Restored() != want.restored {
			t.Errorf("%s: captured %v, empty %v, restored %v; want %+v", c.Claim, c.Captured(), c.Empty(), c.Restored(), want)
		}
	}
}

func TestTheNewestBackupOfAClaimCounts(t *testing.T) {
	backups := []velerov1.PodVolumeBackup{
		pvb("u", "pod", "old", velerov1.PodVolumeBackupPhaseCompleted, 1), pvb("u", "pod", "new", velerov1.PodVolumeBackupPhaseFailed, 2),
	}
	c := Captures(map[string]string{"shop/a": "u"}, []string{"shop/a"}, backups, nil)[0]
	if c.Captured() || c.BackupFailure() == "" {
		t.Error("an older success hides the failure")
	}
}

func TestAFinishedVolumeIsFullWhateverVelerosLastReportWas(t *testing.T) {
	b := pvb("u", "pod", "s", velerov1.PodVolumeBackupPhaseCompleted, 1)
	b.Status.Progress.TotalBytes, b.Status.Progress.BytesDone = 100, 60
	a := BackupAmounts(Captures(map[string]string{"shop/a": "u"}, []string{"shop/a"}, []velerov1.PodVolumeBackup{b}, nil))[0]
	if a.Done != 100 || a.Total != 100 || a.Item != "shop/a" {
		t.Errorf("got %+v", a)
	}
}

func TestATroubleNamesTheObjectItsPhaseAndTheReason(t *testing.T) {
	b := &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{Name: "b1"}, Status: velerov1.BackupStatus{Phase: velerov1.BackupPhaseFailedValidation, ValidationErrors: []string{"no location"}}}
	if got, want := BackupTrouble(b), "Velero backup b1 ended FailedValidation: no location"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b.Status = velerov1.BackupStatus{Phase: velerov1.BackupPhasePartiallyFailed, Errors: 2, StartTimestamp: &metav1.Time{Time: time.Unix(1, 0)}}
	if got, want := BackupTrouble(b), "Velero backup b1 ended PartiallyFailed with 2 errors"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestResultsAreReadOneByOneAndOnlyNoiseIsLeftOut(t *testing.T) {
	var packed bytes.Buffer
	zw := gzip.NewWriter(&packed)
	_, _ = zw.Write([]byte(`{"warnings":{"cluster":["could not restore, ClusterRole:x already exists"],"namespaces":{"shop-prod":["could not restore, ConfigMap:kube-root-ca.crt already exists","could not restore, Service:web already exists"]}},"errors":{"velero":["boom"]}}`))
	_ = zw.Close()
	r, err := ParseResults(&packed)
	if err != nil {
		t.Fatal(err)
	}
	losses := r.Losses()
	if len(r.Warnings) != 3 || len(losses) != 2 || losses[1].String() != "shop-prod: could not restore, Service:web already exists" {
		t.Errorf("losses %v of warnings %v", losses, r.Warnings)
	}
	if len(r.Errors) != 1 || r.Errors[0].Message != "boom" {
		t.Errorf("errors %v", r.Errors)
	}
	if _, err := ParseResults(bytes.NewBufferString("<html>login</html>")); err == nil {
		t.Error("a login page was taken for results")
	}
}
