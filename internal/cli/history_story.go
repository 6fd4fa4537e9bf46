package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mig-cli/mig/internal/record"
	"github.com/mig-cli/mig/internal/render"
)

// pastStory is all of one run.
type pastStory struct {
	record.Run
	Record   string   `json:"record"`   // namespace/name of the ConfigMap
	Contexts []string `json:"contexts"` // of the clusters that have it
	PlanFile string   `json:"planFile"` // the plan as it was run
	Clusters []*asked `json:"clusters"`
}

// tell tells the one run that was asked for, from the first cluster that has
// all of it.
func (o *historyOptions) tell(ctx context.Context, runs []found, clusters []*asked) error {
	f, err := o.choose(runs, clusters)
	if err != nil {
		return err
	}
	var errs []error
	for _, a := range f.at {
		r, err := o.story(ctx, a.cluster, f.owner())
		if err != nil {
			errs = append(errs, a.placed(err))
			continue
		}
		s := pastStory{Run: *r, Record: f.record(), Contexts: f.contexts, PlanFile: r.Plan.YAML, Clusters: clusters}
		return o.print(s)
	}
	return errors.Join(errs...)
}

// choose is the one run that the command line means.
func (o *historyOptions) choose(runs []found, clusters []*asked) (found, error) {
	if o.run == lastRun && len(runs) > 0 {
		return runs[0], nil
	}
	var fit []found
	for _, f := range runs {
		if f.run.UID == o.run {
			return f, nil
		}
		if strings.HasPrefix(f.run.UID, o.run) {
			fit = append(fit, f)
		}
	}
	switch len(fit) {
	case 1:
		return fit[0], nil
	case 0:
		return found{}, &noSuchRunError{Plan: o.plan, Run: o.run, Where: contextsOf(clusters), Hint: o.others(len(runs) > 0)}
	default:
		return found{}, &usageError{Err: fmt.Errorf("%d runs begin with %q", len(fit), o.run), Hint: "write more of it"}
	}
}

// noSuchRunError is a run of which no cluster that answered has a record.
type noSuchRunError struct {
	Plan, Run string
	Where     string // the contexts that were read
	Hint      string
}

func contextsOf(clusters []*asked) string {
	names := make([]string, 0, len(clusters))
	for _, a := range clusters {
		names = append(names, a.Context)
	}
	return strings.Join(names, ", ")
}

// others is the command that lists the runs that there are, on the clusters
// that this command line names: of the plan, where it has any.
func (o *historyOptions) others(ofPlan bool) string {
	text, command := "see the runs of all plans with: ", "mig history"
	if ofPlan {
		text, command = "see which there are with: ", command+" "+o.plan
	}
	for i, side := range []string{"src", "dst"} {
		if c := o.clusters[i]; c.Context != "" {
			command += " --" + side + " " + c.Context
			if c.Kubeconfig != "" {
				command += " --" + side + "-kubeconfig " + c.Kubeconfig
			}
		}
	}
	return text + command
}

func (e *noSuchRunError) Error() string {
	if e.Run == lastRun {
		return fmt.Sprintf("there is no record of a run of plan %s on %s", e.Plan, e.Where)
	}
	return fmt.Sprintf("there is no record of a run %s of plan %s on %s", e.Run, e.Plan, e.Where)
}

