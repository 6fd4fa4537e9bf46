package cli

import "github.com/spf13/cobra"

// newExitCodesTopic is shown by mig help exit-codes.
func newExitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What mig's exit codes mean",
		Long: `mig's exit codes are a contract: scripts may branch on them.

` + exitCodes + `

On standard error, an error is a line "mig: error: …", what to do next a line
"mig: hint: …". With -o json the last line there is one JSON object:
{"type":"exit_error","code":10,"message":"…","hint":"…"}`,
	}
}
