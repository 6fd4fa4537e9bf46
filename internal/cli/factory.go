package cli

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/config"
	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/migrate"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/preflight"
	"github.com/mig-cli/mig/internal/record"
	"github.com/mig-cli/mig/internal/step"
	"github.com/mig-cli/mig/internal/verify"
)

// Streams are where a command reads and writes, and what they can do.
type Streams struct {
	genericiooptions.IOStreams // Out is for data, ErrOut for talk

	InTerminal, OutTerminal, ErrTerminal bool
	// Size of the terminal now; asked only where Out or ErrOut is one.
	Size func() (width, height int)
}

// Factory gives commands what they need. Everything that dials is a function,
// so that nothing is dialled before a command has checked what it was asked.
type Factory struct {
	Streams Streams
	Getenv  func(string) string
	// Stop is closed at the first interrupt: a run ends at its next safe point,
	// everything else at once.
	Stop <-chan struct{}

	Contexts func(kubeconfig string) []string
	Connect  func(a cluster.Access, veleroNamespace string) (*cluster.Cluster, error)
	Verify   func(context.Context, cluster.Source, cluster.Destination, plan.Valid) (verify.Report, error)
	Propose  func(context.Context, cluster.Source, cluster.Destination, discover.Wish) (*discover.Proposal, error)
	Refresh  func(context.Context, cluster.Source, cluster.Destination, *plan.Plan) (*discover.Proposal, error)
	Look     func(context.Context, cluster.Source, cluster.Destination, plan.Valid) (discover.SourceFacts, discover.DestinationFacts, error)
	Check    func(plan.Valid, discover.SourceFacts, discover.DestinationFacts) []preflight.Condition
	KnownUID func(context.Context, cluster.Source, cluster.Destination, plan.Valid) error
	Latest   func(context.Context, cluster.Source, cluster.Destination, plan.Valid) (*record.Run, error)
	Runs     func(context.Context, *cluster.Cluster, naming.Owner) (runs []record.Run, broken []error, err error)
	Story    func(context.Context, *cluster.Cluster, naming.Owner) (*record.Run, error)
	Quiet    func(context.Context, step.Run) error // is the source still quiesced? *step.GateError: no
	Run      func(context.Context, migrate.Options) (migrate.Result, error)
	Preview  func(context.Context, migrate.Options) ([]migrate.Planned, error)

	logs *logs // of the command that runs; nil before and after
}

// NewFactory makes the factory of a process from what the process has.
func NewFactory(in, out, errOut *os.File, stop <-chan struct{}) *Factory {
	cluster.SilenceClients()
	streams := processStreams(in, out, errOut)
	f := &Factory{
		Streams:  streams,
		Getenv:   os.Getenv,
		Stop:     stop,
		Contexts: cluster.Contexts,
		Verify:   verify.Objects,
		Propose:  discover.Propose,
		Refresh:  discover.Refresh,
		Look:     discover.Look,
		Check:    preflight.Check,
		KnownUID: migrate.KnownUID,
		Latest:   latestRun,
		Runs:     record.Heads,
		Story:    record.Read,
		Quiet:    step.StillQuiesced,
		Run:      migrate.Run,
		Preview:  migrate.Preview,
	}
	f.Connect = func(a cluster.Access, veleroNamespace string) (*cluster.Cluster, error) {
		console := streams.console(in)
		console.Log = f.log().Logger
		return console.Connect(a, veleroNamespace)
	}
	return f
}

func processStreams(in, out, errOut *os.File) Streams {
	isTerminal := func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
	s := Streams{
		IOStreams:  genericiooptions.IOStreams{In: in, Out: out, ErrOut: errOut},
		InTerminal: isTerminal(in), OutTerminal: isTerminal(out), ErrTerminal: isTerminal(errOut),
	}
	shown := errOut
	if s.OutTerminal {
		shown = out
	}
	s.Size = func() (int, int) {
		w, h, err := term.GetSize(int(shown.Fd()))
		if err != nil || w <= 0 || h <= 0 {
			return 80, 24 // what a terminal is where it cannot say
		}
		return w, h
	}
	return s
}

// console is where a kubeconfig's login helper may ask its user, if there is one.
func (s Streams) console(in *os.File) cluster.Console {
	if !s.InTerminal || !s.ErrTerminal {
		return cluster.Console{}
	}
	return cluster.Console{In: in, Err: s.ErrOut}
}

// outWidth is the width in which tables are printed: 0, no limit, where a
// script may read.
func (s Streams) outWidth() int {
	if !s.OutTerminal {
		return 0
	}
	w, _ := s.Size()
	return w
}

// canRedraw says whether a live view can be drawn on Err.
func (f *Factory) canRedraw() bool { return f.Streams.ErrTerminal && f.Getenv("TERM") != "dumb" }

// colour says whether Err is coloured.
func (f *Factory) colour(c config.Colour) bool {
	switch c {
	case config.ColourAlways:
		return true
	case config.ColourNever:
		return false
	default:
		return f.canRedraw() && f.Getenv("NO_COLOR") == ""
	}
}

// config reads the settings for a command.
func (f *Factory) config(cmd *cobra.Command) (config.Config, error) {
	return config.Load(cmd.Flags(), f.Getenv)
}

// both makes the clients of both clusters of a plan. A path to a kubeconfig is
// relative to the plan's file, as paths in a kubeconfig are to it: a plan and
// its kubeconfigs can be moved together, and used from anywhere.
func (f *Factory) both(p plan.Plan, settings config.Config) (cluster.Source, cluster.Destination, error) {
	src, err := f.connect(p.Spec.Source, p.Position("spec.source").File, settings)
	if err != nil {
		return cluster.Source{}, cluster.Destination{}, &sideError{Side: "source", Err: err}
	}
	dst, err := f.connect(p.Spec.Destination, p.Position("spec.destination").File, settings)
	if err != nil {
		return cluster.Source{Cluster: src}, cluster.Destination{}, &sideError{Side: "destination", Err: err}
	}
	return cluster.Source{Cluster: src}, cluster.Destination{Cluster: dst}, nil
}

// connect makes the clients of a cluster that stands in a file; file is empty
// for one of the command line.
func (f *Factory) connect(c plan.Cluster, file string, settings config.Config) (*cluster.Cluster, error) {
	a := cluster.Access{Context: c.Context, Kubeconfig: c.Kubeconfig}
	switch {
	case a.Kubeconfig == "":
		a.Kubeconfig = settings.Kubeconfig
	case file != "" && !filepath.IsAbs(a.Kubeconfig):
		a.Kubeconfig = filepath.Join(filepath.Dir(file), a.Kubeconfig)
	}
	return f.Connect(a, cmp.Or(c.VeleroNamespace, plan.DefaultVeleroNamespace))
}

// inPlanFile is a kubeconfig's path of the command line as it is to stand in a
// plan file: relative to it where it leads down from there, whole otherwise, as
// kubectl config writes paths.
func inPlanFile(path, file string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return path // there is no working directory: nothing is more right
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil || file == "-" {
		return whole
	}
	relative, err := filepath.Rel(dir, whole)
	if err != nil || !filepath.IsLocal(relative) {
		return whole
	}
	return relative
}

// untilStop is a context that also ends at the first interrupt, for whatever
// has no safe points of its own.
func (f *Factory) untilStop(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-f.Stop:
			cancel(ErrInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
