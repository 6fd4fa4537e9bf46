package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/config"
	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/preflight"
	"github.com/mig-cli/mig/internal/render"
)

type clusterCheckOptions struct {
	showOptions

	streams Streams
	connect func(c plan.Cluster, file string, settings config.Config) (*cluster.Cluster, error)
	look    func(context.Context, *cluster.Cluster, discover.As, []string) (discover.OneFacts, error)
	check   func(discover.OneFacts) []preflight.Condition

	contexts   []string
	as         discover.As
	namespaces []string
	velero     string
	printRole  string // "", missing, all
	user       string // who gets the role; empty: who we are
}

// What --print-role prints.
const (
	missingRights = "missing"
	allRights     = "all"
)

func newClusterCheckCommand(f *Factory, run func(context.Context, *clusterCheckOptions) error) *cobra.Command {
	o := &clusterCheckOptions{streams: f.Streams, connect: f.connect, look: discover.LookOne, check: preflight.CheckOne}
	var as, namespaces string
	cmd := &cobra.Command{
		Use:   "check CONTEXT...",
		Short: "Check a cluster's Velero, node-agents, storage, classes and our rights",
		Long: `Looks at each cluster as a plan's validation would, without a plan: whether it
answers and for how long our credentials are good, whether Velero is there, new
enough and ready, node-agent node by node, the storage locations, the storage
classes, and every right that a run needs. Nothing is changed.

--as says what the cluster is to be; without it the rights of both are asked.
--namespaces asks for the rights in those namespaces alone; without it, in all
that there are and will be.

--print-role prints no check, but the rights as manifests to apply: ClusterRole,
Roles and their bindings. Plain, it prints what we lack; --print-role=all prints
all that a run needs, for who rules the cluster to give to --for USER. A service
account is system:serviceaccount:NAMESPACE:NAME.

The one right that is not among them is get nodes/proxy, by which the kubelets
tell how full volumes are: it lets do much more. Without it that is unknown.

EXIT STATUS
  0 ready · 1 failed · 2 wrong command line, unknown context
  4 the cluster refused our credentials, or nothing but rights is missing
  10 something is not as it must be`,
		Example: `  mig cluster check ctx1 ctx2
  mig cluster check ctx1 --as source --namespaces shop -o json
  mig cluster check ctx2 --as destination --namespaces shop --print-role=all --for jane | kubectl --context ctx2 apply -f -`,
		Args: someContexts,
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			settings, _ := f.config(cmd)
			return f.Contexts(settings.Kubeconfig), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.contexts = args
			if err := o.complete(f, cmd); err != nil {
				return err
			}
			if err := o.parse(as, namespaces); err != nil {
				return withHelp(cmd, err)
			}
			return run(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&as, "as", "", "what the cluster is to be: `role` source or destination (default both)")
	flags.StringVar(&namespaces, "namespaces", "", "ask for the rights in these `namespaces` alone: a,b")
	flags.StringVar(&o.velero, "velero-namespace", "", "Velero's `namespace` (default velero)")
	flags.StringVar(&o.printRole, "print-role", "", "print `what` of the rights as manifests to apply: missing or all")
	flags.Lookup("print-role").NoOptDefVal = missingRights
	flags.StringVar(&o.user, "for", "", "the `user` who is to get the rights (default: who we are)")
	complete(cmd, "as", "source", "destination")
	complete(cmd, "print-role", missingRights, allRights)
	o.addTo(cmd)
	return cmd
}

func someContexts(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return withHelp(cmd, errors.New("name a kubeconfig context, or several"))
	}
	return nil
}

func (o *clusterCheckOptions) parse(as, namespaces string) error {
	switch as {
	case "":
		o.as = discover.As{Source: true, Destination: true}
	case "source":
		o.as.Source = true
	case "destination":
		o.as.Destination = true
	default:
		return fmt.Errorf("--as %q: want source or destination", as)
	}
	if !slices.Contains([]string{"", missingRights, allRights}, o.printRole) {
		return fmt.Errorf("--print-role=%s: want missing or all", o.printRole)
	}
	if o.user != "" && o.printRole == "" {
		return errors.New("--for is who gets what --print-role prints: without it there is nothing to get")
	}
	if len(o.contexts) > 1 && o.printRole != "" {
		return errors.New("--print-role prints manifests for one cluster: name one context")
	}
	asked, err := parseNamespaces(namespaces)
	for _, n := range asked {
		o.namespaces = append(o.namespaces, n.Name)
	}
	return err
}

// checkedCluster is one cluster as cluster check prints it.
type checkedCluster struct {
	Ready bool `json:"ready"`
	discover.OneFacts
	Conditions []preflight.Condition `json:"conditions"`
}

