// Package pipeline runs a list of steps: each looks, decides, acts and looks
// again until its end is observed. It holds the waiting, the limits, the
// patience with passing errors and the order; it knows no Kubernetes and no
// Velero.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mig-cli/mig/internal/progress"
)

// Step is one step of a run.
type Step interface {
	// Name is the reason that Events and records know the step by; it never
	// changes between versions.
	Name() string
	// Next looks at the clusters, decides and changes nothing.
	Next(context.Context) (Decision, error)
	// Act makes the change that Next asked for. Doing it twice is as once.
	Act(context.Context) error
}

// Verdict is what a step found.
type Verdict int

// The verdicts. The zero value is none of them, so that a forgotten one shows.
const (
	Done    Verdict = iota + 1 // the step's end is observed
	Act                        // there is something to do, and Act does it
	Wait                       // others are at it
	Blocked                    // a person must decide; the run can go on afterwards
	Failed                     // it will not come to its end by waiting
)

// Decision is a verdict with what there is to say about it.
type Decision struct {
	Verdict  Verdict
	Note     progress.Note
	Amounts  []progress.Amount
	Facts    []progress.Note // happened beside the step's own end; each is told once
	Warnings []progress.Note // the same, for what a person should look at
	// Stall is told instead of Note where nothing moves: what may be wrong, and
	// what a person can do. nil: Note.
	Stall progress.Note
}

// Limits bound the waiting of one step. Zero means the default.
type Limits struct {
	Stall time.Duration // nothing moved for so long: told, with what is waited for
	Total time.Duration // the step fails
}

// DefaultLimits hold for a step that has no other.
var DefaultLimits = Limits{Stall: 2 * time.Minute, Total: 30 * time.Minute} //nolint:gochecknoglobals // a constant of a struct type

// Journal keeps what is done, so that another process can go on where this one ended.
type Journal interface {
	// IsDone says whether an earlier process of the same run brought the step to its end.
	IsDone(step string) bool
	// Keep writes a transition down before the run goes on. An error stops the run.
	Keep(context.Context, progress.Update) error
}

// Pipeline is a list of steps and how to run them.
type Pipeline struct {
	Name    string // of the kind of run: migrate, rollback
	Steps   []Step
	Sink    progress.Sink
	Journal Journal
	Limits  func(step string) Limits // nil: the defaults
	// Stop, when closed, ends the run at the next safe point: between two acts,
	// never within one.
	Stop <-chan struct{}
	// Passing says of an error whether it goes away by itself (a refused
	// connection, a 429, a conflict).
	Passing func(error) bool
	// Patience is how long passing errors are ridden out in one go.
	Patience time.Duration
	Poll     time.Duration // between two looks
}

// BlockedError ends a run at a step that needs a person.
type BlockedError struct {
	Step string
	Note progress.Note
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("step %s is blocked: %s", e.Step, e.Note.Text())
}

// FailedError ends a run at a step that cannot come to its end.
type FailedError struct {
	Step string
	Note progress.Note // nil where only an error is known
	Err  error
}

func (e *FailedError) Error() string {
	if e.Note != nil {
		return fmt.Sprintf("step %s: %s", e.Step, e.Note.Text())
	}
	return fmt.Sprintf("step %s: %v", e.Step, e.Err)
}

func (e *FailedError) Unwrap() error { return e.Err }

// TimeoutError is the cause of a step that ran into its limit.
type TimeoutError struct {
	After time.Duration
	Last  progress.Note // what was waited for
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("gave up after %s: %s", e.After, e.Last.Text())
}

// timeoutNote is a step that ran into its limit, waiting for the last note.
type timeoutNote struct{ err *TimeoutError }

func (n timeoutNote) Reason() string          { return n.err.Last.Reason() }
func (n timeoutNote) Text() string            { return n.err.Error() }
func (n timeoutNote) Regarding() progress.Ref { return n.err.Last.Regarding() }

