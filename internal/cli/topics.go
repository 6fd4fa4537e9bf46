package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/event"
	"github.com/mig-cli/mig/internal/plan"
)

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

// newEventsTopic is shown by mig help events: what the code itself says of its
// reasons, so that the table is never behind.
func newEventsTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "events",
		Short: "What mig's Events in the clusters mean",
		Long: `A run tells its transitions as Events (events.k8s.io/v1, reportingController
mig) on both clusters, in the namespace of the object that each is about; what is
about the run is in Velero's namespace. Clusters forget Events, after an hour as
a rule; the run's record holds the same for good: "mig history".

  kubectl -n shop events --for pvc/data
  kubectl get events -A --field-selector reportingComponent=mig

Where we may not make Events a run works without, and says so once.

` + eventsText() + `
<Step> is one of:
` + words(plan.StepNames(), 78) + `
A warning of "mig plan validate" that does not keep the plan from running is told
under its condition's type, as a Warning about the run record.`,
	}
}

func eventsText() string {
	var out strings.Builder
	for _, r := range event.Reasons() {
		out.WriteString(r.Name + " (" + r.Kind + ")\n")
		for _, row := range [][2]string{{"about", r.About}, {"action", r.Action}, {"means", r.Means}, {"do", orWord(r.Do, "nothing")}} {
			out.WriteString("    " + (row[0] + "      ")[:8] + row[1] + "\n")
		}
	}
	return out.String()
}

// words are names in lines of at most width columns.
func words(names []string, width int) string {
	var out strings.Builder
	line := " "
	for _, n := range names {
		if len(line)+1+len(n) > width {
			out.WriteString(line + "\n")
			line = " "
		}
		line += " " + n
	}
	return out.String() + line + "\n"
}
