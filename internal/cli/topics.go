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
{"type":"exit_error","code":10,"message":"…","hint":"…","record":"…"}`,
	}
}

// newJSONTopic is shown by mig help json.
func newJSONTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "json",
		Short: "What -o json prints",
		Long: `Commands that show something print one JSON object with -o json.

Commands that run print one object a line on standard output. Its first field is
its type; fields are added over time, never renamed or removed.

  progress   a moment of the run
             time, run (stage, migrate, rollback, recovery), step, number, of,
             state (run-start, started, waiting, stalled, happened, warning,
             done, skipped, blocked, failed, run-finish), reason, message,
             object {side, apiVersion, kind, namespace, name, uid},
             volumes [{item, done, total}] in bytes, elapsedSeconds
  message    a sentence beside the run: time, message
  summary    the last line
             run, uid, record (namespace/name of the ConfigMap with the whole
             story), plan, result (done, incomplete, failed, blocked,
             interrupted), message, seconds, sourceDownSeconds,
             steps [{run, number, step, state, seconds, message}], volumes,
             warnings, leftOut

  exit_error the last line on standard error, where a command did not end well
             code (see "mig help exit-codes"), message, hint (the next command),
             record

Standard output holds nothing but these lines; what is said beside them, with -v
for example, is on standard error. "mig history PLAN RUN -o json" tells all of a
run again, in one object: the fields above and each step's started, ended, took
and attempts, volumes [{claim, bytes, files, step}], changes [{object, field,
before, after, at}], conditions, accepted, events, and planFile, the plan as it
was run. Times that a step took are nanoseconds there.`,
	}
}