// clusterCheck is what cluster check prints.
type clusterCheck struct {
	Clusters []checkedCluster `json:"clusters"`
}

func runClusterCheck(ctx context.Context, o *clusterCheckOptions) error {
	got, err := o.lookAtAll(ctx)
	if err != nil {
		return err
	}
	if o.printRole != "" {
		return o.printRights(got.Clusters[0])
	}
	if o.output != string(render.FormatTable) {
		err = render.Print(o.streams.Out, render.Format(o.output), 0, got, nil)
	} else {
		err = o.show(got)
	}
	if err != nil {
		return err
	}
	return o.verdict(got)
}

func (o *clusterCheckOptions) lookAtAll(ctx context.Context) (clusterCheck, error) {
	got := clusterCheck{Clusters: make([]checkedCluster, len(o.contexts))}
	clients := make([]*cluster.Cluster, len(o.contexts))
	for i, name := range o.contexts {
		var err error
		if clients[i], err = o.connect(plan.Cluster{Context: name, VeleroNamespace: o.velero}, "", o.settings); err != nil {
			return got, err
		}
	}
	var group errgroup.Group
	for i, c := range clients {
		group.Go(func() error {
			facts, err := o.look(ctx, c, o.as, o.namespaces)
			conditions := o.check(facts)
			got.Clusters[i] = checkedCluster{Ready: preflight.Ready(conditions), OneFacts: facts, Conditions: conditions}
			return err
		})
	}
	return got, group.Wait()
}

// verdict is the exit code of what was found.
func (o *clusterCheckOptions) verdict(got clusterCheck) error {
	var said, types []string
	refused := false
	for _, c := range got.Clusters {
		for _, blocking := range preflight.Blocking(c.Conditions) {
			said, types = append(said, blocking.Message), append(types, blocking.Type)
		}
		refused = refused || c.Reach == discover.Denied
	}
	if len(said) == 0 {
		return nil
	}
	return &blockedError{
		Message: "not ready for a migration:\n" + strings.Join(said, "\n"),
		Hint:    "settle what is marked ✗, then: mig cluster check " + strings.Join(o.contexts, " "),
		Denied:  refused || onlyRights(types),
	}
}

// printRights prints rights as manifests. Where the cluster was not reached, or
// did not say what we may do, there is nothing to print.
func (o *clusterCheckOptions) printRights(c checkedCluster) error {
	if c.Reach != discover.Reached || c.HasGap(discover.PartRights) {
		return o.verdict(clusterCheck{Clusters: []checkedCluster{c}})
	}
	rights := slices.Concat(c.Source, c.Destination)
	if o.printRole == missingRights {
		rights = slices.DeleteFunc(rights, func(r discover.Right) bool { return r.Allowed })
	}
	if len(rights) == 0 {
		_, err := fmt.Fprintf(o.streams.ErrOut, "%s lacks no right on %s; --print-role=all prints all that a run needs\n", orWord(c.Access.User, "the user of the kubeconfig"), c.Context)
		return err
	}
	if o.user != "" {
		c.Access.User = o.user
	}
	_, err := io.WriteString(o.streams.Out, preflight.Manifest(rights, c.Facts))
	return err
}

// show prints tables, one cluster after the other.
func (o *clusterCheckOptions) show(got clusterCheck) error {
	for i, c := range got.Clusters {
		if i > 0 {
			if _, err := io.WriteString(o.streams.Out, "\n"); err != nil {
				return err
			}
		}
		if err := o.showOne(c); err != nil {
			return err
		}
	}
	return nil
}

func (o *clusterCheckOptions) showOne(c checkedCluster) error {
	if _, err := io.WriteString(o.streams.Out, heading(c)); err != nil {
		return err
	}
	if err := o.table("", conditionsTable(c.Conditions)); err != nil {
		return err
	}
	if c.Reach == discover.Reached {
		for _, t := range []struct {
			title string
			table render.Table
		}{
			{"NODE-AGENT", agentsTable(c.Facts)},
			{"STORAGE LOCATIONS", locationsTable(c.Velero.Locations)},
			{"STORAGE CLASSES", classesTable(c.StorageClasses)},
			{"RIGHTS", rightsTable(c.OneFacts)},
		} {
			if err := o.table(t.title, t.table); err != nil {
				return err
			}
		}
	}
	_, err := io.WriteString(o.streams.Out, hints(c.Conditions))
	return err
}

func (o *clusterCheckOptions) table(title string, t render.Table) error {
	if title != "" {
		if _, err := io.WriteString(o.streams.Out, "\n"+title+"\n"); err != nil {
			return err
		}
	}
	return render.Print(o.streams.Out, render.FormatTable, o.streams.outWidth(), nil, func() render.Table { return t })
}

