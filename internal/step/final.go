package step

import (
	"context"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize/english"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/velero"
)

// EnsureFinalRestore asks Velero on the destination for the restore of all
// objects. With it the application starts there: nothing is undone by itself
// from here on.
func EnsureFinalRestore(r Run) pipeline.Step {
	return &ensure{
		name:    velero.StepFinalRestore,
		on:      r.Destination,
		objects: r.finalRestore,
		note: backupNote{
			Step: velero.StepFinalRestore, On: r.restoreRef(r.Owner.FinalRestore()),
			list: list{Say: "restore of all objects asked for; the application starts on the destination"},
		},
	}
}

func (r Run) finalRestore(ctx context.Context) ([]client.Object, error) {
	var sets []appsv1.StatefulSet
	bare := false
	for _, ns := range r.Plan.SourceNamespaces() {
		var list appsv1.StatefulSetList
		if err := r.Source.List(ctx, &list, client.InNamespace(ns)); err != nil {
			return nil, err
		}
		sets = append(sets, list.Items...)
		var pods corev1.PodList
		if err := r.Source.List(ctx, &pods, client.InNamespace(ns)); err != nil {
			return nil, err
		}
		bare = bare || hasBarePod(pods.Items)
	}
	from, err := r.objectsBackup(ctx)
	if err != nil {
		return nil, err
	}
	undo, err := r.undone(ctx, from)
	if err != nil {
		return nil, err
	}
	modifiers, err := velero.FinalModifiers(r.Owner, r.Plan, r.Destination.VeleroNamespace, sets, undo)
	if err != nil {
		return nil, err
	}
	restore := velero.FinalRestore(r.Owner, r.Plan, r.Destination.VeleroNamespace, from.name(r), bare, modifiers != nil)
	if modifiers == nil {
		return []client.Object{restore}, nil
	}
	return []client.Object{modifiers, restore}, nil
}

func hasBarePod(pods []corev1.Pod) bool {
	for i := range pods {
		if metav1.GetControllerOf(&pods[i]) == nil && pods[i].Labels[naming.LabelCreatedBy] != naming.CreatedBy {
			return true
		}
	}
	return false
}

// FinalRestoreStarted says whether the run's final restore is on the
// destination: from then on the application may run there.
func (r Run) FinalRestoreStarted(ctx context.Context) (bool, error) {
	_, err := r.restore(ctx, r.Owner.FinalRestore())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// FinalRestoreCreated waits for the restore of all objects and names, one by
// one, what it left out: an object that existed and differs is a warning to
// Velero, whose phase is Completed all the same.
func FinalRestoreCreated(r Run) pipeline.Step {
	return &askAgain{Step: &finalRestoreCreated{r: r}, look: r.refusedRestore(r.Owner.FinalRestore())}
}

type finalRestoreCreated struct{ r Run }

func (s *finalRestoreCreated) Name() string { return "FinalRestoreCreated" }

// Act asks for the restore's results, which lie in the store.
func (s *finalRestoreCreated) Act(ctx context.Context) error {
	err := s.r.Destination.Create(ctx, s.request())
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (s *finalRestoreCreated) request() *velerov1.DownloadRequest {
	return &velerov1.DownloadRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.r.Destination.VeleroNamespace, Name: s.r.Owner.FinalRestore(),
			Labels: s.r.Owner.Labels(s.Name()), Annotations: s.r.Owner.Annotations(),
		},
		Spec: velerov1.DownloadRequestSpec{Target: velerov1.DownloadTarget{Kind: velerov1.DownloadTargetKindRestoreResults, Name: s.r.Owner.FinalRestore()}},
	}
}

func (s *finalRestoreCreated) Next(ctx context.Context) (pipeline.Decision, error) {
	restore, err := s.r.restore(ctx, s.r.Owner.FinalRestore())
	if err != nil {
		return pipeline.Decision{}, err
	}
	note := backupNote{Step: s.Name(), On: restoreRef(restore)}
	outcome := velero.RestoreOutcome(restore)
	if outcome == velero.Running {
		note.Say = waitingForObjects(restore)
		return pipeline.Decision{Verdict: pipeline.Wait, Note: note}, nil
	}
	if restore.Status.Warnings == 0 && restore.Status.Errors == 0 {
		return decideFinalRestore(restore, note, velero.Results{}, nil), nil
	}
	return s.withResults(ctx, restore, note)
}

