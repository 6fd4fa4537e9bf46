package migrate

import (
	"fmt"
	"strings"

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
			f.Warnings = append(f.Warnings, warning{c})
		}
	}
	return f
}

// warning is a condition that a person should look at.
type warning struct{ condition preflight.Condition }

// Reason is the condition's type.
func (n warning) Reason() string { return n.condition.Type }

// Text names the first objects.
func (n warning) Text() string { return n.condition.Message }

// Fit names fewer of them.
func (n warning) Fit(limit int) string {
	message, objects := n.condition.Message, n.condition.Objects
	for named := min(len(objects), 10); named > 0; named-- { // as many as the message names
		before, after, found := strings.Cut(message, strings.Join(objects[:named], ", "))
		if !found {
			continue
		}
		more := fmt.Sprintf(" and %d more", len(objects)-named)
		after = strings.TrimPrefix(after, more)
		return before + progress.Several(objects, ", ", max(limit-len(before)-len(after), 0)) + after
	}
	return progress.Cut(message, limit)
}

// Regarding is the run.
func (n warning) Regarding() progress.Ref { return progress.Ref{} }

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
