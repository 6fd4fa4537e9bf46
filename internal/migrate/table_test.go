package migrate

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/record"
	"github.com/mig-cli/mig/internal/step"
)

func runOf(t *testing.T, volumes ...plan.Volume) step.Run {
	t.Helper()
	p := &plan.Plan{
		APIVersion: plan.APIVersion, Kind: plan.Kind, Metadata: plan.Metadata{Name: "shop", UID: "5f0c8a52-6f1e-4c40-9a38-0b6a7f0e9a11"},
		Spec: plan.Spec{
			Source: plan.Cluster{Context: "src"}, Destination: plan.Cluster{Context: "dst"}, Storage: plan.Storage{Location: "default"},
			Namespaces: []plan.Namespace{{Name: "shop"}}, Volumes: volumes, HelperImage: "registry.test/mig-mover:1",
			Limits: plan.LimitsSpec{Timeouts: map[string]string{"WorkloadsReady": "3m"}},
		},
	}
	v, problems := p.Validate()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return step.Run{
		Owner: naming.Owner{PlanName: "shop", PlanUID: v.UID(), RunUID: "r"}, Plan: v,
		Source: cluster.Source{Cluster: &cluster.Cluster{}}, Destination: cluster.Destination{Cluster: &cluster.Cluster{}},
	}
}

// byVelero is the same run with volumes that Velero restores.
func byVelero(t *testing.T, r step.Run) step.Run {
	t.Helper()
	p := r.Plan.Plan()
	p.Spec.Mover = plan.MoverVelero
	v, problems := p.Validate()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	r.Plan = v
	return r
}

func namesOf(rows []row) []string {
	var out []string
	for _, r := range rows {
		out = append(out, r.step.Name())
	}
	return out
}

func TestTheOrderThatKeepsDataSafe(t *testing.T) {
	names := namesOf(cutover(runOf(t, plan.Volume{Claim: "shop/data", Action: plan.Copy, Verify: true}), hooks{}, false))
	for _, pair := range [][2]string{
		{"StageRestoreCreated", "VolumesVerified"},
		{"VolumesVerified", "EnsureStagePodsDeleted"}, // the volumes are compared while they are mounted
		{"EnsureDestinationClaims", "DestinationVolumesMounted"},
		{"DestinationVolumesMounted", "MoverReady"},
		{"MoverReady", "QuiesceApplications"},                   // who restores is settled, and its image pulled, while the application runs
		{"Prepare", "EnsureInitialBackup"},                      // nothing is asked for before the plan is checked
		{"TurnTaken", "EnsureInitialBackup"},                    // no other run's work comes between
		{"FinalRestoreCreated", "TurnGiven"},                    // until Velero has nothing more to do for this one
		{"TurnGiven", "WorkloadsReady"},                         // and nobody waits for an application that starts slowly
		{"InitialBackupCreated", "QuiesceApplications"},         // the objects are backed up with their real replicas
		{"VeleroQueuesFree", "QuiesceApplications"},             // nobody waits in a queue with the source down
		{"EnsureQuiesced", "EnsureStageBackup"},                 // no final copy before no writer was seen to be left
		{"StageBackupCreated", "EnsureStageRestore"},            // nothing is restored that is not proved captured
		{"EnsureStageBackupReplicated", "EnsureStageRestore"},   // nor what the destination does not know
		{"StageRestoreCreated", "EnsureFinalRestore"},           // the application starts on proved volumes only
		{"EnsureStagePodsDeleted", "EnsureFinalRestore"},        // and nothing else mounts them
		{"EnsureInitialBackupReplicated", "EnsureFinalRestore"}, // the objects are known
		{"WorkloadsReady", "EnsureAnnotationsDeleted"},          // what the readiness is compared with is on the source's marks
		{"FinalRestoreCreated", "WorkloadsReady"},
		{"Prepare", "StorageEnsured"}, // and the rest
	} {
		first, second := slices.Index(names, pair[0]), slices.Index(names, pair[1])
		if first < 0 || second < 0 || first >= second {
			t.Errorf("%s (%d) must come before %s (%d)", pair[0], first, pair[1], second)
		}
	}
}

func TestAPlanWithoutVolumesToCopyMakesNoStagePods(t *testing.T) {
	names := namesOf(cutover(runOf(t, plan.Volume{Claim: "shop/cache", Action: plan.Skip}), hooks{}, false))
	for _, name := range names {
		if name == "EnsureStagePods" || name == "EnsureStageBackup" || name == "EnsureStageRestore" {
			t.Errorf("step %s without a volume to copy", name)
		}
	}
}