// withResults reads what Velero has to say in detail before it decides.
func (s *finalRestoreCreated) withResults(ctx context.Context, restore *velerov1.Restore, note backupNote) (pipeline.Decision, error) {
	request := s.request()
	err := s.r.Destination.Get(ctx, client.ObjectKeyFromObject(request), request)
	note.Say = "asking Velero for the details of restore " + restore.Name
	switch {
	case apierrors.IsNotFound(err):
		return pipeline.Decision{Verdict: pipeline.Act, Note: note}, nil
	case err != nil:
		return pipeline.Decision{}, err
	case request.Status.DownloadURL == "":
		return pipeline.Decision{Verdict: pipeline.Wait, Note: note}, nil
	}
	results, unread := fetchResults(ctx, request.Status.DownloadURL, s.r.storeTrust(ctx))
	return decideFinalRestore(restore, note, results, unread), nil
}

// decideFinalRestore is the last word on the final restore. unread is why its
// results could not be read.
func decideFinalRestore(restore *velerov1.Restore, note backupNote, results velero.Results, unread error) pipeline.Decision {
	d := pipeline.Decision{Verdict: pipeline.Done, Warnings: leftOut(restore, results, unread)}
	note.Say = fmt.Sprintf("Velero restore %s made the objects of the application", restore.Name)
	if n := restored(restore); n > 0 {
		note.Say = fmt.Sprintf("Velero restore %s made %s", restore.Name, english.Plural(n, "object", ""))
	}
	if velero.RestoreOutcome(restore) == velero.Broken {
		d.Verdict = pipeline.Failed
		note.Say = velero.RestoreTrouble(restore)
		if len(results.Errors) > 0 {
			note.Say += ": " + joinFindings(results.Errors)
		}
	}
	d.Note = note
	return d
}

func leftOut(restore *velerov1.Restore, results velero.Results, unread error) []progress.Note {
	var out []progress.Note
	if unread != nil {
		out = append(out, LeftOut{What: fmt.Sprintf("%s of Velero restore %s could not be read: %v; read them with: velero -n %s restore describe %s --details", english.Plural(restore.Status.Warnings, "warning", ""), restore.Name, unread, restore.Namespace, restore.Name), On: restoreRef(restore)})
	}
	for _, f := range results.Losses() {
		out = append(out, LeftOut{What: f.String(), On: restoreRef(restore)})
	}
	return out
}

func joinFindings(fs []velero.Finding) string {
	s := make([]string, 0, len(fs))
	for _, f := range fs {
		s = append(s, f.String())
	}
	return strings.Join(s, "; ")
}

func waitingForObjects(r *velerov1.Restore) string {
	switch {
	case r.Status.Phase == "":
		return "waiting for Velero to take up restore " + r.Name
	case r.Status.Progress != nil && r.Status.Progress.TotalItems > 0:
		return fmt.Sprintf("Velero restore %s: %s, %d of %d objects", r.Name, r.Status.Phase, r.Status.Progress.ItemsRestored, r.Status.Progress.TotalItems)
	default:
		return fmt.Sprintf("Velero restore %s: %s", r.Name, r.Status.Phase)
	}
}

func restored(r *velerov1.Restore) int {
	if r.Status.Progress == nil {
		return 0
	}
	return r.Status.Progress.ItemsRestored
}

// ReasonLeftOut is the reason of LeftOut: a run with one of these in its record
// has not done all that the plan covers.
const ReasonLeftOut = "LeftOut"

// LeftOut is something that the plan covers and that is not on the destination
// as it was on the source.
type LeftOut struct {
	What string
	On   progress.Ref
}

// Reason is ReasonLeftOut.
func (n LeftOut) Reason() string { return ReasonLeftOut }

// Text says what was left out, in Velero's words.
func (n LeftOut) Text() string { return n.What }

// Regarding is the restore that left it out.
func (n LeftOut) Regarding() progress.Ref { return n.On }
