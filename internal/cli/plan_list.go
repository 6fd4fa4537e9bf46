package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/config"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/record"
	"github.com/mig-cli/mig/internal/render"
)

type planListOptions struct {
	showOptions

	streams Streams
	connect func(plan.Plan, config.Config) (cluster.Source, cluster.Destination, error)
	latest  func(context.Context, cluster.Source, cluster.Destination, plan.Valid) (*record.Run, error)

	clusters bool
}

func newPlanListCommand(f *Factory, run func(context.Context, *planListOptions) error) *cobra.Command {
	o := &planListOptions{streams: f.Streams, connect: f.both, latest: f.Latest}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the plans in the working directory",
		Long: `Lists the plan files of the working directory, those with mistakes too. No
cluster is asked, unless --clusters is given: then each plan's source is asked
for its last run. A source that does not answer is told in its row.

EXIT STATUS
  0 listed, also where there are none · 1 failed · 2 wrong command line`,
		Example: `  mig plan list
  mig plan list --clusters
  mig plan list -o json | jq -r '.plans[].file'`,
		Args: maxArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(f, cmd); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.clusters, "clusters", false, "ask each plan's source for its last run")
	o.addTo(cmd)
	return cmd
}

// listedPlan is one plan as plan list prints it.
type listedPlan struct {
	File        string           `json:"file"`
	Name        string           `json:"name,omitempty"`
	UID         string           `json:"uid,omitempty"`
	Source      string           `json:"source,omitempty"`      // context
	Destination string           `json:"destination,omitempty"` // context
	Namespaces  []plan.Namespace `json:"namespaces"`
	Volumes     int              `json:"volumes"`
	Problems    []plan.Problem   `json:"problems,omitempty"` // why it cannot be used
	LastRun     *listedRun       `json:"lastRun,omitempty"`  // with --clusters, where there is one
	Error       string           `json:"error,omitempty"`    // with --clusters, why the last run is not known
}

// listedRun is a plan's last run in short.
type listedRun struct {
	UID     string       `json:"uid"`
	Kind    string       `json:"kind"`
	State   record.State `json:"state"`
	Started time.Time    `json:"started"`
	Ended   time.Time    `json:"ended,omitzero"`
}

// listedPlans is what plan list prints.
type listedPlans struct {
	Plans []listedPlan `json:"plans"`
}

func runPlanList(ctx context.Context, o *planListOptions) error {
	files, err := plan.FilesIn(".")
	if err != nil {
		return err
	}
	got := listedPlans{Plans: []listedPlan{}}
	for _, f := range files {
		l := listed(f)
		if o.clusters && f.Err == nil {
			l.LastRun, err = o.lastRun(ctx, f.Plan)
			if l.Error = ""; err != nil {
				l.Error = message(err)
			}
		}
		got.Plans = append(got.Plans, l)
	}
	return render.Print(o.streams.Out, render.Format(o.output), o.streams.outWidth(), got, func() render.Table { return o.table(got) })
}

func listed(f plan.Listed) listedPlan {
	l := listedPlan{File: f.File, Namespaces: []plan.Namespace{}}
	if p := f.Plan; p != nil {
		l.Name, l.UID, l.Source, l.Destination = p.Metadata.Name, p.Metadata.UID, p.Spec.Source.Context, p.Spec.Destination.Context
		l.Namespaces, l.Volumes = append(l.Namespaces, p.Spec.Namespaces...), len(p.Spec.Volumes)
	}
	if f.Err != nil {
		l.Problems = f.Err.Problems
		if f.Err.Err != nil {
			l.Problems = []plan.Problem{{Pos: plan.Position{File: f.File}, Message: f.Err.Error()}}
		}
	}
	return l
}

// lastRun is nil where a plan has none.
func (o *planListOptions) lastRun(ctx context.Context, p *plan.Plan) (*listedRun, error) {
	v, problems := p.Validate()
	if len(problems) > 0 {
		return nil, errors.New(problems[0].String())
	}
	src, dst, err := o.connect(v.Plan(), o.settings)
	if err != nil {
		return nil, err
	}
	r, err := o.latest(ctx, src, dst, v)
	if errors.Is(err, record.ErrNoRun) {
		return nil, nil //nolint:nilnil // no run is an answer, not an error
	}
	if err != nil {
		return nil, placed(err, src, dst)
	}
	return &listedRun{UID: r.UID, Kind: r.Kind, State: r.State, Started: r.Started, Ended: r.Ended}, nil
}

func (o *planListOptions) table(got listedPlans) render.Table {
	t := render.Table{
		Columns: []string{"PLAN", "FILE", "SOURCE", "DESTINATION", "VOLUMES", "NAMESPACES"},
		Empty:   "No plans in the working directory: make one with: mig plan create",
	}
	if o.clusters {
		t.Columns = []string{"PLAN", "FILE", "SOURCE", "DESTINATION", "VOLUMES", "LAST RUN", "NAMESPACES"}
	}
	for _, l := range got.Plans {
		row := []string{orDash(l.Name), l.File, orDash(l.Source), orDash(l.Destination), fmt.Sprint(l.Volumes)}
		if o.clusters {
			row = append(row, lastRunWord(l))
		}
		t.Rows = append(t.Rows, append(row, about(l)))
	}
	return t
}

func lastRunWord(l listedPlan) string {
	switch {
	case l.LastRun != nil:
		return l.LastRun.Kind + " " + string(l.LastRun.State)
	case l.Error != "":
		return "not known"
	case len(l.Problems) > 0:
		return "-"
	default:
		return "none"
	}
}

// about are the namespaces of a plan, or what is wrong with it.
func about(l listedPlan) string {
	if n := len(l.Problems); n > 0 {
		return fmt.Sprintf("%s: %s", english.Plural(n, "mistake", ""), l.Problems[0])
	}
	var names []string
	for _, n := range l.Namespaces {
		name := n.Name
		if n.Destination != "" && n.Destination != n.Name {
			name += " → " + n.Destination
		}
		names = append(names, name)
	}
	const most = 10
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if l.Error != "" {
		text += " (last run: " + strings.ReplaceAll(l.Error, "\n", "; ") + ")"
	}
	return text
}
