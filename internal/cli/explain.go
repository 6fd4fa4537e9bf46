package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/render"
)

type explainOptions struct {
	showOptions

	streams Streams

	path      string
	recursive bool
}

func newExplainCommand(f *Factory, run func(context.Context, *explainOptions) error) *cobra.Command {
	o := &explainOptions{streams: f.Streams}
	cmd := &cobra.Command{
		Use:   "explain [PATH]",
		Short: "Say what a field of a plan means",
		Long: `Says of a plan, or of one of its fields, what it means, what may stand there and
what is below it, as kubectl explain does for objects. No cluster is asked.

PATH is a field's path: plan.spec.volumes. A path that an error has named, such
as spec.volumes[3].action, will do. Without PATH the plan itself is meant.

EXIT STATUS
  0 shown · 2 wrong command line, no such field`,
		Example: `  mig explain plan
  mig explain plan.spec.volumes
  mig explain plan --recursive
  mig explain spec.volumes.destination -o json`,
		Args:              maxArgs(1),
		ValidArgsFunction: completeFields,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.path = argOf(args); o.path == "" {
				o.path = "plan"
			}
			if err := o.complete(f, cmd); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.recursive, "recursive", false, "show the names of all that is below, not what they mean")
	outputFlag(cmd, showFormats(), "what is printed: table (text for eyes), json or yaml")
	return cmd
}

// completeFields offers the fields below what is typed so far.
func completeFields(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	const open = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	i := strings.LastIndex(typed, ".")
	if i < 0 {
		return []string{"plan"}, open
	}
	of, err := plan.Lookup(typed[:i])
	if err != nil {
		return nil, open
	}
	var out []string
	for _, f := range of.Fields {
		out = append(out, cobra.CompletionWithDesc(typed[:i]+"."+f.Name, f.Brief))
	}
	return out, open
}

func runExplain(_ context.Context, o *explainOptions) error {
	field, err := plan.Lookup(o.path)
	if none, ok := errors.AsType[*plan.NoFieldError](err); ok {
		hint := "see all fields with: mig explain plan --recursive"
		if none.Near != "" {
			hint = "did you mean " + none.Near + "? " + hint
		}
		return &usageError{Err: none, Hint: hint}
	}
	if err != nil {
		return err
	}
	if o.output != string(render.FormatTable) {
		return render.Print(o.streams.Out, render.Format(o.output), 0, field, nil)
	}
	_, err = fmt.Fprint(o.streams.Out, explainText(field, o.recursive, o.textWidth()))
	return err
}

// textWidth is how wide text is set: the terminal's width, within reason.
func (o *explainOptions) textWidth() int {
	const usual, widest = 80, 110
	if w := o.streams.outWidth(); w > 0 {
		return min(w, widest)
	}
	return usual
}

func explainText(f plan.Field, recursive bool, width int) string {
	var out strings.Builder
	fmt.Fprintf(&out, "KIND:       %s\nVERSION:    %s\n\n", plan.Kind, plan.APIVersion)
	if f.Path != "" {
		fmt.Fprintf(&out, "FIELD: %s\n\n", signature(f))
	}
	fmt.Fprintf(&out, "DESCRIPTION:\n%s", indented(f.Sentences(), 4, width))
	writeWords(&out, "ENUM", f.Values)
	writeWords(&out, "KEYS", f.Keys)
	if len(f.Fields) == 0 {
		return out.String()
	}
	out.WriteString("\nFIELDS:\n")
	if recursive {
		writeTree(&out, f.Fields, 2)
		return out.String()
	}
	for i, below := range f.Fields {
		if i > 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "  %s\n", signature(below))
		if len(below.Values) > 0 {
			fmt.Fprintf(&out, "  enum: %s\n", strings.Join(below.Values, ", "))
		}
		out.WriteString(indented(below.Sentences(), 4, width))
	}
	return out.String()
}

func signature(f plan.Field) string {
	s := fmt.Sprintf("%s\t<%s>", f.Name, f.Type)
	if f.Required {
		s += " -required-"
	}
	if f.Instead != "" {
		s += " -not built yet-"
	}
	return s
}

func writeWords(out *strings.Builder, title string, words []string) {
	if len(words) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s:\n", title)
	for _, w := range words {
		fmt.Fprintf(out, "    %s\n", w)
	}
}

func writeTree(out *strings.Builder, fields []plan.Field, indent int) {
	for _, f := range fields {
		fmt.Fprintf(out, "%s%s\n", strings.Repeat(" ", indent), signature(f))
		writeTree(out, f.Fields, indent+2)
	}
}

// indented is a text in lines of at most width columns.
func indented(text string, indent, width int) string {
	var out strings.Builder
	for line := range strings.SplitSeq(ansi.Wordwrap(text, max(width-indent, 20), ""), "\n") {
		out.WriteString(strings.TrimRight(strings.Repeat(" ", indent)+line, " ") + "\n")
	}
	return out.String()
}
