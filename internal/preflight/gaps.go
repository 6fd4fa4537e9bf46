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
	LookPartial     = "LookPartial"     // something optional could not be looked at: some checks were left out
	APIsDown        = "APIsDown"        // an aggregated API does not answer: what it holds is left out by Velero too
	MetricsDown     = "MetricsDown"     // one that holds nothing of the user's
)

func gapChecks() []check {
	return []check{
		func(l look) []Condition { return apisDown("source", l.src.Facts) },
		func(l look) []Condition { return apisDown("destination", l.dst.Facts) },
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
	optional := reason{Advisory, LookPartial, "CannotBeRead"}
	parts, errors := map[reason][]string{}, map[reason][]string{}
	for _, g := range f.Gaps {
		r := failed
		switch {
		case len(g.Objects) > 0:
			continue // told by name
		case g.Optional:
			r = optional
		case g.Part == discover.PartObjects:
			r = objects
		case g.Denied:
			r = denied
		}
		parts[r] = append(parts[r], side+" "+g.Part)
		errors[r] = append(errors[r], g.Error)
	}
	var out []Condition
	for _, r := range []reason{denied, failed, objects, optional} {
		hint := map[reason]string{
			denied:   "ask for the rights that are told by " + rightsOf(side),
			failed:   "see whether it passes by itself: run the same command again; if not, ask whoever rules the cluster",
			objects:  "look there yourself: what a restore would meet is not wholly known",
			optional: "the checks that need it were left out",
		}[r]
		out = append(out, found(r.category, r.kind, r.reason, slices.Compact(parts[r]),
			"cannot be looked at: %s (context "+escaped(f.Context)+"): "+escaped(firstOf(errors[r])), hint)...)
	}
	return out
}

// rightsOf is the condition of a side's rights.
func rightsOf(side string) string {
	return map[string]string{"source": SourceRights, "destination": DestinationRights, "cluster": SourceRights + " or " + DestinationRights}[side]
}

// apisDown names the APIs that do not answer. The cluster holds their objects
// somewhere else, so nobody can tell whether the plan's namespaces have any.
func apisDown(side string, f discover.Facts) []Condition {
	var down, metrics []string
	for _, g := range f.Gaps {
		for _, api := range g.Objects {
			group, version, _ := strings.Cut(api, "/")
			shown := fmt.Sprintf("APIService %s.%s of the %s (context %s)", version, group, side, f.Context)
			if group == "metrics.k8s.io" || strings.HasSuffix(group, ".metrics.k8s.io") {
				metrics = append(metrics, shown)
			} else {
				down = append(down, shown)
			}
		}
	}
	slices.Sort(down)
	slices.Sort(metrics)
	return slices.Concat(
		risk(APIsDown, "NoAnswer", slices.Compact(down), "does not answer: %s: its kinds cannot be seen, and a backup leaves their objects out",
			fmt.Sprintf("see why with: kubectl --context %s describe apiservice NAME; bring its server up, or delete the APIService if nobody needs it", f.Context)),
		found(Advisory, MetricsDown, "NoAnswer", slices.Compact(metrics), "does not answer: %s: it holds nothing that is migrated", ""),
	)
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
