package migrate

import (
	"strings"
	"testing"
	"time"

	"github.com/mig-cli/mig/internal/record"
)

func TestHowACommandBeginsAfterWhatHappenedBefore(t *testing.T) {
	run := func(kind Kind, state record.State, down, started bool) *record.Run {
		return &record.Run{Kind: string(kind), State: state, SourceDown: down, DestinationStarted: started, Ended: time.Unix(0, 0), Plan: record.Plan{Name: "shop"}}
	}
	for name, c := range map[string]struct {
		kind      Kind
		last      *record.Run
		way       way
		leftovers bool
	}{
		"migrate, nothing before":                              {Cutover, nil, fresh, false},
		"migrate, killed":                                      {Cutover, run(Cutover, record.Running, true, false), resume, false},
		"migrate, failed before it touched the source":         {Cutover, run(Cutover, record.Failed, false, false), fresh, true},
		"migrate, interrupted, source up again":                {Cutover, run(Cutover, record.Interrupted, false, false), fresh, true},
		"migrate, failed and the source could not be raised":   {Cutover, run(Cutover, record.Failed, true, false), bringBack, true},
		"migrate, failed after the destination started":        {Cutover, run(Cutover, record.Failed, true, true), resume, false},
		"migrate, completed":                                   {Cutover, run(Cutover, record.Completed, true, true), refuse, false},
		"migrate, taken back":                                  {Cutover, run(Cutover, record.RolledBack, false, true), fresh, false},
		"migrate, after a finished rollback":                   {Cutover, run(Rollback, record.RolledBack, false, false), fresh, false},
		"migrate, in the middle of a rollback":                 {Cutover, run(Rollback, record.Failed, false, false), refuse, false},
		"migrate, while a rollback was killed":                 {Cutover, run(Rollback, record.Running, false, false), refuse, false},
		"migrate, after a stage":                               {Cutover, run(Stage, record.Completed, false, false), fresh, false},
		"migrate, after a stage that failed":                   {Cutover, run(Stage, record.Failed, false, false), fresh, true},
		"migrate, after a stage that was killed":               {Cutover, run(Stage, record.Running, false, false), fresh, true},
		"stage, nothing before":                                {Stage, nil, fresh, false},
		"stage, again":                                         {Stage, run(Stage, record.Completed, false, false), fresh, false},
		"stage, killed":                                        {Stage, run(Stage, record.Running, false, false), resume, false},
		"stage, failed":                                        {Stage, run(Stage, record.Failed, false, false), fresh, true},
		"stage, after a migration that was taken back":         {Stage, run(Cutover, record.RolledBack, false, true), fresh, false},
		"stage, after a migration that failed early":           {Stage, run(Cutover, record.Failed, false, false), fresh, true},
		"stage, after a migration":                             {Stage, run(Cutover, record.Completed, true, true), refuse, false},
		"stage, in the middle of a migration":                  {Stage, run(Cutover, record.Running, true, false), refuse, false},
		"stage, after a migration that left the source down":   {Stage, run(Cutover, record.Failed, true, false), refuse, false},
		"stage, in the middle of a rollback":                   {Stage, run(Rollback, record.Failed, false, false), refuse, false},
		"rollback, of a stage":                                 {Rollback, run(Stage, record.Completed, false, false), fresh, false},
		"rollback, nothing before":                             {Rollback, nil, nothing, false},
		"rollback, completed migration":                        {Rollback, run(Cutover, record.Completed, true, true), fresh, false},
		"rollback, killed migration":                           {Rollback, run(Cutover, record.Running, true, true), fresh, false},
		"rollback, killed rollback":                            {Rollback, run(Rollback, record.Running, false, false), resume, false},
		"rollback, failed rollback":                            {Rollback, run(Rollback, record.Failed, false, false), resume, false},
		"rollback, twice":                                      {Rollback, run(Rollback, record.RolledBack, false, false), nothing, false},
		"rollback, of a migration that was already taken back": {Rollback, run(Cutover, record.RolledBack, false, true), nothing, false},
	} {
		got := decideStart(c.kind, c.last)
		if got.way != c.way || got.leftovers != c.leftovers {
			t.Errorf("%s: got way %d, leftovers %v; want %d, %v", name, got.way, got.leftovers, c.way, c.leftovers)
		}
		if got.way == refuse && (got.why == "" || !strings.Contains(got.hint, "mig ")) {
			t.Errorf("%s: refused without a reason and the next command: %+v", name, got)
		}
	}
}
