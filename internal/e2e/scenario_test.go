//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
)

// The exit codes that product.md promises.
const (
	done       = 0
	failed     = 1
	usage      = 2
	incomplete = 3
	blocked    = 10
	locked     = 11
)

// patience is how long a run may take on a busy machine, waiting for its turn with
// Velero behind all the others included; no test measures it.
const patience = 30 * time.Minute

// theLab is held by one test binary at a time.
var theLab = sync.OnceValues(func() (*labtest.Lab, error) {
	lab, err := labtest.Find()
	if err != nil {
		return nil, err
	}
	return lab, lab.Hold(func() { fmt.Fprintln(os.Stderr, "waiting for others who use the lab") })
})

var theMig = sync.OnceValues(func() (string, error) {
	lab, err := theLab()
	if err != nil {
		return "", err
	}
	return lab.Mig(context.Background())
})

// scenario is a place of its own on both clusters: namespaces and a plan that
// no other test touches.
type scenario struct {
	t    *testing.T
	lab  *labtest.Lab
	mig  string
	dir  string // where mig is run, with the plan in it
	name string // of the plan and of the namespace on the source
	dest string // of the namespace on the destination
	more []string

	planUID string
}

// newScenario clears the place and sees to it that it is cleared again, with
// the evidence saved first where the test failed. more are namespaces beside
// the first, with the same name on both clusters.
func newScenario(t *testing.T, name string, more ...string) *scenario {
	t.Helper()
	lab, err := theLab()
	if err != nil {
		t.Fatal(err)
	}
	mig, err := theMig()
	if err != nil {
		t.Fatal(err)
	}
	s := &scenario{t: t, lab: lab, mig: mig, dir: t.TempDir(), name: name, dest: name + "-moved", more: more}
	s.must(s.clear(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		s.saveEvidence(ctx)
		if err := s.clear(ctx); err != nil {
			t.Errorf("clearing up: %v", err)
		}
	})
	return s
}

func (s *scenario) clear(ctx context.Context) error {
	if err := s.lab.CancelPlan(ctx, s.name); err != nil {
		return err
	}
	if err := labtest.RemoveNamespaces(ctx, s.dst(), append(s.more, s.dest)...); err != nil {
		return err
	}
	if err := labtest.RemoveNamespaces(ctx, s.src(), append(s.more, s.name)...); err != nil {
		return err
	}
	return s.lab.ForgetPlan(ctx, s.name)
}

func (s *scenario) saveEvidence(ctx context.Context) {
	if !s.t.Failed() {
		return
	}
	dir, err := os.MkdirTemp("", "mig-"+s.name+"-")
	if err == nil {
		err = s.lab.Gather(ctx, dir, append(s.more, s.name, s.dest)...)
	}
	s.t.Logf("evidence of both clusters: %s (%v)", dir, err)
}

// on is the scenario as seen by a subtest.
func (s *scenario) on(t *testing.T) *scenario {
	t.Helper()
	in := *s
	in.t = t
	return &in
}

func (s *scenario) src() *cluster.Cluster { return s.lab.Source.Cluster }
func (s *scenario) dst() *cluster.Cluster { return s.lab.Destination.Cluster }

func (s *scenario) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scenario) planFile() string { return filepath.Join(s.dir, s.name+".yaml") }

// mig runs mig to its end.
func (s *scenario) run(args ...string) labtest.Result {
	s.t.Helper()
	r, err := s.lab.Run(s.t.Context(), s.dir, append([]string{s.mig}, args...)...)
	s.must(err)
	return r
}

// succeeds runs mig and wants exit code 0.
func (s *scenario) succeeds(args ...string) labtest.Result {
	s.t.Helper()
	r := s.run(args...)
	s.ended(r, done)
	return r
}

func (s *scenario) ended(r labtest.Result, code int) {
	s.t.Helper()
	if r.Code != code {
		s.t.Fatalf("want exit %d:\n%s", code, r)
	}
}

