package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/migrate"
)

func newPlanCloseCommand(f *Factory, run func(context.Context, *runOptions) error) *cobra.Command {
	opts := newRunOptions(f, kindClose)
	o := &opts
	cmd := &cobra.Command{
		Use:   "close [PLAN]",
		Short: "Remove what a plan's runs left in the clusters; nothing runs on it any more",
		Long: `Ends a plan: has the source's Velero delete the backups of the plan's runs with
their data in the object store, and deletes their restores and helpers on both
clusters. What was migrated stays on the destination, and so do the marks that
say from where. The records of the runs stay on both clusters.

A closed plan cannot run again and cannot be rolled back. A plan whose last run
is not at its end is not closed: finish it or roll it back first.

It asks first at a terminal; without one it wants --yes. Beside the rights of a
run it needs those to create deletebackuprequests on the source and to delete
backups and podvolumebackups on the destination, in Velero's namespace.

EXIT STATUS
  0 done, or closed already · 1 failed · 2 wrong command line
  4 credentials or rights refused · 10 blocked: a person must decide
  11 another run holds it · 130 interrupted; the same command goes on`,
		Example: `  mig plan close shop
  mig plan close shop --yes -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(f, cmd, args); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	o.addTo(cmd)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	return cmd
}

func runPlanClose(ctx context.Context, o *runOptions) error {
	r, path, err := o.request()
	if err != nil {
		return err
	}
	if err := o.confirm(ctx, closeQuestion(r), planArg(path)); err != nil {
		return err
	}
	return runToEnd(ctx, o, r, path)
}

func closeQuestion(r migrate.Options) string {
	p := r.Plan.Plan()
	return fmt.Sprintf(`Closing plan %s
  deletes the backups of its runs with their data in the object store, and their restores
  leaves what was migrated on %s as it is, and the source on %s too
  cannot be taken back: the plan can neither run nor be rolled back afterwards
Go on?`, p.Metadata.Name, p.Spec.Destination.Context, p.Spec.Source.Context)
}
