package step

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/velero"
)

// EnsureInitialBackup asks Velero on the source for the backup of all objects,
// without volume data. drift remembers how they were.
func EnsureInitialBackup(r Run, drift *Drift) pipeline.Step {
	return &remembering{drift: drift, ensure: ensure{
		name: velero.StepInitialBackup,
		on:   r.Source,
		objects: func(context.Context) ([]client.Object, error) {
			return []client.Object{
				velero.SkipVolumes(r.Owner, r.Source.VeleroNamespace),
				velero.InitialBackup(r.Owner, r.Plan, 0),
			}, nil
		},
		note: backupNote{
			Step: velero.StepInitialBackup, On: r.backupRef(progress.OnSource, r.Owner.InitialBackup()),
			list: list{Say: "backup of all objects, without volume data, asked for, of namespaces ", Names: r.Plan.SourceNamespaces()},
		},
	}}
}

// InitialBackupCreated waits for the initial backup, and proves that it holds
// no volume's data.
func InitialBackupCreated(r Run) pipeline.Step {
	return &askAgain{Step: initialBackupCreated{r}, look: r.refusedBackup(r.Owner.InitialBackup())}
}

type initialBackupCreated struct{ r Run }

func (s initialBackupCreated) Name() string              { return "InitialBackupCreated" }
func (s initialBackupCreated) Act(context.Context) error { return nil }

func (s initialBackupCreated) Next(ctx context.Context) (pipeline.Decision, error) {
	b, err := s.r.backup(ctx, s.r.Owner.InitialBackup())
	if err != nil {
		return pipeline.Decision{}, err
	}
	volumes, err := s.r.volumesIn(ctx, b)
	return decideInitialBackup(b, volumes, s.Name()), err
}

// volumesIn are the volumes whose data a backup holds.
func (r Run) volumesIn(ctx context.Context, b *velerov1.Backup) ([]velerov1.PodVolumeBackup, error) {
	var volumes velerov1.PodVolumeBackupList
	err := r.Source.List(ctx, &volumes, client.InNamespace(b.Namespace), client.MatchingLabels{naming.VeleroBackupName: b.Name})
	return volumes.Items, err
}

func decideInitialBackup(b *velerov1.Backup, volumes []velerov1.PodVolumeBackup, step string) pipeline.Decision {
	note := backupNote{Step: step, On: backupRef(progress.OnSource, b)}
	if len(volumes) > 0 {
		note.Say = fmt.Sprintf("Velero backup %s holds data of a volume (PodVolumeBackup %s), though it was asked for objects only: restoring it would write data from before the quiesce over the copy", b.Name, volumes[0].Name)
		return pipeline.Decision{Verdict: pipeline.Failed, Note: note}
	}
	return decideBackup(b, note)
}

// decideBackup is what a backup's phase means to the step that waits for it.
func decideBackup(b *velerov1.Backup, note backupNote) pipeline.Decision {
	switch velero.BackupOutcome(b) {
	case velero.Succeeded:
		note.Say = fmt.Sprintf("Velero backup %s holds %s", b.Name, english.Plural(items(b), "object", ""))
		return pipeline.Decision{Verdict: pipeline.Done, Note: note}
	case velero.Broken:
		note.Say = velero.BackupTrouble(b)
		return pipeline.Decision{Verdict: pipeline.Failed, Note: note}
	default:
		note.Say = waitingForBackup(b)
		return pipeline.Decision{Verdict: pipeline.Wait, Note: note}
	}
}

func waitingForBackup(b *velerov1.Backup) string {
	phase := string(b.Status.Phase)
	switch {
	case phase == "":
		return "waiting for Velero to take up backup " + b.Name
	case b.Status.Progress != nil && b.Status.Progress.TotalItems > 0:
		return fmt.Sprintf("Velero backup %s: %s, %d of %d objects", b.Name, phase, b.Status.Progress.ItemsBackedUp, b.Status.Progress.TotalItems)
	default:
		return fmt.Sprintf("Velero backup %s: %s", b.Name, phase)
	}
}

