package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/preflight"
)

// goodCluster is a cluster on which all is well.
func goodCluster() discover.OneFacts {
	right := func(verb, resource, namespace string) discover.Right {
		return discover.Right{Verb: verb, Resource: resource, Namespace: namespace, Why: "find writers", Allowed: true}
	}
	return discover.OneFacts{
		Facts: discover.Facts{
			Context: "src", Server: "https://src", Reach: discover.Reached, Version: "v1.34.4", UID: "u",
			Access: discover.Access{User: "jane", Now: time.Date(2031, 2, 3, 0, 0, 0, 0, time.UTC)},
			Velero: discover.Velero{
				Namespace: "velero", Exists: true,
				Server:    discover.Deployment{Found: true, Version: "v1.18.3", Image: "velero:v1.18.3", Wanted: 1, Ready: 1, OADP: true},
				NodeAgent: discover.NodeAgent{Found: true, Wanted: 1, Ready: 1, HostPods: "/var/lib/kubelet/pods", Nodes: []discover.AgentNode{{Node: "n1", Pod: "node-agent-x", Ready: true}}},
				Locations: []discover.Location{{Name: "default", Phase: "Available", Provider: "aws", Bucket: "b"}},
			},
			Nodes:          []discover.Node{{Name: "n1", Ready: true}, {Name: "n2", Ready: true}},
			StorageClasses: []discover.StorageClass{{Name: "fast", Provisioner: "csi.example.com", Default: true, BindingMode: "Immediate"}},
			Namespaces:     []discover.Namespace{{Name: "shop"}},
		},
		Source: []discover.Right{right("get", "pods", "shop"), right("list", "pods", "shop"), right("list", "namespaces", "")},
	}
}

// checks runs cluster check on a cluster.
func (b *bench) checks(t *testing.T, f discover.OneFacts, printRole, user string) error {
	t.Helper()
	b.out.Reset()
	b.err.Reset()
	return runClusterCheck(context.Background(), &clusterCheckOptions{
		streams: b.Streams, connect: b.connect, check: preflight.CheckOne, contexts: []string{f.Context}, showOptions: showOptions{output: "table"}, printRole: printRole, user: user,
		look: func(context.Context, *cluster.Cluster, discover.As, []string) (discover.OneFacts, error) {
			return f, nil
		},
	})
}

func TestClusterCheckShowsWhatThereIs(t *testing.T) {
	b := newBench(t)
	if err := b.checks(t, goodCluster(), "", ""); err != nil {
		t.Fatalf("%v\n%s", err, b.out.String())
	}
	for _, want := range []string{
		"CLUSTER src   https://src   Kubernetes v1.34.4   as jane\nVelero v1.18.3 in namespace velero, kept by OADP\n",
		"n1     yes     node-agent-x", "n2     no      -", "default   Available", "fast   csi.example.com   yes", "✓   source   shop        pods", "get,list",
	} {
		if !strings.Contains(b.out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.out.String())
		}
	}
}

func TestClusterCheckEndsAsWhatItFoundSays(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct {
		change func(*discover.OneFacts)
		code   int
		says   string
	}{
		"a right is missing": {func(f *discover.OneFacts) { f.Source[0].Allowed = false }, exitDenied, "get pods in shop"},
		"an optional one is": {func(f *discover.OneFacts) { f.Source[0].Allowed, f.Source[0].Optional = false, true }, exitDone, ""},
		"Velero is elsewhere": {func(f *discover.OneFacts) {
			f.Velero.Server, f.Velero.Elsewhere = discover.Deployment{}, []string{"openshift-adp"}
		}, exitBlocked, "there is one in openshift-adp"},
		"Velero is old":            {func(f *discover.OneFacts) { f.Velero.Server.Version = "v1.9.0" }, exitBlocked, "cluster (v1.9.0)"},
		"no location is Available": {func(f *discover.OneFacts) { f.Velero.Locations[0].Phase = "Unavailable" }, exitBlocked, "no storage location is Available"},
		"one location of two is": {func(f *discover.OneFacts) {
			f.Velero.Locations = append(f.Velero.Locations, discover.Location{Name: "old"})
		}, exitDone, ""},
		"credentials are refused": {func(f *discover.OneFacts) {
			*f = discover.OneFacts{Facts: discover.Facts{Context: "src", Server: "https://src", Reach: discover.Denied}}
		}, exitDenied, "refuses our credentials"},
		"the cluster does not reply": {func(f *discover.OneFacts) {
			*f = discover.OneFacts{Facts: discover.Facts{Context: "src", Reach: discover.Unreachable}}
		}, exitBlocked, "no answer"},
	} {
		f := goodCluster()
		c.change(&f)
		err := b.checks(t, f, "", "")
		if got := report(&b.err, false, err); got != c.code || !strings.Contains(b.err.String(), c.says) {
			t.Errorf("%s: exit %d, want %d, saying %q; got\n%s", name, got, c.code, c.says, b.err.String())
		}
	}
}

