package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newCompletionCommand(f *Factory) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion {bash|zsh|fish|powershell}",
		Short: "Print the completion script of a shell",
		Long: `Prints the script that makes a shell complete mig's commands, flags, kubeconfig
contexts and plan files. Nothing is changed; you say where it goes.

EXIT STATUS
  0 printed · 2 wrong command line`,
		Example: `  source <(mig completion bash)
  mig completion zsh > "${fpath[1]}/_mig"
  mig completion fish > ~/.config/fish/completions/mig.fish`,
		ValidArgs: shells,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return withHelp(cmd, fmt.Errorf("completion wants one shell: bash, zsh, fish or powershell"))
			}
			if err := cobra.OnlyValidArgs(cmd, args); err != nil {
				return withHelp(cmd, fmt.Errorf("no completion for %q; there is: bash, zsh, fish and powershell", args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), f.Streams.Out
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			default:
				return root.GenPowerShellCompletionWithDesc(out)
			}
		},
	}
}
