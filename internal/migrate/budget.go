package migrate

import (
	"context"
	"fmt"
	"time"

	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/record"
)

// budget is how long the source may stand still; 0 where there is no limit.
func (d *driver) budget() time.Duration {
	if d.o.MaxDowntime > 0 {
		return d.o.MaxDowntime
	}
	limit, err := time.ParseDuration(d.o.Plan.Plan().Spec.Limits.MaxDowntime)
	if err != nil {
		return 0 // empty; what is written there was validated with the plan
	}
	return limit
}

// overspent says that the source has stood still for longer than it may; empty
// where it has not.
func (d *driver) overspent() string {
	budget := d.budget()
	if budget <= 0 {
		return "" // asked at every look: the record is not copied for nothing
	}
	r := d.journal.Run()
	return decideBudget(budget, &r, time.Now())
}

// decideBudget compares the time since the first workload was stopped with the
// budget. Once the application may run on the destination nothing is undone for
// the sake of time.
func decideBudget(budget time.Duration, r *record.Run, now time.Time) string {
	stopped, ok := r.Step("QuiesceApplications")
	if budget <= 0 || !ok || !r.SourceDown || r.DestinationStarted || stopped.Started.IsZero() {
		return ""
	}
	down := now.Sub(stopped.Started)
	if down < budget {
		return ""
	}
	return fmt.Sprintf("the source has been down for %s, and may be for %s at most: stage first, so that less is left to copy, or allow more (--max-downtime, or spec.limits.maxDowntime)",
		down.Round(min(time.Second, budget)), budget)
}

// within is a step that fails when the source has been down for too long.
func within(s pipeline.Step, overspent func() string) pipeline.Step {
	return inBudget{Step: s, overspent: overspent}
}

type inBudget struct {
	pipeline.Step

	overspent func() string
}

func (s inBudget) Next(ctx context.Context) (pipeline.Decision, error) {
	if why := s.overspent(); why != "" {
		return pipeline.Decision{Verdict: pipeline.Failed, Note: progress.Remark{Why: "MaxDowntimeExceeded", Say: why}}, nil
	}
	return s.Step.Next(ctx)
}