func TestClusterCheckPrintsRightsThatCanBeApplied(t *testing.T) {
	b := newBench(t)
	f := goodCluster()
	f.Source[0].Allowed = false
	if err := b.checks(t, f, missingRights, ""); err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: mig, namespace: shop, labels: {velero.io/exclude-from-backup: "true"}}
rules:
- {apiGroups: [""], resources: ["pods"], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: mig, namespace: shop, labels: {velero.io/exclude-from-backup: "true"}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: mig}
subjects:
- {kind: User, apiGroup: rbac.authorization.k8s.io, name: "jane"}
`
	if b.out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.out.String(), want)
	}
	f.Namespaces = nil // not there yet
	if err := b.checks(t, f, allRights, "system:serviceaccount:ci:mig"); err != nil {
		t.Fatal(err)
	}
	if out := b.out.String(); !strings.Contains(out, "kind: ClusterRoleBinding") || strings.Contains(out, "kind: Role\n") || !strings.Contains(out, "{kind: ServiceAccount, namespace: ci, name: mig}") {
		t.Errorf("for a namespace that is not there: got\n%s", out)
	}
	if err := b.checks(t, goodCluster(), missingRights, ""); err != nil || b.out.Len() > 0 || !strings.Contains(b.err.String(), "jane lacks no right on src") {
		t.Errorf("nothing is missing: %v, %q, %q", err, b.out.String(), b.err.String())
	}
}

func TestClusterCheckReadsItsCommandLine(t *testing.T) {
	b := newBench(t)
	for _, args := range [][]string{
		{}, {"src", "--as", "both"}, {"src", "--print-role=some"}, {"src", "dst", "--print-role"}, {"src", "--for", "jane"}, {"src", "--namespaces", "a,,b"}, {"src", "-o", "wide"},
	} {
		if got := b.mig(append([]string{"cluster", "check"}, args...)...); got != exitUsage {
			t.Errorf("%v: exit %d, want %d: %s", args, got, exitUsage, b.err.String())
		}
	}
}

// TestWhatClusterCheckPrintsAsJSON pins the names that scripts read.
func TestWhatClusterCheckPrintsAsJSON(t *testing.T) {
	f := goodCluster()
	text, err := json.Marshal(clusterCheck{Clusters: []checkedCluster{{Ready: true, OneFacts: f, Conditions: preflight.CheckOne(f)}}})
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Clusters []map[string]any }
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"ready", "context", "server", "reach", "version", "uid", "access", "namespaces", "storageClasses", "nodes", "velero", "sourceRights", "conditions"} {
		if _, ok := got.Clusters[0][field]; !ok {
			t.Errorf("no field %s", field)
		}
	}
	velero := got.Clusters[0]["velero"].(map[string]any)
	for _, field := range []string{"namespace", "exists", "server", "nodeAgent", "locations"} {
		if _, ok := velero[field]; !ok {
			t.Errorf("no field velero.%s", field)
		}
	}
	if slices.ContainsFunc(preflight.CheckOne(f), preflight.Condition.Blocks) {
		t.Error("it is not ready")
	}
}
