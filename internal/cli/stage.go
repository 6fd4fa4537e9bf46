package cli

import (
	"context"

	"github.com/spf13/cobra"
)

type stageOptions struct{ runOptions }

func newStageCommand(f *Factory, run func(context.Context, *stageOptions) error) *cobra.Command {
	o := &stageOptions{runOptions: newRunOptions(f, kindStage)}
	cmd := &cobra.Command{
		Use:   "stage [PLAN]",
		Short: "Copy the plan's volumes while the application runs",
		Long: `Copies the data of the plan's volumes into the object store while the
application goes on, so that the cutover has only the changes to copy. Run it
again and again: only what changed since is copied.

On the source nothing of the application is touched: claims bear a label while
they are copied, and claims that no running pod mounts are mounted by helper
pods, which are removed again. On the destination the plan's namespaces are
made.

Interrupted or failed, it removes its helpers and keeps what it has copied.

EXIT STATUS
  0 done · 1 failed · 2 wrong command line, unreadable plan
  4 credentials or rights refused · 10 blocked: a person must decide
  11 another run holds it · 130 interrupted`,
		Example: `  mig stage shop --watch
  mig stage shop -o json --wait=1h`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(f, cmd, args); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	o.addTo(cmd)
	return cmd
}

func runStage(ctx context.Context, o *stageOptions) error {
	r, path, err := o.request()
	if err != nil {
		return err
	}
	return runToEnd(ctx, &o.runOptions, r, path)
}
