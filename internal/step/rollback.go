package step

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/mover"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/quiesce"
	"github.com/mig-cli/mig/internal/velero"
)

// RollbackSteps take back what the plan's runs did, on whatever point they
// ended. The destination's application is gone before the source's starts, so
// that never both run; what hangs on the destination's finalizers does not keep
// the source down. Every step works twice and after a rollback that ended
// half-way.
func RollbackSteps(r Run) []pipeline.Step {
	steps := append([]pipeline.Step{VeleroWorkStopped(r), DestinationCleaned(r)}, RecoverySteps(r)...)
	return append(steps, DestinationGone(r), RestoresDeleted(r), MarksRemoved(r))
}

// RecoverySteps bring the source up again and leave the destination alone: for
// a run that failed before anything started there, or whose destination cannot
// be reached.
func RecoverySteps(r Run) []pipeline.Step {
	return []pipeline.Step{StagePodsDeleted(r), StageMarksRemoved(r), UnquiesceApplications(r), EnsureUnquiesced(r)}
}

// LeftoversRemoved takes back what earlier runs of the plan left on either
// cluster, so that the next can begin. What they copied stays.
func LeftoversRemoved(r Run) []pipeline.Step {
	cleaned, gone := DestinationCleaned(r), DestinationGone(r)
	if r.Plan.WithMover() {
		cleaned, gone = DestinationCleanedButForStaged(r), DestinationGoneButForStaged(r)
	}
	return []pipeline.Step{VeleroWorkStopped(r), StagePodsDeleted(r), StageMarksRemoved(r), cleaned, gone, RestoresDeleted(r)}
}

// StageAbandoned leaves nothing of a stage that did not come to its end but
// what it has copied.
func StageAbandoned(r Run) []pipeline.Step {
	return []pipeline.Step{VeleroWorkStopped(r), helpersOf{r, true}, StageMarksRemoved(r), HelpersDeleted(r)}
}

// stopGrace is how long Velero gets to end what was cancelled. What has not
// ended by then is named; a Velero that is down would never end it.
const stopGrace = 5 * time.Minute

// VeleroWorkStopped ends what Velero still does for the plan's runs. Backups
// and restores cannot be cancelled, their volumes can; one that Velero has not
// begun is deleted. What mig-mover does for them is ended with it.
func VeleroWorkStopped(r Run) pipeline.Step { return &veleroWorkStopped{r: r} }

type veleroWorkStopped struct {
	r     Run
	since time.Time // of the first look of this process
}

func (s *veleroWorkStopped) Name() string { return "VeleroWorkStopped" }

