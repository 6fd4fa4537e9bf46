// Package cli is the program without its process: commands, flags, what is said
// and the exit code. One file a command. It does none of the work itself and
// never looks into a cluster.
package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mig-cli/mig/internal/config"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/render"
)

// Run runs one command line and gives the exit code.
func Run(ctx context.Context, f *Factory, args []string) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	root := newRootCommand(f)
	root.SetArgs(args)
	root.SetIn(f.Streams.In)
	root.SetOut(f.Streams.Out)
	root.SetErr(f.Streams.ErrOut)
	cmd, err := root.ExecuteContextC(ctx)
	f.endLogs(codeOf(err), err)
	return report(f.Streams.ErrOut, f.speaksJSON(cmd, args), err)
}

func newRootCommand(f *Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mig",
		Short: "Move Kubernetes namespaces, with their data, from one cluster to another",
		Long: `mig moves Kubernetes namespaces, with the data in their volumes, from one
cluster to another. Velero in both clusters does the backing up and the
restoring; mig decides the order, checks first, watches all the time, and can
take everything back. The source's objects and data are never deleted.

A migration is four commands: make a plan, check it, run it, and take it back
if you do not like the result.`,
		Example: `  mig plan create shop --src ctx1 --dst ctx2 --namespaces shop:shop-prod
  mig plan validate shop
  mig migrate shop --watch
  mig rollback shop`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Annotations[hasSafePoints] == "" {
				ctx, _ := f.untilStop(cmd.Context()) // ends with the context of Run
				cmd.SetContext(ctx)
			}
			return f.openLogs(cmd)
		},
	}
	cmd.SetFlagErrorFunc(withHelp)
	flags := cmd.PersistentFlags()
	flags.String("kubeconfig", "", "the kubeconfig `file` where the plan names none (default: kubectl's rules)")
	flags.CountP("verbose", "v", "also say what is tried again, why things fail, and with -vv every request to the clusters (not in the live view)")
	flags.String("log-file", "", "append all of that to a `file`, without secrets")
	flags.String("color", "auto", "colour the live view: auto, always or never")
	complete(cmd, "color", "auto", "always", "never")
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.AddCommand(
		newPlanCommand(f),
		newPVCommand(f),
		newClusterCommand(f),
		newExplainCommand(f, runExplain),
		newStageCommand(f, runStage),
		newMigrateCommand(f, runMigrate),
		newRollbackCommand(f, runRollback),
		newStatusCommand(f, runStatus),
		newVerifyCommand(f, runVerify),
		newHistoryCommand(f, runHistory),
		newCompletionCommand(f),
		newVersionCommand(f, runVersion),
		newExitCodesTopic(),
		newJSONTopic(),
		newEventsTopic(),
	)
	return group(cmd)
}

// hasSafePoints marks a command that ends an interrupt's first request by
// itself, at its next safe point.
const hasSafePoints = "has-safe-points"

// group makes a command of commands: alone it shows its help, and a word that
// is none of them is an error that names the near ones.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		hint := "see: " + cmd.CommandPath() + " --help"
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = "did you mean " + cmd.CommandPath() + " " + strings.Join(near, " or ") + "? " + hint
		}
		return &usageError{Err: fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath()), Hint: hint}
	}
	return cmd
}

// nearestFlag is the flag that an unknown one was probably meant to be.
func nearestFlag(cmd *cobra.Command, err error) string {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return ""
	}
	var flags []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
	return naming.Nearest(unknown.GetSpecifiedName(), flags)
}

// maxArgs is cobra's, as an error of use.
func maxArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := cobra.MaximumNArgs(n)(cmd, args); err != nil {
			return withHelp(cmd, fmt.Errorf("%s takes at most %d argument(s), got %d: %s",
				cmd.CommandPath(), n, len(args), strings.Join(args, " ")))
		}
		return nil
	}
}

// outputFlag adds -o to a command that knows some formats.
func outputFlag(cmd *cobra.Command, formats []string, usage string) {
	cmd.Flags().StringP("output", "o", "", usage)
	complete(cmd, "output", formats...)
}

// output is the format that a command prints in: the flag's, else that of the
// settings if the command knows it, else the command's own.
func output(cmd *cobra.Command, c config.Config, formats []string, own string) (string, error) {
	if slices.Contains(formats, c.Output) {
		return c.Output, nil
	}
	if f := cmd.Flags().Lookup("output"); f != nil && f.Changed {
		return "", withHelp(cmd, fmt.Errorf("no output format %q; there are: %s", c.Output, strings.Join(formats, ", ")))
	}
	return own, nil
}

// showFormats are those of commands that show an object.
func showFormats() []string { return render.Formats() }

// showOptions are what commands that show something have in common.
type showOptions struct {
	settings config.Config
	formats  []string // those that the command knows; nil: those of all
	output   string   // one of them
}

// addTo adds the flag that all of them have.
func (o *showOptions) addTo(cmd *cobra.Command) {
	formats := o.known()
	last := len(formats) - 1
	outputFlag(cmd, formats, "what is printed: "+strings.Join(formats[:last], ", ")+" or "+formats[last])
}

func (o *showOptions) known() []string {
	if o.formats != nil {
		return o.formats
	}
	return showFormats()
}

// complete fills in what the command line and the settings say.
func (o *showOptions) complete(f *Factory, cmd *cobra.Command) error {
	var err error
	if o.settings, err = f.config(cmd); err != nil {
		return err
	}
	o.output, err = output(cmd, o.settings, o.known(), string(render.FormatTable))
	return err
}

// speaksJSON says whether an error is to be told as JSON, also one that came
// before the command line was understood.
func (f *Factory) speaksJSON(cmd *cobra.Command, args []string) bool {
	if cmd != nil {
		if c, err := f.config(cmd); err == nil && c.Output != "" {
			return c.Output == string(render.FormatJSON)
		}
	}
	for i, arg := range args {
		switch arg {
		case "-ojson", "-o=json", "--output=json":
			return true
		case "-o", "--output":
			return i+1 < len(args) && args[i+1] == "json"
		}
	}
	return false
}

// complete offers fixed words for a flag.
func complete(cmd *cobra.Command, flag string, words ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // fails for an unknown flag only
}

// completePlan offers plan files for PLAN.
func completePlan(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}
