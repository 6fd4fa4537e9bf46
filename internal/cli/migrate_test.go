package cli

import (
	"context"
	"encoding/xml"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mig-cli/mig/internal/migrate"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
)

var errNoSpace = errors.New("no space left on device")

func TestWhatAFailureLeavesIsForTheUserToSay(t *testing.T) {
	failed := &migrate.StoppedError{Err: errNoSpace, State: "the application may run on the destination; the source is down"}
	for _, c := range []struct {
		name  string
		args  []string
		fails error
		kinds []migrate.Kind
		keep  bool
		code  int
		says  string
	}{
		{"by itself", nil, failed, []migrate.Kind{migrate.Cutover}, false, 1, "mig: hint: go on with: mig migrate shop, or back with: mig rollback shop\n"},
		{"kept", []string{"--on-failure=keep"}, failed, []migrate.Kind{migrate.Cutover}, true, 1, "or back with: mig rollback shop\n"},
		{"taken back", []string{"--on-failure=rollback"}, failed, []migrate.Kind{migrate.Cutover, migrate.Rollback}, false, 1, "it was rolled back\nmig: hint: try again with: mig migrate shop\n"},
		{"nothing to take back", []string{"--on-failure=rollback"}, nil, []migrate.Kind{migrate.Cutover}, false, 0, ""},
		{
			"an interrupt is no failure",
			[]string{"--on-failure=rollback"},
			&migrate.StoppedError{Err: &pipeline.InterruptedError{Step: "X"}},
			[]migrate.Kind{migrate.Cutover},
			false, 130, "or back with: mig rollback shop\n",
		},
		{"a word that is none", []string{"--on-failure=retry"}, nil, nil, false, 2, "mig: hint: one of: keep, rollback\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			writePlan(t, "shop.yaml", shopPlan)
			var kinds []migrate.Kind
			var keep bool
			b.Run = func(_ context.Context, o migrate.Options) (migrate.Result, error) {
				kinds, keep = append(kinds, o.Kind), keep || o.Keep
				if o.Kind == migrate.Rollback {
					return migrate.Result{Run: "b"}, nil
				}
				return migrate.Result{Run: "a"}, c.fails
			}
			code := b.mig(append([]string{"migrate", "shop"}, c.args...)...)
			if code != c.code || !strings.HasSuffix(b.err.String(), c.says) {
				t.Errorf("exit %d, want %d with %q at the end of\n%s", code, c.code, c.says, b.err.String())
			}
			if !slices.Equal(kinds, c.kinds) || keep != c.keep {
				t.Errorf("ran %v, keep %t, want %v, %t", kinds, keep, c.kinds, c.keep)
			}
		})
	}
}

func TestTimesOfARunAreHandedOn(t *testing.T) {
	b := newBench(t)
	asked := b.runs(migrate.Result{Run: "abc"}, nil)
	writePlan(t, "shop.yaml", shopPlan)
	if code := b.mig("migrate", "--wait", "--max-downtime=20m"); code != 0 {
		t.Errorf("exit %d: %s", code, b.err.String())
	}
	if asked.Wait != 30*time.Minute || asked.MaxDowntime != 20*time.Minute {
		t.Errorf("wait %s, downtime %s", asked.Wait, asked.MaxDowntime)
	}
	if code := b.mig("rollback", "--yes", "--wait=1h"); code != 0 {
		t.Errorf("exit %d: %s", code, b.err.String())
	}
	if asked.Wait != time.Hour {
		t.Errorf("wait %s", asked.Wait)
	}
	for _, arg := range []string{"--wait=-1s", "--max-downtime=-1s"} {
		if code := b.mig("migrate", arg); code != 2 || !strings.Contains(b.err.String(), "not below zero") {
			t.Errorf("%s: exit %d: %s", arg, code, b.err.String())
		}
	}
}

