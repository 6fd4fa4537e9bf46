//go:build e2e && kill

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/naming"
)

// most is more kills than any run has effects: a run that is killed at the
// same place for ever is a bug.
const most = 120

// kill is one kill, for the table in the end.
type kill struct {
	command string
	at      labtest.Request
	when    labtest.Fate
	again   time.Duration // that the next process took, to its end or to its own kill
}

// matrix is a scenario whose mig is killed again and again.
type matrix struct {
	*scenario

	kills   []kill
	before  labtest.Objects // of the source, before anything
	arrived labtest.Objects // on the destination, after an undisturbed run
}

func newMatrix(t *testing.T, name string) *matrix {
	t.Helper()
	m := &matrix{scenario: newScenario(t, name)}
	ctx := t.Context()
	m.deployNotes(20)
	m.must(m.lab.Apply(ctx, m.src(), m.name, labtest.FrontYAML))
	m.must(m.lab.Apply(ctx, m.src(), m.name, betweenYAML))
	m.must(m.lab.WorkloadsReady(ctx, m.src(), m.name, patience))
	var err error
	m.before, err = labtest.ObjectsOf(ctx, m.src(), m.name)
	m.must(err)
	m.makePlan(nil)
	m.succeeds("migrate")
	m.arrived = m.there()
	m.succeeds("rollback", "--yes")
	m.isBack()
	t.Cleanup(func() { t.Log("\n" + m.table()) })
	return m
}

// there are the objects on the destination, as they would be after any other run.
func (m *matrix) there() labtest.Objects {
	m.t.Helper()
	m.must(m.lab.WorkloadsReady(m.t.Context(), m.dst(), m.dest, patience))
	o, err := labtest.ObjectsOf(m.t.Context(), m.dst(), m.dest)
	m.must(err)
	return o.Anew()
}

func (m *matrix) isBack() {
	m.t.Helper()
	m.must(m.lab.GoneFromDestination(m.t.Context(), m.planUID, m.dest))
	m.must(m.lab.SourceAsBefore(m.t.Context(), m.before, m.name))
	m.must(m.lab.WorkloadsReady(m.t.Context(), m.src(), m.name, patience))
}

// isStaged wants the source as if nobody had been there.
func (m *matrix) isStaged() {
	m.t.Helper()
	m.must(m.lab.SourceAsBefore(m.t.Context(), m.before, m.name))
	pods, err := m.stagePods(m.t.Context())
	m.must(err)
	if len(pods) > 0 {
		m.t.Errorf("%d stage pods are left", len(pods))
	}
}

// isThere wants what an undisturbed run leaves, no more and no less.
func (m *matrix) isThere() {
	m.t.Helper()
	m.must(m.arrived.SameAs(m.there()))
	_, err := m.lab.Arrived(m.t.Context(), m.name, m.dest, labtest.NotesWriting)
	m.must(err)
	m.must(labtest.Quiesced(m.t.Context(), m.src(), m.name))
	m.once()
}

// once wants one of each of the last run's Velero objects.
func (m *matrix) once() {
	m.t.Helper()
	newest := map[string]bool{}
	var restores velerov1.RestoreList
	m.must(m.dst().List(m.t.Context(), &restores, client.MatchingLabels{naming.LabelPlan: m.planUID}))
	for _, r := range restores.Items {
		step := r.Labels[naming.LabelStep]
		if newest[step] {
			m.t.Errorf("two restores of step %s", step)
		}
		newest[step] = true
	}
	if len(newest) != 2 {
		m.t.Errorf("restores of %d steps, want the stage and the final one", len(newest))
	}
	reasons := m.reasonsOfLastRun(m.src())
	for _, step := range cutover() {
		if n := count(reasons, step); n != 1 {
			m.t.Errorf("%s is told %d times in %v", step, n, reasons)
		}
	}
}

// run runs the command again and again, each time from another directory,
// until nobody kills it any more.
func (m *matrix) run(judge func(labtest.Request) labtest.Fate, command ...string) {
	m.t.Helper()
	ctx := m.t.Context()
	var when labtest.Fate
	wire, err := m.lab.NewWire(m.t.TempDir(), func(r labtest.Request) labtest.Fate {
		f := judge(r)
		if f != labtest.Pass {
			when = f
		}
		return f
	})
	m.must(err)
	defer func() { m.must(wire.Close()) }()
	args := append(append([]string{m.mig}, command...), m.planFile(), "-o", "json")
	for range most {
		began := time.Now()
		r, killed, err := wire.Run(ctx, m.t.TempDir(), args...)
		m.must(err)
		if n := len(m.kills); n > 0 && m.kills[n-1].again == 0 {
			m.kills[n-1].again = time.Since(began)
		}
		if killed == nil {
			m.ended(r, done)
			return
		}
		m.kills = append(m.kills, kill{command: command[0], at: *killed, when: when})
	}
	m.t.Fatalf("still killed after %d times", most)
}

