//go:build e2e

package e2e

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/plan"
)

// pipeline runs the example's script as a CI job does: in a directory where
// nothing is, with an environment where nothing else is.
func (s *scenario) pipeline(step string, env ...string) labtest.Result {
	s.t.Helper()
	script, err := filepath.Abs(filepath.Join("..", "..", "examples", "ci", "migrate.sh"))
	s.must(err)
	job := []string{
		"env", "-i", "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + s.lab.Kubeconfig, "MIG=" + s.mig, "PLAN=" + s.name,
		"SRC=" + labtest.SourceContext, "DST=" + labtest.DestinationContext, "NAMESPACES=" + s.name + ":" + s.dest,
	}
	r, err := s.lab.Run(s.t.Context(), s.dir, slices.Concat(job, env, []string{"sh", script, step})...)
	s.must(err)
	return r
}

// artifact is a file that the job leaves for its readers.
func (s *scenario) artifact(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "mig-results", name))
	s.must(err)
	return string(text)
}

// tests are the steps of a JUnit file, and how many of them failed.
func (s *scenario) tests(file string) (steps []string, bad int) {
	s.t.Helper()
	var suites struct {
		Suites []struct {
			Cases []struct {
				Name     string   `xml:"name,attr"`
				Failures []string `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	s.must(xml.Unmarshal([]byte(s.artifact(file)), &suites))
	for _, suite := range suites.Suites {
		for _, c := range suite.Cases {
			steps = append(steps, c.Name)
			bad += len(c.Failures)
		}
	}
	return steps, bad
}

// lines are the JSON objects of a file, one a line.
func (s *scenario) lines(file string) []map[string]any {
	s.t.Helper()
	var out []map[string]any
	for line := range strings.Lines(s.artifact(file)) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			s.t.Fatalf("%s: %v in %s", file, err, line)
		}
		out = append(out, o)
	}
	return out
}

func TestThePipelineOfTheExampleMovesTakesBackAndTellsItsJob(t *testing.T) {
	t.Parallel()
	s := newScenario(t, "e2e-pipeline")
	ctx := t.Context()
	s.deployNotes(1)
	before, err := labtest.ObjectsOf(ctx, s.src(), s.name)
	s.must(err)

	r := s.pipeline("all", "ROLLBACK=always")
	s.ended(r, done)
	s.must(labtest.EditPlan(s.planFile(), func(p *plan.Plan) { s.planUID = p.Metadata.UID }))
	s.must(s.lab.GoneFromDestination(ctx, s.planUID, s.dest))
	s.sourceIsUp(before)
	inOrder(t, s.reasons(s.src()), "StageBackupCreated", "Completed", "FinalRestoreCreated", "Completed", "RolledBack")
	t.Run("the summary has a part for each run, and each step is a test that passed", func(t *testing.T) { s.on(t).wentWell() })

	// The source may be down for no time, so that the run brings it up again and fails.
	r = s.pipeline("migrate", "MAX_DOWNTIME=1ms", "FORMAT=json")
	s.ended(r, failed)
	s.must(s.lab.GoneFromDestination(ctx, s.planUID, s.dest))
	s.sourceIsUp(before)
	inOrder(t, s.reasonsOfLastRun(s.src()), "RolledBack")
	t.Run("a migration that failed tells its job why, and what was done about it", func(t *testing.T) { s.on(t).wentBack(r) })
}

// wentWell reads what a job leaves whose runs came to their ends.
func (s *scenario) wentWell() {
	s.t.Helper()
	summary := s.artifact("summary.md")
	for _, kind := range []string{"stage", "migrate", "rollback"} {
		if want := "### mig " + kind + " " + s.name + ": done\n"; !strings.Contains(summary, want) {
			s.t.Errorf("the summary has no %q:\n%s", want, summary)
		}
		if steps, bad := s.tests(kind + ".xml"); len(steps) == 0 || bad > 0 {
			s.t.Errorf("%s.xml: %d of %d steps failed", kind, bad, len(steps))
		}
	}
	steps, _ := s.tests("migrate.xml")
	inOrder(s.t, steps, cutover()...)
	if log := s.artifact("mig.log"); strings.Count(log, "mig begins") != 5 { // one a command
		s.t.Errorf("the log does not tell of five commands:\n%s", log)
	}
}

// wentBack reads what a job leaves whose migration failed and was taken back.
func (s *scenario) wentBack(r labtest.Result) {
	s.t.Helper()
	s.says(r, "migrate ended with exit code 1", "may be for 1ms at most")
	if _, bad := s.tests("migrate.xml"); bad != 1 {
		s.t.Errorf("%d steps failed, want one:\n%s", bad, s.artifact("migrate.xml"))
	}
	s.says(r, `{"type":"exit_error","code":1,`)
	for kind, result := range map[string]string{"migrate": "failed", "rollback": "done"} {
		lines := s.lines(kind + ".jsonl")
		if last := lines[len(lines)-1]; last["type"] != "summary" || last["result"] != result || last["record"] == nil {
			s.t.Errorf("the last line of the %s is %v", kind, last)
		}
	}
}
