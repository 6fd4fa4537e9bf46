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
	turn               step.Turn
	// overspent says why the source has been down for too long; empty: it has not.
	overspent func() string
}

// row is a step with what it does, in a sentence for people who ask before.
type row struct {
	step pipeline.Step
	does string
}

// cutover is the list of steps of a migration. The application stands still
// from QuiesceApplications on.
func cutover(r step.Run, h hooks, leftovers bool) []row {
	var rows []row
	drift := step.WatchDrift(r)
	if leftovers {
		rows = append(rows, each(removesLeftovers, step.LeftoversRemoved(r)...)...)
	}
	rows = append(rows,
		row{step.Prepare(r, h.check), "checks the plan against both clusters and makes the namespaces on the destination"},
		row{step.StorageEnsured(r), "waits until the storage location is Available on both clusters"},
	)
	rows = append(rows, receiving(r)...)
	rows = append(rows, row{step.TurnTaken(h.turn), "waits until no other run of mig has work for either Velero"})
	rows = append(rows, inTurn(h.turn,
		row{step.EnsureInitialBackup(r, drift), "asks the source's Velero for a backup of all objects, without volume data"},
		row{step.InitialBackupCreated(r), "waits for that backup and proves that it holds no volume data"},
		row{step.VeleroQueuesFree(r), "waits until neither Velero has other work that ours would queue behind"},
	)...)
	rows = append(rows, standstill(r, h, drift)...)
	rows = append(rows, inTurn(h.turn, row{step.FinalRestoreCreated(r), "waits for that restore and names everything that it left out"})...)
	return append(rows,
		row{step.TurnGiven(h.turn), "lets the next run of mig have its turn with Velero"},
		row{step.WorkloadsReady(r), "waits until the workloads are as ready as they were on the source"},
		row{step.EnsureAnnotationsDeleted(r), "removes the run's helpers and marks where everything went"},
	)
}

// receiving are the steps that make ready on the destination what the volumes
// are restored into, while the application still runs.
func receiving(r step.Run) []row {
	switch {
	case r.Plan.WithMover():
		return []row{
			{step.EnsureDestinationClaims(r), "makes the claims on the destination, or takes those that a stage has filled"},
			{step.DestinationVolumesMounted(r), "mounts them there in stage pods"},
			{step.MoverReady(r), "sees that mig-mover runs next to them; where it cannot and the plan lets it, Velero restores"},
		}
	case len(r.Plan.Copied()) > 0:
		return []row{{step.StagedClaimsRemoved(r), "removes what mig-mover has filled, if anything: Velero restores into fresh claims"}}
	default:
		return nil
	}
}

// inTurn are rows that need the turn.
func inTurn(t step.Turn, rows ...row) []row {
	for i := range rows {
		rows[i].step = step.InTurn(t, rows[i].step)
	}
	return rows
}

// standstill are the steps from the first workload's stop until the
// application may start on the destination. They must fit into the budget.
func standstill(r step.Run, h hooks, drift *step.Drift) []row {
	rows := []row{
		{before(step.QuiesceApplications(r), h.stopping), "stops the source's workloads; what was there before is written on them"},
		{step.EnsureQuiesced(r), "waits until no pod is left that could write"},
	}
	if len(r.Plan.Copied()) > 0 {
		rows = append(rows, copying(r)...)
	}
	rows = append(rows,
		row{step.EnsureInitialBackupCurrent(r, drift), "backs the objects up again where some have changed since"},
		row{step.EnsureInitialBackupReplicated(r), "makes the backup of the objects known on the destination"},
		row{before(step.EnsureFinalRestore(r), h.starting), "asks the destination's Velero to restore all objects; from here on nothing is undone by itself"},
	)
	rows = inTurn(h.turn, rows...)
	for i := range rows {
		rows[i].step = within(rows[i].step, h.overspent)
	}
	return rows
}

// copying are the steps that carry the volumes over.
func copying(r step.Run) []row {
	rows := []row{
		{step.EnsureStagePods(r, step.EveryClaim), "mounts every volume to copy in a stage pod on the source"},
		{step.StagePodsCreated(r, step.EveryClaim), "waits until the stage pods run"},
		{step.EnsureStageBackup(r), "asks the source's Velero for a backup of the volumes"},
		{step.StageBackupCreated(r, func(ctx context.Context) error { return step.StillQuiesced(ctx, r) }), "waits for that backup, proves every volume captured, and that nobody wrote meanwhile"},
		{step.EnsureStageBackupReplicated(r), "makes that backup known on the destination"},
	}
	if r.Plan.WithMover() {
		rows = append(rows,
			row{step.EnsureStageRestoreByMover(r), "has mig-mover bring the destination's volumes up to date"},
			row{step.StageRestoreByMoverCreated(r), "waits for that and proves every volume restored"},
		)
	} else {
		rows = append(rows,
			row{step.EnsureStageRestore(r), "asks the destination's Velero to restore the volumes into fresh claims"},
			row{step.StageRestoreCreated(r), "waits for that restore and proves every volume restored"},
		)
	}
	if len(r.Plan.Verified()) > 0 {
		rows = append(rows, row{step.VolumesVerified(r), "reads the volumes on both sides and proves them equal"})
	}
	return append(rows, row{step.EnsureStagePodsDeleted(r), "removes the stage pods on both clusters"})
}