func (s *veleroWorkStopped) Next(ctx context.Context) (pipeline.Decision, error) {
	if s.since.IsZero() {
		s.since = time.Now()
	}
	w, err := s.r.veleroWork(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	return decideVeleroWork(w, time.Since(s.since) >= stopGrace), nil
}

func (s *veleroWorkStopped) Act(ctx context.Context) error {
	w, err := s.r.veleroWork(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range append(w.unbegun, w.movers...) {
		errs = append(errs, client.IgnoreNotFound(o.on.Delete(ctx, o.object)))
	}
	for _, o := range w.cancellable {
		patch := client.RawPatch(mergePatch, []byte(`{"spec":{"cancel":true}}`))
		errs = append(errs, client.IgnoreNotFound(o.on.Patch(ctx, o.object, patch, client.FieldOwner(naming.CreatedBy))))
	}
	return errors.Join(errs...)
}

// work is what Velero does for a plan.
type work struct {
	unbegun     []placed // Backups and Restores that Velero has not taken up
	cancellable []placed // volumes under way that nobody has cancelled yet
	movers      []placed // pods that write into volumes
	running     []string // all that has not ended, for a person
}

func (r Run) veleroWork(ctx context.Context) (work, error) {
	var w work
	for _, c := range []struct {
		side progress.Side
		*cluster.Cluster
	}{{progress.OnSource, r.Source.Cluster}, {progress.OnDestination, r.Destination.Cluster}} {
		if err := w.backups(ctx, c.Cluster, c.side, r.Owner); err != nil {
			return w, err
		}
		if err := w.restores(ctx, c.Cluster, c.side, r.Owner); err != nil {
			return w, err
		}
	}
	return w, w.restoring(ctx, r.Destination, r.Owner)
}

// restoring are the pods in which mig-mover writes into the destination's
// volumes: they end before the volumes are taken from under them.
func (w *work) restoring(ctx context.Context, c cluster.Destination, o naming.Owner) error {
	var list corev1.PodList
	of := client.MatchingLabels{naming.LabelCreatedBy: naming.CreatedBy, naming.LabelPlan: o.PlanUID, naming.LabelStep: mover.StepRestore}
	if err := c.List(ctx, &list, client.InNamespace(c.VeleroNamespace), of); err != nil {
		return err
	}
	for i := range list.Items {
		p := &list.Items[i]
		if quiesce.Finished(p) {
			continue
		}
		if p.DeletionTimestamp == nil {
			w.movers = append(w.movers, placed{c, p})
		}
		w.running = append(w.running, fmt.Sprintf("mig-mover's restore of %s (pod %s/%s)", naming.ClaimOf(p), p.Namespace, p.Name))
	}
	return nil
}

func (w *work) backups(ctx context.Context, c *cluster.Cluster, side progress.Side, o naming.Owner) error {
	var list velerov1.BackupList
	if err := c.List(ctx, &list, client.InNamespace(c.VeleroNamespace), client.MatchingLabelsSelector{Selector: o.OfPlan()}); err != nil {
		return err
	}
	for i := range list.Items {
		b := &list.Items[i]
		if velero.BackupOutcome(b) != velero.Running {
			continue
		}
		if unbegun(string(b.Status.Phase)) {
			w.unbegun = append(w.unbegun, placed{c, b})
		}
		w.running = append(w.running, fmt.Sprintf("backup %s on the %s (%s)", b.Name, side, orNew(string(b.Status.Phase))))
		var volumes velerov1.PodVolumeBackupList
		if err := c.List(ctx, &volumes, client.InNamespace(c.VeleroNamespace), client.MatchingLabels{naming.VeleroBackupName: b.Name}); err != nil {
			return err
		}
		for j := range volumes.Items {
			v := &volumes.Items[j]
			if !terminal(string(v.Status.Phase)) && !v.Spec.Cancel {
				w.cancellable = append(w.cancellable, placed{c, v})
			}
		}
	}
	return nil
}

func (w *work) restores(ctx context.Context, c *cluster.Cluster, side progress.Side, o naming.Owner) error {
	var list velerov1.RestoreList
	if err := c.List(ctx, &list, client.InNamespace(c.VeleroNamespace), client.MatchingLabelsSelector{Selector: o.OfPlan()}); err != nil {
		return err
	}
	for i := range list.Items {
		rs := &list.Items[i]
		if velero.RestoreOutcome(rs) != velero.Running {
			continue
		}
		if unbegun(string(rs.Status.Phase)) && rs.DeletionTimestamp == nil {
			w.unbegun = append(w.unbegun, placed{c, rs})
		}
		w.running = append(w.running, fmt.Sprintf("restore %s on the %s (%s)", rs.Name, side, orNew(string(rs.Status.Phase))))
		var volumes velerov1.PodVolumeRestoreList
		if err := c.List(ctx, &volumes, client.InNamespace(c.VeleroNamespace), client.MatchingLabels{naming.VeleroRestoreName: rs.Name}); err != nil {
			return err
		}
		for j := range volumes.Items {
			v := &volumes.Items[j]
			if !terminal(string(v.Status.Phase)) && !v.Spec.Cancel {
				w.cancellable = append(w.cancellable, placed{c, v})
			}
		}
	}
	return nil
}

// unbegun phases are those in which Velero has not written anything yet: such
// a backup does not come back by sync when it is deleted.
func unbegun(phase string) bool {
	return slices.Contains([]string{"", "New", "Queued", "ReadyToStart"}, phase)
}

// terminal phases of PodVolumeBackups and PodVolumeRestores; one that this mig
// does not know is not one.
func terminal(phase string) bool {
	return slices.Contains([]string{"Completed", "Failed", "Canceled"}, phase)
}

func decideVeleroWork(w work, graceOver bool) pipeline.Decision {
	say := func(v pipeline.Verdict, text string) pipeline.Decision {
		return pipeline.Decision{Verdict: v, Note: progress.Remark{Why: "VeleroWorkStopped", Say: text}}
	}
	switch {
	case len(w.running) == 0:
		return say(pipeline.Done, "Velero does nothing for this plan")
	case len(w.unbegun) > 0 || len(w.cancellable) > 0 || len(w.movers) > 0:
		return say(pipeline.Act, "stopping "+few(w.running))
	case graceOver:
		d := say(pipeline.Done, "what Velero does not end is left to itself")
		d.Warnings = []progress.Note{progress.Remark{
			Why: "VeleroWorkLeft", Say: fmt.Sprintf("did not end within %s of being cancelled: %s; is Velero's server running?", stopGrace, few(w.running)),
		}}
		return d
	default:
		return say(pipeline.Wait, "waiting for Velero to end "+few(w.running))
	}
}

// StagePodsDeleted removes the stage pods of all the plan's runs from the
// source and waits until they are gone: only then can the application mount
// volumes that allow one pod.
func StagePodsDeleted(r Run) pipeline.Step { return helpersOf{r, false} }

// helpersOf are the pods that all the plan's runs have made for themselves: on
// the source, which is all that matters to the application, or on both sides.
type helpersOf struct {
	r    Run
	both bool
}

func (s helpersOf) Name() string { return "StagePodsDeleted" }

func (s helpersOf) Next(ctx context.Context) (pipeline.Decision, error) {
	placed, err := s.pods(ctx)
	pods := make([]corev1.Pod, 0, len(placed))
	for _, p := range placed {
		pods = append(pods, *p.object.(*corev1.Pod)) //nolint:forcetypeassert // pods put them there
	}
	d := decideStagePodsDeleted(pods)
	d.Note = progress.Remark{Why: s.Name(), Say: d.Note.Text()}
	return d, err
}

func (s helpersOf) Act(ctx context.Context) error {
	pods, err := s.pods(ctx)
	for _, p := range pods {
		err = errors.Join(err, client.IgnoreNotFound(p.on.Delete(ctx, p.object)))
	}
	return err
}

func (s helpersOf) pods(ctx context.Context) ([]placed, error) {
	sides := []client.Client{s.r.Source}
	if s.both {
		sides = append(sides, s.r.Destination)
	}
	var out []placed
	for _, c := range sides {
		pods, err := helperPods(ctx, c, s.r.Owner.OfPlan())
		if err != nil {
			return nil, err
		}
		for i := range pods {
			out = append(out, placed{c, &pods[i]})
		}
	}
	return out, nil
}

// RestoresDeleted removes what the plan's runs gave to Velero, but for the
// backups: those are hours of copying, and closing the plan purges them. It
// comes last: by the restores' names their objects are found.
func RestoresDeleted(r Run) pipeline.Step { return restoresDeleted{r} }

type restoresDeleted struct{ r Run }

func (s restoresDeleted) Name() string { return "RestoresDeleted" }

func (s restoresDeleted) Next(ctx context.Context) (pipeline.Decision, error) {
	left, err := s.left(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	return decideRestoresDeleted(left), nil
}

func decideRestoresDeleted(left []placed) pipeline.Decision {
	note := progress.Remark{Why: "RestoresDeleted", Say: "the plan's restores are gone"}
	if len(left) == 0 {
		return pipeline.Decision{Verdict: pipeline.Done, Note: note}
	}
	var held []string
	for _, p := range left {
		if p.object.GetDeletionTimestamp() == nil {
			note.Say = fmt.Sprintf("deleting %d restores and what was given to them", len(left))
			return pipeline.Decision{Verdict: pipeline.Act, Note: note}
		}
		held = append(held, heldText(kindOf(p.object), p.object))
	}
	note.Say = "waiting for Velero to let go of " + few(held)
	return pipeline.Decision{Verdict: pipeline.Wait, Note: note}
}

func (s restoresDeleted) Act(ctx context.Context) error {
	left, err := s.left(ctx)
	for _, p := range left {
		err = errors.Join(err, client.IgnoreNotFound(p.on.Delete(ctx, p.object)))
	}
	return err
}

func (s restoresDeleted) left(ctx context.Context) ([]placed, error) {
	var out []placed
	for _, c := range []*cluster.Cluster{s.r.Source.Cluster, s.r.Destination.Cluster} {
		ours := []client.ListOption{client.InNamespace(c.VeleroNamespace), client.MatchingLabelsSelector{Selector: s.r.Owner.OfPlan()}}
		var restores velerov1.RestoreList
		var requests velerov1.DownloadRequestList
		var maps corev1.ConfigMapList
		var pods corev1.PodList
		if err := errors.Join(c.List(ctx, &restores, ours...), c.List(ctx, &requests, ours...), c.List(ctx, &maps, ours...), c.List(ctx, &pods, ours...)); err != nil {
			return nil, err
		}
		for i := range pods.Items {
			out = append(out, placed{c, &pods.Items[i]})
		}
		for i := range restores.Items {
			out = append(out, placed{c, &restores.Items[i]})
		}
		for i := range requests.Items {
			out = append(out, placed{c, &requests.Items[i]})
		}
		for i := range maps.Items {
			if maps.Items[i].Labels[naming.LabelRecord] == "" { // the records stay
				out = append(out, placed{c, &maps.Items[i]})
			}
		}
	}
	return out, nil
}

func kindOf(o client.Object) string {
	switch o.(type) {
	case *velerov1.Restore:
		return "Restore"
	case *velerov1.DownloadRequest:
		return "DownloadRequest"
	case *corev1.ConfigMap:
		return "ConfigMap"
	case *corev1.Pod:
		return "Pod"
	default:
		return o.GetObjectKind().GroupVersionKind().Kind
	}
}

// heldText says what keeps an object that is being deleted.
func heldText(kind string, o metav1.Object) string {
	text := kind + " " + o.GetName()
	if o.GetNamespace() != "" {
		text = kind + " " + o.GetNamespace() + "/" + o.GetName()
	}
	if t := o.GetDeletionTimestamp(); t != nil {
		text += " (deleted " + t.UTC().Format(time.TimeOnly) + ")"
	}
	if f := o.GetFinalizers(); len(f) > 0 {
		text += " is held by finalizer " + strings.Join(f, ", ")
	}
	return text
}

// alreadyGone takes for success that somebody else has deleted an object, or
// that another of the same name has taken its place.
func alreadyGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
