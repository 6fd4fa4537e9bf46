package cli

import (
	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/plan"
)

func newPlanSchemaCommand(f *Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of plans, for editors",
		Long: `Prints the form of a plan as a JSON schema. An editor that knows it completes
fields, says what they mean and marks what is wrong while you type. Nothing is
changed; you say where it goes.

"mig plan create" names the schema in the plans that it writes where a file
plan.schema.json with this mig's schema is beside them. For plans that are there
already, put this line on top:

  # yaml-language-server: $schema=plan.schema.json

EXIT STATUS
  0 printed · 2 wrong command line`,
		Example: `  mig plan schema > plan.schema.json`,
		Args:    maxArgs(0),
		RunE: func(*cobra.Command, []string) error {
			_, err := f.Streams.Out.Write(plan.Schema())
			return err
		},
	}
}
