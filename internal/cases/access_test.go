//go:build e2e

package cases

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/labtest"
)

// config is a kubeconfig with one context, whose server never answers.
func config(context, server, user string) string {
	return `apiVersion: v1
kind: Config
current-context: ` + context + `
clusters:
- {name: of-` + context + `, cluster: {server: "https://` + server + `", certificate-authority: pki/ca.crt}}
users:
- name: of-` + context + `
  user: ` + user + `
contexts:
- {name: ` + context + `, context: {cluster: of-` + context + `, user: of-` + context + `}}
`
}

// certificate is a user who shows a file beside the kubeconfig.
const certificate = "{client-certificate: pki/u.crt, client-key: pki/u.key}"

func TestContextsSpreadOverSeveralKubeconfigsAreFoundAsKubectlFindsThem(t *testing.T) {
	p := open(t, scenario{"M01", "cluster-access", cli})
	files := map[string]string{
		p.write("home/first.conf", config("old-town", "127.0.0.1:9", certificate), 0o600):   "",
		p.write("work/second.conf", config("new-town", "127.0.0.1:10", certificate), 0o600): "",
	}
	p.certificates("home")
	p.certificates("work")
	for path := range files {
		content, err := os.ReadFile(path)
		p.must(err)
		files[path] = string(content)
	}
	list := "KUBECONFIG=" + strings.Join([]string{"", "./home/first.conf", "./nowhere.conf", "./work/second.conf"}, string(os.PathListSeparator))

	r := p.runIn([]string{list}, "plan", "create", "--src", "old-town", "--dst", "new-town", "--namespaces", "square")
	if r.Code != failed || !strings.Contains(r.Stderr, "127.0.0.1:9") || !strings.Contains(r.Stderr, "connection refused") {
		t.Errorf("both contexts are found, and the source's server does not answer:\n%s", r)
	}
	r = p.runIn([]string{list}, "plan", "create", "--src", "old-town", "--dst", "ghost-town", "--namespaces", "square")
	for _, said := range []string{"ghost-town", "new-town", "old-town", "first.conf", "second.conf"} {
		if r.Code != usage || !strings.Contains(r.Stderr, said) {
			t.Errorf("an unknown context is refused, with the known ones and the files, %s among them:\n%s", said, r)
		}
	}
	r = p.runIn([]string{list}, "plan", "create", "--kubeconfig", "work/second.conf", "--src", "old-town", "--dst", "new-town", "--namespaces", "square")
	if r.Code != usage || !strings.Contains(r.Stderr, "old-town") || strings.Contains(r.Stderr, "first.conf") {
		t.Errorf("--kubeconfig stands in the place of the list:\n%s", r)
	}
	for path, before := range files {
		if now, err := os.ReadFile(path); err != nil || string(now) != before {
			t.Errorf("%s was changed: %v", filepath.Base(path), err)
		}
	}
}

func TestALoginHelperIsAskedAsKubectlAsksItAndItsFailureIsNamed(t *testing.T) {
	p := open(t, scenario{"M03", "cluster-access", cli})
	const works = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./login-helper, interactiveMode: IfAvailable}}"
	p.certificates(".")
	for _, c := range []struct {
		name, user string
		says       []string
	}{
		{
			"a helper that is not there",
			"{exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-login, interactiveMode: Never, installHint: ask the porter}}",
			[]string{"no-such-login", "ask the porter", "gate"},
		},
		{
			"an API version that is gone",
			"{exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: ./login-helper}}",
			[]string{"v1alpha1", "gate"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.write("one.conf", config("court", "127.0.0.1:10", certificate), 0o600)
			p.write("two.conf", config("gate", "127.0.0.1:9", c.user), 0o600)
			r := p.run("plan", "create", "--src", "court", "--src-kubeconfig", "one.conf", "--dst", "gate", "--dst-kubeconfig", "two.conf", "--namespaces", "hall")
			for _, said := range append(c.says, "127.0.0.1:10") { // that the source does not answer hides nothing
				if r.Code == done || !strings.Contains(r.Stderr, said) {
					t.Errorf("want %s to be named:\n%s", said, r)
				}
			}
		})
	}
	t.Run("a helper that works, without a terminal", func(t *testing.T) {
		p.write("one.conf", config("gate", "127.0.0.1:9", works), 0o600)
		p.write("two.conf", config("court", "127.0.0.1:10", certificate), 0o600)
		r := p.run("plan", "create", "--src", "gate", "--src-kubeconfig", "one.conf", "--dst", "court", "--dst-kubeconfig", "two.conf", "--namespaces", "hall")
		asked, err := os.ReadFile(p.file("login-helper.asked"))
		if err != nil || !strings.Contains(string(asked), `"interactive":false`) {
			t.Errorf("the helper is told that nobody can answer it: %s %v", asked, err)
		}
		if strings.Contains(r.Stdout+r.Stderr, "a-secret-token") {
			t.Errorf("what the helper gives is never told:\n%s", r)
		}
	})
}