func (o *historyOptions) print(s pastStory) error {
	format := render.Format(o.output)
	if format != render.FormatTable && format != render.FormatMarkdown {
		return render.Print(o.streams.Out, format, 0, s, nil)
	}
	var out strings.Builder
	for _, p := range s.parts() {
		if len(p.table.Rows) == 0 {
			continue
		}
		if err := p.write(&out, format, o.streams.outWidth()); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(o.streams.Out, out.String())
	return err
}

// storyPart is a table of a story under its title.
type storyPart struct {
	title string
	table render.Table
}

func (p storyPart) write(out *strings.Builder, f render.Format, width int) error {
	if f == render.FormatMarkdown {
		fmt.Fprintf(out, "### %s\n\n", render.MarkdownText(p.title))
		out.WriteString(p.table.Markdown() + "\n")
		return nil
	}
	title := p.title
	if out.Len() > 0 { // the first names the plan
		title = "\n" + strings.ToUpper(title)
	}
	out.WriteString(title + "\n")
	return p.table.Write(out, width)
}

func (s pastStory) parts() []storyPart {
	return []storyPart{
		{fmt.Sprintf("%s of plan %s: %s", s.Kind, s.Plan.Name, s.State), s.facts()},
		{"Steps", stepTable(s.Steps)},
		{"Volumes", volumeTable(s.Volumes)},
		{"Changed", changeTable(s.Changes)},
		{"Findings", conditionTable(s.Conditions)},
		{"Accepted", acceptedThen(s.Accepted)},
		{"Events", eventTable(s.Events)},
	}
}

func (s pastStory) facts() render.Table {
	t := render.Table{Columns: []string{"WHAT", ""}}
	var names []string
	for _, n := range s.Plan.Namespaces {
		names = append(names, n.Source+" → "+n.Destination)
	}
	for _, row := range [][]string{
		{"Run", s.UID},
		{"Message", s.Message},
		{"Started", stamp(s.Started)},
		{"Ended", stamp(s.Ended)},
		{"Took", took(lasted(s.Run))},
		{"By", s.Who},
		{"From", s.Host},
		{"Version", s.Version},
		{"Attempts", fmt.Sprint(s.Attempts)},
		{"Namespaces", strings.Join(names, ", ")},
		{"Source", choice(s.SourceDown, "stopped by this run", "not stopped by this run")},
		{"Destination", choice(s.DestinationStarted, "workloads may have started", "nothing started")},
		{"Plan", s.Plan.UID + ", " + s.Plan.Digest},
		{"Record", s.Record + " on " + strings.Join(s.Contexts, ", ")},
	} {
		if row[1] != "" && row[1] != "-" {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

func choice(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

func stepTable(steps []record.Step) render.Table {
	t := render.Table{Columns: []string{"", "STEP", "STATE", "STARTED", "TOOK", "ATTEMPTS", "WHAT"}}
	for _, s := range steps {
		t.Rows = append(t.Rows, []string{
			fmt.Sprint(s.Number), s.Name, orWord(string(s.State), "to come"), stamp(s.Started), took(s.Took), fmt.Sprint(s.Attempts), orDash(s.Note),
		})
	}
	return t
}

func volumeTable(volumes []record.Volume) render.Table {
	t := render.Table{Columns: []string{"CLAIM", "COPIED", "FILES", "STEP"}}
	for _, v := range volumes {
		files := "-"
		if v.Files > 0 {
			files = fmt.Sprint(v.Files)
		}
		t.Rows = append(t.Rows, []string{v.Claim, render.Size(v.Bytes), files, orDash(v.Step)})
	}
	return t
}

func changeTable(changes []record.Change) render.Table {
	t := render.Table{Columns: []string{"AT", "ON", "OBJECT", "FIELD", "BEFORE → AFTER"}}
	for _, c := range changes {
		o := c.Object
		t.Rows = append(t.Rows, []string{
			stamp(c.At), orDash(string(o.Side)), objectWords(o.Kind, o.Namespace, o.Name), c.Field, orDash(c.Before) + " → " + orDash(c.After),
		})
	}
	return t
}

func objectWords(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return orDash(strings.TrimSpace(kind + " " + name))
}

func conditionTable(conditions []record.Condition) render.Table {
	t := render.Table{Columns: []string{"CONDITION", "CATEGORY", "STATUS", "REASON", "MESSAGE"}}
	for _, c := range conditions {
		t.Rows = append(t.Rows, []string{c.Type, orDash(c.Category), c.Status, orDash(c.Reason), orDash(c.Message)})
	}
	return t
}

func acceptedThen(accepted []record.Accepted) render.Table {
	t := render.Table{Columns: []string{"CONDITION", "OBJECT", "WHY"}}
	for _, a := range accepted {
		t.Rows = append(t.Rows, []string{a.Type, a.Object, a.Why})
	}
	return t
}

func eventTable(events []record.Event) render.Table {
	t := render.Table{Columns: []string{"TIME", "TYPE", "REASON", "STEP", "OBJECT", "TEXT"}}
	for _, e := range events {
		t.Rows = append(t.Rows, []string{
			stamp(e.Time), choice(e.IsWarning(), "Warning", "Normal"), cmp.Or(e.Reason, "-"), orDash(e.Step),
			objectWords(e.Object.Kind, e.Object.Namespace, e.Object.Name), e.Text,
		})
	}
	return t
}
