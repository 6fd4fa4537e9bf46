package step

import (
	"cmp"
	"fmt"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/velero"
)

// volumeBegun is a volume that Velero was seen at work on. One that is through
// between two looks is told of by its end alone.
type volumeBegun struct {
	Why  string
	On   progress.Ref
	Who  string // does it; empty: Velero
	Node string // where it is done
}

func (n volumeBegun) Reason() string          { return n.Why }
func (n volumeBegun) Regarding() progress.Ref { return n.On }

// Text holds no bytes: they grow, and it is told once.
func (n volumeBegun) Text() string {
	s := fmt.Sprintf("%s/%s: %s has begun", n.On.Namespace, n.On.Name, cmp.Or(n.Who, "Velero"))
	if n.Node != "" {
		s += " on node " + n.Node
	}
	return s
}

// volumeFailed is a volume that will not come to its end.
type volumeFailed struct {
	Why string
	On  progress.Ref
	Say string // Velero's own words
}

func (n volumeFailed) Reason() string          { return n.Why }
func (n volumeFailed) Regarding() progress.Ref { return n.On }
func (n volumeFailed) Text() string {
	return fmt.Sprintf("%s/%s: %s", n.On.Namespace, n.On.Name, n.Say)
}

func backupsBegun(captures []velero.Capture) []progress.Note {
	var out []progress.Note
	for _, c := range captures {
		if c.Backup != nil && isAtWork(string(c.Backup.Status.Phase), c.Backup.Status.Progress.BytesDone) {
			out = append(out, volumeBegun{Why: "VolumeBackupStarted", On: claimRef(progress.OnSource, c.Claim), Node: c.Backup.Spec.Node})
		}
	}
	return out
}

func restoresBegun(captures []velero.Capture) []progress.Note {
	var out []progress.Note
	for _, c := range captures {
		if c.Restore != nil && isAtWork(string(c.Restore.Status.Phase), c.Restore.Status.Progress.BytesDone) {
			out = append(out, volumeBegun{Why: "VolumeRestoreStarted", On: restoredClaimRef(c), Node: c.Restore.Status.Node})
		}
	}
	return out
}

// isAtWork says whether a volume has begun and is not through. Velero gives
// PodVolumeBackups and PodVolumeRestores the same phases.
func isAtWork(phase string, bytes int64) bool {
	switch velerov1.PodVolumeBackupPhase(phase) {
	case velerov1.PodVolumeBackupPhaseInProgress:
		return true
	case velerov1.PodVolumeBackupPhaseCompleted, velerov1.PodVolumeBackupPhaseFailed, velerov1.PodVolumeBackupPhaseCanceled:
		return false
	default:
		return bytes > 0
	}
}

func backupsFailed(captures []velero.Capture) []progress.Note {
	var out []progress.Note
	for _, c := range captures {
		if why := c.BackupFailure(); why != "" {
			out = append(out, volumeFailed{Why: "VolumeBackupFailed", On: claimRef(progress.OnSource, c.Claim), Say: why})
		}
	}
	return out
}

func restoresFailed(captures []velero.Capture) []progress.Note {
	var out []progress.Note
	for _, c := range captures {
		if why := c.RestoreFailure(); why != "" {
			out = append(out, volumeFailed{Why: "VolumeRestoreFailed", On: restoredClaimRef(c), Say: why})
		}
	}
	return out
}