// Fit shortens what was waited for.
func (n timeoutNote) Fit(limit int) string {
	before := fmt.Sprintf("gave up after %s: ", n.err.After)
	return before + progress.Within(n.err.Last, limit-len(before))
}

// InterruptedError ends a run that was asked to stop.
type InterruptedError struct{ Step string }

func (e *InterruptedError) Error() string { return "interrupted in step " + e.Step }

// Run takes the steps in order, each to its observed end. It returns the
// first *BlockedError, *FailedError or *InterruptedError, or the cause of ctx.
func (p Pipeline) Run(ctx context.Context) error {
	for i, s := range p.Steps {
		r := &stepRun{p: p, step: s, number: i + 1, told: map[string]bool{}}
		if p.Journal.IsDone(s.Name()) {
			r.emit(progress.Skipped, progress.Remark{Why: s.Name(), Say: "done before"}, nil)
			continue
		}
		if err := r.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Preview asks every step what it would do now and does nothing. A step that
// depends on an earlier one says so in its note.
func (p Pipeline) Preview(ctx context.Context) ([]Decision, error) {
	out := make([]Decision, 0, len(p.Steps))
	for _, s := range p.Steps {
		d, err := s.Next(ctx)
		if err != nil {
			return out, fmt.Errorf("step %s: %w", s.Name(), err)
		}
		out = append(out, d)
	}
	return out, nil
}

// stepRun is one step on its way to its end.
type stepRun struct {
	p      Pipeline
	step   Step
	number int
	told   map[string]bool // facts, by reason, object and text

	start    time.Time
	moved    time.Time // when what is waited for last changed
	last     string    // what was waited for, as text
	stalled  bool
	acted    bool      // the last thing done was Act
	troubled time.Time // since when errors pass; zero while there are none
}

func (r *stepRun) run(ctx context.Context) error {
	r.start = time.Now()
	r.moved = r.start
	for {
		if r.stopped() {
			return &InterruptedError{Step: r.step.Name()}
		}
		d, err := r.step.Next(ctx)
		again := err == nil && d.Verdict == Act && r.acted // a stale read must not make us act twice in a row
		r.acted = false
		if err == nil && !again {
			var end bool
			end, err = r.follow(ctx, d)
			if end {
				return err
			}
		}
		if err != nil {
			if err := r.ride(ctx, err); err != nil {
				return err
			}
		}
		if r.acted {
			continue // look at once at what the act has done
		}
		if err := r.pause(ctx); err != nil {
			return err
		}
	}
}

// follow does what a decision asks for, and says whether the step has ended.
func (r *stepRun) follow(ctx context.Context, d Decision) (bool, error) {
	if err := r.tell(ctx, d); err != nil {
		return false, err
	}
	switch d.Verdict {
	case Done:
		err := r.keep(ctx, progress.Done, d.Note, d.Amounts)
		return err == nil, err
	case Blocked:
		return true, errors.Join(&BlockedError{Step: r.step.Name(), Note: d.Note}, r.keep(ctx, progress.Blocked, d.Note, d.Amounts))
	case Failed:
		return true, r.fail(ctx, d.Note, errors.New(d.Note.Text()))
	case Act:
		r.wait(d)
		if err := r.step.Act(ctx); err != nil {
			return false, err
		}
		r.acted, r.troubled = true, time.Time{}
		return r.checkLimits(ctx, d) // an act that never holds ends too
	case Wait:
		r.troubled = time.Time{}
		r.wait(d)
		return r.checkLimits(ctx, d)
	default:
		return true, r.fail(ctx, nil, fmt.Errorf("no verdict %d", d.Verdict))
	}
}

// tell tells the facts that were not told yet.
func (r *stepRun) tell(ctx context.Context, d Decision) error {
	for _, list := range []struct {
		state progress.State
		notes []progress.Note
	}{{progress.Happened, d.Facts}, {progress.Warning, d.Warnings}} {
		for _, n := range list.notes {
			key := fmt.Sprintf("%s %v %s", n.Reason(), n.Regarding(), n.Text())
			if r.told[key] {
				continue
			}
			if err := r.keep(ctx, list.state, n, nil); err != nil {
				return err
			}
			r.told[key] = true
		}
	}
	return nil
}

// wait tells what is waited for whenever it has changed.
func (r *stepRun) wait(d Decision) {
	now := d.Note.Text() + fmt.Sprint(d.Amounts)
	if now == r.last {
		return
	}
	first := r.last == ""
	r.last, r.moved, r.stalled = now, time.Now(), false
	state := progress.Waiting
	if first {
		state = progress.Started
	}
	r.emit(state, d.Note, d.Amounts)
}

func (r *stepRun) checkLimits(ctx context.Context, d Decision) (bool, error) {
	n, limits := d.Note, r.limits()
	if took := time.Since(r.start); took >= limits.Total {
		return true, r.fail(ctx, n, &TimeoutError{After: took.Round(time.Second), Last: n})
	}
	if !r.stalled && time.Since(r.moved) >= limits.Stall {
		r.stalled = true
		if d.Stall != nil {
			n = d.Stall
		}
		return false, r.keep(ctx, progress.Stalled, n, nil)
	}
	return false, nil
}

// ride takes an error: nil where it may pass by itself and patience is left.
func (r *stepRun) ride(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !r.p.Passing(err) {
		return r.fail(ctx, nil, err)
	}
	if r.troubled.IsZero() {
		r.troubled = time.Now()
	}
	if time.Since(r.troubled) >= r.p.Patience {
		return r.fail(ctx, nil, fmt.Errorf("no better after %s: %w", r.p.Patience, err))
	}
	r.emit(progress.Waiting, progress.Remark{Why: "Retrying", Say: "trying again: " + err.Error()}, nil)
	return nil
}

func (r *stepRun) fail(ctx context.Context, n progress.Note, err error) error {
	failed := &FailedError{Step: r.step.Name(), Note: n, Err: err}
	if timeout, ok := errors.AsType[*TimeoutError](err); ok {
		failed.Note = timeoutNote{timeout}
	}
	told := failed.Note
	if told == nil {
		told = progress.Remark{Why: r.step.Name() + "Failed", Say: err.Error()}
	}
	// The journal's own trouble must not hide why the step failed.
	return errors.Join(failed, r.keep(ctx, progress.Failed, told, nil))
}

// keep writes a transition down, then tells it.
func (r *stepRun) keep(ctx context.Context, state progress.State, n progress.Note, amounts []progress.Amount) error {
	u := r.update(state, n, amounts)
	if err := r.p.Journal.Keep(ctx, u); err != nil {
		return fmt.Errorf("run record: %w", err)
	}
	r.p.Sink.Emit(u)
	return nil
}

func (r *stepRun) emit(state progress.State, n progress.Note, amounts []progress.Amount) {
	r.p.Sink.Emit(r.update(state, n, amounts))
}

func (r *stepRun) update(state progress.State, n progress.Note, amounts []progress.Amount) progress.Update {
	u := progress.Update{
		Time: time.Now(), Run: r.p.Name, Step: r.step.Name(), Number: r.number, Of: len(r.p.Steps),
		State: state, Note: n, Amounts: amounts,
	}
	if !r.start.IsZero() {
		u.Elapsed = u.Time.Sub(r.start)
	}
	return u
}

func (r *stepRun) limits() Limits {
	l := DefaultLimits
	if r.p.Limits == nil {
		return l
	}
	own := r.p.Limits(r.step.Name())
	if own.Stall > 0 {
		l.Stall = own.Stall
	}
	if own.Total > 0 {
		l.Total = own.Total
	}
	return l
}

func (r *stepRun) stopped() bool {
	select {
	case <-r.p.Stop:
		return true
	default:
		return false
	}
}

func (r *stepRun) pause(ctx context.Context) error {
	t := time.NewTimer(r.p.Poll)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-r.p.Stop:
		return nil // run sees it
	case <-t.C:
		return nil
	}
}
