package pipeline

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mig-cli/mig/internal/progress"
)

var errPassing = errors.New("connection refused")

// fakeStep answers from a script; the last decision repeats.
type fakeStep struct {
	name   string
	script []Decision
	errs   map[int]error // of the n-th look
	actErr error
	looks  int
	acts   int
}

func (s *fakeStep) Name() string { return s.name }

func (s *fakeStep) Next(context.Context) (Decision, error) {
	n := s.looks
	s.looks++
	if err := s.errs[n]; err != nil {
		return Decision{}, err
	}
	return s.script[min(n, len(s.script)-1)], nil
}

func (s *fakeStep) Act(context.Context) error { s.acts++; return s.actErr }

// memory is a journal without a cluster.
type memory struct {
	done  map[string]bool
	kept  []progress.Update
	fails int // so many times
}

func (m *memory) IsDone(step string) bool { return m.done[step] }

func (m *memory) Keep(_ context.Context, u progress.Update) error {
	if m.fails > 0 {
		m.fails--
		return errPassing
	}
	m.kept = append(m.kept, u)
	return nil
}

func says(v Verdict, text string) Decision {
	return Decision{Verdict: v, Note: progress.Remark{Why: "Test", Say: text}}
}

func newPipeline(steps ...Step) (Pipeline, *progress.Recorder, *memory) {
	rec, mem := &progress.Recorder{}, &memory{done: map[string]bool{}}
	return Pipeline{
		Name: "migrate", Steps: steps, Sink: rec, Journal: mem,
		Passing:  func(err error) bool { return errors.Is(err, errPassing) },
		Patience: time.Minute, Poll: time.Second,
	}, rec, mem
}

func states(us []progress.Update) []progress.State {
	out := make([]progress.State, 0, len(us))
	for _, u := range us {
		out = append(out, u.State)
	}
	return out
}

func TestAStepActsOnceAndWaitsForWhatItObserves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStep{name: "Backup", script: []Decision{says(Act, "asking"), says(Wait, "1 of 2"), says(Wait, "1 of 2"), says(Wait, "2 of 2"), says(Done, "there")}}
		p, rec, mem := newPipeline(s)
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []progress.State{progress.Started, progress.Waiting, progress.Waiting, progress.Done}
		if got := states(rec.Updates()); !slices.Equal(got, want) {
			t.Errorf("told %v, want %v: the same wait is told once", got, want)
		}
		if s.acts != 1 {
			t.Errorf("acted %d times, want 1", s.acts)
		}
		if len(mem.kept) != 1 || mem.kept[0].State != progress.Done {
			t.Errorf("kept %v, want the end alone", states(mem.kept))
		}
	})
}

func TestAStaleReadDoesNotMakeAStepActTwiceInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStep{name: "Backup", script: []Decision{says(Act, "asking"), says(Act, "asking"), says(Done, "there")}}
		p, _, _ := newPipeline(s)
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.acts != 1 {
			t.Errorf("acted %d times on one stale read, want 1", s.acts)
		}
	})
}

func TestAnActThatDidNotHoldIsDoneAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStep{name: "Delete", script: []Decision{says(Act, "a"), says(Act, "a"), says(Act, "a"), says(Done, "gone")}}
		p, _, _ := newPipeline(s)
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.acts != 2 {
			t.Errorf("acted %d times, want 2", s.acts)
		}
	})
}

func TestWhatAnEarlierProcessDidIsSkippedAndKeepsItsNumber(t *testing.T) {
	first, second := &fakeStep{name: "Prepare"}, &fakeStep{name: "Backup", script: []Decision{says(Done, "there")}}
	p, rec, mem := newPipeline(first, second)
	mem.done["Prepare"] = true
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if first.looks != 0 {
		t.Error("a finished step was looked at again")
	}
	last := rec.Updates()[1]
	if last.Number != 2 || last.Of != 2 {
		t.Errorf("step Backup is %d of %d, want 2 of 2", last.Number, last.Of)
	}
}

func TestABlockedStepEndsTheRunWithItsReason(t *testing.T) {
	p, _, _ := newPipeline(&fakeStep{name: "Prepare", script: []Decision{says(Blocked, "select an action for shop/data")}}, &fakeStep{name: "Backup"})
	var blocked *BlockedError
	if err := p.Run(t.Context()); !errors.As(err, &blocked) || blocked.Note.Text() != "select an action for shop/data" {
		t.Errorf("got %v, want the step's own reason", err)
	}
}

func TestAWaitEndsAtItsLimitAndSaysWhatItWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, rec, mem := newPipeline(&fakeStep{name: "Restore", script: []Decision{says(Wait, "pod db-0 is Pending")}})
		p.Limits = func(string) Limits { return Limits{Stall: time.Minute, Total: 5 * time.Minute} }
		err := p.Run(t.Context())
		var timeout *TimeoutError
		if !errors.As(err, &timeout) || timeout.Last.Text() != "pod db-0 is Pending" {
			t.Fatalf("got %v, want a time-out that names the pod", err)
		}
		if got := states(mem.kept); !slices.Equal(got, []progress.State{progress.Stalled, progress.Failed}) {
			t.Errorf("kept %v, want one stall, then the failure", got)
		}
		if last := rec.Updates()[len(rec.Updates())-1]; last.State != progress.Failed {
			t.Errorf("last told: %s", last.State)
		}
	})
}

