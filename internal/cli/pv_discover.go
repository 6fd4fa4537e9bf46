package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/config"
	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/render"
)

type pvDiscoverOptions struct {
	streams  Streams
	connect  func(plan.Plan, config.Config) (cluster.Source, cluster.Destination, error)
	refresh  func(context.Context, cluster.Source, cluster.Destination, *plan.Plan) (*discover.Proposal, error)
	settings config.Config

	plan   string
	update bool
	output string
}

func newPVDiscoverCommand(f *Factory, run func(context.Context, *pvDiscoverOptions) error) *cobra.Command {
	o := &pvDiscoverOptions{streams: f.Streams, connect: f.both, refresh: f.Refresh}
	cmd := &cobra.Command{
		Use:   "discover [PLAN]",
		Short: "Show the claims of a plan's namespaces and what happens to each",
		Long: `Looks for the claims of the plan's namespaces again and shows each with its
size, class and access modes, what happens to it, and why. STATE tells the
claims that are new since the plan was made, and those that have vanished.

Nothing in the clusters is changed, and the plan file only with --update: new
claims are then added and facts brought up to date; what you chose stays, but
comments of your own are lost.

EXIT STATUS
  0 shown · 1 failed · 2 wrong command line, unreadable plan
  4 a cluster refused our credentials or rights`,
		Example: `  mig pv discover shop
  mig pv discover shop -o json
  mig pv discover shop --update`,
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
	cmd.Flags().BoolVar(&o.update, "update", false, "write what was found into the plan file")
	outputFlag(cmd, showFormats(), "what is printed: table, json or yaml")
	return cmd
}

func runPVDiscover(ctx context.Context, o *pvDiscoverOptions) error {
	path, err := plan.Find(o.plan)
	if err != nil {
		return err
	}
	v, err := plan.LoadValid(path)
	if err != nil {
		return err
	}
	src, dst, err := o.connect(v.Plan(), o.settings)
	if err != nil {
		return err
	}
	written, err := plan.Load(path) // as it is written, without the defaults
	if err != nil {
		return err
	}
	got, err := o.refresh(ctx, src, dst, written)
	if err != nil {
		return err
	}
	if o.update {
		if err := plan.Write(path, got.Plan, true); err != nil {
			return err
		}
	}
	return o.show(path, got)
}

// discoveredClaims is what pv discover prints.
type discoveredClaims struct {
	Plan   string         `json:"plan"`
	Claims []discover.Row `json:"claims"`
	Notes  []string       `json:"notes,omitempty"`
}

func (o *pvDiscoverOptions) show(path string, got *discover.Proposal) error {
	format := render.Format(o.output)
	object := discoveredClaims{Plan: got.Plan.Metadata.Name, Claims: got.Claims, Notes: got.Notes}
	err := render.Print(o.streams.Out, format, o.streams.outWidth(), object, func() render.Table { return claimsTable(got.Claims, o.streams.outWidth()) })
	if err != nil || format != render.FormatTable {
		return err
	}
	for _, note := range got.Notes {
		if _, err := fmt.Fprintf(o.streams.ErrOut, "- %s\n", note); err != nil {
			return err
		}
	}
	if changed(got.Claims) && !o.update {
		_, err = fmt.Fprintf(o.streams.ErrOut, "Bring the plan up to date with: mig pv discover %s --update\n", planArg(path))
	}
	return err
}

// changed says whether the cluster holds other claims than the plan.
func changed(rows []discover.Row) bool {
	for _, r := range rows {
		if r.State == discover.New || r.State == discover.Vanished {
			return true
		}
	}
	return false
}