func items(b *velerov1.Backup) int {
	if b.Status.Progress == nil {
		return 0
	}
	return b.Status.Progress.ItemsBackedUp
}

// EnsureStageBackup asks Velero on the source for the backup of the volumes.
func EnsureStageBackup(r Run) pipeline.Step {
	return &ensure{
		name: velero.StepStageBackup,
		on:   r.Source,
		objects: func(context.Context) ([]client.Object, error) {
			return []client.Object{velero.StageBackup(r.Owner, r.Plan)}, nil
		},
		note: backupNote{
			Step: velero.StepStageBackup, On: r.backupRef(progress.OnSource, r.Owner.StageBackup()),
			list: list{Say: fmt.Sprintf("backup of %s asked for", english.Plural(len(r.Plan.Copied()), "volume", ""))},
		},
	}
}

// EnsureLiveBackup asks Velero on the source for a backup of the volumes while
// the application runs.
func EnsureLiveBackup(r Run) pipeline.Step {
	return &ensure{
		name: velero.StepStageBackup,
		on:   r.Source,
		objects: func(context.Context) ([]client.Object, error) {
			return []client.Object{velero.StagePolicy(r.Owner, r.Source.VeleroNamespace), velero.LiveBackup(r.Owner, r.Plan)}, nil
		},
		note: backupNote{
			Step: velero.StepStageBackup, On: r.backupRef(progress.OnSource, r.Owner.StageBackup()),
			list: list{Say: fmt.Sprintf("backup of %s asked for; the application goes on", english.Plural(len(r.Plan.Copied()), "volume", ""))},
		},
	}
}

// StageBackupCreated waits for the backup of the volumes, and proves of every
// copied claim that its data is in it: Velero leaves out what it cannot see
// without an error. gate is asked once more at the end: a copy of a volume
// that somebody wrote to in between is not taken for good. nil: it may be.
func StageBackupCreated(r Run, gate func(context.Context) error) pipeline.Step {
	return &askAgain{Step: stageBackupCreated{r, gate}, look: r.refusedBackup(r.Owner.StageBackup())}
}

type stageBackupCreated struct {
	r    Run
	gate func(context.Context) error
}

func (s stageBackupCreated) Name() string              { return "StageBackupCreated" }
func (s stageBackupCreated) Act(context.Context) error { return nil }

func (s stageBackupCreated) Next(ctx context.Context) (pipeline.Decision, error) {
	b, err := s.r.backup(ctx, s.r.Owner.StageBackup())
	if err != nil {
		return pipeline.Decision{}, err
	}
	captures, err := s.r.captures(ctx, false)
	if err != nil {
		return pipeline.Decision{}, err
	}
	d := decideStageBackup(b, captures)
	if d.Verdict == pipeline.Done && s.gate != nil {
		if err := s.gate(ctx); err != nil {
			return pipeline.Decision{}, err
		}
	}
	return d, nil
}

func decideStageBackup(b *velerov1.Backup, captures []velero.Capture) pipeline.Decision {
	note := backupNote{Step: "StageBackupCreated", On: backupRef(progress.OnSource, b)}
	d := decideBackup(b, note)
	d.Amounts = velero.BackupAmounts(captures)
	d.Facts = append(backupsBegun(captures), backupFacts(captures)...)
	d.Warnings = backupsFailed(captures)
	if lost := lostVolumes(captures, velero.Capture.BackupFailure); len(lost) > 0 {
		note.list = list{Say: velero.BackupTrouble(b) + "; ", Names: lost, Between: "; "}
		if velero.BackupOutcome(b) == velero.Running {
			note.Say = ""
		}
		d.Verdict, d.Note = pipeline.Failed, note
		return d
	}
	if d.Verdict == pipeline.Done {
		d.Note, d.Verdict = provenBackup(b, note, captures)
	}
	return d
}

