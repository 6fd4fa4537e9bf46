package velero

import (
	"strings"

	"github.com/dustin/go-humanize/english"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"github.com/mig-cli/mig/internal/progress"
)

// Outcome is what a phase of Velero means to a run.
type Outcome int

// The outcomes. A phase that this mig does not know is waited for, never
// taken for an end.
const (
	Running Outcome = iota
	Succeeded
	Broken // PartiallyFailed is broken too: something is missing, whatever else is there
)

// BackupOutcome reads a backup's phase.
func BackupOutcome(b *velerov1.Backup) Outcome {
	switch b.Status.Phase {
	case velerov1.BackupPhaseCompleted:
		return Succeeded
	case velerov1.BackupPhasePartiallyFailed, velerov1.BackupPhaseFailed, velerov1.BackupPhaseFailedValidation, velerov1.BackupPhaseDeleting:
		return Broken
	default:
		return Running
	}
}

// RestoreOutcome reads a restore's phase. Its progress says 100 % while volumes
// still restore: only the phase tells.
func RestoreOutcome(r *velerov1.Restore) Outcome {
	switch r.Status.Phase {
	case velerov1.RestorePhaseCompleted:
		return Succeeded
	case velerov1.RestorePhasePartiallyFailed, velerov1.RestorePhaseFailed, velerov1.RestorePhaseFailedValidation:
		return Broken
	default:
		return Running
	}
}

// BackupTrouble says in a line why a backup is broken.
func BackupTrouble(b *velerov1.Backup) string {
	return trouble("Velero backup "+b.Name, string(b.Status.Phase), b.Status.FailureReason, b.Status.ValidationErrors, b.Status.Errors)
}

// RestoreTrouble says in a line why a restore is broken.
func RestoreTrouble(r *velerov1.Restore) string {
	return trouble("Velero restore "+r.Name, string(r.Status.Phase), r.Status.FailureReason, r.Status.ValidationErrors, r.Status.Errors)
}

func trouble(what, phase, reason string, validation []string, errs int) string {
	s := what + " ended " + phase
	switch {
	case reason != "":
		s += ": " + reason
	case len(validation) > 0:
		s += ": " + strings.Join(validation, "; ")
	case errs > 0:
		s += " with " + english.Plural(errs, "error", "")
	}
	return s
}

// Capture is one volume's way through a backup.
type Capture struct {
	Claim    string // namespace/name on the source
	ClaimUID string
	Backup   *velerov1.PodVolumeBackup  // nil: Velero has left it out, or not come to it yet
	Restore  *velerov1.PodVolumeRestore // nil: not (yet) restored
}

// Captures joins the plan's claims with what Velero has of them. PodVolumeBackups
// are found by the claim's uid, which Velero puts into their tags
// (velero pkg/podvolume/backupper.go), PodVolumeRestores by the pod that the
// backup went through. claims maps namespace/name to uid.
func Captures(claims map[string]string, order []string, backups []velerov1.PodVolumeBackup, restores []velerov1.PodVolumeRestore) []Capture {
	out := make([]Capture, 0, len(order))
	for _, claim := range order {
		c := Capture{Claim: claim, ClaimUID: claims[claim]}
		for i := range backups {
			if c.ClaimUID != "" && backups[i].Spec.Tags["pvc-uid"] == c.ClaimUID {
				c.Backup = newest(c.Backup, &backups[i])
			}
		}
		for i := range restores {
			if c.Backup != nil && goesInto(&restores[i], c.Backup) {
				c.Restore = &restores[i]
			}
		}
		out = append(out, c)
	}
	return out
}

func newest(a, b *velerov1.PodVolumeBackup) *velerov1.PodVolumeBackup {
	if a == nil || a.CreationTimestamp.Before(&b.CreationTimestamp) {
		return b
	}
	return a
}

// goesInto says whether a restore brings back what a backup took.
func goesInto(r *velerov1.PodVolumeRestore, b *velerov1.PodVolumeBackup) bool {
	return r.Spec.SourceNamespace == b.Spec.Pod.Namespace && r.Spec.Pod.Name == b.Spec.Pod.Name &&
		r.Spec.Volume == b.Spec.Volume && r.Spec.SnapshotID == b.Status.SnapshotID
}

// Captured says whether the volume's data is in the backup for good.
func (c Capture) Captured() bool {
	return c.Backup != nil && c.Backup.Status.Phase == velerov1.PodVolumeBackupPhaseCompleted
}

// Empty says whether the volume held nothing: Velero then takes no snapshot
// and restores none (velero pkg/podvolume/util.go skips an empty snapshot id).
func (c Capture) Empty() bool { return c.Captured() && c.Backup.Status.SnapshotID == "" }

// Restored says whether the volume's data is back.
func (c Capture) Restored() bool {
	return c.Empty() || c.Restore != nil && c.Restore.Status.Phase == velerov1.PodVolumeRestorePhaseCompleted
}

// BackupFailure says why the volume will not be captured; empty while it may.
func (c Capture) BackupFailure() string {
	if c.Backup == nil {
		return ""
	}
	switch c.Backup.Status.Phase {
	case velerov1.PodVolumeBackupPhaseFailed, velerov1.PodVolumeBackupPhaseCanceled:
		return volumeTrouble(string(c.Backup.Status.Phase), c.Backup.Status.Message)
	default:
		return ""
	}
}

// RestoreFailure says why the volume will not come back; empty while it may.
func (c Capture) RestoreFailure() string {
	if c.Restore == nil {
		return ""
	}
	switch c.Restore.Status.Phase {
	case velerov1.PodVolumeRestorePhaseFailed, velerov1.PodVolumeRestorePhaseCanceled:
		return volumeTrouble(string(c.Restore.Status.Phase), c.Restore.Status.Message)
	default:
		return ""
	}
}

func volumeTrouble(phase, message string) string {
	if message == "" {
		return phase
	}
	return phase + ": " + message
}

// BackupAmounts are the volumes' bytes so far on the way out.
func BackupAmounts(cs []Capture) []progress.Amount {
	return amounts(cs, func(c Capture) (int64, int64) {
		if c.Backup == nil {
			return 0, 0
		}
		p := c.Backup.Status.Progress
		return done(c.Captured(), p.BytesDone, p.TotalBytes)
	})
}

// RestoreAmounts are the volumes' bytes so far on the way in.
func RestoreAmounts(cs []Capture) []progress.Amount {
	return amounts(cs, func(c Capture) (int64, int64) {
		if c.Restore == nil {
			return 0, size(c)
		}
		p := c.Restore.Status.Progress
		return done(c.Restored(), p.BytesDone, max(p.TotalBytes, size(c)))
	})
}

func amounts(cs []Capture, of func(Capture) (int64, int64)) []progress.Amount {
	out := make([]progress.Amount, 0, len(cs))
	for _, c := range cs {
		d, t := of(c)
		out = append(out, progress.Amount{Item: c.Claim, Done: d, Total: t})
	}
	return out
}

// done makes a finished volume full, whatever Velero's last report was.
func done(finished bool, bytes, total int64) (int64, int64) {
	if finished {
		return total, total
	}
	return bytes, total
}

func size(c Capture) int64 {
	if c.Backup == nil {
		return 0
	}
	return c.Backup.Status.Progress.TotalBytes
}

// Bytes is the size of all volumes.
func Bytes(cs []Capture) int64 {
	var n int64
	for _, c := range cs {
		n += size(c)
	}
	return n
}
