package step

import (
	"slices"
	"testing"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/velero"
)

// toldOf are the reasons and texts of notes.
func toldOf(notes []progress.Note) []string {
	var out []string
	for _, n := range notes {
		out = append(out, n.Reason()+" "+string(n.Regarding().Side)+": "+n.Text())
	}
	return out
}

func TestAVolumesWayIsToldFromItsBeginningToItsEnd(t *testing.T) {
	out := func(phase velerov1.PodVolumeBackupPhase, bytes int64, message string) []velero.Capture {
		c := volume("shop/data", phase)
		c.Backup.Spec.Node, c.Backup.Status.Message, c.Backup.Status.Progress.BytesDone = "node-1", message, bytes
		return []velero.Capture{c}
	}
	in := func(phase velerov1.PodVolumeRestorePhase, bytes int64, message string) []velero.Capture {
		c := back("shop/data", phase)
		c.Restore.Spec.Pod.Namespace = "shop-prod"
		c.Restore.Status.Node, c.Restore.Status.Message, c.Restore.Status.Progress.BytesDone = "node-2", message, bytes
		return []velero.Capture{c}
	}
	for _, c := range []struct {
		captures []velero.Capture
		restores bool
		want     []string
	}{
		{out(velerov1.PodVolumeBackupPhasePrepared, 0, ""), false, nil},
		{out(velerov1.PodVolumeBackupPhasePrepared, 7, ""), false, []string{"VolumeBackupStarted source: shop/data: Velero has begun on node node-1"}},
		{out(velerov1.PodVolumeBackupPhaseInProgress, 0, ""), false, []string{"VolumeBackupStarted source: shop/data: Velero has begun on node node-1"}},
		{out(velerov1.PodVolumeBackupPhaseInProgress, 9, ""), false, []string{"VolumeBackupStarted source: shop/data: Velero has begun on node node-1"}},
		{out(velerov1.PodVolumeBackupPhaseFailed, 9, "disk full"), false, []string{"VolumeBackupFailed source: shop/data: Failed: disk full"}},
		{in(velerov1.PodVolumeRestorePhaseAccepted, 0, ""), true, nil},
		{in(velerov1.PodVolumeRestorePhaseInProgress, 0, ""), true, []string{"VolumeRestoreStarted destination: shop-prod/data: Velero has begun on node node-2"}},
		{in(velerov1.PodVolumeRestorePhaseFailed, 0, "read-only"), true, []string{"VolumeRestoreFailed destination: shop-prod/data: Failed: read-only"}},
	} {
		d := decideStageBackup(backupIn(velerov1.BackupPhaseInProgress), c.captures)
		if c.restores {
			d = decideStageRestore(stageState{restore: &velerov1.Restore{Status: velerov1.RestoreStatus{Phase: velerov1.RestorePhaseInProgress}}, captures: c.captures})
		}
		if got := append(toldOf(d.Facts), toldOf(d.Warnings)...); !slices.Equal(got, c.want) {
			t.Errorf("got %q\nwant %q", got, c.want)
		}
	}
}
