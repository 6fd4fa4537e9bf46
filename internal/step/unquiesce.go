package step

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/dustin/go-humanize/english"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/quiesce"
)

// UnquiesceApplications brings back, object by object, what the plan's runs
// stopped on the source, exactly as it was. One that cannot be brought back
// does not keep the others down.
func UnquiesceApplications(r Run) pipeline.Step { return unquiesceApplications{r} }

type unquiesceApplications struct{ r Run }

func (s unquiesceApplications) Name() string { return "UnquiesceApplications" }

func (s unquiesceApplications) Next(ctx context.Context) (pipeline.Decision, error) {
	ws, err := workloads(ctx, s.r.Source, s.r.Plan.SourceNamespaces())
	if err != nil {
		return pipeline.Decision{}, err
	}
	return decideUnquiesce(ws, s.r.Owner), nil
}

func decideUnquiesce(ws []quiesce.Workload, o naming.Owner) pipeline.Decision {
	d := pipeline.Decision{}
	for _, w := range ws {
		if quiesce.Starting(w, o) {
			d.Facts = append(d.Facts, workloadNote{Why: "Unquiesced", On: workloadRef(progress.OnSource, w), Say: quiesce.Asks(w) + " again"})
		}
	}
	if down := toBringUp(ws, o); len(down) > 0 {
		d.Verdict, d.Note = pipeline.Act, progress.Remark{Why: "UnquiesceApplications", Say: "bringing up " + names(down)}
		return d
	}
	d.Verdict, d.Note = pipeline.Done, progress.Remark{Why: "UnquiesceApplications", Say: "nothing on the source is stopped by this plan"}
	if n := len(d.Facts); n > 0 {
		d.Note = progress.Remark{Why: "UnquiesceApplications", Say: "as before on the source: " + english.Plural(n, "workload", "")}
	}
	return d
}

// toBringUp are the workloads to bring back, those that were stopped last first.
func toBringUp(ws []quiesce.Workload, o naming.Owner) []quiesce.Workload {
	var out []quiesce.Workload
	for _, w := range slices.Backward(ws) {
		if quiesce.Marked(w, o) {
			out = append(out, w)
		}
	}
	return out
}

func (s unquiesceApplications) Act(ctx context.Context) error {
	ws, err := workloads(ctx, s.r.Source, s.r.Plan.SourceNamespaces())
	if err != nil {
		return err
	}
	return patchAll(ctx, s.r.Source, toBringUp(ws, s.r.Owner), func(now quiesce.Workload) (quiesce.Change, bool, error) {
		if !quiesce.Marked(now, s.r.Owner) {
			return quiesce.Change{}, false, nil
		}
		c, err := quiesce.Start(now)
		return c, true, err
	})
}

// EnsureUnquiesced waits until what was brought back on the source is as ready
// as it was before, and removes the last marks.
func EnsureUnquiesced(r Run) pipeline.Step { return ensureUnquiesced{r} }

type ensureUnquiesced struct{ r Run }

func (s ensureUnquiesced) Name() string { return "EnsureUnquiesced" }

func (s ensureUnquiesced) Next(ctx context.Context) (pipeline.Decision, error) {
	ws, err := workloads(ctx, s.r.Source, s.r.Plan.SourceNamespaces())
	if err != nil {
		return pipeline.Decision{}, err
	}
	settle, slow := partReady(ws, s.r.Owner)
	traces, err := s.revisions(ctx, ws)
	if err != nil {
		return pipeline.Decision{}, err
	}
	if len(settle) > 0 || len(slow) == 0 {
		return decideUnquiesced(settle, slow, len(traces), nil), nil
	}
	e, err := evidenceOf(ctx, s.r.Source, slow)
	if err != nil {
		return pipeline.Decision{}, err
	}
	return decideUnquiesced(settle, slow, len(traces), e), nil
}

// partReady parts what was brought back in those whose marks may go and those that
// are not yet as ready as they were.
func partReady(ws []quiesce.Workload, o naming.Owner) (settle, slow []quiesce.Workload) {
	held := map[string]bool{} // owners that still bear the marks would copy them again
	for _, w := range ws {
		if quiesce.Marked(w, o) || quiesce.Starting(w, o) {
			held[string(w.GetUID())] = true
		}
		switch {
		case !quiesce.Starting(w, o):
		case quiesce.ReadyAgain(w, o):
			settle = append(settle, w)
		default:
			slow = append(slow, w)
		}
	}
	for _, w := range ws {
		if ref := metav1.GetControllerOf(w); quiesce.CopiedMarks(w, o) && ref != nil && !held[string(ref.UID)] {
			settle = append(settle, w)
		}
	}
	return settle, slow
}

