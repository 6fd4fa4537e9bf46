package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/config"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/record"
	"github.com/mig-cli/mig/internal/render"
	"github.com/mig-cli/mig/internal/step"
)

type statusOptions struct {
	showOptions

	streams Streams
	connect func(plan.Plan, config.Config) (cluster.Source, cluster.Destination, error)
	latest  func(context.Context, cluster.Source, cluster.Destination, plan.Valid) (*record.Run, error)
	quiet   func(context.Context, step.Run) error

	plan string
}

func newStatusCommand(f *Factory, run func(context.Context, *statusOptions) error) *cobra.Command {
	o := &statusOptions{streams: f.Streams, connect: f.both, latest: f.Latest, quiet: f.Quiet}
	cmd := &cobra.Command{
		Use:   "status [PLAN]",
		Short: "Say where a plan's last run is",
		Long: `Reads the record of the plan's last run from the source and says how far it is,
whoever drives it. After a migration it warns when the application runs on the
source again. Nothing is changed.

EXIT STATUS
  0 the last run is done, or there was none · 1 it failed or was interrupted
  2 wrong command line, unreadable plan · 4 credentials or rights refused
  8 it is not at its end (running, or its process was killed)`,
		Example: `  mig status shop
  mig status shop -o json`,
		Args:              maxArgs(1),
		ValidArgsFunction: completePlan,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.plan = argOf(args)
			if err := o.complete(f, cmd); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	o.addTo(cmd)
	return cmd
}

// latestRun reads a plan's last run from the source.
func latestRun(ctx context.Context, src cluster.Source, dst cluster.Destination, v plan.Valid) (*record.Run, error) {
	return record.New(src, dst, naming.Owner{PlanName: v.Name(), PlanUID: v.UID()}).Latest(ctx)
}

func runStatus(ctx context.Context, o *statusOptions) error {
	v, path, err := loadPlan(o.plan)
	if err != nil {
		return err
	}
	src, dst, err := o.connect(v.Plan(), o.settings)
	if err != nil {
		return err
	}
	last, err := o.latest(ctx, src, dst, v)
	if errors.Is(err, record.ErrNoRun) {
		_, err = fmt.Fprintf(o.streams.ErrOut, "Plan %s has no run yet: mig migrate %s\n", v.Name(), planArg(path))
		return err
	}
	if err != nil {
		return placed(err, src, dst)
	}
	if o.output != string(render.FormatTable) {
		err = render.Print(o.streams.Out, render.Format(o.output), 0, last, nil)
	} else {
		err = o.show(last)
	}
	if err != nil {
		return err
	}
	if err := o.warn(ctx, last, step.Run{Owner: naming.Owner{PlanName: v.Name(), PlanUID: v.UID(), RunUID: last.UID}, Plan: v, Source: src, Destination: dst}); err != nil {
		return placed(err, src, dst)
	}
	return endOf(last, planArg(path))
}

// warn says that the source was brought up again after a migration: from then
// on both sides run, and write.
func (o *statusOptions) warn(ctx context.Context, last *record.Run, r step.Run) error {
	if last.Kind != kindMigrate || last.State != record.Completed {
		return nil
	}
	err := o.quiet(ctx, r)
	if up, ok := errors.AsType[*step.GateError](err); ok {
		_, err = fmt.Fprintf(o.streams.ErrOut, "mig: warning: the application runs on the source again, beside the destination: %s\n", up.Error())
	}
	return err
}

func (o *statusOptions) show(r *record.Run) error {
	head := render.Table{Columns: []string{"PLAN", "RUN", "KIND", "STATE", "STARTED", "BY", "FROM"}, Rows: [][]string{{
		r.Plan.Name, r.UID, r.Kind, string(r.State), r.Started.UTC().Format(time.RFC3339), orDash(r.Who), orDash(r.Host),
	}}}
	steps := render.Table{Columns: []string{"", "STEP", "STATE", "TOOK", "WHAT"}}
	for _, s := range r.Steps {
		took := "-"
		if s.Took > 0 {
			took = render.Took(s.Took)
		}
		steps.Rows = append(steps.Rows, []string{fmt.Sprint(s.Number), s.Name, orWord(string(s.State), "to come"), took, orDash(s.Note)})
	}
	var out strings.Builder
	for i, t := range []render.Table{head, steps} {
		if i > 0 {
			out.WriteString("\n")
		}
		if err := t.Write(&out, o.streams.outWidth()); err != nil {
			return err
		}
	}
	if r.Message != "" {
		fmt.Fprintf(&out, "\n%s\n", r.Message)
	}
	for _, w := range r.Warnings() {
		fmt.Fprintf(&out, "%s warning: %s\n", w.Time.UTC().Format(time.RFC3339), w.Text)
	}
	_, err := fmt.Fprint(o.streams.Out, out.String())
	return err
}

// stateError is a last run that is not done.
type stateError struct {
	State record.State
	Plan  string
	Hint  string
}

func (e *stateError) Error() string {
	if e.State == record.Running {
		return fmt.Sprintf("the last run of plan %s is not at its end", e.Plan)
	}
	return fmt.Sprintf("the last run of plan %s has ended as %s", e.Plan, e.State)
}

// endOf is nil for a run that is done.
func endOf(r *record.Run, arg string) error {
	run := &runError{Kind: r.Kind, Plan: arg}
	switch r.State {
	case record.Completed, record.RolledBack:
		return nil
	case record.Running:
		return &stateError{State: r.State, Plan: r.Plan.Name, Hint: "where no process drives it any more, " + run.ways()}
	default:
		return &stateError{State: r.State, Plan: r.Plan.Name, Hint: run.ways()}
	}
}
