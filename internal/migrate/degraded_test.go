package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/record"
	"github.com/mig-cli/mig/internal/step"
)

func location(cause string) step.Need {
	return step.Need{
		Lost: step.ReasonLocationUnavailable, Back: step.ReasonLocationBack, On: progress.Ref{Side: progress.OnSource, Name: "default"},
		Cause: cause, Missing: "it is away: " + cause, There: "it is back",
	}
}

func source(cause string) step.Need {
	return step.Need{
		Lost: step.ReasonSourceUnreachable, Back: step.ReasonSourceBack, On: progress.Ref{Side: progress.OnSource},
		Cause: cause, Missing: "no answer: " + cause, There: "an answer",
	}
}

func TestWhatTheRunNeedsIsToldWhenItGoesChangesItsCauseOrComesBack(t *testing.T) {
	key := location("").Key()
	for _, c := range []struct {
		name       string
		told       map[string]string
		seen       []step.Need
		lost, back int
	}{
		{"all is well", nil, []step.Need{location("")}, 0, 0},
		{"it goes", nil, []step.Need{location("no bucket")}, 1, 0},
		{"it is away as before", map[string]string{key: "no bucket"}, []step.Need{location("no bucket")}, 0, 0},
		{"its cause is another", map[string]string{key: "no bucket"}, []step.Need{location("denied")}, 1, 0},
		{"it comes back", map[string]string{key: "no bucket"}, []step.Need{location("")}, 0, 1},
		{"it was not seen", map[string]string{key: "no bucket"}, nil, 0, 0},
		{"another is not it", map[string]string{key: "no bucket"}, []step.Need{source("")}, 0, 0},
		{"an earlier process has told it", map[string]string{key: ""}, []step.Need{location("no bucket")}, 1, 0},
		{"an earlier process has told it, and it is back", map[string]string{key: ""}, []step.Need{location("")}, 0, 1},
	} {
		if lost, back := decideNeeds(c.told, c.seen); len(lost) != c.lost || len(back) != c.back {
			t.Errorf("%s: lost %v, back %v", c.name, lost, back)
		}
	}
}

// watching is a watch over what a test says is there, with what it tells.
type watching struct {
	*watch

	source, location string // why it is away; empty: it is there
	asked, looked    int
	said             []string
}

func newWatching() *watching {
	w := &watching{}
	w.watch = &watch{
		told:     map[string]string{},
		clusters: func(context.Context) []step.Need { w.asked++; return []step.Need{source(w.source)} },
		parts:    func(context.Context) []step.Need { w.looked++; return []step.Need{location(w.location)} },
		tell: func(u progress.Update) {
			w.said = append(w.said, fmt.Sprintf("%s %s %d/%d %s %s", u.State, u.Step, u.Number, u.Of, u.Note.Reason(), u.Note.Text()))
		},
	}
	return w
}

type waiting struct {
	err     error
	verdict pipeline.Verdict
}

func (waiting) Name() string { return "StageBackupCreated" }
func (s waiting) Next(context.Context) (pipeline.Decision, error) {
	return pipeline.Decision{Verdict: s.verdict}, s.err
}
func (waiting) Act(context.Context) error { return nil }

func TestAClusterThatIsAwayIsToldOnceAndWhenItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatching()
		s := w.watched("migrate", []pipeline.Step{waiting{verdict: pipeline.Wait}})[0]
		look := func() {
			if _, err := s.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(askEvery)
		}
		look()
		w.source = "connection refused"
		for range 60 { // as the engine does, every half second
			if !w.passes(t.Context(), syscall.ECONNREFUSED) {
				t.Fatal("it does not pass")
			}
			time.Sleep(poll)
		}
		if w.asked != 6 {
			t.Errorf("asked %d times in 30 seconds", w.asked)
		}
		look() // a step that asks the other cluster goes on
		w.source = ""
		look()
		look()
		want := []string{
			"warning StageBackupCreated 1/1 SourceUnreachable no answer: connection refused",
			"happened StageBackupCreated 1/1 SourceUnreachableRecovered an answer",
		}
		if !slices.Equal(w.said, want) {
			t.Errorf("got %q", w.said)
		}
	})
}

func TestErrorsThatSayNothingOfAClusterAskNoCluster(t *testing.T) {
	w := newWatching()
	conflict := apierrors.NewConflict(schema.GroupResource{}, "web", errors.New("changed"))
	if !w.passes(t.Context(), conflict) || w.passes(t.Context(), errors.New("no such claim")) || w.asked != 0 {
		t.Errorf("asked %d times", w.asked)
	}
}

func TestVelerosPartsAreLookedAtOnlyWhileAStepWaitsAndSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatching()
		w.location = "no such bucket"
		steps := w.watched("migrate", []pipeline.Step{waiting{verdict: pipeline.Act}, waiting{err: errors.New("no")}, waiting{verdict: pipeline.Wait}})
		for _, s := range steps[:2] {
			_, _ = s.Next(t.Context())
		}
		if w.looked != 0 {
			t.Error("looked though nothing waits")
		}
		for range 2 * int(lookEvery/poll) {
			if _, err := steps[2].Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(poll)
		}
		if w.looked != 2 || w.asked != 0 {
			t.Errorf("looked %d times in a minute, asked %d times", w.looked, w.asked)
		}
		if !slices.Equal(w.said, []string{"warning StageBackupCreated 3/3 StorageLocationUnavailable it is away: no such bucket"}) {
			t.Errorf("got %q", w.said)
		}
	})
}

func TestAResumedRunKnowsWhatWasAway(t *testing.T) {
	event := func(n progress.Note) record.Event {
		return record.Event{Reason: n.Reason(), Object: n.Regarding(), Recurs: true}
	}
	got := awayAtEnd([]record.Event{
		event(step.Lacking{Need: source("x")}), event(step.Lacking{Need: location("x")}), event(step.Regained{Need: source("")}),
		{Reason: "LeftOut", Object: progress.Ref{Side: progress.OnSource, Name: "x"}},
	})
	if _, away := got[location("").Key()]; !away || len(got) != 1 {
		t.Errorf("got %v", got)
	}
}
