package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/config"
	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/render"
)

type pvDiscoverOptions struct {
	showOptions

	streams Streams
	connect func(plan.Plan, config.Config) (cluster.Source, cluster.Destination, error)
	refresh func(context.Context, cluster.Source, cluster.Destination, *plan.Plan) (*discover.Proposal, error)

	plan   string
	update bool
	dryRun bool
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
claims are then added, facts brought up to date, and claims that are gone get a
comment that says so. What you chose stays, and so do your comments and the
order and form of the file. --dry-run prints what would change in it.

EXIT STATUS
  0 shown · 1 failed · 2 wrong command line, unreadable plan
  4 a cluster refused our credentials or rights`,
		Example: `  mig pv discover shop
  mig pv discover shop -o json
  mig pv discover shop --update
  mig pv discover shop --update --dry-run`,
		Args:              maxArgs(1),
		ValidArgsFunction: completePlan,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.plan = argOf(args)
			if err := o.complete(f, cmd); err != nil {
				return err
			}
			if o.dryRun && !o.update {
				return withHelp(cmd, errors.New("--dry-run says what --update would write: say both"))
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.update, "update", false, "write what was found into the plan file")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "with --update: print what would change in the file; write nothing")
	o.addTo(cmd)
	return cmd
}

func runPVDiscover(ctx context.Context, o *pvDiscoverOptions) error {
	path, err := plan.Find(o.plan)
	if err != nil {
		return err
	}
	file, err := plan.Open(path)
	if err != nil {
		return err
	}
	src, dst, err := o.connect(file.Valid.Plan(), o.settings)
	if err != nil {
		return err
	}
	got, err := o.refresh(ctx, src, dst, file.Plan)
	if err != nil {
		return err
	}
	text := file.Text
	if o.update {
		if text, err = upToDate(file, got); err != nil {
			return err
		}
	}
	if o.update && !o.dryRun {
		if err := file.Save(text); err != nil {
			return err
		}
	}
	return o.show(file, text, got)
}

// upToDate is the file's text with what was found.
func upToDate(file *plan.File, got *discover.Proposal) ([]byte, error) {
	text, err := file.Edited(got.Plan)
	if err != nil {
		return nil, err
	}
	var gone []string
	for _, r := range got.Claims {
		if r.State == discover.Vanished {
			gone = append(gone, r.Claim)
		}
	}
	return plan.MarkGone(file.Path, text, gone), nil
}

// discoveredClaims is what pv discover prints.
type discoveredClaims struct {
	Plan    string         `json:"plan"`
	File    string         `json:"file"`
	Written bool           `json:"written"` // the file was changed
	Claims  []discover.Row `json:"claims"`
	Notes   []string       `json:"notes,omitempty"`
}

func (o *pvDiscoverOptions) show(file *plan.File, text []byte, got *discover.Proposal) error {
	format, differs := render.Format(o.output), !bytes.Equal(file.Text, text)
	object := discoveredClaims{
		Plan: got.Plan.Metadata.Name, File: file.Path, Written: differs && !o.dryRun, Claims: got.Claims, Notes: got.Notes,
	}
	if o.dryRun && format == render.FormatTable {
		return o.showDiff(file, text)
	}
	err := render.Print(o.streams.Out, format, o.streams.outWidth(), object, func() render.Table { return claimsTable(got.Claims, o.streams.outWidth()) })
	if err != nil || format != render.FormatTable {
		return err
	}
	if err := printOutside(o.streams, got.Outside); err != nil {
		return err
	}
	var said strings.Builder
	for _, note := range got.Notes {
		fmt.Fprintf(&said, "- %s\n", note)
	}
	switch {
	case object.Written:
		fmt.Fprintf(&said, "%s is up to date now.\n", file.Path)
	case o.update:
		fmt.Fprintf(&said, "%s was up to date already.\n", file.Path)
	case changed(got.Claims):
		fmt.Fprintf(&said, "Bring the plan up to date with: mig pv discover %s --update\n", planArg(file.Path))
	}
	_, err = fmt.Fprint(o.streams.ErrOut, said.String())
	return err
}

func (o *pvDiscoverOptions) showDiff(file *plan.File, text []byte) error {
	diff := diffOf(file, text)
	if _, err := fmt.Fprint(o.streams.Out, diff); err != nil {
		return err
	}
	said := fmt.Sprintf("\nNothing was written. Without --dry-run this changes %s.\n", file.Path)
	if diff == "" {
		said = fmt.Sprintf("%s is up to date.\n", file.Path)
	}
	_, err := fmt.Fprint(o.streams.ErrOut, said)
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
