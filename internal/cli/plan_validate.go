package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/config"
	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/migrate"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/preflight"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/render"
)

type planValidateOptions struct {
	showOptions

	streams  Streams
	connect  func(plan.Plan, config.Config) (cluster.Source, cluster.Destination, error)
	look     func(context.Context, cluster.Source, cluster.Destination, plan.Valid) (discover.SourceFacts, discover.DestinationFacts, error)
	check    func(plan.Valid, discover.SourceFacts, discover.DestinationFacts) []preflight.Condition
	knownUID func(context.Context, cluster.Source, cluster.Destination, plan.Valid) error

	plan string
}

func newPlanValidateCommand(f *Factory, run func(context.Context, *planValidateOptions) error) *cobra.Command {
	o := &planValidateOptions{streams: f.Streams, connect: f.both, look: f.Look, check: f.Check, knownUID: f.KnownUID}
	cmd := &cobra.Command{
		Use:   "validate [PLAN]",
		Short: "Check a plan against both clusters",
		Long: `Checks the plan alone, then against both clusters, and shows what it found as
conditions: all of them at once, each with what to do about it. Nothing is
changed. The same checks run again as the first step of every run.

Critical and Error block, and so does a Required condition that is not True. A
Warn that risks data, or that something stays behind, blocks until the plan's
spec.accept names it; other warnings and Advisory inform.

EXIT STATUS
  0 the plan can run · 1 failed · 2 wrong command line, unreadable plan
  4 a cluster refused our credentials or rights · 10 blocked`,
		Example: `  mig plan validate shop
  mig plan validate shop.yaml -o json`,
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

// validation is what plan validate prints.
type validation struct {
	Plan       string                `json:"plan"`
	Ready      bool                  `json:"ready"`
	Conditions []preflight.Condition `json:"conditions"`
}

func runPlanValidate(ctx context.Context, o *planValidateOptions) error {
	v, path, err := loadPlan(o.plan)
	if err != nil {
		return err
	}
	src, dst, err := o.connect(v.Plan(), o.settings)
	if err != nil {
		return err
	}
	srcFacts, dstFacts, err := o.look(ctx, src, dst, v)
	if err != nil {
		return err
	}
	conditions := o.withKnownUID(ctx, src, dst, v, o.check(v, srcFacts, dstFacts))
	got := validation{Plan: v.Name(), Ready: preflight.Ready(conditions), Conditions: conditions}
	err = render.Print(o.streams.Out, render.Format(o.output), o.streams.outWidth(), got, func() render.Table {
		return conditionsTable(conditions)
	})
	if err == nil && o.output == string(render.FormatTable) {
		_, err = io.WriteString(o.streams.Out, hints(conditions))
	}
	if err != nil {
		return err
	}
	if !got.Ready {
		return notReady(v.Name(), conditions, srcFacts, dstFacts, "settle what is marked ✗, then: mig plan validate "+planArg(path))
	}
	if o.output == string(render.FormatTable) {
		_, err = fmt.Fprintf(o.streams.ErrOut, "\nPlan %s can run: mig migrate %s --watch\n", v.Name(), planArg(path))
	}
	return err
}

// withKnownUID adds what the records of the plan's uid say against it. Where
// they cannot be read, what the conditions say of the cluster tells why.
func (o *planValidateOptions) withKnownUID(ctx context.Context, src cluster.Source, dst cluster.Destination, v plan.Valid, conditions []preflight.Condition) []preflight.Condition {
	refused, ok := errors.AsType[*migrate.RefusedError](o.knownUID(ctx, src, dst, v))
	if !ok {
		return conditions
	}
	return preflight.With(conditions, preflight.Condition{
		Type: preflight.UIDKnown, Category: preflight.Critical, Status: preflight.True, Reason: "OtherNamespaces",
		Message: refused.Why, Hint: refused.Hint,
	})
}

// conditionsTable is what a person wants of conditions first: those that block
// stand out by their mark.
func conditionsTable(conditions []preflight.Condition) render.Table {
	t := render.Table{Columns: []string{"", "CATEGORY", "TYPE", "REASON", "MESSAGE"}}
	for _, c := range conditions {
		t.Rows = append(t.Rows, []string{conditionMark(c), string(c.Category), c.Type, c.Reason, progress.Redact(c.Message)})
	}
	return t
}

func conditionMark(c preflight.Condition) string {
	switch {
	case c.Blocks():
		return "✗"
	case c.Category == preflight.Required, c.Accepted:
		return "✓"
	case c.Category == preflight.Warn:
		return "!"
	default:
		return "-"
	}
}

// hints are what to do about the conditions that block or warn, below the
// table: one may be a manifest to copy.
func hints(conditions []preflight.Condition) string {
	var out strings.Builder
	for _, c := range conditions {
		if c.Hint == "" || (!c.Blocks() && c.Category != preflight.Warn) || c.Accepted {
			continue
		}
		fmt.Fprintf(&out, "%s %s → %s\n", conditionMark(c), c.Type, strings.TrimSpace(c.Hint))
	}
	if out.Len() == 0 {
		return ""
	}
	return "\nWHAT TO DO\n" + out.String()
}

// notReady is the error of a plan that cannot run.
func notReady(name string, conditions []preflight.Condition, src discover.SourceFacts, dst discover.DestinationFacts, hint string) error {
	var types, messages []string
	for _, c := range preflight.Blocking(conditions) {
		types, messages = append(types, c.Type), append(messages, c.Message)
	}
	refused := src.Reach == discover.Denied || dst.Reach == discover.Denied
	return &blockedError{
		Message: fmt.Sprintf("plan %s is not ready:\n%s", name, strings.Join(messages, "\n")),
		Hint:    hint,
		Denied:  refused || onlyRights(types),
	}
}

// onlyRights says whether nothing blocks but rights that we lack.
func onlyRights(types []string) bool {
	return !slices.ContainsFunc(types, func(t string) bool {
		return t != preflight.SourceRights && t != preflight.DestinationRights
	})
}
