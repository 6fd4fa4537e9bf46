// Package preflight says of a plan and of what was seen of both clusters
// whether the plan can run: every finding at once, as conditions. It is pure:
// it knows no client, and the same facts always give the same conditions.
package preflight

import (
	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/plan"
)

// Category says how grave a condition is.
type Category string

// The categories. Critical and Error block. Required must be True. Warn blocks
// until accepted where it risks data. Advisory informs.
const (
	Critical Category = "Critical"
	Error    Category = "Error"
	Warn     Category = "Warn"
	Required Category = "Required"
	Advisory Category = "Advisory"
)

// Status of a condition.
type Status string

// The statuses, as of a Kubernetes condition.
const (
	True    Status = "True"
	False   Status = "False"
	Unknown Status = "Unknown"
)

// Condition is one finding. A Required one is always there, True or not;
// the others are there (True) only when they hold.
type Condition struct {
	Type     string   `json:"type"`
	Category Category `json:"category"`
	Status   Status   `json:"status"`
	Reason   string   `json:"reason"`
	Message  string   `json:"message"`
	Objects  []string `json:"objects,omitempty"`
	Hint     string   `json:"hint,omitempty"` // what to do next
	Accepted bool     `json:"accepted,omitempty"`
	// RisksData: a Warn that blocks until the plan accepts it.
	RisksData bool `json:"risksData,omitempty"`
}

// Blocks says whether the plan cannot run because of the condition.
func (c Condition) Blocks() bool {
	switch c.Category {
	case Critical, Error:
		return c.Status != False
	case Required:
		return c.Status != True
	case Warn:
		return c.RisksData && !c.Accepted
	default:
		return false
	}
}

// Check gives every condition of a plan, in a fixed order; the last one is Ready.
func Check(v plan.Valid, src discover.SourceFacts, dst discover.DestinationFacts) []Condition {
	return nil
}

// Ready says whether the plan can run.
func Ready(conditions []Condition) bool { return len(conditions) > 0 && len(Blocking(conditions)) == 0 }

// Blocking are the conditions that keep the plan from running.
func Blocking(conditions []Condition) []Condition {
	var out []Condition
	for _, c := range conditions {
		if c.Blocks() && c.Type != ReadyType {
			out = append(out, c)
		}
	}
	return out
}

// ReadyType is the condition that tells whether the plan can run; it is
// computed from all others, once.
const ReadyType = "Ready"