const removesLeftovers = "removes what an earlier run of the plan left behind"

// staging is the list of steps of a stage: the volumes are copied while the
// application runs, so that the cutover has only the changes to copy. With
// mig-mover as far as the destination's volumes. With Velero alone as far as the
// store: its restore writes everything anew, and leaves what was deleted since.
func staging(r step.Run, h hooks, leftovers bool) []row {
	var rows []row
	if leftovers {
		rows = append(rows, each(removesLeftovers, step.LeftoversRemoved(r)...)...)
	}
	rows = append(rows,
		row{step.Prepare(r, h.check), "checks the plan against both clusters and makes the namespaces on the destination"},
		row{step.StorageEnsured(r), "waits until the storage location is Available on both clusters"},
	)
	if r.Plan.WithMover() {
		rows = append(rows, receiving(r)...)
	}
	rows = append(rows,
		row{step.ClaimsMarked(r), "labels the claims to copy; the application's pods are not touched"},
		row{step.EnsureStagePods(r, step.IdleClaims), "mounts the claims that no running pod mounts in stage pods"},
		row{step.StagePodsCreated(r, step.IdleClaims), "waits until the stage pods run"},
		row{step.TurnTaken(h.turn), "waits until no other run of mig has work for the source's Velero"},
	)
	rows = append(rows, inTurn(h.turn,
		row{step.EnsureLiveBackup(r), "asks the source's Velero for a backup of the volumes; the application goes on"},
		row{step.StageBackupCreated(r, nil), "waits for that backup and proves every volume captured"},
	)...)
	rows = append(rows,
		row{step.TurnGiven(h.turn), "lets the next run of mig have its turn with Velero"},
		row{step.EnsureStageBackupReplicated(r), "makes that backup known on the destination"},
	)
	if r.Plan.WithMover() {
		rows = append(rows,
			row{step.EnsureLiveRestore(r), "has mig-mover bring the destination's volumes up to date"},
			row{step.LiveRestoreCreated(r), "waits for that and proves every volume restored"},
		)
	}
	return append(rows,
		row{step.EnsureStagePodsDeleted(r), "removes the stage pods"},
		row{step.ClaimsUnmarked(r), "takes the labels from the claims again"},
		row{step.HelpersDeleted(r), "removes the run's helpers"},
	)
}

// rollback is the list of steps of a rollback.
func rollback(r step.Run) []row {
	return each("takes back what the plan's runs did", step.RollbackSteps(r)...)
}

// each are steps that do one thing together.
func each(does string, steps ...pipeline.Step) []row {
	rows := make([]row, 0, len(steps))
	for _, s := range steps {
		rows = append(rows, row{s, does})
	}
	return rows
}

func stepsOf(rows []row) []pipeline.Step {
	out := make([]pipeline.Step, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.step)
	}
	return out
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
		"StageBackupCreated":      {Stall: 5 * time.Minute, Total: 48 * time.Hour},
		"StageRestoreCreated":     {Stall: 5 * time.Minute, Total: 48 * time.Hour},
		step.StepTurnTaken:        {Stall: 5 * time.Minute, Total: 48 * time.Hour}, // as long as another's copying
		"EnsureDestinationClaims": {Stall: time.Minute, Total: 15 * time.Minute},
		"StagedClaimsRemoved":     {Stall: time.Minute, Total: 15 * time.Minute},
		"MoverReady":              {Stall: time.Minute, Total: 15 * time.Minute}, // an image may be pulled

		step.StepDestinationVolumesMounted: {Stall: time.Minute, Total: 10 * time.Minute},

		"VolumesVerified":  {Stall: 10 * time.Minute, Total: 48 * time.Hour},
		"VeleroQueuesFree": {Stall: 5 * time.Minute, Total: 4 * time.Hour},
		"StagePodsCreated": {Stall: time.Minute, Total: 10 * time.Minute},
		"EnsureQuiesced":   {Stall: time.Minute, Total: 15 * time.Minute},
		"WorkloadsReady":   {Stall: time.Minute, Total: 15 * time.Minute},
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
