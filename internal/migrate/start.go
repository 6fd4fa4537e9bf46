package migrate

import (
	"fmt"

	"github.com/mig-cli/mig/internal/record"
)

// Kind is what a run is for.
type Kind string

// The kinds of a run.
const (
	Stage    Kind = "stage"
	Cutover  Kind = "migrate"
	Rollback Kind = "rollback"
	Close    Kind = "close"
)

// way is how a command begins, given what the records say.
type way int

const (
	fresh     way = iota + 1 // a new run
	resume                   // the last run goes on
	bringBack                // the last run left the source down before the destination started: first up, then a new run
	nothing                  // there is nothing to do
	refuse                   // a person must decide
)

// start is the decision of how to begin, with the reason where it is not fresh.
type start struct {
	way       way
	leftovers bool // an earlier run may have left something on the destination
	why       string
	hint      string // the next command
}

// decideStart reads from the plan's last run how a command begins; last is nil
// where there is none.
func decideStart(kind Kind, last *record.Run) start {
	if last != nil && Kind(last.Kind) == Close {
		return decideClosed(kind, last)
	}
	switch kind {
	case Close:
		return decideClose(last)
	case Rollback:
		return decideRollback(last)
	case Stage:
		return decideStage(last)
	default:
		return decideCutover(last)
	}
}

// undone says whether nothing of the last run is left to go on with or to take
// back.
func undone(last *record.Run) bool {
	return last.State == record.RolledBack || Kind(last.Kind) == Rollback && last.State == record.Completed
}

// alreadyMigrated and unfinishedRollback are refusals of more than one command.
func alreadyMigrated(last *record.Run) start {
	return start{way: refuse, why: fmt.Sprintf("this plan was migrated already, at %s", stamp(last.Ended)), hint: "to take it back: mig rollback " + last.Plan.Name}
}

func unfinishedRollback(last *record.Run) start {
	return start{way: refuse, why: fmt.Sprintf("the rollback of this plan is not finished (%s)", last.State), hint: "mig rollback " + last.Plan.Name}
}

// decideStage never goes on with a cutover, nor disturbs one.
func decideStage(last *record.Run) start {
	if last == nil || undone(last) {
		return start{way: fresh}
	}
	switch kind := Kind(last.Kind); {
	case kind == Rollback:
		return unfinishedRollback(last)
	case kind == Stage && last.State == record.Running:
		return start{way: resume}
	case kind == Stage:
		return start{way: fresh, leftovers: last.State != record.Completed}
	case last.State == record.Completed:
		return alreadyMigrated(last)
	case last.State == record.Running, last.DestinationStarted, last.SourceDown:
		return start{
			way: refuse, why: fmt.Sprintf("a migration of this plan is not at its end (%s)", last.State),
			hint: fmt.Sprintf("go on with: mig migrate %s; go back with: mig rollback %s", last.Plan.Name, last.Plan.Name),
		}
	default:
		return start{way: fresh, leftovers: true}
	}
}

func decideCutover(last *record.Run) start {
	if last == nil || undone(last) {
		return start{way: fresh}
	}
	switch {
	case Kind(last.Kind) == Rollback:
		return unfinishedRollback(last)
	case Kind(last.Kind) == Stage:
		return start{way: fresh, leftovers: last.State != record.Completed}
	case last.State == record.Completed:
		return alreadyMigrated(last)
	case last.State == record.Running, last.DestinationStarted:
		return start{way: resume}
	case last.SourceDown:
		return start{way: bringBack, leftovers: true}
	default:
		return start{way: fresh, leftovers: true}
	}
}

func decideRollback(last *record.Run) start {
	switch {
	case last == nil:
		return start{way: nothing, why: "no run of this plan has changed anything"}
	case last.State == record.RolledBack, Kind(last.Kind) == Rollback && last.State == record.Completed:
		return start{way: nothing, why: "the plan was rolled back already, at " + stamp(last.Ended)}
	case Kind(last.Kind) == Rollback:
		return start{way: resume}
	default:
		return start{way: fresh}
	}
}
