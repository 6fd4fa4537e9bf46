package step

import (
	"context"
	"fmt"
	"maps"

	"github.com/dustin/go-humanize/english"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/label"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
)

// EnsureStageBackupReplicated makes the backup of the volumes known on the destination.
func EnsureStageBackupReplicated(r Run) pipeline.Step {
	stage := func(context.Context) (string, error) { return r.Owner.StageBackup(), nil }
	return replicate{r, "EnsureStageBackupReplicated", stage}
}

// EnsureInitialBackupReplicated makes the newest backup of the objects known on the destination.
func EnsureInitialBackupReplicated(r Run) pipeline.Step {
	newest := func(ctx context.Context) (string, error) {
		b, err := r.objectsBackup(ctx)
		return b.name(r), err
	}
	return replicate{r, "EnsureInitialBackupReplicated", newest}
}

// replicate does at once what Velero's sync does once a minute or later
// (velero pkg/controller/backup_sync_controller.go): the contents lie in the
// store that both clusters share, only the objects that describe them are
// missing on the destination.
type replicate struct {
	r      Run
	name   string
	backup func(context.Context) (string, error) // its name
}

func (s replicate) Name() string { return s.name }

// replica is one backup's descriptions on both sides.
type replica struct {
	source      *velerov1.Backup
	destination *velerov1.Backup // nil: not there
	volumes     []velerov1.PodVolumeBackup
	there       map[string]bool // PodVolumeBackups on the destination that belong to its Backup, by name
	known       map[string]bool // all of that name
}

func (s replicate) Next(ctx context.Context) (pipeline.Decision, error) {
	rep, err := s.look(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	note := backupNote{Step: s.name, On: s.r.backupRef(progress.OnDestination, rep.source.Name)}
	return decideReplica(note, rep), nil
}

// decideReplica calls a backup replicated only when all its volumes are known too: a
// restore that sees the backup first makes pods without their data.
func decideReplica(note backupNote, rep replica) pipeline.Decision {
	backup, missing := note.On.Name, 0
	for _, v := range rep.volumes {
		if !rep.there[v.Name] {
			missing++
		}
	}
	switch {
	case rep.destination == nil:
		note.Say = fmt.Sprintf("describing Velero backup %s, with %s, to the destination", backup, english.Plural(len(rep.volumes), "volume", ""))
		return pipeline.Decision{Verdict: pipeline.Act, Note: note}
	case missing > 0:
		note.Say = fmt.Sprintf("the destination knows Velero backup %s, but not yet %d of its %d volumes", backup, missing, len(rep.volumes))
		return pipeline.Decision{Verdict: pipeline.Act, Note: note}
	default:
		note.Say = fmt.Sprintf("the destination knows Velero backup %s, with %s", backup, english.Plural(len(rep.volumes), "volume", ""))
		return pipeline.Decision{Verdict: pipeline.Done, Note: note}
	}
}

// Act creates the volumes' descriptions, then the backup's, then ties the
// former to the latter as Velero's own sync would have.
func (s replicate) Act(ctx context.Context) error {
	rep, err := s.look(ctx)
	if err != nil {
		return err
	}
	dst := s.r.Destination
	for _, v := range rep.volumes {
		if rep.known[v.Name] {
			continue
		}
		if err := dst.Create(ctx, volumeReplica(v, dst.VeleroNamespace, s.location())); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	if rep.destination == nil {
		rep.destination = backupReplica(rep.source, dst.VeleroNamespace, s.location())
		if err := dst.Create(ctx, rep.destination); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		if err := dst.Get(ctx, client.ObjectKeyFromObject(rep.destination), rep.destination); err != nil {
			return err
		}
	}
	return s.tie(ctx, rep)
}

func (s replicate) tie(ctx context.Context, rep replica) error {
	for _, v := range rep.volumes {
		if rep.there[v.Name] {
			continue
		}
		var own velerov1.PodVolumeBackup
		if err := s.r.Destination.Get(ctx, client.ObjectKey{Namespace: s.r.Destination.VeleroNamespace, Name: v.Name}, &own); err != nil {
			return err
		}
		before := own.DeepCopy()
		belongTo(&own, rep.destination)
		if err := s.r.Destination.Patch(ctx, &own, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return nil
}

func (s replicate) location() string { return s.r.Plan.Plan().Spec.Storage.Location }

func (s replicate) look(ctx context.Context) (replica, error) {
	name, err := s.backup(ctx)
	if err != nil {
		return replica{}, err
	}
	b, err := s.r.backup(ctx, name)
	if err != nil {
		return replica{}, err
	}
	rep := replica{source: b, there: map[string]bool{}, known: map[string]bool{}}
	var volumes velerov1.PodVolumeBackupList
	if err := s.r.Source.List(ctx, &volumes, client.InNamespace(b.Namespace), client.MatchingLabels{naming.VeleroBackupName: name}); err != nil {
		return replica{}, err
	}
	rep.volumes = volumes.Items
	dst := s.r.Destination
	var there velerov1.Backup
	err = dst.Get(ctx, client.ObjectKey{Namespace: dst.VeleroNamespace, Name: name}, &there)
	if client.IgnoreNotFound(err) != nil {
		return replica{}, err
	}
	if err == nil {
		rep.destination = &there
	}
	var known velerov1.PodVolumeBackupList
	if err := dst.List(ctx, &known, client.InNamespace(dst.VeleroNamespace), client.MatchingLabels{naming.VeleroBackupName: name}); err != nil {
		return replica{}, err
	}
	for _, v := range known.Items {
		rep.known[v.Name] = true
		rep.there[v.Name] = rep.destination != nil && v.Labels[naming.VeleroBackupUID] == string(rep.destination.UID)
	}
	return rep, nil
}

// backupReplica is a backup as the destination's Velero would have found it in
// the store: its own location's name, no hooks, its status as it is.
func backupReplica(b *velerov1.Backup, namespace, location string) *velerov1.Backup {
	out := &velerov1.Backup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: b.Name, Labels: maps.Clone(b.Labels), Annotations: maps.Clone(b.Annotations)},
		Spec:       *b.Spec.DeepCopy(),
		Status:     *b.Status.DeepCopy(),
	}
	out.Spec.Hooks = velerov1.BackupHooks{}
	out.Spec.StorageLocation = location
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	out.Labels[naming.VeleroStorage] = label.GetValidName(location)
	return out
}

// volumeReplica is a PodVolumeBackup as the destination's Velero would have
// found it, still tied to no backup.
func volumeReplica(v velerov1.PodVolumeBackup, namespace, location string) *velerov1.PodVolumeBackup {
	out := &velerov1.PodVolumeBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v.Name, Labels: maps.Clone(v.Labels), Annotations: maps.Clone(v.Annotations)},
		Spec:       *v.Spec.DeepCopy(),
		Status:     *v.Status.DeepCopy(),
	}
	out.Spec.BackupStorageLocation = location
	return out
}

// belongTo ties a PodVolumeBackup to the backup of its own cluster.
func belongTo(v *velerov1.PodVolumeBackup, b *velerov1.Backup) {
	if v.Labels == nil {
		v.Labels = map[string]string{}
	}
	v.Labels[naming.VeleroBackupUID] = string(b.UID)
	controller := true
	v.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: velerov1.SchemeGroupVersion.String(), Kind: "Backup", Name: b.Name, UID: b.UID, Controller: &controller,
	}}
}
