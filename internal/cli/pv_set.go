package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/render"
)

type pvSetOptions struct {
	showOptions

	streams Streams

	claims []string
	all    bool
	plan   string
	choice plan.Choice
	dryRun bool
}

// pvSetFlags are the flags as they were given.
type pvSetFlags struct {
	action, storageClass, accessMode, copyMethod, size string
	verify                                             bool
	unset                                              []string
}

func newPVSetCommand(f *Factory, run func(context.Context, *pvSetOptions) error) *cobra.Command {
	o := &pvSetOptions{streams: f.Streams}
	var given pvSetFlags
	cmd := &cobra.Command{
		Use:   "set CLAIM… | --all",
		Short: "Choose what happens to claims of the plan",
		Long: `Writes a choice for one or more claims into the plan file. Comments, order and
form of all else in the file stay. What the plan would refuse is not written.
No cluster is asked; "mig plan validate" says what it thinks of the choice.

CLAIM is NAMESPACE/NAME, a NAME that only one claim has, or a pattern in quotes
such as 'shop/*'. --all means every claim of the plan.

--unset takes a choice out again, so that the plan's default holds: a comma
separated list of the other flags' names.

EXIT STATUS
  0 written, or the plan said so already · 1 failed
  2 wrong command line, unreadable plan, a choice that a plan cannot hold`,
		Example: `  mig pv set shop/data-db-0 --action copy --storage-class fast
  mig pv set data-db-0 --size 20Gi --access-mode RWX --dry-run
  mig pv set 'shop/cache-*' --action skip --plan shop
  mig pv set --all --unset storage-class`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeClaims,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.claims = args
			if err := o.complete(f, cmd); err != nil {
				return err
			}
			var err error
			if o.choice, err = given.choice(cmd.Flags().Changed); err != nil {
				return withHelp(cmd, err)
			}
			if err := o.validate(); err != nil {
				return withHelp(cmd, err)
			}
			return run(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&given.action, "action", "", "what happens: copy or skip")
	flags.StringVar(&given.storageClass, "storage-class", "", "the storage `class` on the destination")
	flags.StringVar(&given.accessMode, "access-mode", "", "the access `modes` on the destination: RWO, ROX, RWX, RWOP, or in full; several with commas")
	flags.StringVar(&given.copyMethod, "copy-method", "", "how the data is copied: filesystem")
	flags.StringVar(&given.size, "size", "", "the `size` on the destination, such as 20Gi")
	flags.BoolVar(&given.verify, "verify", false, "compare the files of both sides after the copy")
	flags.StringSliceVar(&given.unset, "unset", nil, "take these choices out: names of flags, with commas between")
	flags.BoolVar(&o.all, "all", false, "every claim of the plan")
	flags.StringVar(&o.plan, "plan", "", "the `plan` (default: the only one in the working directory)")
	flags.BoolVar(&o.dryRun, "dry-run", false, "print what would change in the file; write nothing")
	o.addTo(cmd)
	complete(cmd, "action", string(plan.Copy), string(plan.Skip))
	complete(cmd, "copy-method", plan.CopyFilesystem)
	complete(cmd, "access-mode", plan.AccessModes()...)
	complete(cmd, "unset", unsettable()...)
	_ = cmd.RegisterFlagCompletionFunc("plan", completePlanFlag) // fails for an unknown flag only
	return cmd
}

// completePlanFlag offers plan files for --plan.
func completePlanFlag(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeClaims offers the claims of the plan.
func completeClaims(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	arg, _ := cmd.Flags().GetString("plan")
	path, err := plan.Find(arg)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	p, err := plan.Load(path)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, v := range p.Spec.Volumes {
		if !slices.Contains(args, v.Claim) {
			out = append(out, v.Claim)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// unsettable are the choices that --unset takes out.
func unsettable() []string {
	return []string{"action", "storage-class", "access-mode", "copy-method", "size", "verify"}
}

// choice reads the flags. An empty text is refused: it is more often a variable
// that was not set than a wish.
func (g pvSetFlags) choice(isGiven func(flag string) bool) (plan.Choice, error) {
	var c plan.Choice
	action := plan.Action(g.action)
	modes := strings.Split(g.accessMode, ",")
	for _, f := range []struct {
		name  string
		value string
		set   func()
		unset func()
	}{
		{"action", g.action, func() { c.Action = &action }, func() { c.Action = new(plan.Action) }},
		{"storage-class", g.storageClass, func() { c.StorageClass = &g.storageClass }, func() { c.StorageClass = new(string) }},
		{"access-mode", g.accessMode, func() { c.AccessModes = &modes }, func() { c.AccessModes = new([]string) }},
		{"copy-method", g.copyMethod, func() { c.CopyMethod = &g.copyMethod }, func() { c.CopyMethod = new(string) }},
		{"size", g.size, func() { c.Size = &g.size }, func() { c.Size = new(string) }},
		{"verify", "given", func() { c.Verify = &g.verify }, func() { c.Verify = new(bool) }},
	} {
		given, unset := isGiven(f.name), slices.Contains(g.unset, f.name)
		switch {
		case given && unset:
			return c, fmt.Errorf("--%s is set and unset at once", f.name)
		case given && f.value == "":
			return c, fmt.Errorf("--%s is empty; to take it out of the plan say --unset %s", f.name, f.name)
		case given:
			f.set()
		case unset:
			f.unset()
		}
	}
	for _, name := range g.unset {
		if !slices.Contains(unsettable(), name) {
			return c, fmt.Errorf("--unset knows no %q; there are: %s", name, strings.Join(unsettable(), ", "))
		}
	}
	if c == (plan.Choice{}) {
		return c, errors.New("nothing is chosen: say --action, --storage-class, --access-mode, --copy-method, --size, --verify or --unset")
	}
	return c, nil
}

func (o *pvSetOptions) validate() error {
	switch {
	case o.all && len(o.claims) > 0:
		return errors.New("claims and --all: choose one")
	case !o.all && len(o.claims) == 0:
		return errors.New("no claim is named: say CLAIM…, or --all for every claim of the plan")
	}
	return nil
}

// setChoice is what pv set prints.
type setChoice struct {
	Plan    string        `json:"plan"`
	File    string        `json:"file"`
	Written bool          `json:"written"`
	Changes []plan.Change `json:"changes"`
}

func runPVSet(_ context.Context, o *pvSetOptions) error {
	path, err := plan.Find(o.plan)
	if err != nil {
		return err
	}
	file, err := plan.Open(path)
	if err != nil {
		return err
	}
	which, err := o.which(file.Plan)
	if err != nil {
		return err
	}
	want, changes, err := file.Plan.Choose(which, o.choice)
	if err != nil {
		return &usageError{Err: err, Hint: "what may be chosen: mig explain plan.spec.volumes"}
	}
	text, err := file.Edited(want)
	if err != nil {
		return err
	}
	got := setChoice{Plan: want.Metadata.Name, File: path, Written: !o.dryRun && len(changes) > 0, Changes: orNone(changes)}
	if got.Written {
		if err := file.Save(text); err != nil {
			return err
		}
	}
	return o.show(got, file, text)
}

func orNone(changes []plan.Change) []plan.Change {
	if changes == nil {
		return []plan.Change{}
	}
	return changes
}

func (o *pvSetOptions) which(p *plan.Plan) ([]int, error) {
	args := o.claims
	if o.all {
		args = []string{"*"}
	}
	if len(p.Spec.Volumes) == 0 {
		return nil, &usageError{Err: errors.New("the plan has no claims"), Hint: "look for some with: mig pv discover --update"}
	}
	which, err := p.Volumes(args)
	if err != nil {
		return nil, &usageError{Err: err, Hint: "see the plan's claims with: mig plan show"}
	}
	return which, nil
}

func (o *pvSetOptions) show(got setChoice, file *plan.File, text []byte) error {
	format := render.Format(o.output)
	if o.dryRun && format == render.FormatTable {
		if _, err := fmt.Fprint(o.streams.Out, diffOf(file, text)); err != nil {
			return err
		}
	} else if err := render.Print(o.streams.Out, format, o.streams.outWidth(), got, func() render.Table { return changesTable(got.Changes) }); err != nil {
		return err
	}
	if format != render.FormatTable {
		return nil
	}
	said := fmt.Sprintf("\n%s in %s: %s\n", english.Plural(len(got.Changes), "change", ""), got.File, "mig plan validate "+planArg(got.File)+" says what the clusters make of it.")
	switch {
	case len(got.Changes) == 0:
		said = fmt.Sprintf("Nothing to change: %s says so already.\n", got.File)
	case o.dryRun:
		said = fmt.Sprintf("\nNothing was written. Without --dry-run this changes %s.\n", got.File)
	}
	_, err := fmt.Fprint(o.streams.ErrOut, said)
	return err
}

// diffOf is how a file would change, as patch and git apply read it.
func diffOf(file *plan.File, text []byte) string {
	return udiff.Unified("a/"+file.Path, "b/"+file.Path, string(file.Text), string(text))
}

func changesTable(changes []plan.Change) render.Table {
	t := render.Table{Columns: []string{"CLAIM", "FIELD", "WAS", "IS"}}
	for _, c := range changes {
		t.Rows = append(t.Rows, []string{c.Claim, c.Field, orDash(c.From), orDash(c.To)})
	}
	return t
}
