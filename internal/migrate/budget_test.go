package migrate

import (
	"testing"
	"time"

	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/record"
)

func TestTheSourceIsDownForNoLongerThanItMay(t *testing.T) {
	now := time.Unix(10_000, 0)
	stopped := func(ago time.Duration, change func(*record.Run)) *record.Run {
		r := &record.Run{SourceDown: true, Steps: []record.Step{{Name: "QuiesceApplications", Started: now.Add(-ago)}}}
		if change != nil {
			change(r)
		}
		return r
	}
	for name, c := range map[string]struct {
		budget time.Duration
		run    *record.Run
		want   string
	}{
		"in time":                     {5 * time.Minute, stopped(4*time.Minute, nil), ""},
		"too long":                    {5 * time.Minute, stopped(6*time.Minute, nil), "the source has been down for 6m0s, and may be for 5m0s at most: stage first, so that less is left to copy, or allow more (--max-downtime, or spec.limits.maxDowntime)"},
		"without a limit":             {0, stopped(6*time.Hour, nil), ""},
		"the destination has started": {time.Minute, stopped(time.Hour, func(r *record.Run) { r.DestinationStarted = true }), ""},
		"not stopped yet":             {time.Minute, &record.Run{}, ""},
		"up again":                    {time.Minute, stopped(time.Hour, func(r *record.Run) { r.SourceDown = false }), ""},
	} {
		if got := decideBudget(c.budget, c.run, now); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestAStepThatIsOverBudgetFailsBeforeItActs(t *testing.T) {
	var did []string
	d, err := within(step0{&did}, func() string { return "too long" }).Next(t.Context())
	if err != nil || d.Verdict != pipeline.Failed || d.Note.Text() != "too long" {
		t.Errorf("got %+v, %v", d, err)
	}
}

func TestEveryStepWithTheSourceDownAndNothingStartedIsBudgeted(t *testing.T) {
	budgeted := map[string]bool{}
	h := hooks{overspent: func() string { return "too long" }}
	for _, r := range cutover(runOf(t), h, false) {
		if _, ok := r.step.(inBudget); ok {
			budgeted[r.step.Name()] = true
		}
	}
	for name, want := range map[string]bool{"VeleroQueuesFree": false, "QuiesceApplications": true, "EnsureFinalRestore": true, "FinalRestoreCreated": false} {
		if budgeted[name] != want {
			t.Errorf("%s budgeted: %t, want %t", name, budgeted[name], want)
		}
	}
}
