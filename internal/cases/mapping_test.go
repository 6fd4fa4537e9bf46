//go:build e2e

package cases

import (
	"os"
	"strings"
	"testing"
)

func TestNamespacesThatCannotBeMeantAreRefusedBeforeAnyClusterIsAsked(t *testing.T) {
	p := open(t, scenario{"P05", "mapping", cli})
	p.twoThatNeverAnswer()
	for _, c := range []struct {
		namespaces string
		names      string // what the refusal names; empty: it is no mistake
	}{
		{"plum:jam,fig:jam", "jam"},
		{"plum:fig,fig", "fig"},
		{"plum,plum:jam", "plum"},
		{"plum:kube-system", "kube-system"},
		{"kube-public:plum", "kube-public"},
		{"plum:velero", "velero"},
		{"plum:Jam", "Jam"},
		{"plum:fig,fig:plum", ""},
		{"plum:plum", ""},
	} {
		t.Run(c.namespaces, func(t *testing.T) {
			r := p.run("plan", "create", "orchard", "--src", "src", "--dst", "dst", "--namespaces", c.namespaces)
			switch {
			case c.names == "" && r.Code != failed:
				t.Errorf("it is no mistake, but the cluster does not answer:\n%s", r)
			case c.names != "" && (r.Code != usage || !strings.Contains(r.Stderr, c.names)):
				t.Errorf("want exit %d, and %s named:\n%s", usage, c.names, r)
			}
			if _, err := os.Stat(p.file("orchard.yaml")); err == nil {
				t.Error("a plan was written")
			}
		})
	}
}

// twoThatNeverAnswer gives the place two contexts without clusters.
func (p *place) twoThatNeverAnswer() {
	p.t.Helper()
	p.certificates(".")
	p.lab.Kubeconfig = strings.Join([]string{
		p.write("src.conf", config("src", "127.0.0.1:9", certificate), 0o600),
		p.write("dst.conf", config("dst", "127.0.0.1:10", certificate), 0o600),
	}, string(os.PathListSeparator))
}