func TestMissingRightsAreToldAllAtOnceAndTheRoleThatIsPrintedIsEnough(t *testing.T) {
	p := open(t, scenario{"M06", "cluster-access", api})
	app := deployment("bakery", "oven")
	p.given(p.src(), namespace("bakery"), app)
	for _, c := range []*cluster.Cluster{p.src(), p.dst()} {
		p.given(c, onlyReads("apprentice")...)
	}
	as := *p
	as.asUser("apprentice")

	as.exits(done, "plan", "create", "--src", "src", "--dst", "dst", "--namespaces", "bakery")
	as.exits(done, "pv", "discover")
	as.exits(denied, "plan", "validate")
	v := as.validated()
	as.wantFound(v, "SourceRightsGranted", "patch deployments.apps", "create backups.velero.io", "in bakery")
	as.wantFound(v, "DestinationRightsGranted", "create namespaces", "create restores.velero.io")
	if r := as.run("migrate"); r.Code == done {
		t.Errorf("what changes clusters refuses:\n%s", r)
	}
	p.keptSize(app)

	p.grant(p.src(), v.of("SourceRightsGranted")[0].Hint)
	p.grant(p.dst(), v.of("DestinationRightsGranted")[0].Hint)
	as.wantReady(as.validated())
}

func TestAStoreThatOneSideTrustsAndTheOtherDoesNotIsNamed(t *testing.T) {
	p := open(t, scenario{"M08", "cluster-access", api})
	p.given(p.src(), namespace("bank"), configMap("bank", "vault"))
	p.trusts(p.src(), []byte("-----BEGIN CERTIFICATE-----\nbm9ib2R5\n-----END CERTIFICATE-----\n"))
	p.planned("bank")
	v := p.validated()
	p.wantBlocked(v, "StorageTrustDiffers", "velero/default", "destination")
}

// trusts gives the storage location an authority until the test ends.
func (p *place) trusts(c *cluster.Cluster, authority []byte) {
	p.t.Helper()
	set := func(ctx context.Context, authority []byte) error {
		location := &velerov1.BackupStorageLocation{ObjectMeta: in(labtest.VeleroNamespace, "default")}
		err := c.Get(ctx, client.ObjectKeyFromObject(location), location)
		if err != nil {
			return err
		}
		before := location.DeepCopy()
		location.Spec.ObjectStorage.CACert = authority
		return c.Patch(ctx, location, client.MergeFrom(before))
	}
	p.must(set(p.t.Context(), authority))
	p.t.Cleanup(func() {
		if err := set(context.WithoutCancel(p.t.Context()), nil); err != nil {
			p.t.Error(err)
		}
	})
}

// onlyReads lets a user see everything and change nothing.
func onlyReads(user string) []client.Object {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user + "-reads"}}
	role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{userSubject(user)},
	}
	return []client.Object{role, binding}
}

func userSubject(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

// grant applies the manifest that a hint holds.
func (p *place) grant(c *cluster.Cluster, hint string) {
	p.t.Helper()
	at := strings.Index(hint, "apiVersion:")
	if at < 0 {
		p.t.Fatalf("no manifest in the hint: %s", hint)
	}
	objects, err := readObjects(p.write("rights-"+c.Access.Context+".yaml", hint[at:], 0o600))
	p.must(err)
	for _, o := range objects {
		p.given(c, o)
	}
}
