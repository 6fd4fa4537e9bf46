package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/migrate"
)

type rollbackOptions struct {
	runOptions

	sourceOnly bool
}

func newRollbackCommand(f *Factory, run func(context.Context, *rollbackOptions) error) *cobra.Command {
	o := &rollbackOptions{runOptions: newRunOptions(f, kindRollback)}
	cmd := &cobra.Command{
		Use:   "rollback [PLAN]",
		Short: "Take a migration back: clean the destination, bring the source up",
		Long: `Removes from the destination what the plan's runs made there, and brings the
applications on the source up as they were. Objects that were on the destination
before, or that others made since, stay.

Data written on the destination since the cutover is lost: the source's data is
as it was then.

Where the destination cannot be reached, --source-only brings the source up
without it (exit 3, for the rest is still to be taken back). Be sure that the
application does not run there: then both sides would write.

It asks first at a terminal; without one it wants --yes. Interrupted or failed,
it goes on where it was when it is run again.

EXIT STATUS
  0 done, or nothing to take back · 1 failed · 2 wrong command line
  3 finished, but something was left · 4 credentials or rights refused
  10 blocked: a person must decide · 11 another run holds it · 130 interrupted`,
		Example: `  mig rollback shop
  mig rollback shop --yes -o json
  mig rollback shop --source-only`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(f, cmd, args); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	o.addTo(cmd)
	cmd.Flags().BoolVar(&o.sourceOnly, "source-only", false, "bring the source up and leave the destination alone, for when it cannot be reached")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	return cmd
}

func runRollback(ctx context.Context, o *rollbackOptions) error {
	r, path, err := o.request()
	if err != nil {
		return err
	}
	r.SourceOnly = o.sourceOnly
	if err := o.confirm(ctx, rollbackQuestion(r), planArg(path)); err != nil {
		return err
	}
	return runToEnd(ctx, &o.runOptions, r, path)
}

func rollbackQuestion(r migrate.Options) string {
	p := r.Plan.Plan()
	names := make([]string, 0, len(p.Spec.Namespaces))
	for _, n := range p.Spec.Namespaces {
		names = append(names, n.Destination)
	}
	if r.SourceOnly {
		return fmt.Sprintf(`Rolling back plan %s on %s alone
  brings the applications on %s up again
  leaves %s as it is: if they run there, both sides will write
Go on?`, p.Metadata.Name, p.Spec.Source.Context, p.Spec.Source.Context, p.Spec.Destination.Context)
	}
	return fmt.Sprintf(`Rolling back plan %s
  deletes on %s what its runs made, in: %s
  brings the applications on %s up again
  does not keep what was written on %s since the cutover
Go on?`, p.Metadata.Name, p.Spec.Destination.Context, strings.Join(names, ", "), p.Spec.Source.Context, p.Spec.Destination.Context)
}
