package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/render"
)

type planShowOptions struct {
	showOptions

	streams Streams

	plan string
}

func newPlanShowCommand(f *Factory, run func(context.Context, *planShowOptions) error) *cobra.Command {
	o := &planShowOptions{streams: f.Streams}
	cmd := &cobra.Command{
		Use:   "show [PLAN]",
		Short: "Show a plan as mig understands it",
		Long: `Reads a plan file, checks it on its own, and shows it with all defaults filled
in. No cluster is asked and nothing is changed.

EXIT STATUS
  0 shown · 2 wrong command line, unreadable plan`,
		Example: `  mig plan show shop
  mig plan show shop.yaml -o json`,
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

func runPlanShow(_ context.Context, o *planShowOptions) error {
	v, path, err := loadPlan(o.plan)
	if err != nil {
		return err
	}
	if o.output != string(render.FormatTable) {
		return render.Print(o.streams.Out, render.Format(o.output), 0, v.Plan(), nil)
	}
	return o.showTables(v, path)
}

func (o *planShowOptions) showTables(v plan.Valid, path string) error {
	p := v.Plan()
	head := render.Table{Columns: []string{"PLAN", "FILE", "SOURCE", "DESTINATION", "STORAGE"}, Rows: [][]string{{
		p.Metadata.Name, path, p.Spec.Source.Context, p.Spec.Destination.Context, p.Spec.Storage.Location,
	}}}
	namespaces := render.Table{Columns: []string{"NAMESPACE", "ON THE DESTINATION"}}
	for _, n := range p.Spec.Namespaces {
		namespaces.Rows = append(namespaces.Rows, []string{n.Name, n.Destination})
	}
	volumes := render.Table{
		Columns: []string{"CLAIM", "CAPACITY", "CLASS", "ACTION", "NEW CLASS", "NEW MODES"},
		Empty:   "No claims.",
	}
	for _, vol := range p.Spec.Volumes {
		volumes.Rows = append(volumes.Rows, []string{
			vol.Claim, orDash(vol.Capacity), orDash(vol.StorageClass), orWord(string(vol.Action), "choose!"),
			classThere(v, vol), orDash(shortModes(orSame(vol.Destination.AccessModes, vol.AccessModes))),
		})
	}
	tables := []render.Table{head, namespaces, volumes}
	if accepted := acceptedTable(p.Spec.Accept); len(accepted.Rows) > 0 {
		tables = append(tables, accepted)
	}
	return o.writeAll(tables)
}

// classThere is the class of a copied claim on the destination.
func classThere(v plan.Valid, vol plan.Volume) string {
	if vol.Action != plan.Copy {
		return "-"
	}
	return orWord(v.DestinationClass(vol), "(default)")
}

func acceptedTable(accepted []plan.Accept) render.Table {
	t := render.Table{Columns: []string{"ACCEPTED", "OBJECT", "WHY"}}
	for _, a := range accepted {
		t.Rows = append(t.Rows, []string{a.Type, a.Object, a.Why})
	}
	return t
}

func orSame(own, source []string) []string {
	if len(own) > 0 {
		return own
	}
	return source
}

func (o *planShowOptions) writeAll(tables []render.Table) error {
	var out strings.Builder
	for i, t := range tables {
		if i > 0 {
			out.WriteString("\n")
		}
		if err := t.Write(&out, o.streams.outWidth()); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(o.streams.Out, out.String())
	return err
}
