package cli

import (
	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/plan"
)

func newPlanCommand(f *Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Make, check and show plans",
		Long: `A plan is a YAML file that says which namespaces and volumes go from which
cluster to which, and how. mig makes it, you read and edit it; it never changes
by itself. "mig explain plan" says what its fields mean.

PLAN is a file, or a name whose file NAME.yaml is in the working directory.
Without it the only plan in the working directory is meant.`,
	}
	cmd.AddCommand(
		newPlanCreateCommand(f, runPlanCreate),
		newPlanValidateCommand(f, runPlanValidate),
		newPlanShowCommand(f, runPlanShow),
		newPlanListCommand(f, runPlanList),
		newPlanCopyCommand(f, runPlanCopy),
		newPlanImportCommand(f, runPlanImport),
		newPlanCloseCommand(f, runPlanClose),
		newPlanSchemaCommand(f),
	)
	return group(cmd)
}

// argOf is the PLAN of a command line; empty means the only one there is.
func argOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// loadPlan reads and validates the plan that was asked for, and tells the file
// that it is in.
func loadPlan(arg string) (plan.Valid, string, error) {
	path, err := plan.Find(arg)
	if err != nil {
		return plan.Valid{}, "", err
	}
	v, err := plan.LoadValid(path)
	return v, path, err
}
