package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/record"
	"github.com/mig-cli/mig/internal/step"
)

// closing is the list of steps that close a plan.
func closing(r step.Run) []row {
	return each("removes what the plan's runs left in the clusters and the object store", step.CloseSteps(r)...)
}

// decideClose closes only what has come to an end: what a run that did not may
// have left is taken back by a rollback, not by closing.
func decideClose(last *record.Run) start {
	switch {
	case last == nil, undone(last):
		return start{way: fresh}
	case Kind(last.Kind) == Rollback:
		return unfinishedRollback(last)
	case last.State == record.Completed, Kind(last.Kind) == Stage && last.State != record.Running:
		return start{way: fresh}
	default:
		return start{
			way: refuse, why: fmt.Sprintf("the last run of this plan is not at its end (%s %s)", last.Kind, last.State),
			hint: fmt.Sprintf("go on with: mig %s %s; take it back with: mig rollback %s", last.Kind, last.Plan.Name, last.Plan.Name),
		}
	}
}

// decideClosed is how anything begins on a plan that is closed, or about to be.
func decideClosed(kind Kind, last *record.Run) start {
	isClosed := last.State == record.Completed
	switch {
	case kind == Close && isClosed:
		return start{way: nothing, why: "the plan was closed already, at " + stamp(last.Ended)}
	case kind == Close:
		return start{way: resume}
	case isClosed:
		return start{
			way: refuse, why: fmt.Sprintf("this plan was closed at %s: what its runs made is gone from the clusters", stamp(last.Ended)),
			hint: fmt.Sprintf("make a plan of the same content with: mig plan copy %s NEWNAME", last.Plan.Name),
		}
	default:
		return start{way: refuse, why: fmt.Sprintf("the closing of this plan is not finished (%s)", last.State), hint: "mig plan close " + last.Plan.Name}
	}
}

// KnownUID refuses a plan file that bears the uid of another plan: a copy whose
// uid was not changed. By the uid its runs would find, and a rollback would
// take back, what the other's runs made. Both clusters' records are asked; a
// cluster that does not answer is an error. Errors: *RefusedError.
func KnownUID(ctx context.Context, src cluster.Source, dst cluster.Destination, v plan.Valid) error {
	owner := naming.Owner{PlanName: v.Name(), PlanUID: v.UID()}
	for _, c := range []*cluster.Cluster{src.Cluster, dst.Cluster} {
		known, err := record.LoadPlan(ctx, c, owner)
		if errors.Is(err, record.ErrNoRun) {
			continue
		}
		if err != nil {
			return err
		}
		if refused := decideOwner(v, known); refused != nil {
			return refused
		}
	}
	return nil
}

// decideOwner compares a plan with what a cluster's record says of its uid's
// last run. Where nothing of that run is left in the clusters the uid is free.
// After a stage the plan may have grown.
func decideOwner(v plan.Valid, known *record.PlanRecord) *RefusedError {
	last := record.Run{Kind: known.LastRun.Kind, State: known.LastRun.State}
	if undone(&last) {
		return nil
	}
	var here, there []string
	for _, n := range v.SourceNamespaces() {
		here = append(here, mapped(n, v.DestinationNamespace(n)))
	}
	for _, n := range known.Namespaces {
		there = append(there, mapped(n.Source, n.Destination))
	}
	isSubset := func(a, b []string) bool {
		return !slices.ContainsFunc(a, func(n string) bool { return !slices.Contains(b, n) })
	}
	grown := Kind(last.Kind) == Stage && last.State == record.Completed
	if isSubset(there, here) && (grown || isSubset(here, there)) {
		return nil
	}
	return &RefusedError{
		Why: fmt.Sprintf("uid %s is of plan %s, whose last run (%s) worked on %s; this file names %s",
			v.UID(), known.Name, last.Kind, few(there), few(here)),
		Hint: fmt.Sprintf("if the file is a copy, give it a uid of its own with: mig plan copy %s NEWNAME; if it is that plan, name its namespaces again", v.Name()),
	}
}

func mapped(from, to string) string {
	if from == to {
		return from
	}
	return from + " → " + to
}

// few names the first ten and counts the rest.
func few(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