// says wants words in what mig said to people.
func (s *scenario) says(r labtest.Result, words ...string) {
	s.t.Helper()
	for _, w := range words {
		if !strings.Contains(r.Stdout+r.Stderr, w) {
			s.t.Errorf("nothing is said of %q:\n%s", w, r)
		}
	}
	if strings.Contains(r.Stderr, "goroutine ") {
		s.t.Errorf("a panic is no message:\n%s", r)
	}
}

// makePlan makes the plan of the scenario's namespaces, changed as a person might.
func (s *scenario) makePlan(change func(*plan.Plan)) {
	s.t.Helper()
	s.must(os.RemoveAll(s.planFile()))
	namespaces := append([]string{s.name + ":" + s.dest}, s.more...)
	s.succeeds("plan", "create", s.name, "--src", labtest.SourceContext, "--dst", labtest.DestinationContext,
		"--namespaces", strings.Join(namespaces, ","))
	s.must(labtest.EditPlan(s.planFile(), func(p *plan.Plan) {
		s.planUID = p.Metadata.UID
		if change != nil {
			change(p)
		}
	}))
}

// deployNotes puts the smallest application with data on the source.
func (s *scenario) deployNotes(megabytes int64) {
	s.t.Helper()
	ctx := s.t.Context()
	s.must(s.lab.Apply(ctx, s.src(), s.name, labtest.NotesYAML))
	s.must(s.lab.WorkloadsReady(ctx, s.src(), s.name, patience))
	dir, err := labtest.VolumeDir(ctx, s.src(), s.name, labtest.NotesClaim)
	s.must(err)
	s.must(labtest.WriteNoise(filepath.Join(dir, "noise"), megabytes<<20))
}

// stagePods are the pods of the plan's runs in the namespace on the source.
func (s *scenario) stagePods(ctx context.Context) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := s.src().List(ctx, &pods, client.InNamespace(s.name), client.MatchingLabels{naming.LabelPlan: s.planUID})
	return pods.Items, err
}

// reasons are the reasons of the plan's Events on a cluster, in order.
func (s *scenario) reasons(c *cluster.Cluster) []string {
	s.t.Helper()
	events, err := labtest.Events(s.t.Context(), c, s.planUID)
	s.must(err)
	return labtest.Reasons(events)
}

// reasonsOfLastRun are the reasons of a cluster's Events since the last Started.
func (s *scenario) reasonsOfLastRun(c *cluster.Cluster) []string {
	s.t.Helper()
	reasons := s.reasons(c)
	for i, reason := range slices.Backward(reasons) {
		if reason == "Started" {
			return reasons[i:]
		}
	}
	return reasons
}

// inOrder wants some reasons, each after the one before it.
func inOrder(t *testing.T, got []string, want ...string) {
	t.Helper()
	at := 0
	for _, w := range want {
		i := slices.Index(got[at:], w)
		if i < 0 {
			t.Fatalf("%s is not told after %s; told were: %s", w, strings.Join(got[:at], ", "), strings.Join(got, ", "))
		}
		at += i + 1
	}
}

// toldOnce wants each of the reasons exactly once.
func toldOnce(t *testing.T, got []string, want ...string) {
	t.Helper()
	for _, w := range want {
		if n := count(got, w); n != 1 {
			t.Errorf("%s is told %d times, want once; told were: %s", w, n, strings.Join(got, ", "))
		}
	}
}

func count(in []string, what string) int {
	n := 0
	for _, s := range in {
		if s == what {
			n++
		}
	}
	return n
}

// cutover are the steps of a migration with volumes, in their order. Their
// names are the reasons of their Events.
func cutover() []string {
	return []string{
		"Prepare", "StorageEnsured", "TurnTaken", "EnsureInitialBackup", "InitialBackupCreated", "QuiesceApplications", "EnsureQuiesced",
		"EnsureStagePods", "StagePodsCreated", "EnsureStageBackup", "StageBackupCreated", "EnsureStageBackupReplicated",
		"EnsureStageRestore", "StageRestoreCreated", "EnsureStagePodsDeleted", "EnsureInitialBackupCurrent", "EnsureInitialBackupReplicated",
		"EnsureFinalRestore", "FinalRestoreCreated", "TurnGiven", "WorkloadsReady", "EnsureAnnotationsDeleted",
	}
}
