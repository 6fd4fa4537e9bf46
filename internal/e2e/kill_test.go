//go:build e2e

package e2e

import (
	"testing"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/naming"
)

func TestAKillInTheMiddleOfTheStageRestoreCostsNothing(t *testing.T) {
	t.Parallel()
	s := newScenario(t, "e2e-kill")
	ctx := t.Context()
	s.deployNotes(100)
	before, err := labtest.ObjectsOf(ctx, s.src(), s.name)
	s.must(err)
	s.makePlan(nil)

	run, err := s.lab.Start(ctx, s.dir, s.mig, "migrate")
	s.must(err)
	s.must(labtest.WaitForEvent(ctx, s.src(), s.planUID, "EnsureStageRestore", patience))
	s.must(run.Kill())
	killed, err := run.Wait()
	s.must(err)
	if restore := s.onlyStageRestore(); ended(restore) {
		t.Fatalf("killed too late: Restore %s is %s already\n%s", restore.Name, restore.Status.Phase, killed)
	}
	s.succeeds("migrate")

	t.Run("the data is there, up to the last line before the quiesce", func(t *testing.T) {
		if _, err := s.lab.Arrived(t.Context(), s.name, s.dest, labtest.NotesWriting); err != nil {
			t.Error(err)
		}
		if err := s.lab.GoesOn(t.Context(), s.name, s.dest, labtest.NotesWriting); err != nil {
			t.Error(err)
		}
	})
	t.Run("the source is quiesced", func(t *testing.T) {
		if err := labtest.Quiesced(t.Context(), s.src(), s.name); err != nil {
			t.Error(err)
		}
	})
	t.Run("no step is told twice, on no cluster", func(t *testing.T) {
		for _, c := range s.lab.Both() {
			reasons := s.on(t).reasons(c)
			inOrder(t, reasons, append(append([]string{"Started"}, cutover()...), "Completed")...)
			toldOnce(t, reasons, append(cutover(), "Started", "Resumed", "Completed")...)
		}
	})
	t.Run("the second process went on with the first one's restore", func(t *testing.T) {
		s.on(t).onlyStageRestore()
	})
	t.Run("a rollback takes all of it back", func(t *testing.T) {
		s.on(t).succeeds("rollback", "--yes")
		if err := s.lab.GoneFromDestination(t.Context(), s.planUID, s.dest); err != nil {
			t.Error(err)
		}
		if err := s.lab.SourceAsBefore(t.Context(), before, s.name); err != nil {
			t.Error(err)
		}
		if err := s.lab.WorkloadsReady(t.Context(), s.src(), s.name, patience); err != nil {
			t.Error(err)
		}
	})
}

// onlyStageRestore is the one stage restore of the plan; two would be a bug.
func (s *scenario) onlyStageRestore() velerov1.Restore {
	s.t.Helper()
	var list velerov1.RestoreList
	s.must(s.dst().List(s.t.Context(), &list, client.InNamespace(labtest.VeleroNamespace),
		client.MatchingLabels{naming.LabelPlan: s.planUID}, client.HasLabels{naming.RefStageRestore}))
	if len(list.Items) != 1 {
		s.t.Fatalf("the plan has %d stage restores, want one", len(list.Items))
	}
	return list.Items[0]
}

func ended(r velerov1.Restore) bool {
	switch r.Status.Phase {
	case velerov1.RestorePhaseCompleted, velerov1.RestorePhasePartiallyFailed, velerov1.RestorePhaseFailed, velerov1.RestorePhaseFailedValidation:
		return true
	default:
		return false
	}
}
