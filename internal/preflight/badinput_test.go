//go:build e2e

package preflight

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/plan"
)

// behind is the source behind a proxy that may spoil its answers.
func (b *bed) behind(spoil func(http.ResponseWriter, *http.Request) bool, answers func(*http.Response) error) cluster.Source {
	b.t.Helper()
	transport, err := rest.TransportFor(b.src.Config)
	if err != nil {
		b.t.Fatal(err)
	}
	target, err := url.Parse(b.src.Config.Host)
	if err != nil {
		b.t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, proxy.ModifyResponse = transport, answers
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if spoil == nil || !spoil(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	b.t.Cleanup(s.Close)
	return cluster.Source{Cluster: b.with(b.src.Cluster, &rest.Config{Host: s.URL})}
}

// seesTheRest says that what was not spoilt was checked all the same.
func seesTheRest(t *testing.T, conditions []Condition) {
	t.Helper()
	for _, kind := range []string{SourceReachable, DestinationReachable, ClustersDistinct, SourceVeleroReady, DestinationVeleroReady, StorageShared, NamespacesFound, ReadyType} {
		one(t, conditions, kind)
	}
}

func TestOneBadAnswerIsNamedAndTheRestIsChecked(t *testing.T) {
	claims := func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/persistentvolumeclaims") }
	for name, c := range map[string]struct {
		spoil func(http.ResponseWriter, *http.Request) bool
		want  want
	}{
		"too many requests": {func(w http.ResponseWriter, r *http.Request) bool {
			if claims(r) {
				http.Error(w, "slow down", http.StatusTooManyRequests)
			}
			return claims(r)
		}, want{LookIncomplete, "source claims", "source claims (context src): ", blocks}},
		"a page that is not JSON": {func(w http.ResponseWriter, r *http.Request) bool {
			if claims(r) {
				_, _ = w.Write([]byte("<html>please log in</html>"))
			}
			return claims(r)
		}, want{LookIncomplete, "source claims", "source claims (context src): ", blocks}},
		"an answer that breaks off": {func(w http.ResponseWriter, r *http.Request) bool {
			if claims(r) {
				w.Header().Set("Content-Length", "1000")
				_, _ = w.Write([]byte(`{"kind":"PersistentVolumeClaimList","items":[`))
			}
			return claims(r)
		}, want{LookIncomplete, "source claims", "source claims (context src): ", blocks}},
		"a list of APIs that is no list": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/apis" {
				http.Error(w, "no", http.StatusInternalServerError)
			}
			return r.URL.Path == "/apis"
		}, want{LookIncomplete, "source APIs", "cannot be looked at: ", blocks}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.src = b.behind(c.spoil, nil)
			conditions := b.check()
			got := one(t, conditions, c.want.kind)
			if !slices.Contains(got.Objects, c.want.object) || !strings.Contains(got.Message, c.want.message) || !got.Blocks() {
				t.Errorf("got %+v", got)
			}
			if strings.Contains(got.Message, "<html>") || strings.Contains(got.Message, "serializer") {
				t.Errorf("the page is shown to a person: %q", got.Message)
			}
			if c.want.object == "source claims" { // without the list of APIs there is no rest
				seesTheRest(t, conditions)
			}
		})
	}
}

func TestAClockThatIsOffIsSeenByTheDateOfAnAnswer(t *testing.T) {
	b := newBed(t)
	b.src = b.behind(nil, func(r *http.Response) error {
		r.Header.Set("Date", time.Now().Add(-10*time.Minute).UTC().Format(http.TimeFormat))
		return nil
	})
	got := one(t, b.check(), ClocksDiffer)
	if !slices.Contains(got.Objects, "destination") || !strings.Contains(got.Message, "ahead of the source") || got.Blocks() {
		t.Errorf("got %+v", got)
	}
}

func TestATokenThatIsNotTakenIsTheOnlyFindingOfItsCluster(t *testing.T) {
	b := newBed(t)
	cfg := rest.AnonymousClientConfig(b.dst.Config)
	cfg.BearerToken = "expired"
	b.dst = cluster.Destination{Cluster: b.with(b.dst.Cluster, cfg)}
	conditions := b.check()
	got := one(t, conditions, DestinationReachable)
	if got.Status != False || got.Reason != "CredentialsRefused" {
		t.Errorf("got %+v", got)
	}
	for _, c := range Blocking(conditions) {
		if c.Type != DestinationReachable {
			t.Errorf("%s is told too: %s", c.Type, c.Message)
		}
	}
	one(t, conditions, NamespacesFound) // the source was looked at
}

