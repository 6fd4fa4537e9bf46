package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mig-cli/mig/internal/migrate"
	"github.com/mig-cli/mig/internal/pipeline"
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
