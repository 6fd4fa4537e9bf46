package step

import (
	"context"
	"fmt"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/velero"
)

// VeleroQueuesFree waits, while the application still runs, until Velero has
// nothing else to do that ours would queue behind: the destination runs one
// restore at a time, the source by default one backup. Nobody's application
// should stand still in somebody else's queue.
func VeleroQueuesFree(r Run) pipeline.Step { return queuesFree{r} }

type queuesFree struct{ r Run }

func (s queuesFree) Name() string              { return "VeleroQueuesFree" }
func (s queuesFree) Act(context.Context) error { return nil }

func (s queuesFree) Next(ctx context.Context) (pipeline.Decision, error) {
	var backups velerov1.BackupList
	if err := s.r.Source.List(ctx, &backups, client.InNamespace(s.r.Source.VeleroNamespace)); err != nil {
		return pipeline.Decision{}, err
	}
	var restores velerov1.RestoreList
	if err := s.r.Destination.List(ctx, &restores, client.InNamespace(s.r.Destination.VeleroNamespace)); err != nil {
		return pipeline.Decision{}, err
	}
	return decideQueues(backups.Items, restores.Items), nil
}

func decideQueues(backups []velerov1.Backup, restores []velerov1.Restore) pipeline.Decision {
	note := progress.Remark{Why: "VeleroQueuesFree", Say: "Velero is idle on both clusters"}
	for i := range restores {
		if velero.RestoreOutcome(&restores[i]) == velero.Running {
			note.Say = fmt.Sprintf("the destination's Velero is busy with restore %s (%s)", restores[i].Name, orNew(string(restores[i].Status.Phase)))
			note.On = restoreRef(&restores[i])
			return pipeline.Decision{Verdict: pipeline.Wait, Note: note}
		}
	}
	for i := range backups {
		if velero.BackupOutcome(&backups[i]) == velero.Running {
			note.Say = fmt.Sprintf("the source's Velero is busy with backup %s (%s)", backups[i].Name, orNew(string(backups[i].Status.Phase)))
			note.On = backupRef(progress.OnSource, &backups[i])
			return pipeline.Decision{Verdict: pipeline.Wait, Note: note}
		}
	}
	return pipeline.Decision{Verdict: pipeline.Done, Note: note}
}

func orNew(phase string) string {
	if phase == "" {
		return "New"
	}
	return phase
}

// Turn is the right to give Velero work that no other's comes between,
// among the runs of mig. Two of them that both find Velero idle would both stop
// their application, and one would wait behind the other's restore with its
// source down. It does not outlive a process.
type Turn interface {
	// Has says whether it is had.
	Has() bool
	// Take asks for it once, and says who has it; empty: it is had.
	Take(context.Context) (holder string, err error)
	// Give gives it to whoever comes next. Twice is as once.
	Give(context.Context)
}

// StepTurnTaken is the name of the step that waits for the run's turn.
const StepTurnTaken = "TurnTaken"

// TurnTaken waits for the run's turn.
func TurnTaken(t Turn) pipeline.Step { return &turnTaken{turn: t} }

type turnTaken struct {
	turn   Turn
	holder string // as it was told when the turn was last asked for
}

func (s *turnTaken) Name() string { return StepTurnTaken }

func (s *turnTaken) Next(context.Context) (pipeline.Decision, error) {
	return decideTurn(s.turn.Has(), s.holder), nil
}

func (s *turnTaken) Act(ctx context.Context) (err error) {
	s.holder, err = s.turn.Take(ctx)
	return err
}

func decideTurn(has bool, holder string) pipeline.Decision {
	note := progress.Remark{Why: StepTurnTaken, Say: "no other run of mig comes between with work for Velero"}
	switch {
	case has:
		return pipeline.Decision{Verdict: pipeline.Done, Note: note}
	case holder != "":
		note.Say = "waiting until another run of mig is through with Velero, nothing is stopped yet: " + holder
	default:
		note.Say = "asking for the turn with Velero"
	}
	return pipeline.Decision{Verdict: pipeline.Act, Note: note}
}

// InTurn is a step that needs the turn: a process that goes on where another was
// killed takes it again first.
func InTurn(t Turn, s pipeline.Step) pipeline.Step {
	return inTurn{Step: s, taken: &turnTaken{turn: t}}
}

type inTurn struct {
	pipeline.Step

	taken *turnTaken
}

func (s inTurn) Next(ctx context.Context) (pipeline.Decision, error) {
	if s.taken.turn.Has() {
		return s.Step.Next(ctx)
	}
	return s.taken.Next(ctx)
}

func (s inTurn) Act(ctx context.Context) error {
	if s.taken.turn.Has() {
		return s.Step.Act(ctx)
	}
	return s.taken.Act(ctx)
}

// TurnGiven gives the turn to whoever comes next.
func TurnGiven(t Turn) pipeline.Step { return turnGiven{t} }

type turnGiven struct{ turn Turn }

func (s turnGiven) Name() string { return "TurnGiven" }

func (s turnGiven) Next(context.Context) (pipeline.Decision, error) {
	if s.turn.Has() {
		return pipeline.Decision{Verdict: pipeline.Act, Note: progress.Remark{Why: "TurnGiven", Say: "giving the turn with Velero back"}}, nil
	}
	return pipeline.Decision{Verdict: pipeline.Done, Note: progress.Remark{Why: "TurnGiven", Say: "other runs of mig may give Velero work"}}, nil
}

func (s turnGiven) Act(ctx context.Context) error {
	s.turn.Give(ctx)
	return nil
}
