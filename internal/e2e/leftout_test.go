//go:build e2e

package e2e

import (
	"context"
	"slices"
	"testing"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/naming"
)

// Each case is a loss that Velero itself brings about: nothing is played.
func TestDataThatVeleroLeavesBehindIsNeverASuccess(t *testing.T) {
	t.Parallel()
	s := newScenario(t, "e2e-loss")
	s.deployNotes(30)
	before, err := labtest.ObjectsOf(t.Context(), s.src(), s.name)
	s.must(err)

	for _, c := range []struct {
		name   string
		meddle func(context.Context, *scenario) (labtest.NotYet, error)
		says   string
	}{
		{"a volume's backup that somebody cancels makes the backup PartiallyFailed", cancelPodVolumeBackups, labtest.NotesClaim},
		{"a volume that Velero leaves out of a Completed backup without a word", excludeStagePods, labtest.NotesClaim},
		{"a volume's restore that somebody cancels makes the restore PartiallyFailed", cancelPodVolumeRestores, labtest.NotesClaim},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := s.on(t)
			in.makePlan(nil)
			in.migrateMeddled(c.meddle, c.says)
			in.sourceIsUp(before)
			in.succeeds("rollback", "--yes")
			if err := in.lab.GoneFromDestination(t.Context(), in.planUID, in.dest); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("a hook that fails makes the initial backup PartiallyFailed", func(t *testing.T) {
		in := s.on(t)
		in.failBackupHook()
		hooked, err := labtest.ObjectsOf(t.Context(), in.src(), in.name)
		in.must(err)
		in.makePlan(nil)
		r := in.run("migrate")
		in.ended(r, failed)
		in.says(r, string(velerov1.BackupPhasePartiallyFailed))
		if reasons := in.reasons(in.src()); slices.Contains(reasons, "QuiesceApplications") {
			t.Errorf("the source was stopped for nothing; told were: %v", reasons)
		}
		in.sourceIsUp(hooked)
	})
}

// migrateMeddled runs mig while somebody meddles with what Velero does, and
// wants it to fail and to say of what.
func (s *scenario) migrateMeddled(meddle func(context.Context, *scenario) (labtest.NotYet, error), says string) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	met := s.meanwhile(ctx, meddle)
	r := s.run("migrate")
	cancel()
	if err := <-met; err != nil {
		s.t.Fatalf("mig ended before the fault was met: %v\n%s", err, r)
	}
	s.ended(r, failed)
	s.says(r, says)
	if reasons := s.reasonsOfLastRun(s.src()); slices.Contains(reasons, "Completed") {
		s.t.Errorf("the Events tell of success: %v", reasons)
	}
}

// sourceIsUp wants the source as it was, by mig alone: nothing had started on
// the destination.
func (s *scenario) sourceIsUp(before labtest.Objects) {
	s.t.Helper()
	if err := s.lab.SourceAsBefore(s.t.Context(), before, s.name); err != nil {
		s.t.Error(err)
	}
	if err := s.lab.WorkloadsReady(s.t.Context(), s.src(), s.name, patience); err != nil {
		s.t.Error(err)
	}
}

// cancelPodVolumeBackups cancels, as anyone with kubectl can.
func cancelPodVolumeBackups(ctx context.Context, s *scenario) (labtest.NotYet, error) {
	var backups velerov1.BackupList
	if err := s.src().List(ctx, &backups, client.MatchingLabels{naming.LabelPlan: s.planUID}); err != nil {
		return "", err
	}
	for _, b := range backups.Items {
		var list velerov1.PodVolumeBackupList
		if err := s.src().List(ctx, &list, client.MatchingLabels{naming.VeleroBackupName: b.Name}); err != nil {
			return "", err
		}
		for i := range list.Items {
			return "", patch(ctx, s.src(), &list.Items[i], func() { list.Items[i].Spec.Cancel = true })
		}
	}
	return "no PodVolumeBackup yet", nil
}

// cancelPodVolumeRestores does the same on the destination.
func cancelPodVolumeRestores(ctx context.Context, s *scenario) (labtest.NotYet, error) {
	var restores velerov1.RestoreList
	if err := s.dst().List(ctx, &restores, client.MatchingLabels{naming.LabelPlan: s.planUID}); err != nil {
		return "", err
	}
	for _, r := range restores.Items {
		var list velerov1.PodVolumeRestoreList
		if err := s.dst().List(ctx, &list, client.MatchingLabels{naming.VeleroRestoreName: r.Name}); err != nil {
			return "", err
		}
		for i := range list.Items {
			return "", patch(ctx, s.dst(), &list.Items[i], func() { list.Items[i].Spec.Cancel = true })
		}
	}
	return "no PodVolumeRestore yet", nil
}

// excludeStagePods labels mig's stage pods the way that a policy engine of the
// cluster might: Velero then passes them by, and its backup is Completed.
func excludeStagePods(ctx context.Context, s *scenario) (labtest.NotYet, error) {
	pods, err := s.stagePods(ctx)
	if err != nil {
		return "", err
	}
	for i := range pods {
		return "", patch(ctx, s.src(), &pods[i], func() { pods[i].Labels["velero.io/exclude-from-backup"] = "true" })
	}
	return "no stage pod yet", nil
}

func patch(ctx context.Context, c client.Client, o client.Object, change func()) error {
	was, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return nil
	}
	change()
	return c.Patch(ctx, o, client.MergeFrom(was))
}

// failBackupHook gives the pods a Velero hook, as users do, that fails.
func (s *scenario) failBackupHook() {
	s.t.Helper()
	_, err := s.lab.Kubectl(s.t.Context(), s.src(), "", "-n", s.name, "patch", "deployment", "notes", "--type", "merge", "-p",
		`{"spec":{"template":{"metadata":{"annotations":{
			"pre.hook.backup.velero.io/command":"[\"/bin/busybox\",\"false\"]",
			"pre.hook.backup.velero.io/on-error":"Fail"}}}}}`)
	s.must(err)
	s.must(s.lab.WorkloadsReady(s.t.Context(), s.src(), s.name, patience))
}
