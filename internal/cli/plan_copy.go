package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/mig-cli/mig/internal/plan"
)

type planCopyOptions struct {
	streams Streams

	plan string
	name string
	file string
}

func newPlanCopyCommand(f *Factory, run func(context.Context, *planCopyOptions) error) *cobra.Command {
	o := &planCopyOptions{streams: f.Streams}
	cmd := &cobra.Command{
		Use:   "copy PLAN NEWNAME",
		Short: "Copy a plan under another name, with a uid of its own",
		Long: `Writes a plan of the same content under another name into NEWNAME.yaml, comments
and all, with a uid of its own. A plan file that was copied by other means bears
the uid of the first one, by which mig tells what belongs to whom: where the
first has run, the copy is refused.

EXIT STATUS
  0 written · 1 failed · 2 wrong command line, unreadable plan, file in the way`,
		Example: `  mig plan copy shop shop-again
  mig plan copy shop.yaml blog -f plans/blog.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return withHelp(cmd, fmt.Errorf("plan copy wants a plan and a new name, got %d argument(s)", len(args)))
			}
			return nil
		},
		ValidArgsFunction: completePlan,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.plan, o.name = args[0], args[1]
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "the `file` to write (default NEWNAME.yaml)")
	return cmd
}

func runPlanCopy(_ context.Context, o *planCopyOptions) error {
	path, err := plan.Find(o.plan)
	if err != nil {
		return err
	}
	file, err := plan.Open(path)
	if err != nil {
		return err
	}
	want := *file.Plan
	want.Metadata = plan.Metadata{Name: o.name, UID: string(uuid.NewUUID())}
	if _, problems := want.Validate(); len(problems) > 0 {
		return &usageError{Err: errors.New(problems[0].Field + ": " + problems[0].Message)}
	}
	text, err := file.Edited(&want)
	if err != nil {
		return err
	}
	to := o.file
	if to == "" {
		to = o.name + ".yaml"
	}
	err = plan.WriteText(to, text, false)
	if errors.Is(err, fs.ErrExist) {
		return &usageError{Err: fmt.Errorf("plan file %s is there already", to), Hint: "write another one with -f FILE"}
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.streams.ErrOut, "Plan %s is in %s, with a uid of its own: %s\n", o.name, to, want.Metadata.UID)
	return err
}
