package migrate

import (
	"context"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/step"
)

// Planned is a step that a run would take.
type Planned struct {
	Number int    `json:"number"`
	Step   string `json:"step"`
	Does   string `json:"does"`
	Done   bool   `json:"done"` // by an earlier process of the run that would go on
}

// Preview lists the steps that Run would take now. It changes nothing.
// Errors: *RefusedError, or a cluster's own.
func Preview(ctx context.Context, o Options) ([]Planned, error) {
	d := &driver{o: o, owner: naming.Owner{PlanName: o.Plan.Name(), PlanUID: o.Plan.UID()}}
	last, err := d.last(ctx)
	if err != nil {
		return nil, err
	}
	s := decideStart(o.Kind, last)
	if s.way == refuse {
		return nil, &RefusedError{Why: s.why, Hint: s.hint}
	}
	if s.way == nothing {
		return nil, nil
	}
	leftovers := s.leftovers
	if s.way == resume {
		_, leftovers = last.Step(step.StepDestinationCleaned)
	}
	var out []Planned
	for i, r := range d.rows(leftovers) {
		name := r.step.Name()
		out = append(out, Planned{Number: i + 1, Step: name, Does: r.does, Done: s.way == resume && last.IsDone(name)})
	}
	return out, nil
}
