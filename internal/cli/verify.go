package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/config"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/render"
	"github.com/mig-cli/mig/internal/verify"
)

type verifyOptions struct {
	showOptions

	streams Streams
	connect func(plan.Plan, config.Config) (cluster.Source, cluster.Destination, error)
	verify  func(context.Context, cluster.Source, cluster.Destination, plan.Valid) (verify.Report, error)

	plan string
}

func newVerifyCommand(f *Factory, run func(context.Context, *verifyOptions) error) *cobra.Command {
	o := &verifyOptions{streams: f.Streams, connect: f.both, verify: f.Verify}
	cmd := &cobra.Command{
		Use:   "verify [PLAN]",
		Short: "Hold what the plan covers against what is on the destination",
		Long: `Reads every object that the plan covers on the source and its twin on the
destination, and names what is missing and what differs, by field. Nothing is
changed. Workloads that a run has stopped count as they were before.

What must differ is known and not told: the namespace and the storage class
that the plan gives, addresses and node ports, volumes' names, what Kubernetes
and Velero write themselves. What Secrets hold is compared and never printed.

The contents of volumes are compared by a run, while the application stands
still: write verify: true for a volume of the plan.

EXIT STATUS
  0 nothing differs · 1 failed · 2 wrong command line, unreadable plan
  3 something is missing or differs, or could not be read; each is named
  4 a cluster refused our credentials or rights`,
		Example: `  mig verify shop
  mig verify shop -o json`,
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

func runVerify(ctx context.Context, o *verifyOptions) error {
	v, _, err := loadPlan(o.plan)
	if err != nil {
		return err
	}
	src, dst, err := o.connect(v.Plan(), o.settings)
	if err != nil {
		return err
	}
	got, err := o.verify(ctx, src, dst, v)
	if err != nil {
		return err
	}
	if err := render.Print(o.streams.Out, render.Format(o.output), o.streams.outWidth(), got, func() render.Table { return findingsTable(got) }); err != nil {
		return err
	}
	if !got.Equal {
		return &differsError{Report: got}
	}
	if o.output == string(render.FormatTable) {
		_, err = io.WriteString(o.streams.ErrOut, equalText(got))
	}
	return err
}

func equalText(r verify.Report) string {
	text := fmt.Sprintf("Plan %s: %s on both sides, and nothing differs that is not as it must be", r.Plan, english.Plural(r.Objects, "object", ""))
	if r.Others > 0 {
		text += "; " + english.Plural(r.Others, "other", "") + " on the destination that the source has not"
	}
	return text + "\n"
}

// differsError is a destination that is not what the plan makes of the source.
type differsError struct{ Report verify.Report }

func (e *differsError) Error() string {
	var said []string
	if n := len(e.Report.Findings); n > 0 {
		said = append(said, fmt.Sprintf("plan %s: of %s, %d are missing on the destination or differ there", e.Report.Plan, english.Plural(e.Report.Objects, "object", ""), n))
	}
	for _, u := range e.Report.Unread {
		said = append(said, "could not be read, and is compared with nothing, "+u)
	}
	return strings.Join(said, "\n")
}

func findingsTable(r verify.Report) render.Table {
	t := render.Table{Columns: []string{"OBJECT", "PROBLEM", "FIELD", "SOURCE", "DESTINATION"}}
	for _, f := range r.Findings {
		if f.Problem == verify.Missing {
			t.Rows = append(t.Rows, []string{f.Object(), f.Problem, "", "", ""})
		}
		for i, d := range f.Differences {
			row := []string{"", "", d.Path, orDash(d.Source), orDash(d.Destination)}
			if i == 0 {
				row[0], row[1] = f.Object(), f.Problem
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// differs is where both sides were read and are not the same.
func differs(err error, f *failure) bool {
	if !is[*differsError](err) {
		return false
	}
	f.Code = exitIncomplete
	f.Hint = "what is missing or changed on the destination is yours to bring there; a run of the plan tells what Velero left out: mig history"
	return true
}
