package cli

import (
	"context"
	"testing"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/record"
	"github.com/mig-cli/mig/internal/step"
)

func TestStatusWarnsWhenTheSourceRunsBesideTheDestination(t *testing.T) {
	const warning = "mig: warning: the application runs on the source again, beside the destination: Deployment shop/web was scaled up by ann"
	for _, c := range []struct {
		name  string
		kind  string
		state record.State
		says  string
		code  int
	}{
		{"after a migration", kindMigrate, record.Completed, warning, 0},
		{"after a rollback it is meant to run", kindRollback, record.RolledBack, "", 0},
		{"after a stage too", kindStage, record.Completed, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			writePlan(t, "shop.yaml", shopPlan)
			b.Latest = func(context.Context, cluster.Source, cluster.Destination, plan.Valid) (*record.Run, error) {
				return &record.Run{UID: "abc", Kind: c.kind, State: c.state, Plan: record.Plan{Name: "shop"}}, nil
			}
			b.Quiet = func(_ context.Context, r step.Run) error {
				if r.Owner.RunUID != "abc" {
					t.Errorf("asked for run %s", r.Owner.RunUID)
				}
				return &step.GateError{Note: progress.Remark{Say: "Deployment shop/web was scaled up by ann"}}
			}
			b.wants(t, b.mig("status"), c.code, "abc", c.says)
		})
	}
}
