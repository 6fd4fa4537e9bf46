package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/config"
	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/render"
)

type planCreateOptions struct {
	showOptions

	streams Streams
	connect func(plan.Plan, config.Config) (cluster.Source, cluster.Destination, error)
	propose func(context.Context, cluster.Source, cluster.Destination, discover.Wish) (*discover.Proposal, error)

	name             string
	source           plan.Cluster
	destination      plan.Cluster
	namespaces       []plan.Namespace
	location         string
	helperImage      string
	file             string // empty: NAME.yaml; "-": stdout
	force            bool
	sourceKubeconfig string // as it is to stand in the plan
	destKubeconfig   string
}

func newPlanCreateCommand(f *Factory, run func(context.Context, *planCreateOptions) error) *cobra.Command {
	o := &planCreateOptions{streams: f.Streams, connect: f.both, propose: f.Propose}
	var namespaces, velero string
	cmd := &cobra.Command{
		Use:   "create [NAME] --src CONTEXT --dst CONTEXT",
		Short: "Look into both clusters and write a plan",
		Long: `Looks into both clusters for namespaces, claims and storage classes, and writes
a plan file full of good defaults and comments. What needs your decision is
marked in the file and told. Nothing in the clusters is changed.

Without --namespaces, every namespace that is not the system's is taken.
--namespaces a,b:newb takes a under its own name and b as newb.

An existing file is kept unless --force is given; the new plan then has the old
one's uid, so that what its runs made can still be rolled back.

EXIT STATUS
  0 the plan is written · 1 failed · 2 wrong command line, unknown context
  4 a cluster refused our credentials or rights`,
		Example: `  mig plan create shop --src ctx1 --dst ctx2 --namespaces shop:shop-prod
  mig plan create --src ctx1 --dst ctx2 -f everything.yaml
  mig plan create shop --src ctx1 --dst ctx2 --helper-image registry.example.com/mig-mover:v1
  mig plan create shop --src admin --src-kubeconfig old.conf --dst admin --dst-kubeconfig new.conf`,
		Args: maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = argOf(args)
			o.source.VeleroNamespace, o.destination.VeleroNamespace = velero, velero
			var err error
			if o.namespaces, err = parseNamespaces(namespaces); err != nil {
				return withHelp(cmd, err)
			}
			if err := o.complete(f, cmd); err != nil {
				return err
			}
			if err := o.validate(); err != nil {
				return withHelp(cmd, err)
			}
			o.kubeconfigs(cmd.Flags().Changed("kubeconfig"))
			return run(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.source.Context, "src", "", "the kubeconfig `context` of the source (required)")
	flags.StringVar(&o.destination.Context, "dst", "", "the kubeconfig `context` of the destination (required)")
	flags.StringVar(&o.source.Kubeconfig, "src-kubeconfig", "", "the kubeconfig `file` of the source, if it is one of its own; kept in the plan")
	flags.StringVar(&o.destination.Kubeconfig, "dst-kubeconfig", "", "the kubeconfig `file` of the destination, if it is one of its own; kept in the plan")
	flags.StringVar(&namespaces, "namespaces", "", "the `namespaces`, with their new names where they change: a,b:newb")
	flags.StringVar(&o.location, "storage-location", "", "the BackupStorageLocation on both clusters (default: the one that both have)")
	flags.StringVar(&o.helperImage, "helper-image", "", "the `image` of mig-mover: a stage then goes as far as the destination's volumes")
	flags.StringVar(&velero, "velero-namespace", "", "Velero's `namespace` on both clusters (default velero)")
	flags.StringVarP(&o.file, "file", "f", "", "the `file` to write, - for standard output (default NAME.yaml)")
	flags.BoolVar(&o.force, "force", false, "overwrite an existing file")
	o.addTo(cmd)
	for _, side := range []string{"src", "dst"} {
		_ = cmd.RegisterFlagCompletionFunc(side, completeContexts(f, side+"-kubeconfig")) // fails for an unknown flag only
	}
	return cmd
}

// completeContexts offers the contexts of the kubeconfig that a command line
// names so far.
func completeContexts(f *Factory, flag string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		path, _ := cmd.Flags().GetString(flag)
		if path == "" {
			settings, _ := f.config(cmd)
			path = settings.Kubeconfig
		}
		return f.Contexts(path), cobra.ShellCompDirectiveNoFileComp
	}
}

func parseNamespaces(arg string) ([]plan.Namespace, error) {
	if arg == "" {
		return nil, nil
	}
	return discover.ParseNamespaces(arg)
}

func (o *planCreateOptions) validate() error {
	switch {
	case o.source.Context == "":
		return errors.New("--src is missing: the kubeconfig context of the cluster to move from")
	case o.destination.Context == "":
		return errors.New("--dst is missing: the kubeconfig context of the cluster to move to")
	case o.source.Context == o.destination.Context && o.source.Kubeconfig == o.destination.Kubeconfig:
		return fmt.Errorf("--src and --dst are both %q: a migration needs two clusters", o.source.Context)
	case o.file == "-" && o.output != string(render.FormatTable):
		return errors.New("-f - prints the plan and -o prints what was found: choose one")
	}
	return o.validateNames()
}

