//go:build e2e

package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/plan"
)

// These tests run alone, before the parallel ones: they compare all objects of
// both clusters with what was there before.
func TestBadInputGetsOneClearErrorAndChangesNothing(t *testing.T) {
	s := newScenario(t, "e2e-bad")
	s.deployNotes(1)
	kubeconfig := badKubeconfig(t, s)
	s.makePlan(nil)
	good, err := os.ReadFile(s.planFile())
	s.must(err)
	before := s.everything()

	for _, c := range []struct {
		name   string
		change func(*plan.Plan)
		code   int
		says   []string
	}{
		{
			"a context that no kubeconfig has", func(p *plan.Plan) { p.Spec.Destination.Context = "nowhere" },
			usage,
			[]string{"nowhere"},
		},
		{
			"a server that cannot be reached", func(p *plan.Plan) { p.Spec.Destination = plan.Cluster{Context: "unreachable", Kubeconfig: kubeconfig} },
			blocked,
			[]string{"127.0.0.1:9", "connection refused"},
		},
		{
			"a server that is not Kubernetes", func(p *plan.Plan) {
				p.Spec.Destination = plan.Cluster{Context: "not-kubernetes", Kubeconfig: kubeconfig}
			},
			blocked,
			[]string{"not as a Kubernetes API"},
		},
		{
			"a cluster without Velero", func(p *plan.Plan) { p.Spec.Destination.VeleroNamespace = "default" },
			blocked,
			[]string{"Velero", "default"},
		},
		{
			"a destination that is the source", func(p *plan.Plan) { p.Spec.Destination.Context = p.Spec.Source.Context },
			usage,
			[]string{"a migration needs two clusters"},
		},
		{
			"a destination that is the source under another name", func(p *plan.Plan) { p.Spec.Destination = plan.Cluster{Context: "src-again", Kubeconfig: kubeconfig} },
			blocked,
			[]string{"are one cluster"},
		},
		{
			"a namespace that is not there", func(p *plan.Plan) {
				p.Spec.Namespaces = append(p.Spec.Namespaces, plan.Namespace{Name: "e2e-not-there"})
			},
			blocked,
			[]string{"e2e-not-there"},
		},
		{
			"a storage class that the destination lacks", func(p *plan.Plan) { p.Spec.Volumes[0].Destination.StorageClass = "dst-nowhere" },
			blocked,
			[]string{"dst-nowhere", labtest.NotesClaim},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := s.on(t)
			in.must(os.WriteFile(in.planFile(), good, 0o600))
			in.must(labtest.EditPlan(in.planFile(), c.change))
			in.refused(c.code, c.says, "plan", "validate")
			in.refused(c.code, c.says, "migrate")
			in.unchanged(before)
		})
	}
	t.Run("a plan with an unknown field", func(t *testing.T) {
		in := s.on(t)
		in.must(os.WriteFile(in.planFile(), []byte(strings.Replace(string(good), "\nspec:\n", "\nspec:\n  namespacez: []\n", 1)), 0o600))
		says := []string{in.name + ".yaml:", "namespacez"}
		in.refused(usage, says, "plan", "validate")
		in.refused(usage, says, "migrate")
		in.refused(usage, says, "rollback", "--yes")
		in.unchanged(before)
	})
}

func TestBadCommandLinesMakeNoPlan(t *testing.T) {
	s := newScenario(t, "e2e-line")
	kubeconfig := badKubeconfig(t, s)
	before := s.everything()

	for _, c := range []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"a context that no kubeconfig has", []string{"--src", "src", "--dst", "nowhere"}, usage, []string{"nowhere"}},
		{
			"a server that cannot be reached",
			[]string{"--src", "src", "--dst", "unreachable", "--dst-kubeconfig", kubeconfig},
			failed,
			[]string{"127.0.0.1:9", "connection refused"},
		},
		{
			"a server that is not Kubernetes",
			[]string{"--src", "src", "--dst", "not-kubernetes", "--dst-kubeconfig", kubeconfig},
			failed,
			[]string{"not as a Kubernetes API"},
		},
		{"a destination that is the source", []string{"--src", "src", "--dst", "src"}, usage, []string{"a migration needs two clusters"}},
		{
			"a destination that is the source under another name",
			[]string{"--src", "src", "--dst", "src-again", "--dst-kubeconfig", kubeconfig},
			failed,
			[]string{"one cluster"},
		},
		{"a namespace that is not there", []string{"--src", "src", "--dst", "dst", "--namespaces", "e2e-not-there"}, failed, []string{"e2e-not-there"}},
		{"no destination", []string{"--src", "src"}, usage, []string{"--dst"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := s.on(t)
			in.refused(c.code, c.says, append([]string{"plan", "create", in.name}, c.args...)...)
			if _, err := os.Stat(in.planFile()); err == nil {
				t.Error("a plan was written")
			}
			in.unchanged(before)
		})
	}
}

// refused runs mig and wants the code and one clear error.
func (s *scenario) refused(code int, says []string, args ...string) {
	s.t.Helper()
	r := s.run(args...)
	if r.Code != code {
		s.t.Errorf("want exit %d:\n%s", code, r)
	}
	s.says(r, says...)
	if !strings.Contains(r.Stderr, "mig: error: ") {
		s.t.Errorf("no error is told:\n%s", r)
	}
}

// everything is all objects of both clusters.
func (s *scenario) everything() []labtest.Objects {
	s.t.Helper()
	var out []labtest.Objects
	for _, c := range s.lab.Both() {
		all, err := labtest.AllObjects(s.t.Context(), c)
		s.must(err)
		out = append(out, all)
	}
	return out
}

func (s *scenario) unchanged(before []labtest.Objects) {
	s.t.Helper()
	for i, now := range s.everything() {
		if err := before[i].SameAs(now); err != nil {
			s.t.Errorf("%s: %v", s.lab.Both()[i].Access.Context, err)
		}
	}
}

// badKubeconfig is the lab's with contexts added that lead nowhere good.
func badKubeconfig(t *testing.T, s *scenario) string {
	t.Helper()
	login := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>Please log in</html>"))
	}))
	t.Cleanup(login.Close)
	config, err := clientcmd.LoadFromFile(s.lab.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string, c *clientcmdapi.Cluster) {
		config.Clusters[name] = c
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: config.Contexts[labtest.SourceContext].AuthInfo}
	}
	add("unreachable", &clientcmdapi.Cluster{Server: "https://127.0.0.1:9", InsecureSkipTLSVerify: true})
	add("not-kubernetes", &clientcmdapi.Cluster{Server: login.URL, InsecureSkipTLSVerify: true})
	add("src-again", config.Clusters[config.Contexts[labtest.SourceContext].Cluster].DeepCopy())
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}
