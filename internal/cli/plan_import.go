package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/render"
)

type planImportOptions struct {
	showOptions

	streams Streams

	from string
	wish plan.Plan
	file string
}

func newPlanImportCommand(f *Factory, run func(context.Context, *planImportOptions) error) *cobra.Command {
	o := &planImportOptions{streams: f.Streams}
	spec := &o.wish.Spec
	var velero string
	cmd := &cobra.Command{
		Use:   "import MIGPLAN.yaml --src CONTEXT --dst CONTEXT",
		Short: "Make a plan of a MigPlan of the Migration Toolkit for Containers",
		Long: `Makes a plan of a MigPlan of mig-controller (the Migration Toolkit for
Containers): its namespaces with their new names, and what it selects for each
volume. Everything that a plan cannot say is named. No cluster is asked; the
MigPlan's MigClusters are given as contexts of your kubeconfig.

The new plan has a uid of its own: what the MigPlan's migrations made is not
touched by it.

EXIT STATUS
  0 the plan is written · 1 failed
  2 wrong command line, no MigPlan, a file in the way`,
		Example: `  mig plan import migplan.yaml --src ctx1 --dst ctx2
  mig plan import migplan.yaml --src ctx1 --dst ctx2 --name shop -f shop.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return withHelp(cmd, fmt.Errorf("plan import wants one file with a MigPlan, got %d argument(s)", len(args)))
			}
			return nil
		},
		ValidArgsFunction: completePlan,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.from = args[0]
			spec.Source.VeleroNamespace, spec.Destination.VeleroNamespace = velero, velero
			if err := o.complete(f, cmd); err != nil {
				return err
			}
			if err := o.validate(); err != nil {
				return withHelp(cmd, err)
			}
			return run(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&spec.Source.Context, "src", "", "the kubeconfig `context` of the source (required)")
	flags.StringVar(&spec.Destination.Context, "dst", "", "the kubeconfig `context` of the destination (required)")
	flags.StringVar(&spec.Source.Kubeconfig, "src-kubeconfig", "", "the kubeconfig `file` of the source, if it is one of its own; kept in the plan")
	flags.StringVar(&spec.Destination.Kubeconfig, "dst-kubeconfig", "", "the kubeconfig `file` of the destination, if it is one of its own; kept in the plan")
	flags.StringVar(&o.wish.Metadata.Name, "name", "", "the plan's `name` (default: the MigPlan's)")
	flags.StringVar(&spec.Storage.Location, "storage-location", "", "the BackupStorageLocation on both clusters (default: default)")
	flags.StringVar(&velero, "velero-namespace", "", "Velero's `namespace` on both clusters (default velero)")
	flags.StringVarP(&o.file, "file", "f", "", "the `file` to write, - for standard output (default NAME.yaml)")
	o.addTo(cmd)
	for _, side := range []string{"src", "dst"} {
		_ = cmd.RegisterFlagCompletionFunc(side, completeContexts(f, side+"-kubeconfig")) // fails for an unknown flag only
	}
	return cmd
}

func (o *planImportOptions) validate() error {
	s := o.wish.Spec
	switch {
	case s.Source.Context == "":
		return errors.New("--src is missing: the kubeconfig context of the MigPlan's source")
	case s.Destination.Context == "":
		return errors.New("--dst is missing: the kubeconfig context of the MigPlan's destination")
	case o.file == "-" && o.output != string(render.FormatTable):
		return errors.New("-f - prints the plan and -o prints what was made: choose one")
	}
	return nil
}

// importedPlan is what plan import prints.
type importedPlan struct {
	File  string     `json:"file"`
	Plan  *plan.Plan `json:"plan"`
	Notes []string   `json:"notes"`
}

func runPlanImport(_ context.Context, o *planImportOptions) error {
	data, err := os.ReadFile(o.from)
	if err != nil {
		return &usageError{Err: err, Hint: "get one with: oc get migplan NAME -n openshift-migration -o yaml"}
	}
	o.wish.Metadata.UID = string(uuid.NewUUID())
	p, notes, err := plan.Import(o.from, data, o.wish)
	if err != nil {
		return err
	}
	if o.file == "-" {
		if _, err := o.streams.Out.Write(plan.Marshal(p)); err != nil {
			return err
		}
		return o.tell("", p, notes)
	}
	path := o.file
	if path == "" {
		path = p.Metadata.Name + ".yaml"
	}
	err = plan.WriteText(path, withSchema(path, plan.Marshal(p)), false)
	if errors.Is(err, fs.ErrExist) {
		return &usageError{Err: fmt.Errorf("plan file %s is there already", path), Hint: "write another one with -f FILE"}
	}
	if err != nil {
		return err
	}
	if o.output != string(render.FormatTable) {
		return render.Print(o.streams.Out, render.Format(o.output), 0, importedPlan{File: path, Plan: p, Notes: notes}, nil)
	}
	return o.tell(path, p, notes)
}

// tell says what was made and what was not carried over.
func (o *planImportOptions) tell(path string, p *plan.Plan, notes []string) error {
	var said strings.Builder
	if path != "" {
		fmt.Fprintf(&said, "Plan %s is in %s: %s.\n", p.Metadata.Name, path, counted(p))
	}
	for _, note := range notes {
		fmt.Fprintf(&said, "- %s\n", note)
	}
	if path != "" {
		fmt.Fprintf(&said, "Compare it with what the clusters hold now: mig pv discover %s --update\n", planArg(path))
	}
	_, err := fmt.Fprint(o.streams.ErrOut, said.String())
	return err
}
