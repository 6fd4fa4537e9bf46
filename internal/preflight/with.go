package preflight

import "slices"

// UIDKnown is a plan file that bears the uid of another plan: a copy.
const UIDKnown = "PlanUIDKnown"

// With adds a condition that others have found, and says anew whether the plan
// can run.
func With(conditions []Condition, more Condition) []Condition {
	out := slices.DeleteFunc(slices.Clone(conditions), func(c Condition) bool { return c.Type == ReadyType })
	out = append(out, more)
	return append(out, ready(out))
}
