package cli

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/preflight"
)

func TestAPathInAPlanIsRelativeToThePlan(t *testing.T) {
	b := newBench(t)
	b.finds(preflight.Condition{Type: "SourceReachable", Category: preflight.Required, Status: preflight.True})
	if err := os.MkdirAll("moves/2031", 0o755); err != nil {
		t.Fatal(err)
	}
	writePlan(t, "moves/2031/shop.yaml", shopPlan)
	if code := b.mig("plan", "validate", "moves/2031/shop.yaml", "--kubeconfig", "near.conf"); code != 0 {
		t.Fatalf("exit %d: %s", code, b.err.String())
	}
	want := []cluster.Access{{Context: "src", Kubeconfig: "near.conf"}, {Context: "dst", Kubeconfig: filepath.Join("moves", "2031", "other.conf")}}
	if !slices.Equal(b.connected, want) {
		t.Errorf("connected to %v, want %v", b.connected, want)
	}
}

func TestAPathOfTheCommandLineStandsInThePlanSoThatItIsFoundAgain(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, c := range []struct{ name, path, file, want string }{
		{"beside the plan", "a.conf", "shop.yaml", "a.conf"},
		{"below it", "./conf/a.conf", "shop.yaml", filepath.Join("conf", "a.conf")},
		{"with a plan below", "plans/conf/a.conf", "plans/shop.yaml", filepath.Join("conf", "a.conf")},
		{"above the plan", "a.conf", "plans/shop.yaml", filepath.Join(dir, "a.conf")},
		{"of a plan whose place is not known", "a.conf", "-", filepath.Join(dir, "a.conf")},
		{"whole", "/etc/a.conf", "shop.yaml", "/etc/a.conf"},
		{"none", "", "shop.yaml", ""},
	} {
		if got := inPlanFile(c.path, c.file); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestTwoKubeconfigsWhoseContextsHaveOneNameAreTwoClusters(t *testing.T) {
	b := newBench(t)
	b.proposes(proposal(), nil)
	code := b.mig("plan", "create", "shop", "--src", "admin", "--src-kubeconfig", "old.conf", "--dst", "admin", "--dst-kubeconfig", "new.conf")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, b.err.String())
	}
	want := []cluster.Access{{Context: "admin", Kubeconfig: "old.conf"}, {Context: "admin", Kubeconfig: "new.conf"}}
	if !slices.Equal(b.connected, want) {
		t.Errorf("connected to %v, want %v", b.connected, want)
	}
	p, err := plan.Load("shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if p.Spec.Source.Kubeconfig != "old.conf" || p.Spec.Destination.Kubeconfig != "new.conf" {
		t.Errorf("in the plan stand %q and %q", p.Spec.Source.Kubeconfig, p.Spec.Destination.Kubeconfig)
	}
}

func TestTheHintReadsTheKubeconfigThatMigRead(t *testing.T) {
	b := newBench(t)
	b.Connect = func(a cluster.Access, _ string) (*cluster.Cluster, error) {
		return nil, &cluster.UnknownContextError{Access: a, Files: []string{"old.conf"}, Known: []string{"dst", "src"}}
	}
	code := b.mig("plan", "create", "--src", "x", "--src-kubeconfig", "old.conf", "--dst", "dst")
	b.wants(t, code, 2, "", "kubectl config get-contexts --kubeconfig old.conf")
}
