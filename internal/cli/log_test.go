package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mig-cli/mig/internal/migrate"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
)

// retries makes the bench's runs try something again, and then fail.
func (b *bench) retries() {
	b.Run = func(_ context.Context, o migrate.Options) (migrate.Result, error) {
		u := progress.Update{Time: time.Now(), Run: string(o.Kind), Step: "StageBackupCreated", Number: 3, Of: 9, State: progress.Waiting}
		u.Note = progress.Remark{Why: "Retrying", Say: "trying again: Get https://jane:s3cr3t-value@10.0.0.1/: refused"}
		o.Sink.Emit(u)
		u.Note = progress.Remark{Why: "StageBackupCreated", Say: "1 of 2 volumes"}
		o.Sink.Emit(u)
		o.Say("Events cannot be written: token=s3cr3t-value is refused")
		cause := fmt.Errorf("password=s3cr3t-value: %w", errNoSpace)
		return migrate.Result{Run: "abc"}, &migrate.StoppedError{Err: &pipeline.FailedError{Step: "StageBackupCreated", Err: cause}, State: "the source is down"}
	}
}

func TestTheLogTellsRetriesTheChainOfErrorsAndTheEndWithoutSecrets(t *testing.T) {
	b := newBench(t)
	writePlan(t, "shop.yaml", shopPlan)
	b.retries()
	b.env["MIG_LOG_FILE"] = "env.log"
	for _, file := range []string{"env.log", "flag.log"} {
		args := []string{"migrate", "shop"}
		if file == "flag.log" {
			args = append(args, "--log-file", file)
		}
		if code := b.mig(args...); code != 1 {
			t.Fatalf("exit %d: %s", code, b.err.String())
		}
		if strings.Contains(b.err.String(), "level=") {
			t.Errorf("the log is on the screen too:\n%s", b.err.String())
		}
		kept, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`msg="mig begins" version=`, `command="mig migrate"`,
			`level=INFO msg=progress run=migrate state=waiting reason=Retrying text="trying again: `,
			`level=DEBUG msg=progress run=migrate state=waiting reason=StageBackupCreated text="1 of 2 volumes" step=StageBackupCreated number=3/9`,
			`type=*migrate.StoppedError`, `type=*pipeline.FailedError`, `type=*errors.errorString text="no space left on device"`,
			`msg="mig ends" code=1`, progress.Hidden,
		} {
			if !strings.Contains(string(kept), want) {
				t.Errorf("no %s in\n%s", want, kept)
			}
		}
		if strings.Contains(string(kept), "s3cr3t") {
			t.Errorf("a secret is in the log:\n%s", kept)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("others can read it: %v %v", info.Mode(), err)
		}
	}
}

func TestVerboseSaysWhatLinesLeaveOut(t *testing.T) {
	b := newBench(t)
	writePlan(t, "shop.yaml", shopPlan)
	b.retries()
	for args, want := range map[string][2]bool{"": {false, false}, "-v": {true, false}, "-vv": {true, true}} {
		b.mig(append([]string{"migrate", "shop"}, strings.Fields(args)...)...)
		retried, waited := strings.Contains(b.err.String(), "reason=Retrying"), strings.Contains(b.err.String(), "level=DEBUG")
		if got := [2]bool{retried, waited}; got != want {
			t.Errorf("%q: retries and waiting are told: %v, want %v\n%s", args, got, want, b.err.String())
		}
		if strings.Contains(b.err.String(), "s3cr3t") {
			t.Errorf("a secret is on the screen:\n%s", b.err.String())
		}
		if lines := strings.Split(strings.TrimSpace(b.err.String()), "\n"); !strings.HasPrefix(lines[len(lines)-1], "mig: hint: ") {
			t.Errorf("%q: the error is not the last thing said:\n%s", args, b.err.String())
		}
	}
}

func TestTheLiveViewHasTheTerminalForItself(t *testing.T) {
	b := newBench(t)
	writePlan(t, "shop.yaml", shopPlan)
	b.retries()
	b.terminal("")
	b.Preview = func(context.Context, migrate.Options) ([]migrate.Planned, error) { return nil, errors.New("not now") }
	b.mig("migrate", "shop", "--watch", "-vv")
	if strings.Contains(b.err.String(), "msg=progress") || !strings.Contains(b.err.String(), `msg="mig ends"`) {
		t.Errorf("got\n%s", b.err.String())
	}
}

func TestALogThatCannotBeWrittenIsSaidBeforeAnythingIsDone(t *testing.T) {
	b := newBench(t)
	writePlan(t, "shop.yaml", shopPlan)
	b.wants(t, b.mig("migrate", "shop", "--log-file", "no/such/dir/x.log"), 2, "", "mig: error: the log file: open no/such/dir/x.log: no such file or directory\n")
}