// heading is what a cluster is, in a line or two.
func heading(c checkedCluster) string {
	said := fmt.Sprintf("CLUSTER %s   %s", c.Context, c.Server)
	if c.Version != "" {
		said += "   Kubernetes " + c.Version
	}
	if c.OpenShift {
		said += " (OpenShift)"
	}
	if c.Access.User != "" {
		said += "   as " + c.Access.User
	}
	if v := c.Velero.Server; v.Found {
		said += fmt.Sprintf("\nVelero %s in namespace %s", orWord(v.Version, v.Image), c.Velero.Namespace)
		if v.OADP {
			said += ", kept by OADP"
		}
		if len(v.Plugins) > 0 {
			said += ", with " + strings.Join(v.Plugins, ", ")
		}
	}
	return said + "\n\n"
}

// agentsTable is node-agent node by node, with the nodes that have none.
func agentsTable(f discover.Facts) render.Table {
	t := render.Table{Columns: []string{"NODE", "READY", "POD"}, Empty: "No node-agent, and no nodes that we may see."}
	seen := map[string]bool{}
	for _, a := range f.Velero.NodeAgent.Nodes {
		seen[a.Node] = true
		t.Rows = append(t.Rows, []string{orDash(a.Node), yesNo(a.Ready), a.Pod})
	}
	for _, n := range f.Nodes {
		if !seen[n.Name] {
			t.Rows = append(t.Rows, []string{n.Name, "no", "-"})
		}
	}
	return t
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func locationsTable(locations []discover.Location) render.Table {
	t := render.Table{Columns: []string{"NAME", "PHASE", "PROVIDER", "BUCKET", "PREFIX", "ACCESS", "CREDENTIALS"}, Empty: "No storage location."}
	for _, l := range locations {
		credentials := "of the node or service account"
		if l.Secret != nil {
			credentials = "Secret " + l.Secret.Name + " " + l.Secret.Flaw
		}
		t.Rows = append(t.Rows, []string{l.Name, orWord(l.Phase, "not looked at"), l.Provider, l.Bucket, orDash(l.Prefix), orWord(l.AccessMode, "ReadWrite"), strings.TrimSpace(credentials)})
	}
	return t
}

func classesTable(classes []discover.StorageClass) render.Table {
	t := render.Table{Columns: []string{"NAME", "PROVISIONER", "DEFAULT", "BINDING", "EXPANDABLE", "RECLAIM"}, Empty: "No storage class."}
	for _, c := range classes {
		t.Rows = append(t.Rows, []string{c.Name, c.Provisioner, yesNo(c.Default), c.BindingMode, yesNo(c.Expandable), orDash(c.Reclaim)})
	}
	return t
}

// rightsTable is every right that a run needs, those of one resource in a line.
func rightsTable(f discover.OneFacts) render.Table {
	t := render.Table{Columns: []string{"", "AS", "NAMESPACE", "RESOURCE", "VERBS", "MISSING", "WHY"}, Empty: "Not asked."}
	for _, role := range []struct {
		name   string
		rights []discover.Right
	}{{"source", f.Source}, {"destination", f.Destination}} {
		for _, group := range byResource(role.rights) {
			t.Rows = append(t.Rows, rightsRow(role.name, group))
		}
	}
	return t
}

// byResource puts together what differs in the verb alone.
func byResource(rights []discover.Right) [][]discover.Right {
	var out [][]discover.Right
	for _, r := range rights {
		if n := len(out); n > 0 && sameButVerb(out[n-1][0], r) {
			out[n-1] = append(out[n-1], r)
			continue
		}
		out = append(out, []discover.Right{r})
	}
	return out
}

func sameButVerb(a, b discover.Right) bool {
	return a.Group == b.Group && a.Resource == b.Resource && a.Subresource == b.Subresource && a.Namespace == b.Namespace && a.Why == b.Why
}

func rightsRow(role string, rights []discover.Right) []string {
	first, mark := rights[0], "✓"
	var verbs, missing []string
	for _, r := range rights {
		verbs = append(verbs, r.Verb)
		if !r.Allowed {
			missing = append(missing, r.Verb)
			mark = "✗"
		}
	}
	if len(missing) > 0 && first.Optional {
		mark = "-"
	}
	resource := strings.Trim(first.Resource+"/"+first.Subresource, "/")
	if first.Group != "" {
		resource += "." + first.Group
	}
	return []string{mark, role, orWord(first.Namespace, "(all)"), resource, strings.Join(verbs, ","), orDash(strings.Join(missing, ",")), first.Why}
}