// provenBackup is the last word on a backup that Velero calls Completed.
func provenBackup(b *velerov1.Backup, note backupNote, captures []velero.Capture) (progress.Note, pipeline.Verdict) {
	var left []string
	for _, c := range captures {
		if !c.Captured() {
			left = append(left, c.Claim)
		}
	}
	if len(left) > 0 {
		note.list = list{Say: fmt.Sprintf("Velero calls backup %s Completed, but it has left out ", b.Name), Names: left}
		return note, pipeline.Failed
	}
	note.Say = fmt.Sprintf("Velero backup %s holds %s, %s", b.Name, english.Plural(len(captures), "volume", ""), humanize.IBytes(uint64(velero.Bytes(captures))))
	return note, pipeline.Done
}

// lostVolumes names the volumes that will not come to their end, each with why.
func lostVolumes(captures []velero.Capture, failure func(velero.Capture) string) []string {
	var out []string
	for _, c := range captures {
		if why := failure(c); why != "" {
			out = append(out, fmt.Sprintf("volume of %s: %s", c.Claim, why))
		}
	}
	return out
}

func backupFacts(captures []velero.Capture) []progress.Note {
	var out []progress.Note
	for _, c := range captures {
		if c.Captured() {
			out = append(out, volumeNote{
				Why: "VolumeBackedUp", On: claimRef(progress.OnSource, c.Claim), Bytes: c.Backup.Status.Progress.TotalBytes,
				Changed: c.Backup.Status.IncrementalBytes, Took: took(c.Backup.Status.StartTimestamp, c.Backup.Status.CompletionTimestamp),
			})
		}
	}
	return out
}

func (r Run) backup(ctx context.Context, name string) (*velerov1.Backup, error) {
	var b velerov1.Backup
	err := r.Source.Get(ctx, client.ObjectKey{Namespace: r.Source.VeleroNamespace, Name: name}, &b)
	return &b, err
}

// backupNote is what a step has to say of one of Velero's backups or restores.
type backupNote struct {
	Step string
	On   progress.Ref
	list
}

func (n backupNote) Reason() string          { return n.Step }
func (n backupNote) Regarding() progress.Ref { return n.On }

// volumeNote is a volume that went one way.
type volumeNote struct {
	Why     string
	On      progress.Ref
	Bytes   int64 // in all
	Changed int64 // uploaded anew; 0 where that is not known
	Took    time.Duration
}

func (n volumeNote) Reason() string          { return n.Why }
func (n volumeNote) Regarding() progress.Ref { return n.On }

func (n volumeNote) Text() string {
	s := fmt.Sprintf("%s/%s: %s", n.On.Namespace, n.On.Name, humanize.IBytes(uint64(max(n.Bytes, 0))))
	if n.Changed > 0 && n.Changed < n.Bytes {
		s += ", " + humanize.IBytes(uint64(n.Changed)) + " of it new"
	}
	if n.Took > 0 {
		s += " in " + n.Took.String()
	}
	return s
}

func claimRef(side progress.Side, claim string) progress.Ref {
	ns, name, _ := strings.Cut(claim, "/")
	return progress.Ref{Side: side, APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: ns, Name: name}
}

func backupRef(side progress.Side, b *velerov1.Backup) progress.Ref {
	return progress.Ref{Side: side, APIVersion: velerov1.SchemeGroupVersion.String(), Kind: "Backup", Namespace: b.Namespace, Name: b.Name, UID: string(b.UID)}
}

func (r Run) backupRef(side progress.Side, name string) progress.Ref {
	ns := r.Source.VeleroNamespace
	if side == progress.OnDestination {
		ns = r.Destination.VeleroNamespace
	}
	b := velerov1.Backup{}
	b.Namespace, b.Name = ns, name
	return backupRef(side, &b)
}
