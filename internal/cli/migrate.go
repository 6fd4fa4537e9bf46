package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/migrate"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/preflight"
	"github.com/mig-cli/mig/internal/render"
)

type migrateOptions struct {
	runOptions

	dryRun      bool
	onFailure   string
	maxDowntime time.Duration
}

// What --on-failure may say.
const (
	failKeep     = "keep"
	failRollback = "rollback"
)

func newMigrateCommand(f *Factory, run func(context.Context, *migrateOptions) error) *cobra.Command {
	o := &migrateOptions{runOptions: newRunOptions(f, kindMigrate)}
	o.why = func(ctx context.Context, r migrate.Options, path string) error { return diagnose(ctx, f, r, path) }
	cmd := &cobra.Command{
		Use:   "migrate [PLAN]",
		Short: "Move the plan's namespaces to the destination",
		Long: `Runs the cutover: checks both clusters, backs up all objects, stops the
applications on the source and waits until nothing writes, copies the volumes,
restores them and the objects on the destination, and waits until the workloads
there are as ready as they were.

On the source, workloads are scaled to zero (what was there before is written
down first); its objects and data are never deleted. On the destination, the
plan's namespaces and their objects are made. What fails before anything started
on the destination brings the source up again by itself; "mig rollback" takes
back the rest. --on-failure=rollback does so at once; --on-failure=keep leaves
everything as it is, the source down too, for a person to look at.

With --max-downtime (or spec.limits.maxDowntime) the run gives up, and the
source comes up again, when it has been down for so long and nothing has started
on the destination yet.

It runs until it is done. Interrupt it (Ctrl-C) and it stops at the next safe
point; interrupt it twice and it ends at once. Run the same command again, from
any machine, and it goes on where it was.

EXIT STATUS
  0 done · 1 failed · 2 wrong command line, unreadable plan
  3 finished, but something was left out · 4 credentials or rights refused
  10 blocked: a person must decide · 11 another run holds it · 130 interrupted`,
		Example: `  mig migrate shop --watch
  mig migrate shop --dry-run
  mig migrate shop --max-downtime 20m --on-failure rollback
  mig migrate shop --wait=1h
  mig migrate shop -o json | jq -r 'select(.state == "done") | .step'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(f, cmd, args); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	o.addTo(cmd)
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show the steps that would be taken now; change nothing")
	cmd.Flags().StringVar(&o.onFailure, "on-failure", "", "what a failure leaves: keep (all as it is) or rollback (all taken back); without it the source comes up where nothing has started on the destination")
	cmd.Flags().DurationVar(&o.maxDowntime, "max-downtime", 0, "bring the source up again when it has been down for so long and nothing has started on the destination (overrides the plan's)")
	complete(cmd, "on-failure", failKeep, failRollback)
	cmd.Flags().BoolVar(&o.yes, "yes", false, "for scripts that say it to every command: migrate does not ask")
	_ = cmd.Flags().MarkHidden("yes") // fails for an unknown flag only
	return cmd
}

func (o *migrateOptions) check() error {
	if o.onFailure != "" && o.onFailure != failKeep && o.onFailure != failRollback {
		return &usageError{Err: fmt.Errorf("--on-failure %q: there is no such way to end", o.onFailure), Hint: "one of: keep, rollback"}
	}
	if o.maxDowntime < 0 {
		return &usageError{Err: fmt.Errorf("--max-downtime %s: a time is not below zero", o.maxDowntime), Hint: "like --max-downtime 20m"}
	}
	return nil
}

func runMigrate(ctx context.Context, o *migrateOptions) error {
	r, path, err := o.request()
	if err != nil {
		return err
	}
	if o.dryRun {
		return o.show(ctx, r)
	}
	r.Keep, r.MaxDowntime = o.onFailure == failKeep, o.maxDowntime
	err = runToEnd(ctx, &o.runOptions, r, path)
	if o.onFailure != failRollback || !is[*migrate.StoppedError](err) || is[*pipeline.InterruptedError](err) {
		return err
	}
	return o.takeBack(ctx, r, path, err)
}

// takeBack rolls back what a failed run did. The command has failed all the
// same, of what the run failed of.
func (o *migrateOptions) takeBack(ctx context.Context, r migrate.Options, path string, failed error) error {
	if o.output != string(render.FormatJSON) {
		_, _ = fmt.Fprintf(o.streams.ErrOut, "mig: %s\nmig: rolling back, as --on-failure says\n", message(failed))
	}
	back := o.runOptions
	back.kind, back.junit = kindRollback, "" // the file tells of what was asked for
	r.Kind, r.Keep = migrate.Rollback, false
	if err := runToEnd(ctx, &back, r, path); err != nil {
		return errors.Join(failed, err)
	}
	return &takenBackError{Err: failed}
}

// takenBackError is a run that failed and was rolled back.
type takenBackError struct{ Err error }

func (e *takenBackError) Error() string { return e.Err.Error() + "; it was rolled back" }

func (e *takenBackError) Unwrap() error { return e.Err }

// diagnose looks for the reason why a run could not even begin: without a lock
// and a record there is no first step that would say so.
func diagnose(ctx context.Context, f *Factory, r migrate.Options, path string) error {
	src, dst, err := f.Look(ctx, r.Source, r.Destination, r.Plan)
	if err != nil {
		return err
	}
	conditions := f.Check(r.Plan, src, dst)
	if preflight.Ready(conditions) {
		return nil
	}
	return notReady(r.Plan.Name(), conditions, src, dst, "see all of it with: mig plan validate "+planArg(path))
}

// preview is what a dry run prints.
type preview struct {
	Plan  string            `json:"plan"`
	Steps []migrate.Planned `json:"steps"`
}

func (o *migrateOptions) show(ctx context.Context, r migrate.Options) error {
	steps, err := o.preview(ctx, r)
	if err != nil {
		return placed(err, r.Source, r.Destination)
	}
	format := render.FormatTable
	if o.output != "" {
		format = render.Format(o.output)
	}
	return render.Print(o.streams.Out, format, o.streams.outWidth(), preview{Plan: r.Plan.Name(), Steps: steps}, func() render.Table {
		return stepsTable(steps)
	})
}

func stepsTable(steps []migrate.Planned) render.Table {
	t := render.Table{Columns: []string{"", "STEP", "STATE", "WHAT IT DOES"}, Empty: "Nothing to do."}
	for _, s := range steps {
		state := "to do"
		if s.Done {
			state = "done"
		}
		t.Rows = append(t.Rows, []string{strconv.Itoa(s.Number), s.Step, state, s.Does})
	}
	return t
}
