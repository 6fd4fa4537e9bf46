package migrate

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/record"
	"github.com/mig-cli/mig/internal/step"
)

// How often it is looked, at most, whether what a run needs is there.
const (
	askEvery  = 5 * time.Second  // the clusters: only after errors that pass, and until they answer
	lookEvery = 30 * time.Second // Velero's parts: only while a step waits
)

// watch tells when something that the run needs goes away, changes why it is
// away, or comes back. It costs nothing while all is well and nothing waits.
type watch struct {
	clusters, parts func(context.Context) []step.Need
	tell            func(progress.Update)

	told          map[string]string // why what is away is, by the need's key, as it was told last
	asked, looked time.Time
	at            progress.Update // the step that the run is at
}

// watched are the steps, each of which is looked at as it waits.
func (w *watch) watched(run string, steps []pipeline.Step) []pipeline.Step {
	out := make([]pipeline.Step, 0, len(steps))
	for i, s := range steps {
		at := progress.Update{Run: run, Step: s.Name(), Number: i + 1, Of: len(steps)}
		out = append(out, watchedStep{Step: s, watch: w, at: at})
	}
	return out
}

type watchedStep struct {
	pipeline.Step

	watch *watch
	at    progress.Update
}

func (s watchedStep) Next(ctx context.Context) (pipeline.Decision, error) {
	s.watch.at = s.at
	d, err := s.Step.Next(ctx)
	if err == nil {
		s.watch.goesOn(ctx, d.Verdict == pipeline.Wait)
	}
	return d, err
}

// passes says whether an error passes by itself, and takes those that do as a
// reason to ask whether both clusters are there.
func (w *watch) passes(ctx context.Context, err error) bool {
	if !cluster.IsPassing(err) {
		return false
	}
	if !apierrors.IsConflict(err) {
		w.ask(ctx)
	}
	return true
}

// goesOn looks at a step that could look at its clusters.
func (w *watch) goesOn(ctx context.Context, waits bool) {
	if w.misses(step.ReasonSourceUnreachable) || w.misses(step.ReasonDestinationUnreachable) {
		w.ask(ctx)
	}
	if waits && time.Since(w.looked) >= lookEvery {
		w.looked = time.Now()
		w.say(w.parts(ctx))
	}
}

// misses says whether one of the needs of this reason is away, as it was told.
func (w *watch) misses(lost string) bool {
	for _, side := range []progress.Side{progress.OnSource, progress.OnDestination} {
		if _, away := w.told[step.NeedKey(lost, progress.Ref{Side: side})]; away {
			return true
		}
	}
	return false
}

func (w *watch) ask(ctx context.Context) {
	if time.Since(w.asked) < askEvery {
		return
	}
	seen := w.clusters(ctx)
	w.asked = time.Now()
	if ctx.Err() == nil { // else it is we who went away
		w.say(seen)
	}
}

func (w *watch) say(seen []step.Need) {
	lost, back := decideNeeds(w.told, seen)
	for _, n := range lost {
		w.told[n.Key()] = n.Cause
		w.note(progress.Warning, step.Lacking{Need: n})
	}
	for _, n := range back {
		delete(w.told, n.Key())
		w.note(progress.Happened, step.Regained{Need: n})
	}
}

func (w *watch) note(state progress.State, n progress.Note) {
	u := w.at
	u.Time, u.State, u.Note, u.Recurs = time.Now(), state, n, true
	w.tell(u)
}

// decideNeeds compares what was told to be away, and why, with what is seen
// now. What was not seen stays as it was told.
func decideNeeds(told map[string]string, seen []step.Need) (lost, back []step.Need) {
	for _, n := range seen {
		cause, away := told[n.Key()]
		switch {
		case n.Cause == "" && away:
			back = append(back, n)
		case n.Cause != "" && (!away || n.Cause != cause):
			lost = append(lost, n)
		}
	}
	return lost, back
}

// awayAtEnd are the needs that earlier processes of a run told to be away, and
// not to be back. Why they are is asked anew.
func awayAtEnd(events []record.Event) map[string]string {
	backs := map[string]string{
		step.ReasonSourceBack: step.ReasonSourceUnreachable, step.ReasonDestinationBack: step.ReasonDestinationUnreachable,
		step.ReasonLocationBack: step.ReasonLocationUnavailable, step.ReasonNodeAgentBack: step.ReasonNodeAgentMissing,
	}
	told := map[string]string{}
	for _, e := range events {
		if !e.Recurs {
			continue
		}
		if lost, back := backs[e.Reason]; back {
			delete(told, step.NeedKey(lost, e.Object))
			continue
		}
		told[step.NeedKey(e.Reason, e.Object)] = ""
	}
	return told
}

// newWatch watches over what the driver's run needs.
func (d *driver) newWatch() *watch {
	r := d.stepRun()
	if d.o.SourceOnly {
		r.Destination = cluster.Destination{}
	}
	return &watch{
		clusters: r.Clusters, parts: r.Parts, told: awayAtEnd(d.journal.Run().Events),
		tell: func(u progress.Update) {
			d.journal.KeepBeside(u)
			d.sink.Emit(u)
		},
	}
}
