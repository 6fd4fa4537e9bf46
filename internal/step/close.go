package step

import (
	"context"
	"errors"
	"fmt"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
)

// CloseSteps remove what the plan's runs left in the clusters and in the object
// store, volumes among it that were staged and never used. What was migrated, the marks that say from where, and the records of
// the runs stay. No run can begin afterwards from what is left.
func CloseSteps(r Run) []pipeline.Step {
	return append(StageAbandoned(r), StagedClaimsRemoved(r), RestoresDeleted(r), BackupsPurged(r))
}

// BackupsPurged has the source's Velero delete the plan's backups with their
// data in the object store, and then removes what the destination knew of them:
// before that its Velero would bring them back.
func BackupsPurged(r Run) pipeline.Step { return &backupsPurged{r: r, asked: map[string]bool{}} }

type backupsPurged struct {
	r     Run
	asked map[string]bool // the requests that this process has made
}

func (s *backupsPurged) Name() string { return "BackupsPurged" }

// purge is what is left of the plan's backups.
type purge struct {
	unasked []velerov1.Backup // nobody has asked Velero to delete them
	waiting []string          // Velero is at them
	refused []string          // Velero could not, each with its reason
	copies  []placed          // what the destination knows of them
}

func (s *backupsPurged) Next(ctx context.Context) (pipeline.Decision, error) {
	p, err := s.look(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	return decidePurge(p), nil
}

func decidePurge(p purge) pipeline.Decision {
	say := func(v pipeline.Verdict, format string, args ...any) pipeline.Decision {
		return pipeline.Decision{Verdict: v, Note: progress.Remark{Why: "BackupsPurged", Say: fmt.Sprintf(format, args...)}}
	}
	switch {
	case len(p.unasked) > 0:
		return say(pipeline.Act, "asking the source's Velero to delete %d backups of the plan with their data", len(p.unasked))
	case len(p.waiting) > 0:
		return say(pipeline.Wait, "waiting for the source's Velero to delete %s", few(p.waiting))
	case len(p.refused) > 0:
		return say(pipeline.Blocked, "the source's Velero could not delete %s", few(p.refused))
	case len(p.copies) > 0:
		return say(pipeline.Act, "removing what the destination knows of the plan's backups")
	default:
		return say(pipeline.Done, "the plan's backups and their data are gone")
	}
}

func (s *backupsPurged) look(ctx context.Context) (purge, error) {
	var p purge
	var backups velerov1.BackupList
	if err := s.r.Source.List(ctx, &backups, client.InNamespace(s.r.Source.VeleroNamespace), client.MatchingLabelsSelector{Selector: s.r.Owner.OfPlan()}); err != nil {
		return p, err
	}
	for _, b := range backups.Items {
		request := s.request(b)
		err := s.r.Source.Get(ctx, client.ObjectKeyFromObject(request), request)
		if err != nil && !apierrors.IsNotFound(err) {
			return p, err
		}
		failed := request.Status.Phase == velerov1.DeleteBackupRequestPhaseProcessed && len(request.Status.Errors) > 0
		switch {
		case err != nil, failed && !s.asked[request.Name]:
			p.unasked = append(p.unasked, b)
		case failed:
			p.refused = append(p.refused, b.Name+" ("+strings.Join(request.Status.Errors, "; ")+")")
		default:
			p.waiting = append(p.waiting, b.Name)
		}
	}
	if len(backups.Items) > 0 {
		return p, nil
	}
	var err error
	p.copies, err = s.copies(ctx)
	return p, err
}

// request is how Velero is asked to delete a backup with its data.
func (s *backupsPurged) request(b velerov1.Backup) *velerov1.DeleteBackupRequest {
	return &velerov1.DeleteBackupRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name: b.Name + "-" + s.r.Owner.RunUID, Namespace: b.Namespace,
			Labels: s.r.Owner.Labels(s.Name()), Annotations: s.r.Owner.Annotations(),
		},
		Spec: velerov1.DeleteBackupRequestSpec{BackupName: b.Name},
	}
}

func (s *backupsPurged) copies(ctx context.Context) ([]placed, error) {
	c := s.r.Destination
	ours := []client.ListOption{client.InNamespace(c.VeleroNamespace), client.MatchingLabelsSelector{Selector: s.r.Owner.OfPlan()}}
	var backups velerov1.BackupList
	var volumes velerov1.PodVolumeBackupList
	if err := errors.Join(c.List(ctx, &backups, ours...), c.List(ctx, &volumes, ours...)); err != nil {
		return nil, err
	}
	var out []placed
	for i := range backups.Items {
		out = append(out, placed{c, &backups.Items[i]})
	}
	for i := range volumes.Items {
		out = append(out, placed{c, &volumes.Items[i]})
	}
	return out, nil
}

func (s *backupsPurged) Act(ctx context.Context) error {
	p, err := s.look(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, b := range p.unasked {
		errs = append(errs, s.ask(ctx, b))
	}
	for _, o := range p.copies {
		errs = append(errs, client.IgnoreNotFound(o.on.Delete(ctx, o.object)))
	}
	return errors.Join(errs...)
}

// ask makes the request anew, in the place of one that Velero could not fulfil.
func (s *backupsPurged) ask(ctx context.Context, b velerov1.Backup) error {
	request := s.request(b)
	if err := client.IgnoreNotFound(s.r.Source.Delete(ctx, request.DeepCopy())); err != nil {
		return err
	}
	err := s.r.Source.Create(ctx, request, client.FieldOwner(naming.CreatedBy))
	if err == nil || apierrors.IsAlreadyExists(err) {
		s.asked[request.Name] = true
		return nil
	}
	return err
}
