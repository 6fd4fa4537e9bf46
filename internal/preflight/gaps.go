package preflight

import (
	"fmt"
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

// gaps: what was not seen is never taken for good.
func gaps(side string, f discover.Facts) []Condition {
	var out []Condition
	for _, g := range f.Gaps {
		category, kind, reason := Error, LookIncomplete, "CannotBeRead"
		if g.Denied {
			reason = "Denied"
		}
		if g.Part == discover.PartObjects {
			category, kind = Warn, ObjectsUnlisted
		}
		out = append(out, found(category, kind, reason, []string{side + " " + g.Part},
			fmt.Sprintf("%%s (context %s) cannot be looked at: %s", f.Context, strings.ReplaceAll(g.Error, "%", "%%")), "")...)
	}
	return out
}
