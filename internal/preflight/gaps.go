package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mig-cli/mig/internal/discover"
)

// Conditions of what could not be looked at.
const (
	LookIncomplete  = "LookIncomplete"  // a part of a cluster could not be looked at, so nothing is known of it
	ObjectsUnlisted = "ObjectsUnlisted" // some kinds could not be listed: what a restore would meet is not wholly known
)

func gapChecks() []check {
	return []check{
		func(l look) []Condition { return gaps("source", l.src.Facts) },
		func(l look) []Condition { return gaps("destination", l.dst.Facts) },
	}
}

// gaps: what was not seen is never taken for good. What is missing for the same
// reason is told together; all errors of missing rights say the same.
func gaps(side string, f discover.Facts) []Condition {
	type reason struct {
		category     Category
		kind, reason string
	}
	denied := reason{Error, LookIncomplete, "Denied"}
	failed := reason{Error, LookIncomplete, "CannotBeRead"}
	objects := reason{Warn, ObjectsUnlisted, "CannotBeRead"}
	parts, errors := map[reason][]string{}, map[reason][]string{}
	for _, g := range f.Gaps {
		r := failed
		switch {
		case g.Part == discover.PartObjects:
			r = objects
		case g.Denied:
			r = denied
		}
		parts[r] = append(parts[r], side+" "+g.Part)
		errors[r] = append(errors[r], g.Error)
	}
	var out []Condition
	for _, r := range []reason{denied, failed, objects} {
		out = append(out, found(r.category, r.kind, r.reason, slices.Compact(parts[r]),
			"cannot be looked at: %s (context "+escaped(f.Context)+"): "+escaped(firstOf(errors[r])), "")...)
	}
	return out
}

// escaped keeps a text that goes into a format as it is.
func escaped(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// firstOf is the first error, and how many more there are.
func firstOf(errors []string) string {
	if len(errors) < 2 {
		return strings.Join(errors, "")
	}
	return fmt.Sprintf("%s (and %d more)", errors[0], len(errors)-1)
}