// runOnce runs the command until it ends or is killed.
func (m *matrix) runOnce(judge func(labtest.Request) labtest.Fate, command ...string) {
	m.t.Helper()
	wire, err := m.lab.NewWire(m.t.TempDir(), judge)
	m.must(err)
	defer func() { m.must(wire.Close()) }()
	_, killed, err := wire.Run(m.t.Context(), m.t.TempDir(), append(append([]string{m.mig}, command...), m.planFile(), "-o", "json")...)
	m.must(err)
	if killed != nil {
		m.kills = append(m.kills, kill{command: command[0], at: *killed, when: labtest.KillAfter})
	}
}

// atEachEffect kills at the first of each kind of effect of each step.
func atEachEffect(when labtest.Fate) func(labtest.Request) labtest.Fate {
	met := map[string]bool{}
	return func(r labtest.Request) labtest.Fate {
		key := r.Step + " " + r.String()
		if !r.IsEffect() || met[key] {
			return labtest.Pass
		}
		met[key] = true
		return when
	}
}

func (m *matrix) table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "COMMAND\tSTEP\tREQUEST\tKILLED\tNEXT PROCESS")
	for _, k := range m.kills {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s (%d of the step)\t%s\t%s\n", k.command, k.at.Step, k.at, k.at.OfStep, k.when, k.again.Round(time.Second))
	}
	_ = w.Flush() // into memory
	return b.String() + fmt.Sprintf("%d kills\n", len(m.kills))
}

func TestKillAtEveryEffectOfEveryStep(t *testing.T) {
	m := newMatrix(t, "kill-each")
	for _, when := range []labtest.Fate{labtest.KillBefore, labtest.KillAfter} {
		m.run(atEachEffect(when), "stage")
		m.isStaged()
		m.run(atEachEffect(when), "migrate")
		m.isThere()
		m.run(atEachEffect(when), "rollback", "--yes")
		m.isBack()
	}
}

// Whoever finds a killed run may take it back instead.
func TestKillAtEachStepAndRollBack(t *testing.T) {
	m := newMatrix(t, "kill-back")
	done := map[string]bool{}
	for range cutover() {
		var at string
		n := len(m.kills)
		m.runOnce(func(r labtest.Request) labtest.Fate {
			if !r.IsEffect() || done[r.Step] {
				return labtest.Pass
			}
			at = r.Step
			return labtest.KillAfter
		}, "migrate")
		done[at] = true
		m.succeeds("rollback", "--yes")
		m.isBack()
		if len(m.kills) == n {
			return // every step with an effect was met
		}
	}
}

// The instants are weighted by step, not by time: a step is drawn, then one of
// the first requests of it, whatever it is.
func TestKillAtRandom(t *testing.T) {
	kills, seed := number(t, "KILLS", 20), uint64(number(t, "SEED", int(time.Now().UnixNano()%1_000_000)))
	t.Logf("seed %d (SEED=%d repeats it), %d kills (KILLS)", seed, seed, kills)
	random := rand.New(rand.NewPCG(seed, seed))
	m := newMatrix(t, "kill-random")
	for len(m.kills) < kills {
		m.run(atRandom(random, 2), "stage")
		m.isStaged()
		m.run(atRandom(random, 4), "migrate")
		m.isThere()
		m.run(atRandom(random, 2), "rollback", "--yes")
		m.isBack()
	}
}

// atRandom kills n times, at steps that are drawn when they come: each has the
// same chance, however long it is.
func atRandom(random *rand.Rand, n int) func(labtest.Request) labtest.Fate {
	steps := map[string]int{} // the request of the step at which to kill; 0: not at all
	return func(r labtest.Request) labtest.Fate {
		at, drawn := steps[r.Step]
		if !drawn {
			if n > 0 && random.IntN(4) == 0 {
				at = 1 + random.IntN(8)
			}
			steps[r.Step] = at
		}
		if at == 0 || r.OfStep < at || n == 0 {
			return labtest.Pass
		}
		n--
		steps[r.Step] = 0
		return labtest.Fate(1 + random.IntN(2))
	}
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
