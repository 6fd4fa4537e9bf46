package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/config"
	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/record"
	"github.com/mig-cli/mig/internal/render"
)

// lastRun is the word for the newest run, where a run is asked for.
const lastRun = "last"

type historyOptions struct {
	showOptions

	streams Streams
	connect func(c plan.Cluster, file string, settings config.Config) (*cluster.Cluster, error)
	runs    func(context.Context, *cluster.Cluster, naming.Owner) ([]record.Run, []error, error)
	story   func(context.Context, *cluster.Cluster, naming.Owner) (*record.Run, error)

	plan     string // a file, a name or a uid; empty: all plans
	run      string // a uid, the beginning of one, or last; empty: all runs
	clusters [2]plan.Cluster
}

func newHistoryCommand(f *Factory, run func(context.Context, *historyOptions) error) *cobra.Command {
	o := &historyOptions{streams: f.Streams, connect: f.connect, runs: f.Runs, story: f.Story}
	o.formats = historyFormats()
	var velero string
	cmd := &cobra.Command{
		Use:   "history [PLAN [RUN]]",
		Short: "List the runs of all plans, or tell one run's whole story",
		Long: `Reads the records that runs have left in the clusters. Each of the two clusters
has all of them: one that is gone or does not answer is told, and the other
suffices.

Without PLAN the runs of all plans are listed, on the clusters of the plans in
the working directory. With --src or --dst, or both, on those: no plan file is
needed, and PLAN may be the name or the uid of one that is lost.

With RUN, its uid or the beginning of it, or the word "last", it tells what
there is to tell: who, when, from where, each step with its times, how much was
copied of each volume, what was changed on which object from what to what, the
findings, and every event. -o json and yaml hold the plan as it was run, too:
that is how a lost plan file comes back.

-o markdown is for the summary of a CI job. Nothing is changed.

EXIT STATUS
  0 told · 1 failed, or there is no such run · 2 wrong command line
  4 credentials or rights refused`,
		Example: `  mig history
  mig history shop
  mig history shop last
  mig history shop --src ctx1
  mig history shop k3x7ab2c9d --dst ctx2 -o json | jq -r .planFile > shop.yaml`,
		Args:              maxArgs(2),
		ValidArgsFunction: completePlan,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.plan = argOf(args)
			if len(args) > 1 {
				o.run = args[1]
			}
			for i := range o.clusters {
				o.clusters[i].VeleroNamespace = velero
			}
			if err := o.complete(f, cmd); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	for i, side := range []string{"src", "dst"} {
		flags.StringVar(&o.clusters[i].Context, side, "", "the kubeconfig `context` of a cluster to read, in place of the plan's")
		flags.StringVar(&o.clusters[i].Kubeconfig, side+"-kubeconfig", "", "the kubeconfig `file` of that cluster, if it is one of its own")
		_ = cmd.RegisterFlagCompletionFunc(side, completeContexts(f, side+"-kubeconfig")) // fails for an unknown flag only
	}
	flags.StringVar(&velero, "velero-namespace", "", "Velero's `namespace` on the clusters of --src and --dst (default velero)")
	o.addTo(cmd)
	return cmd
}

// historyFormats are those that a story is told in.
func historyFormats() []string { return append(render.Formats(), string(render.FormatMarkdown)) }

// asked is a cluster whose records are read.
type asked struct {
	Context    string `json:"context"`
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Error      string `json:"error,omitempty"` // why nothing was read of it, or not all

	side    string
	cluster *cluster.Cluster
	err     error
}

// history is what a list of runs prints.
type history struct {
	Runs     []pastRun `json:"runs"`
	Clusters []*asked  `json:"clusters"`
}

// pastRun is one run in a list.
type pastRun struct {
	Plan       string             `json:"plan"`
	PlanUID    string             `json:"planUID"`
	UID        string             `json:"uid"`
	Kind       string             `json:"kind"`
	State      record.State       `json:"state"`
	Message    string             `json:"message,omitempty"`
	Who        string             `json:"who,omitempty"`
	Host       string             `json:"host,omitempty"`
	Version    string             `json:"version,omitempty"`
	Started    time.Time          `json:"started"`
	Ended      time.Time          `json:"ended,omitzero"`
	Seconds    float64            `json:"seconds,omitempty"` // from its start to its end
	Attempts   int                `json:"attempts"`          // processes that drove it
	Namespaces []record.Namespace `json:"namespaces,omitempty"`
	Record     string             `json:"record"`   // namespace/name of the ConfigMap
	Contexts   []string           `json:"contexts"` // of the clusters that have it
}

// found is a run with the clusters that have a record of it.
type found struct {
	run      record.Run // the copy that tells most
	at       []*asked
	contexts []string
}

func (f found) owner() naming.Owner {
	return naming.Owner{PlanName: f.run.Plan.Name, PlanUID: f.run.Plan.UID, RunUID: f.run.UID}
}

func runHistory(ctx context.Context, o *historyOptions) error {
	clusters, want, err := o.scope()
	if err != nil {
		return err
	}
	runs, err := o.gather(ctx, clusters, want)
	if err != nil {
		return err
	}
	o.warn(clusters)
	if o.run != "" {
		return o.tell(ctx, runs, clusters)
	}
	return o.list(runs, clusters)
}

// wanted is a plan whose runs are asked for; the zero one means all plans.
type wanted struct{ uid, name string }

func (w wanted) matches(p record.Plan) bool {
	switch {
	case w.uid != "":
		return p.UID == w.uid
	case w.name != "":
		return p.Name == w.name || p.UID == w.name
	default:
		return true
	}
}

// scope is which clusters are read, and for the runs of which plan.
func (o *historyOptions) scope() ([]*asked, wanted, error) {
	given, err := o.given()
	if err != nil || o.plan == "" && len(given) > 0 {
		return given, wanted{}, err
	}
	if o.plan == "" {
		all, err := o.ofPlansHere()
		return all, wanted{}, err
	}
	v, _, err := loadPlan(o.plan)
	switch {
	case err != nil && len(given) > 0:
		return given, wanted{name: o.plan}, nil // the file is lost, or of another version
	case err != nil:
		return nil, wanted{}, &usageError{Err: err, Hint: "where the plan file is lost, name a cluster: mig history " + o.plan + " --src CONTEXT"}
	case len(given) > 0:
		return given, wanted{uid: v.UID()}, nil
	}
	p := v.Plan()
	all, err := o.ofPlan(&p)
	return all, wanted{uid: v.UID()}, err
}

// given are the clusters of the command line.
func (o *historyOptions) given() ([]*asked, error) {
	var out []*asked
	for i, side := range []string{"source", "destination"} {
		c := o.clusters[i]
		if c.Context == "" {
			if c.Kubeconfig != "" {
				return nil, &usageError{Err: fmt.Errorf("a kubeconfig of the %s without its context", side), Hint: "name the context with --src or --dst"}
			}
			continue
		}
		a, err := o.reach(side, c, "")
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

func (o *historyOptions) reach(side string, c plan.Cluster, file string) (*asked, error) {
	made, err := o.connect(c, file, o.settings)
	if err != nil {
		return nil, &sideError{Side: side, Err: err}
	}
	return &asked{Context: c.Context, Kubeconfig: made.Access.Kubeconfig, side: side, cluster: made}, nil
}

// ofPlan are the clusters of a plan. One that the kubeconfig lost suffices no
// more than one that is gone, and the other does.
func (o *historyOptions) ofPlan(p *plan.Plan) ([]*asked, error) {
	var out []*asked
	var errs []error
	for _, c := range []struct {
		side string
		of   plan.Cluster
		file string
	}{
		{"source", p.Spec.Source, p.Position("spec.source").File},
		{"destination", p.Spec.Destination, p.Position("spec.destination").File},
	} {
		a, err := o.reach(c.side, c.of, c.file)
		if err != nil {
			errs = append(errs, err)
			a = &asked{Context: c.of.Context, Kubeconfig: c.of.Kubeconfig, side: c.side, err: err}
		}
		out = append(out, a)
	}
	if len(errs) == len(out) {
		return nil, errs[0]
	}
	return out, nil
}

// ofPlansHere are the clusters of all plans in the working directory, each once.
func (o *historyOptions) ofPlansHere() ([]*asked, error) {
	files, err := plan.FilesIn(".")
	if err != nil {
		return nil, err
	}
	var out []*asked
	for _, f := range files {
		if f.Err != nil {
			continue // mig plan list says what is wrong with it
		}
		v, problems := f.Plan.Validate()
		if len(problems) > 0 {
			continue
		}
		p := v.Plan()
		all, err := o.ofPlan(&p)
		if err != nil {
			return nil, err
		}
		for _, a := range all {
			if !slices.ContainsFunc(out, func(b *asked) bool { return b.sameAs(a) }) {
				out = append(out, a)
			}
		}
	}
	if len(out) == 0 {
		return nil, &usageError{Err: errors.New("there is no plan in the working directory that names clusters"), Hint: "name a cluster: mig history --src CONTEXT"}
	}
	return out, nil
}

func (a *asked) sameAs(b *asked) bool {
	return a.Context == b.Context && a.Kubeconfig == b.Kubeconfig && (a.cluster == nil) == (b.cluster == nil) &&
		(a.cluster == nil || a.cluster.VeleroNamespace == b.cluster.VeleroNamespace)
}

// gather reads the heads of all clusters at once and puts the copies of each
// run together, the newest run first. It fails where no cluster answered.
func (o *historyOptions) gather(ctx context.Context, clusters []*asked, w wanted) ([]found, error) {
	heads := make([][]record.Run, len(clusters))
	var group sync.WaitGroup
	for i, a := range clusters {
		if a.cluster == nil {
			continue
		}
		group.Go(func() {
			runs, broken, err := o.runs(ctx, a.cluster, naming.Owner{PlanUID: w.uid})
			heads[i], a.err = runs, errors.Join(append(broken, a.placed(err))...)
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	silent := !slices.ContainsFunc(clusters, func(a *asked) bool { return a.err == nil })
	var out []found
	for i, a := range clusters {
		for _, r := range heads[i] {
			if w.matches(r.Plan) {
				out = add(out, r, a)
			}
		}
	}
	if silent && len(out) == 0 {
		return nil, clusters[0].err
	}
	slices.SortStableFunc(out, func(a, b found) int { return b.run.Started.Compare(a.run.Started) })
	return out, nil
}

func add(all []found, r record.Run, a *asked) []found {
	i := slices.IndexFunc(all, func(f found) bool { return f.run.UID == r.UID && f.run.Plan.UID == r.Plan.UID })
	if i < 0 {
		return append(all, found{run: r, at: []*asked{a}, contexts: []string{a.Context}})
	}
	f := &all[i]
	f.contexts = append(f.contexts, a.Context)
	if r.IsAhead(&f.run) {
		f.run, f.at = r, append([]*asked{a}, f.at...)
		return all
	}
	f.at = append(f.at, a)
	return all
}

// placed says of a request that came to nothing which cluster it was meant for.
func (a *asked) placed(err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		return &discover.ReachError{Side: a.side, Context: a.Context, Server: a.cluster.Server, Reach: discover.Unreachable, Err: request}
	}
	return err
}

// warn tells of clusters that did not tell all.
func (o *historyOptions) warn(clusters []*asked) {
	for _, a := range clusters {
		if a.err == nil {
			continue
		}
		a.Error = strings.ReplaceAll(message(a.err), "\n", "; ")
		_, _ = fmt.Fprintf(o.streams.ErrOut, "mig: warning: what context %s has may be missing here: %s\n", a.Context, a.Error)
	}
}

func (o *historyOptions) list(runs []found, clusters []*asked) error {
	h := history{Runs: []pastRun{}, Clusters: clusters}
	for _, f := range runs {
		h.Runs = append(h.Runs, f.short())
	}
	return render.Print(o.streams.Out, render.Format(o.output), o.streams.outWidth(), h, func() render.Table {
		t := historyTable(h)
		t.Empty = o.none(clusters)
		return t
	})
}

// none says that there are no runs, and where.
func (o *historyOptions) none(clusters []*asked) string {
	if o.plan == "" {
		return fmt.Sprintf("No runs on %s.", contextsOf(clusters))
	}
	return fmt.Sprintf("No runs of plan %s on %s.", o.plan, contextsOf(clusters))
}

func (f found) short() pastRun {
	r := f.run
	return pastRun{
		Plan: r.Plan.Name, PlanUID: r.Plan.UID, UID: r.UID, Kind: r.Kind, State: r.State, Message: r.Message, Who: r.Who, Host: r.Host,
		Version: r.Version, Started: r.Started, Ended: r.Ended, Seconds: seconds(lasted(r)), Attempts: r.Attempts,
		Namespaces: r.Plan.Namespaces, Record: f.record(), Contexts: f.contexts,
	}
}

func (f found) record() string { return f.at[0].cluster.VeleroNamespace + "/" + f.owner().RunRecord() }

// lasted is 0 for a run that has not ended.
func lasted(r record.Run) time.Duration { return max(0, r.Ended.Sub(r.Started)) }

func historyTable(h history) render.Table {
	t := render.Table{
		Columns: []string{"PLAN", "RUN", "KIND", "STATE", "STARTED", "TOOK", "BY", "ON", "MESSAGE"},
	}
	for _, r := range h.Runs {
		t.Rows = append(t.Rows, []string{
			r.Plan, r.UID, r.Kind, string(r.State), stamp(r.Started), took(time.Duration(r.Seconds * float64(time.Second))),
			orDash(r.Who), strings.Join(r.Contexts, ","), orDash(r.Message),
		})
	}
	return t
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

func took(d time.Duration) string {
	if d <= 0 {
		return "-"
	}
	return render.Took(d)
}
