package cli

import "github.com/spf13/cobra"

func newClusterCommand(f *Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "See whether a cluster is ready for migrations",
		Long:  "What of a migration is a cluster's half, without any plan.",
	}
	cmd.AddCommand(newClusterCheckCommand(f, runClusterCheck))
	return group(cmd)
}