func TestAnAPIWhoseServerIsDownIsNamedQuicklyAndCanBeAccepted(t *testing.T) {
	b := newBed(t)
	down := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1.broken.test"},
		"spec": map[string]any{
			"group": "broken.test", "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": "default", "name": "nobody", "port": int64(443)},
		},
	}}
	if err := b.src.Create(t.Context(), down); err != nil {
		t.Fatal(err)
	}
	isListed := func(want bool) {
		t.Helper()
		err := wait.PollUntilContextTimeout(context.Background(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			groups, err := b.src.Discovery.ServerGroups()
			if err != nil {
				return false, nil //nolint:nilerr // asked again
			}
			listed := slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == "broken.test" })
			return listed == want, nil
		})
		if err != nil {
			t.Fatalf("the API is listed: want %t: %v", want, err)
		}
	}
	t.Cleanup(func() { // it would be in the way of all other beds
		_ = b.src.Delete(context.Background(), down)
		isListed(false)
	})
	isListed(true)
	began := time.Now()
	conditions := b.check()
	t.Logf("looked at in %s", time.Since(began))
	const object = "APIService v1.broken.test of the source"
	got := one(t, conditions, APIsDown)
	if !slices.Contains(got.Objects, object) || !got.Blocks() || !strings.Contains(got.Hint, "describe apiservice") {
		t.Errorf("got %+v", got)
	}
	for _, c := range Blocking(conditions) {
		if c.Type != APIsDown {
			t.Errorf("%s is told too: %s", c.Type, c.Message)
		}
	}
	seesTheRest(t, conditions)
	b.plan.Spec.Accept = append(b.plan.Spec.Accept, plan.Accept{Type: APIsDown, Object: object, Why: "nobody uses it"})
	if conditions = b.check(); !Ready(conditions) {
		t.Errorf("accepted, and still blocked by %+v", Blocking(conditions))
	}
}

// account is a cluster asked by an account that may do what the manifests give.
func (b *bed) account(c *cluster.Cluster, name, manifests string) *cluster.Cluster {
	b.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: in(c.VeleroNamespace, name)}
	b.create(c, account)
	for doc := range strings.SplitSeq(manifests, "---\n") {
		if strings.TrimSpace(doc) == "" {
			continue
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
			b.t.Fatalf("%v in\n%s", err, doc)
		}
		if o.GetNamespace() == "" {
			o.SetName(o.GetName() + "-" + account.Namespace) // of this bed alone
			if ref, ok := o.Object["roleRef"].(map[string]any); ok {
				ref["name"] = o.GetName()
			}
		}
		b.create(c, o)
	}
	return b.with(c, b.token(c, account, 48*3600))
}

func TestAnAccountWithNothingButTheRightsThatArePrintedFindsAllWell(t *testing.T) {
	b := newBed(t)
	grant := func(c *cluster.Cluster, as discover.As) *cluster.Cluster {
		facts, err := discover.LookOne(t.Context(), c, as, []string{b.ns})
		if err != nil {
			t.Fatal(err)
		}
		facts.Access.User = fmt.Sprintf("system:serviceaccount:%s:mig", c.VeleroNamespace)
		return b.account(c, "mig", Manifest(slices.Concat(facts.Source, facts.Destination), facts.Facts))
	}
	b.src = cluster.Source{Cluster: grant(b.src.Cluster, discover.As{Source: true})}
	b.dst = cluster.Destination{Cluster: grant(b.dst.Cluster, discover.As{Destination: true})}
	conditions := b.check()
	for _, c := range conditions {
		if c.Category == Required && c.Status == True || c.Type == StorageWritableByBoth {
			continue
		}
		t.Errorf("%s %s: %s", c.Category, c.Type, c.Message)
	}
	if !Ready(conditions) {
		t.Error("not ready")
	}
}

func TestAnAccountThatMayOnlyReadGetsOneWholeListOfWhatItLacks(t *testing.T) {
	b := newBed(t)
	reader := func(c *cluster.Cluster) *cluster.Cluster {
		role := fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: reader}\nrules:\n- {apiGroups: [\"*\"], resources: [\"*\"], verbs: [get, list]}\n---\n"+
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: reader}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}\n"+
			"subjects:\n- {kind: ServiceAccount, namespace: %s, name: reader}\n", c.VeleroNamespace)
		return b.account(c, "reader", role)
	}
	b.src, b.dst = cluster.Source{Cluster: reader(b.src.Cluster)}, cluster.Destination{Cluster: reader(b.dst.Cluster)}
	conditions := b.check()
	for _, c := range Blocking(conditions) {
		if c.Type != SourceRights && c.Type != DestinationRights {
			t.Errorf("%s: %s", c.Type, c.Message)
		}
	}
	var all []string
	for _, kind := range []string{SourceRights, DestinationRights} {
		all = append(all, one(t, conditions, kind).Objects...)
	}
	for _, want := range []string{
		"patch deployments.apps in " + b.ns, "create pods in " + b.ns, "create backups.velero.io in " + b.src.VeleroNamespace,
		"create namespaces", "create restores.velero.io in " + b.dst.VeleroNamespace,
	} {
		if !slices.Contains(all, want) {
			t.Errorf("%q is not told: %v", want, all)
		}
	}
	if hint := one(t, conditions, SourceRights).Hint; !strings.Contains(hint, "kind: RoleBinding") || !strings.Contains(hint, "name: reader}") {
		t.Errorf("what to apply is not told: %s", hint)
	}
}

func TestAKindThatMayNotBeListedIsNamed(t *testing.T) {
	b := newBed(t)
	// No one can be refused a single kind by RBAC: a proxy does.
	b.src = b.behind(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/jobs") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"jobs.batch is forbidden: no","reason":"Forbidden","code":403}`))
			return true
		}
		return false
	}, nil)
	conditions := b.check()
	got := one(t, conditions, LookIncomplete)
	if got.Reason != "Denied" || !slices.Contains(got.Objects, "source workloads") || !strings.Contains(got.Message, "jobs.batch is forbidden") {
		t.Errorf("got %+v", got)
	}
	seesTheRest(t, conditions)
}