func TestAStallTellsWhatMayBeWrongWhereAStepKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := says(Wait, "pod db-0 is Pending")
		d.Stall = progress.Remark{Why: "Restore", Say: "pod db-0 is Pending; the agent is lost, start it anew"}
		p, _, mem := newPipeline(&fakeStep{name: "Restore", script: []Decision{d}})
		p.Limits = func(string) Limits { return Limits{Stall: time.Minute, Total: 5 * time.Minute} }
		if err := p.Run(t.Context()); err == nil {
			t.Fatal("a wait without an end has ended well")
		}
		if told := mem.kept[0]; told.State != progress.Stalled || told.Note.Text() != d.Stall.Text() {
			t.Errorf("a stall tells %q", told.Note.Text())
		}
	})
}

func TestPassingErrorsAreRiddenOutForTheirPatienceAndNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStep{name: "Backup", script: []Decision{says(Done, "there")}, errs: map[int]error{0: errPassing, 1: errPassing}}
		p, _, _ := newPipeline(s)
		if err := p.Run(t.Context()); err != nil {
			t.Errorf("two refused connections ended the run: %v", err)
		}
		always := &fakeStep{name: "Backup", script: []Decision{says(Act, "asking")}, actErr: errPassing}
		p, _, _ = newPipeline(always)
		start := time.Now()
		if err := p.Run(t.Context()); !errors.Is(err, errPassing) {
			t.Errorf("got %v, want the error that did not pass", err)
		}
		if took := time.Since(start); took < p.Patience {
			t.Errorf("gave up after %s, before its patience of %s", took, p.Patience)
		}
	})
}

func TestAnErrorThatDoesNotPassEndsTheRunAtOnce(t *testing.T) {
	forbidden := errors.New("forbidden")
	p, _, _ := newPipeline(&fakeStep{name: "Backup", errs: map[int]error{0: forbidden}, script: []Decision{says(Done, "")}})
	if err := p.Run(t.Context()); !errors.Is(err, forbidden) {
		t.Errorf("got %v", err)
	}
}

func TestAFactIsToldOnceHoweverOftenItIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fact := progress.Remark{Why: "VolumeBackedUp", Say: "shop/data: 1 MiB"}
		d := says(Wait, "waiting")
		d.Facts = []progress.Note{fact}
		done := says(Done, "there")
		done.Facts = []progress.Note{fact}
		p, _, mem := newPipeline(&fakeStep{name: "Backup", script: []Decision{d, d, done}})
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := states(mem.kept); !slices.Equal(got, []progress.State{progress.Happened, progress.Done}) {
			t.Errorf("kept %v", got)
		}
	})
}

func TestAStopIsObeyedBetweenTwoActsAndNeverWithinOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		s := &fakeStep{name: "Backup", script: []Decision{says(Act, "asking"), says(Wait, "waiting")}}
		p, _, _ := newPipeline(s, &fakeStep{name: "Restore"})
		p.Stop = stop
		go func() {
			time.Sleep(3500 * time.Millisecond)
			close(stop)
		}()
		var interrupted *InterruptedError
		if err := p.Run(t.Context()); !errors.As(err, &interrupted) || interrupted.Step != "Backup" {
			t.Errorf("got %v, want an interruption in Backup", err)
		}
	})
}

func TestAJournalThatCannotBeWrittenHoldsTheRunBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &fakeStep{name: "Restore", script: []Decision{says(Done, "there")}}
		p, _, mem := newPipeline(&fakeStep{name: "Backup", script: []Decision{says(Done, "there")}}, next)
		mem.fails = 3
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(mem.kept) != 2 || mem.kept[0].Step != "Backup" {
			t.Errorf("kept %v: a step went on before the one before it was written down", mem.kept)
		}
	})
}

func TestALostLeaseEndsTheRunWithItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("lease lost")
		ctx, cancel := context.WithCancelCause(t.Context())
		p, _, _ := newPipeline(&fakeStep{name: "Backup", script: []Decision{says(Wait, "waiting")}})
		go func() {
			time.Sleep(2500 * time.Millisecond)
			cancel(lost)
		}()
		if err := p.Run(ctx); !errors.Is(err, lost) {
			t.Errorf("got %v, want the cause", err)
		}
	})
}

func TestAForgottenVerdictIsAFailureNotASuccess(t *testing.T) {
	p, _, _ := newPipeline(&fakeStep{name: "Backup", script: []Decision{{Note: progress.Remark{Why: "Test", Say: "?"}}}})
	if err := p.Run(t.Context()); err == nil {
		t.Error("a step without a verdict was taken for done")
	}
}