func TestAStageStopsNothingAndWithVeleroAloneRestoresNothing(t *testing.T) {
	r := runOf(t, plan.Volume{Claim: "shop/data", Action: plan.Copy})
	names := namesOf(staging(r, hooks{}, false))
	for _, never := range []string{"QuiesceApplications", "EnsureFinalRestore", "EnsureInitialBackup"} {
		if slices.Contains(names, never) {
			t.Errorf("a stage takes step %s", never)
		}
	}
	if anew := namesOf(staging(byVelero(t, r), hooks{}, false)); slices.Contains(anew, "EnsureStageRestore") || slices.Contains(anew, "StagedClaimsRemoved") {
		t.Errorf("a stage with Velero alone takes %q", anew)
	}
	for _, pair := range [][2]string{
		{"AnnotateResources", "EnsureStageBackup"},
		{"StageBackupCreated", "EnsureClaimsUnmarked"},
		{"StageBackupCreated", "EnsureStagePodsDeleted"},
		{"TurnTaken", "EnsureStageBackup"},
		{"StageBackupCreated", "TurnGiven"},
		{"MoverReady", "EnsureStageBackup"},
		{"StageBackupCreated", "EnsureStageRestore"},
		{"StageRestoreCreated", "EnsureStagePodsDeleted"},
	} {
		first, second := slices.Index(names, pair[0]), slices.Index(names, pair[1])
		if first < 0 || second < 0 || first >= second {
			t.Errorf("%s (%d) must come before %s (%d)", pair[0], first, pair[1], second)
		}
	}
}

func TestLeftoversOfAnEarlierRunGoBeforeThePlanIsChecked(t *testing.T) {
	names := namesOf(cutover(runOf(t), hooks{}, true))
	if i, j := slices.Index(names, step.StepDestinationCleaned), slices.Index(names, "Prepare"); i < 0 || i > j {
		t.Errorf("the destination is cleaned at %d, the plan checked at %d", i, j)
	}
}

func TestEveryStepHasANameOfItsOwnAndSaysWhatItDoes(t *testing.T) {
	r := runOf(t, plan.Volume{Claim: "shop/data", Action: plan.Copy})
	for kind, rows := range map[Kind][]row{Stage: staging(r, hooks{}, true), Cutover: cutover(r, hooks{}, true), Rollback: rollback(r)} {
		seen := map[string]bool{}
		for _, row := range rows {
			if name := row.step.Name(); seen[name] || row.does == "" {
				t.Errorf("%s: step %s is there twice or says nothing", kind, name)
			} else {
				seen[name] = true
			}
		}
	}
}

func TestAPlansOwnTimeoutBoundsItsStep(t *testing.T) {
	of := limits(runOf(t).Plan)
	if got := of("WorkloadsReady"); got.Total != 3*time.Minute || got.Stall == 0 {
		t.Errorf("got %+v", got)
	}
	if got := of("StageBackupCreated"); got.Total < 24*time.Hour {
		t.Errorf("copying is given up after %s", got.Total)
	}
}

type step0 struct{ acted *[]string }

func (s step0) Name() string { return "Step" }
func (s step0) Next(context.Context) (pipeline.Decision, error) {
	return pipeline.Decision{}, nil
}
func (s step0) Act(context.Context) error { *s.acted = append(*s.acted, "acted"); return nil }

func TestWhatIsAboutToHappenIsWrittenDownBeforeItHappens(t *testing.T) {
	var did []string
	s := before(step0{&did}, func(context.Context) error { did = append(did, "told"); return nil })
	if err := s.Act(t.Context()); err != nil || !slices.Equal(did, []string{"told", "acted"}) {
		t.Errorf("did %v, %v", did, err)
	}
	did = nil
	s = before(step0{&did}, func(context.Context) error { return errors.New("no record") })
	if err := s.Act(t.Context()); err == nil || len(did) > 0 {
		t.Errorf("acted though it could not be written down: %v, %v", did, err)
	}
}

func TestDowntimeIsFromTheFirstStopToReadyWorkloads(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(1000+s), 0) }
	r := record.Run{Steps: []record.Step{{Name: "QuiesceApplications", Started: at(10)}, {Name: "WorkloadsReady", Started: at(40), Ended: at(52)}}}
	if got := downtime(&r); got != 42*time.Second {
		t.Errorf("got %s, want 42s", got)
	}
	r.Steps[1].Ended = time.Time{}
	if got := downtime(&r); got != 0 {
		t.Errorf("got %s of a run that is not ready yet", got)
	}
}

// notMine is a turn that another run has.
type notMine struct{}

func (notMine) Has() bool                            { return false }
func (notMine) Take(context.Context) (string, error) { return "plan wiki", nil }
func (notMine) Give(context.Context)                 {}

func TestARunThatIsTakenUpAgainHasItsTurnBeforeItGivesVeleroWork(t *testing.T) {
	r := runOf(t, plan.Volume{Claim: "shop/data", Action: plan.Copy})
	h := hooks{turn: notMine{}, overspent: func() string { return "" }}
	for kind, rows := range map[Kind][]row{Stage: staging(r, h, false), Cutover: cutover(r, h, false)} {
		from := slices.Index(namesOf(rows), "TurnTaken")
		to := slices.Index(namesOf(rows), "TurnGiven")
		for _, row := range rows[from:to] {
			d, err := row.step.Next(t.Context())
			if err != nil || d.Verdict != pipeline.Act || d.Note.Reason() != "TurnTaken" {
				t.Errorf("%s: %s looks at the clusters before it is the run's turn: %+v, %v", kind, row.step.Name(), d, err)
			}
		}
	}
}
