package migrate

import (
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/preflight"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/record"
	"github.com/mig-cli/mig/internal/step"
)

// findings are what the first step of a run makes of the conditions.
func findings(conditions []preflight.Condition) step.Findings {
	var f step.Findings
	for _, c := range preflight.Blocking(conditions) {
		f.Blocking = append(f.Blocking, c.Message)
	}
	for _, c := range conditions {
		if c.Category == preflight.Warn && !c.Blocks() {
			f.Warnings = append(f.Warnings, progress.Remark{Why: c.Type, Say: c.Message})
		}
	}
	return f
}

func recorded(conditions []preflight.Condition) []record.Condition {
	out := make([]record.Condition, 0, len(conditions))
	for _, c := range conditions {
		out = append(out, record.Condition{Type: c.Type, Category: string(c.Category), Status: string(c.Status), Reason: c.Reason, Message: c.Message})
	}
	return out
}

func accepted(v plan.Valid) []record.Accepted {
	var out []record.Accepted
	for _, a := range v.Plan().Spec.Accept {
		out = append(out, record.Accepted{Type: a.Type, Object: a.Object, Why: a.Why})
	}
	return out
}
