package step

import (
	"context"
	"testing"

	"github.com/mig-cli/mig/internal/pipeline"
)

// bench is a turn that others have for a while.
type bench struct {
	had    bool
	others []string // who has it when it is asked for, one after the other
	log    []string
}

func (b *bench) Has() bool { return b.had }

func (b *bench) Take(context.Context) (string, error) {
	b.log = append(b.log, "asked")
	if len(b.others) == 0 {
		b.had = true
		return "", nil
	}
	holder := b.others[0]
	b.others = b.others[1:]
	return holder, nil
}

func (b *bench) Give(context.Context) { b.had = false }

// worker is a step that is done once it has acted.
type worker struct{ b *bench }

func (w worker) Name() string { return "Worker" }

func (w worker) Next(context.Context) (pipeline.Decision, error) {
	if w.b.log[len(w.b.log)-1] == "worked" {
		return pipeline.Decision{Verdict: pipeline.Done}, nil
	}
	return pipeline.Decision{Verdict: pipeline.Act}, nil
}

func (w worker) Act(context.Context) error {
	w.b.log = append(w.b.log, "worked")
	return nil
}

// through takes a step to its end and returns what it said on the way.
func through(t *testing.T, s pipeline.Step) []string {
	t.Helper()
	var said []string
	for range 20 {
		d, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if d.Note != nil {
			said = append(said, d.Note.Text())
		}
		if d.Verdict == pipeline.Done {
			return said
		}
		if err := s.Act(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the step comes to no end")
	return nil
}

func TestARunWaitsForItsTurnAndSaysBehindWhom(t *testing.T) {
	b := &bench{others: []string{"held by plan wiki", "held by plan wiki"}}
	said := through(t, TurnTaken(b))
	want := []string{
		"asking for the turn with Velero",
		"waiting until another run of mig is through with Velero, nothing is stopped yet: held by plan wiki",
		"waiting until another run of mig is through with Velero, nothing is stopped yet: held by plan wiki",
		"no other run of mig comes between with work for Velero",
	}
	if len(said) != len(want) {
		t.Fatalf("said %q", said)
	}
	for i := range want {
		if said[i] != want[i] {
			t.Errorf("said %q, want %q", said[i], want[i])
		}
	}
}

func TestAStepThatNeedsTheTurnDoesNothingBeforeItIsHad(t *testing.T) {
	b := &bench{others: []string{"held by plan wiki"}}
	through(t, InTurn(b, worker{b}))
	if got := b.log; len(got) != 3 || got[0] != "asked" || got[1] != "asked" || got[2] != "worked" {
		t.Errorf("did %v", got)
	}
}

func TestTheTurnIsGivenOnce(t *testing.T) {
	b := &bench{had: true}
	through(t, TurnGiven(b))
	if b.had {
		t.Error("the turn is kept")
	}
	if said := through(t, TurnGiven(b)); len(said) != 1 {
		t.Errorf("given twice: %v", said)
	}
}
