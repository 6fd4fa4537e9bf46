package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/config"
	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/migrate"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/preflight"
	"github.com/mig-cli/mig/internal/record"
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
	Propose  func(context.Context, cluster.Source, cluster.Destination, discover.Wish) (*discover.Proposal, error)
	Refresh  func(context.Context, cluster.Source, cluster.Destination, *plan.Plan) (*discover.Proposal, error)
	Look     func(context.Context, cluster.Source, cluster.Destination, plan.Valid) (discover.SourceFacts, discover.DestinationFacts, error)
	Check    func(plan.Valid, discover.SourceFacts, discover.DestinationFacts) []preflight.Condition
	Latest   func(context.Context, cluster.Source, cluster.Destination, plan.Valid) (*record.Run, error)
	Run      func(context.Context, migrate.Options) (migrate.Result, error)
	Preview  func(context.Context, migrate.Options) ([]migrate.Planned, error)
}

// NewFactory makes the factory of a process from what the process has.
func NewFactory(in, out, errOut *os.File, stop <-chan struct{}) *Factory {
	cluster.SilenceClients()
	return &Factory{
		Streams:  processStreams(in, out, errOut),
		Getenv:   os.Getenv,
		Stop:     stop,
		Contexts: cluster.Contexts,
		Connect:  cluster.Connect,
		Propose:  discover.Propose,
		Refresh:  discover.Refresh,
		Look:     discover.Look,
		Check:    preflight.Check,
		Latest:   latestRun,
		Run:      migrate.Run,
		Preview:  migrate.Preview,
	}
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

// source makes the clients of a plan's source.
func (f *Factory) source(c plan.Cluster, settings config.Config) (cluster.Source, error) {
	got, err := f.connect(c, settings)
	if err != nil {
		return cluster.Source{}, &sideError{Side: "source", Err: err}
	}
	return cluster.Source{Cluster: got}, nil
}

// destination makes the clients of a plan's destination.
func (f *Factory) destination(c plan.Cluster, settings config.Config) (cluster.Destination, error) {
	got, err := f.connect(c, settings)
	if err != nil {
		return cluster.Destination{}, &sideError{Side: "destination", Err: err}
	}
	return cluster.Destination{Cluster: got}, nil
}

func (f *Factory) connect(c plan.Cluster, settings config.Config) (*cluster.Cluster, error) {
	a := cluster.Access{Context: c.Context, Kubeconfig: c.Kubeconfig}
	if a.Kubeconfig == "" {
		a.Kubeconfig = settings.Kubeconfig
	}
	velero := c.VeleroNamespace
	if velero == "" {
		velero = plan.DefaultVeleroNamespace
	}
	return f.Connect(a, velero)
}

// both makes the clients of both clusters of a plan.
func (f *Factory) both(p plan.Plan, settings config.Config) (cluster.Source, cluster.Destination, error) {
	src, err := f.source(p.Spec.Source, settings)
	if err != nil {
		return cluster.Source{}, cluster.Destination{}, err
	}
	dst, err := f.destination(p.Spec.Destination, settings)
	return src, dst, err
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
