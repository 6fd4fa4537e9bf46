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