// validateNames finds what no plan could have, before clusters are asked for
// minutes: its name, and namespaces that cannot be meant so.
func (o *planCreateOptions) validateNames() error {
	if len(o.namespaces) == 0 && o.name == "" && o.helperImage == "" {
		return nil
	}
	p := plan.Plan{APIVersion: plan.APIVersion, Kind: plan.Kind, Metadata: plan.Metadata{Name: o.name, UID: "to-be-made"}}
	p.Spec = plan.Spec{Source: o.source, Destination: o.destination, Namespaces: o.namespaces, Storage: plan.Storage{Location: "to-be-found"}, HelperImage: o.helperImage}
	if p.Metadata.Name == "" {
		p.Metadata.Name = "to-be-made"
	}
	if len(p.Spec.Namespaces) == 0 {
		p.Spec.Namespaces = []plan.Namespace{{Name: "to-be-found"}}
	}
	_, problems := p.Validate()
	said := make([]string, 0, len(problems))
	for _, problem := range problems {
		if !slices.Contains(said, problem.Message) { // what holds of both sides is said once
			said = append(said, problem.Message)
		}
	}
	if len(said) == 0 {
		return nil
	}
	return errors.New(strings.Join(said, "\n"))
}

// kubeconfigs decides which paths stand in the plan: those of this command
// line, for the plan means nothing without them. What the environment says is
// of this machine.
func (o *planCreateOptions) kubeconfigs(flagGiven bool) {
	o.sourceKubeconfig, o.destKubeconfig = o.source.Kubeconfig, o.destination.Kubeconfig
	if !flagGiven {
		return
	}
	if o.sourceKubeconfig == "" {
		o.sourceKubeconfig = o.settings.Kubeconfig
	}
	if o.destKubeconfig == "" {
		o.destKubeconfig = o.settings.Kubeconfig
	}
}

func runPlanCreate(ctx context.Context, o *planCreateOptions) error {
	if o.name != "" {
		if err := o.checkFile(o.path(o.name)); err != nil {
			return err
		}
	}
	src, dst, err := o.connect(plan.Plan{Spec: plan.Spec{Source: o.source, Destination: o.destination}}, o.settings)
	if err != nil {
		return err
	}
	got, err := o.propose(ctx, src, dst, discover.Wish{
		Name: o.name, Namespaces: o.namespaces, Location: o.location, UID: o.knownUID(),
	})
	if err != nil {
		return err
	}
	path := o.path(got.Plan.Metadata.Name)
	got.Plan.Spec.HelperImage = o.helperImage
	got.Plan.Spec.Source.Kubeconfig, got.Plan.Spec.Destination.Kubeconfig = inPlanFile(o.sourceKubeconfig, path), inPlanFile(o.destKubeconfig, path)
	if path == "-" {
		_, err := o.streams.Out.Write(plan.Marshal(got.Plan))
		return err
	}
	if err := o.write(path, got.Plan); err != nil {
		return err
	}
	return o.show(path, got)
}

// path is where a plan of this name is written.
func (o *planCreateOptions) path(name string) string {
	if o.file != "" {
		return o.file
	}
	return name + ".yaml"
}

// checkFile says early, before minutes of discovery, that a file is in the way.
func (o *planCreateOptions) checkFile(path string) error {
	if o.force || path == "-" {
		return nil
	}
	if _, err := os.Stat(path); err == nil {
		return fileInTheWay(path)
	}
	return nil
}

func fileInTheWay(path string) error {
	return &usageError{
		Err:  fmt.Errorf("plan file %s is there already", path),
		Hint: "overwrite it with --force, or write another one with -f FILE",
	}
}

// knownUID is the uid of the plan that is overwritten.
func (o *planCreateOptions) knownUID() string {
	if !o.force || (o.name == "" && o.file == "") {
		return ""
	}
	old, err := plan.Load(o.path(o.name))
	if err != nil || (o.name != "" && old.Metadata.Name != o.name) {
		return "" // no plan, or another one
	}
	return old.Metadata.UID
}

func (o *planCreateOptions) write(path string, p *plan.Plan) error {
	err := plan.WriteText(path, withSchema(path, plan.Marshal(p)), o.force)
	if errors.Is(err, fs.ErrExist) {
		return fileInTheWay(path)
	}
	return err
}

// schemaFile is where editors look for the schema of the plans beside it.
const schemaFile = "plan.schema.json"

// withSchema tells editors the schema of a plan where it is beside the file
// and is the one of this mig: a reference to nothing, or to another form, would
// mark what is right as wrong.
func withSchema(path string, text []byte) []byte {
	schema, err := os.ReadFile(filepath.Join(filepath.Dir(path), schemaFile))
	if err != nil || !bytes.Equal(schema, plan.Schema()) {
		return text
	}
	return append([]byte("# yaml-language-server: $schema="+schemaFile+"\n"), text...)
}

// createdPlan is what plan create prints.
type createdPlan struct {
	File string `json:"file"`
	*discover.Proposal
}

func (o *planCreateOptions) show(path string, got *discover.Proposal) error {
	format := render.Format(o.output)
	err := render.Print(o.streams.Out, format, o.streams.outWidth(), createdPlan{File: path, Proposal: got}, func() render.Table {
		return claimsTable(got.Claims, o.streams.outWidth())
	})
	if err != nil || format != render.FormatTable {
		return err
	}
	if err := printOutside(o.streams, missed(got.Outside)); err != nil {
		return err
	}
	var said strings.Builder
	fmt.Fprintf(&said, "\nPlan %s is in %s: %s.\n", got.Plan.Metadata.Name, path, counted(got.Plan))
	for _, note := range got.Notes {
		fmt.Fprintf(&said, "- %s\n", note)
	}
	fmt.Fprintf(&said, "Look it over, then: mig plan validate %s\n", planArg(path))
	_, err = fmt.Fprint(o.streams.ErrOut, said.String())
	return err
}

func counted(p *plan.Plan) string {
	return fmt.Sprintf("%s, %s", english.Plural(len(p.Spec.Namespaces), "namespace", ""), english.Plural(len(p.Spec.Volumes), "claim", ""))
}

// planArg is the shortest PLAN that means a file.
func planArg(path string) string {
	if name, ok := strings.CutSuffix(path, ".yaml"); ok && !strings.ContainsAny(name, "/\\") {
		return name
	}
	return path
}
