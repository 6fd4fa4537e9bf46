package step

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize/english"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/quiesce"
)

// WorkloadsReady waits until every workload on the destination is as ready as
// its like was on the source before it was stopped. What did not run there
// need not run here.
func WorkloadsReady(r Run) pipeline.Step { return workloadsReady{r} }

type workloadsReady struct{ r Run }

func (s workloadsReady) Name() string              { return "WorkloadsReady" }
func (s workloadsReady) Act(context.Context) error { return nil }

func (s workloadsReady) Next(ctx context.Context) (pipeline.Decision, error) {
	src, err := workloads(ctx, s.r.Source, s.r.Plan.SourceNamespaces())
	if err != nil {
		return pipeline.Decision{}, err
	}
	namespaces := s.destinations()
	dst, err := workloads(ctx, s.r.Destination, namespaces)
	if err != nil {
		return pipeline.Decision{}, err
	}
	hpas, err := autoscalersIn(ctx, s.r.Destination, namespaces)
	if err != nil {
		return pipeline.Decision{}, err
	}
	auto := map[string]bool{}
	for id := range scaled(hpas) {
		auto[id] = true
	}
	pairs := pair(src, dst, s.r.Owner, s.r.Plan.DestinationNamespace, auto)
	e, err := evidenceOf(ctx, s.r.Destination, lagging(pairs))
	if err != nil {
		return pipeline.Decision{}, err
	}
	return decideReady(pairs, e), nil
}

func (s workloadsReady) destinations() []string {
	var out []string
	for _, ns := range s.r.Plan.SourceNamespaces() {
		out = append(out, s.r.Plan.DestinationNamespace(ns))
	}
	return out
}

// twin is a workload of the source and its like on the destination.
type twin struct {
	id     string // of the one on the destination, Kind namespace/name
	before quiesce.Readiness
	there  quiesce.Workload // nil object: not there
	auto   bool             // an autoscaler decides how many there are
}

// pair finds for every workload that ran on the source its like.
func pair(src, dst []quiesce.Workload, o naming.Owner, mapped func(string) string, auto map[string]bool) []twin {
	there := map[string]quiesce.Workload{}
	for _, w := range dst {
		there[w.ID()] = w
	}
	var out []twin
	for _, w := range src {
		before := w.Before(o)
		if !w.Stoppable() || before.Ready == 0 {
			continue
		}
		ns := mapped(w.GetNamespace())
		id := w.GetKind() + "/" + ns + "/" + w.GetName()
		out = append(out, twin{id: w.GetKind() + " " + ns + "/" + w.GetName(), before: before, there: there[id], auto: auto[id]})
	}
	return out
}

// ready says whether the twin is as ready as its like was.
func (t twin) ready() bool {
	if t.there.Unstructured == nil || !t.there.Observed() {
		return false
	}
	now := t.there.Readiness()
	return now.Ready >= t.want(now) && now.Ready > 0
}

// want is how many pods must be ready. The destination has its own number of
// nodes, so a DaemonSet that ran on all that it wanted must do so here; an
// autoscaler has its own mind on how many it takes.
func (t twin) want(now quiesce.Readiness) int64 {
	if t.there.GetKind() == "DaemonSet" {
		if t.before.Ready >= t.before.Wanted {
			return max(now.Wanted, 1)
		}
		return max(min(t.before.Ready, now.Wanted), 1)
	}
	if t.auto {
		return min(t.before.Ready, now.Wanted)
	}
	return t.before.Ready
}

func lagging(ts []twin) []quiesce.Workload {
	var out []quiesce.Workload
	for _, t := range ts {
		if t.there.Unstructured != nil && !t.ready() {
			out = append(out, t.there)
		}
	}
	return out
}

func decideReady(ts []twin, e evidence) pipeline.Decision {
	d := pipeline.Decision{Verdict: pipeline.Done}
	var late []string
	note := progress.Remark{Why: "WorkloadsReady", Say: "as ready on the destination as on the source: " + english.Plural(len(ts), "workload", "")}
	for _, t := range ts {
		if t.ready() {
			d.Facts = append(d.Facts, workloadNote{Why: "WorkloadReady", On: workloadRef(progress.OnDestination, t.there), Say: readyText(t)})
			continue
		}
		if len(late) == 0 && t.there.Unstructured != nil {
			note.On = workloadRef(progress.OnDestination, t.there)
		}
		late = append(late, t.late(e))
	}
	if len(late) > 0 {
		d.Verdict = pipeline.Wait
		note.Say = fmt.Sprintf("%d of %d workloads are not ready: %s", len(late), len(ts), few(late))
	}
	d.Note = note
	return d
}

func readyText(t twin) string {
	return fmt.Sprintf("%s pods ready; on the source it was %s", t.there.Readiness(), t.before)
}

func (t twin) late(e evidence) string {
	if t.there.Unstructured == nil {
		return t.id + " is not there"
	}
	now := t.there.Readiness()
	if want := t.want(now); t.there.Observed() && now.Wanted < want {
		if t.there.GetKind() != "DaemonSet" {
			return fmt.Sprintf("%s asks for %d pods; on the source %d were ready", t.id, now.Wanted, want)
		}
	}
	return fmt.Sprintf("%s %s ready: %s", t.id, now, e.why(t.there))
}