func TestAPageOfACIJobTellsHowItWentAndWhatIsNext(t *testing.T) {
	b := newBench(t)
	writePlan(t, "shop.yaml", shopPlan)
	b.runs(migrate.Result{Run: "abc", Record: "velero/mig-run", Downtime: 41e9, Took: 133e9, Message: "plan shop is on the destination"}, nil)
	code := b.mig("migrate", "-o", "markdown")
	b.wants(t, code, 0, `### mig migrate shop: done

plan shop is on the destination

| What |  |
| --- | --- |
| Took | 2m13s |
| Source was down | 41s |
| Volumes | 1, 5.0 MiB |
| Run | abc |
| Record | velero/mig-run |

#### Warnings

- Service shop/web has another clusterIP

#### Steps

|  | Step | State | Took |  |
| --- | --- | --- | --- | --- |
| 1 | Prepare | done | - |  |
`, "[1/2] Prepare: done in 0s: fine\n")
	b.runs(migrate.Result{Run: "abc"}, &migrate.StoppedError{Err: errNoSpace, State: "the source is down"})
	code = b.mig("migrate", "-o", "markdown")
	b.wants(t, code, 1, "### mig migrate shop: failed\n\nno space left on device; the source is down\n\ngo on with: mig migrate shop, or back with: mig rollback shop\n", "mig: error: no space left")
	b.runs(migrate.Result{Run: "abc", LeftOut: []string{"Secret shop/x differs"}}, nil)
	code = b.mig("migrate", "-o", "markdown")
	b.wants(t, code, 3, "### mig migrate shop: incomplete\n\n| What", "mig: error: Secret shop/x differs\n")
	b.wants(t, code, 3, "#### Left out\n\n- Secret shop/x differs\n", "not everything")
}

func TestAJUnitFileFailsWhereTheRunDoes(t *testing.T) {
	stopped := &migrate.StoppedError{Err: &pipeline.FailedError{Step: "Restore", Note: progress.Remark{Say: "no \x1bspace"}}, State: "the source is down"}
	for _, c := range []struct {
		name   string
		result migrate.Result
		fails  error
		step   progress.State // of the run's second step; empty: it has none
		wants  []string
	}{
		{"done", migrate.Result{}, nil, progress.Done, []string{
			`<testsuite name="mig migrate shop" tests="2" failures="0" skipped="1" time="3"`, `<testcase name="Prepare" classname="mig migrate shop" time="0">`, `<skipped message="done before">`, `<system-out>odd</system-out>`,
		}},
		{"failed", migrate.Result{}, stopped, progress.Failed, []string{`failures="1"`, `<failure message="failed: no space">failed: no space`, "go on with: mig migrate shop"}},
		{"left out", migrate.Result{LeftOut: []string{"Secret a", "Secret b"}}, nil, progress.Done, []string{`failures="2"`, `name="nothing is left out"`, `<failure message="Secret b">`}},
		{"refused", migrate.Result{}, &migrate.RefusedError{Why: "migrated already"}, "", []string{`failures="1"`, `<failure message="migrated already">`, `name="the run comes to its end"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			writePlan(t, "shop.yaml", shopPlan)
			b.Run = func(_ context.Context, o migrate.Options) (migrate.Result, error) {
				u := progress.Update{Run: "migrate", Step: "Prepare", Number: 1, Of: 2, State: progress.Skipped, Note: progress.Remark{Say: "done before"}}
				o.Sink.Emit(u)
				u.State, u.Note = progress.Warning, progress.Remark{Say: "odd"}
				o.Sink.Emit(u)
				if c.step != "" {
					u.Step, u.Number, u.State, u.Note, u.Elapsed = "Restore", 2, c.step, progress.Remark{Say: "no \x1bspace"}, 3*time.Second
					o.Sink.Emit(u)
				}
				return c.result, c.fails
			}
			b.mig("migrate", "--junit", "results.xml")
			text, err := os.ReadFile("results.xml")
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.wants {
				if !strings.Contains(string(text), want) {
					t.Errorf("no %s in\n%s", want, text)
				}
			}
			if err := xml.Unmarshal(text, new(struct{})); err != nil {
				t.Error(err)
			}
		})
	}
	b := newBench(t)
	writePlan(t, "shop.yaml", shopPlan)
	b.wants(t, b.mig("migrate", "--junit", "no/such/dir.xml"), 2, "", "mig: error: the JUnit file: open no/such/dir.xml: no such file")
}

func TestACIsLogIsFoldedOnlyWhereAskedFor(t *testing.T) {
	for args, want := range map[string]string{"": "", "--log-groups=github": "::warning title=mig migrate%3A Restore::", "--log-groups=jenkins": `log-groups: "jenkins" is none of github, gitlab`} {
		b := newBench(t)
		b.env["GITHUB_ACTIONS"] = "true"
		writePlan(t, "shop.yaml", shopPlan)
		b.runs(migrate.Result{Run: "abc"}, nil)
		b.mig(append([]string{"migrate"}, strings.Fields(args)...)...)
		if got := b.err.String(); !strings.Contains(got, want) || want == "" && strings.Contains(got, "::") {
			t.Errorf("%q: got\n%s", args, got)
		}
	}
}
