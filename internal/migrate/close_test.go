package migrate

import (
	"strings"
	"testing"
	"time"

	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/record"
)

func TestAPlanIsClosedOnlyAtItsEndAndThenNothingRuns(t *testing.T) {
	run := func(kind Kind, state record.State, down bool) *record.Run {
		return &record.Run{Kind: string(kind), State: state, SourceDown: down, Ended: time.Unix(0, 0), Plan: record.Plan{Name: "shop"}}
	}
	for name, c := range map[string]struct {
		kind Kind
		last *record.Run
		way  way
	}{
		"close, nothing before":         {Close, nil, fresh},
		"close, migrated":               {Close, run(Cutover, record.Completed, true), fresh},
		"close, staged":                 {Close, run(Stage, record.Completed, false), fresh},
		"close, a stage that failed":    {Close, run(Stage, record.Failed, false), fresh},
		"close, rolled back":            {Close, run(Rollback, record.RolledBack, false), fresh},
		"close, running":                {Close, run(Cutover, record.Running, true), refuse},
		"close, a stage under way":      {Close, run(Stage, record.Running, false), refuse},
		"close, failed":                 {Close, run(Cutover, record.Failed, false), refuse},
		"close, half rolled back":       {Close, run(Rollback, record.Interrupted, false), refuse},
		"close, half closed":            {Close, run(Close, record.Failed, false), resume},
		"close, killed while closing":   {Close, run(Close, record.Running, false), resume},
		"close, twice":                  {Close, run(Close, record.Completed, false), nothing},
		"migrate, closed":               {Cutover, run(Close, record.Completed, false), refuse},
		"stage, closed":                 {Stage, run(Close, record.Completed, false), refuse},
		"rollback, closed":              {Rollback, run(Close, record.Completed, false), refuse},
		"migrate, half closed":          {Cutover, run(Close, record.Failed, false), refuse},
		"rollback, killed while closed": {Rollback, run(Close, record.Running, false), refuse},
	} {
		got := decideStart(c.kind, c.last)
		if got.way != c.way {
			t.Errorf("%s: got way %d, want %d", name, got.way, c.way)
		}
		if got.way == refuse && (got.why == "" || !strings.Contains(got.hint, "mig ")) {
			t.Errorf("%s: refused without a reason and the next command: %+v", name, got)
		}
	}
}

func TestACopyThatBearsAnothersUIDIsRefused(t *testing.T) {
	valid := func(namespaces ...plan.Namespace) plan.Valid {
		r := runOf(t)
		p := r.Plan.Plan()
		p.Metadata.Name, p.Spec.Namespaces, p.Spec.Volumes = "blog", namespaces, nil
		v, problems := p.Validate()
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return v
	}
	shop := plan.Namespace{Name: "shop", Destination: "shop-prod"}
	blog := plan.Namespace{Name: "blog"}
	known := func(kind Kind, state record.State) *record.PlanRecord {
		return &record.PlanRecord{
			Name: "shop", Namespaces: []record.Namespace{{Source: "shop", Destination: "shop-prod"}},
			LastRun: record.LastRun{Kind: string(kind), State: state},
		}
	}
	for name, c := range map[string]struct {
		here    plan.Valid
		known   *record.PlanRecord
		refused bool
	}{
		"the same plan":                          {valid(shop), known(Cutover, record.Completed), false},
		"other namespaces":                       {valid(blog), known(Cutover, record.Completed), true},
		"more namespaces":                        {valid(shop, blog), known(Cutover, record.Failed), true},
		"another name on the destination":        {valid(plan.Namespace{Name: "shop"}), known(Cutover, record.Completed), true},
		"other namespaces, all taken back":       {valid(blog), known(Cutover, record.RolledBack), false},
		"other namespaces, after a rollback":     {valid(blog), known(Rollback, record.RolledBack), false},
		"other namespaces, in a rollback":        {valid(blog), known(Rollback, record.Running), true},
		"more namespaces than were staged":       {valid(shop, blog), known(Stage, record.Completed), false},
		"others than were staged":                {valid(blog), known(Stage, record.Completed), true},
		"more namespaces than a stage is now at": {valid(shop, blog), known(Stage, record.Running), true},
	} {
		got := decideOwner(c.here, c.known)
		if (got != nil) != c.refused {
			t.Errorf("%s: got %v", name, got)
		}
		if got != nil && (!strings.Contains(got.Why, "is of plan shop, whose last run") || !strings.Contains(got.Why, "worked on shop → shop-prod") || !strings.Contains(got.Hint, "mig plan copy blog NEWNAME")) {
			t.Errorf("%s: says %q, %q", name, got.Why, got.Hint)
		}
	}
}