func decideUnquiesced(settle, slow []quiesce.Workload, traces int, e evidence) pipeline.Decision {
	note := progress.Remark{Why: "EnsureUnquiesced"}
	switch {
	case traces > 0:
		note.Say = fmt.Sprintf("removing %d revisions of DaemonSets that the quiesce has left", traces)
		return pipeline.Decision{Verdict: pipeline.Act, Note: note}
	case len(settle) > 0:
		note.Say = "as ready on the source as before: " + english.Plural(len(settle), "workload", "")
		return pipeline.Decision{Verdict: pipeline.Act, Note: note}
	case len(slow) > 0:
		note.On = workloadRef(progress.OnSource, slow[0])
		note.Say = "waiting for the source to be as ready as it was: " + few(e.all(slow))
		return pipeline.Decision{Verdict: pipeline.Wait, Note: note}
	default:
		note.Say = "the source is as ready as it was"
		return pipeline.Decision{Verdict: pipeline.Done, Note: note}
	}
}

func (s ensureUnquiesced) Act(ctx context.Context) error {
	ws, err := workloads(ctx, s.r.Source, s.r.Plan.SourceNamespaces())
	if err != nil {
		return err
	}
	revisions, err := s.revisions(ctx, ws)
	if err != nil {
		return err
	}
	for i := range revisions {
		if err := client.IgnoreNotFound(s.r.Source.Delete(ctx, &revisions[i])); err != nil {
			return fmt.Errorf("ControllerRevision %s/%s: %w", revisions[i].Namespace, revisions[i].Name, err)
		}
	}
	settle, _ := partReady(ws, s.r.Owner)
	return patchAll(ctx, s.r.Source, settle, func(now quiesce.Workload) (quiesce.Change, bool, error) {
		if !quiesce.Starting(now, s.r.Owner) && !quiesce.CopiedMarks(now, s.r.Owner) {
			return quiesce.Change{}, false, nil
		}
		c, err := quiesce.Settle(now)
		return c, true, err
	})
}

// revisions are what DaemonSet controllers remember of the quiesce, once the
// sets are brought back: `kubectl rollout undo` would go to a template that
// runs on no node.
func (s ensureUnquiesced) revisions(ctx context.Context, ws []quiesce.Workload) ([]appsv1.ControllerRevision, error) {
	var out []appsv1.ControllerRevision
	for _, ns := range s.r.Plan.SourceNamespaces() {
		var list appsv1.ControllerRevisionList
		if err := s.r.Source.List(ctx, &list, client.InNamespace(ns)); err != nil {
			return nil, err
		}
		out = append(out, list.Items...)
	}
	return slices.DeleteFunc(out, func(c appsv1.ControllerRevision) bool { return !isTrace(&c, ws, s.r.Owner) }), nil
}

// isTrace says whether a revision holds the quiesced template of a DaemonSet
// that has another one again, as its controller knows.
func isTrace(c *appsv1.ControllerRevision, ws []quiesce.Workload, o naming.Owner) bool {
	ref := metav1.GetControllerOf(c)
	if ref == nil || c.Annotations[naming.AnnQuiescePlan] != o.PlanUID || !bytes.Contains(c.Data.Raw, []byte(`"`+naming.NodeSelectorQuiesced+`"`)) {
		return false
	}
	return slices.ContainsFunc(ws, func(w quiesce.Workload) bool {
		return w.GetKind() == "DaemonSet" && w.GetUID() == ref.UID && !quiesce.Marked(w, o) && w.Observed()
	})
}

// Stopped says whether a run of the plan has stopped, or begun to stop,
// anything on the source that is not brought back yet.
func Stopped(ctx context.Context, r Run) (bool, error) {
	ws, err := workloads(ctx, r.Source, r.Plan.SourceNamespaces())
	if err != nil {
		return false, err
	}
	return len(toBringUp(ws, r.Owner)) > 0, nil
}
