package migrate

import (
	"context"
	"time"

	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/step"
)

// hooks are what the tables need beside the clusters.
type hooks struct {
	check func(context.Context) (step.Findings, error)
	// stopping is told before the first workload of the source is stopped,
	// starting before the first may start on the destination.
	stopping, starting func(context.Context) error
}

// cutover is the list of steps of a migration. The application stands still
// from QuiesceApplications on.
func cutover(r step.Run, h hooks, leftovers bool) []pipeline.Step {
	var steps []pipeline.Step
	if leftovers {
		steps = append(steps, step.CleanDestination(r)...)
	}
	steps = append(steps,
		step.Prepare(r, h.check),
		step.StorageEnsured(r),
		step.EnsureInitialBackup(r),
		step.InitialBackupCreated(r),
		step.VeleroQueuesFree(r),
		before(step.QuiesceApplications(r), h.stopping),
		step.EnsureQuiesced(r),
	)
	if len(r.Plan.Copied()) > 0 {
		steps = append(steps,
			step.EnsureStagePods(r),
			step.StagePodsCreated(r),
			step.EnsureStageBackup(r),
			step.StageBackupCreated(r, func(ctx context.Context) error { return step.StillQuiesced(ctx, r) }),
			step.EnsureStageBackupReplicated(r),
			step.EnsureStageRestore(r),
			step.StageRestoreCreated(r),
			step.EnsureStagePodsDeleted(r),
		)
	}
	return append(steps,
		step.EnsureInitialBackupReplicated(r),
		before(step.EnsureFinalRestore(r), h.starting),
		step.FinalRestoreCreated(r),
		step.WorkloadsReady(r),
		step.EnsureAnnotationsDeleted(r),
	)
}

// before is a step that tells somebody before it changes anything.
func before(s pipeline.Step, tell func(context.Context) error) pipeline.Step {
	return told{Step: s, tell: tell}
}

type told struct {
	pipeline.Step
	tell func(context.Context) error
}

func (s told) Act(ctx context.Context) error {
	if err := s.tell(ctx); err != nil {
		return err
	}
	return s.Step.Act(ctx)
}

// Limits of single steps, where the engine's defaults are not right. Copying
// takes as long as there is data; a person is told where it stalls.
func limits(p plan.Valid) func(step string) pipeline.Limits {
	own := map[string]pipeline.Limits{
		"StageBackupCreated":  {Stall: 5 * time.Minute, Total: 48 * time.Hour},
		"StageRestoreCreated": {Stall: 5 * time.Minute, Total: 48 * time.Hour},
		"VeleroQueuesFree":    {Stall: 5 * time.Minute, Total: 4 * time.Hour},
		"StagePodsCreated":    {Stall: time.Minute, Total: 10 * time.Minute},
		"EnsureQuiesced":      {Stall: time.Minute, Total: 15 * time.Minute},
		"WorkloadsReady":      {Stall: time.Minute, Total: 15 * time.Minute},
	}
	for name, text := range p.Plan().Spec.Limits.Timeouts {
		if d, err := time.ParseDuration(text); err == nil { // validated with the plan
			l := own[name]
			l.Total = d
			own[name] = l
		}
	}
	return func(step string) pipeline.Limits { return own[step] }
}
