package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/config"
	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/preflight"
	"github.com/mig-cli/mig/internal/render"
)

type planValidateOptions struct {
	streams  Streams
	connect  func(plan.Plan, config.Config) (cluster.Source, cluster.Destination, error)
	look     func(context.Context, cluster.Source, cluster.Destination, plan.Valid) (discover.SourceFacts, discover.DestinationFacts, error)
	check    func(plan.Valid, discover.SourceFacts, discover.DestinationFacts) []preflight.Condition
	settings config.Config

	plan   string
	output string
}

func newPlanValidateCommand(f *Factory, run func(context.Context, *planValidateOptions) error) *cobra.Command {
	o := &planValidateOptions{streams: f.Streams, connect: f.both, look: f.Look, check: f.Check}
	cmd := &cobra.Command{
		Use:   "validate [PLAN]",
		Short: "Check a plan against both clusters",
		Long: `Checks the plan alone, then against both clusters, and shows what it found as
conditions: all of them at once, each with what to do about it. Nothing is
changed. The same checks run again as the first step of every run.

Critical and Error block, and so does a Required condition that is not True. A
Warn that risks data blocks until the plan's spec.accept names it; other
warnings and Advisory inform.

EXIT STATUS
  0 the plan can run · 1 failed · 2 wrong command line, unreadable plan
  4 a cluster refused our credentials or rights · 10 blocked`,
		Example: `  mig plan validate shop
  mig plan validate shop.yaml -o json`,
		Args:              maxArgs(1),
		ValidArgsFunction: completePlan,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.plan = argOf(args)
			var err error
			if o.settings, err = f.config(cmd); err != nil {
				return err
			}
			if o.output, err = output(cmd, o.settings, showFormats(), string(render.FormatTable)); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	outputFlag(cmd, showFormats(), "what is printed: table, json or yaml")
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
	conditions := o.check(v, srcFacts, dstFacts)
	got := validation{Plan: v.Name(), Ready: preflight.Ready(conditions), Conditions: conditions}
	err = render.Print(o.streams.Out, render.Format(o.output), o.streams.outWidth(), got, func() render.Table {
		return conditionsTable(conditions)
	})
	if err != nil {
		return err
	}
	if !got.Ready {
		return notReady(v.Name(), path, conditions, srcFacts.Reach == discover.Denied || dstFacts.Reach == discover.Denied)
	}
	if o.output == string(render.FormatTable) {
		_, err = fmt.Fprintf(o.streams.Err, "\nPlan %s can run: mig migrate %s --watch\n", v.Name(), planArg(path))
	}
	return err
}

// conditionsTable is what a person wants of conditions first: those that block
// stand out by their mark.
func conditionsTable(conditions []preflight.Condition) render.Table {
	t := render.Table{Columns: []string{"", "CATEGORY", "TYPE", "REASON", "MESSAGE"}}
	for _, c := range conditions {
		t.Rows = append(t.Rows, []string{conditionMark(c), string(c.Category), c.Type, c.Reason, conditionText(c)})
	}
	return t
}

func conditionMark(c preflight.Condition) string {
	switch {
	case c.Blocks():
		return "✗"
	case c.Category == preflight.Required:
		return "✓"
	case c.Category == preflight.Warn:
		return "!"
	default:
		return "-"
	}
}

// shownObjects is how many objects of a condition the table names; -o json has
// all of them.
const shownObjects = 10

func conditionText(c preflight.Condition) string {
	text := c.Message
	if len(c.Objects) > 0 && !mentionsAll(text, c.Objects) {
		shown := c.Objects[:min(len(c.Objects), shownObjects)]
		text += ": " + strings.Join(shown, ", ")
		if more := len(c.Objects) - len(shown); more > 0 {
			text += fmt.Sprintf(" and %d more (all with -o json)", more)
		}
	}
	if c.Accepted {
		text += " (accepted)"
	}
	if c.Hint != "" && c.Blocks() || c.Hint != "" && c.Category == preflight.Warn && !c.Accepted {
		text += " → " + c.Hint
	}
	return text
}

// mentionsAll says whether a text names all of some few objects already.
func mentionsAll(text string, objects []string) bool {
	if len(objects) > shownObjects {
		return false
	}
	for _, o := range objects {
		if !strings.Contains(text, o) {
			return false
		}
	}
	return true
}

// notReady is the error of a plan that cannot run.
func notReady(name, path string, conditions []preflight.Condition, refused bool) error {
	blocking := preflight.Blocking(conditions)
	types := make([]string, 0, len(blocking))
	for _, c := range blocking {
		types = append(types, c.Type)
	}
	return &blockedError{
		Message: fmt.Sprintf("plan %s is not ready: %s", name, strings.Join(types, ", ")),
		Hint:    "settle what is marked ✗, then: mig plan validate " + planArg(path),
		Denied:  refused,
	}
}
