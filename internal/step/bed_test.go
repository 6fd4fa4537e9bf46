package step

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/quiesce"
)

const bedPlan = `
apiVersion: mig/v1alpha1
kind: MigrationPlan
metadata: {name: shop, uid: 5f0c3d9e-27b1}
spec:
  source: {context: src}
  destination: {context: dst}
  storage: {location: default}
  namespaces: [{name: shop, destination: shop-prod}]
  volumes: [{claim: shop/data, action: copy}, {claim: shop/cache, action: skip}]
  quiesce: {except: [Deployment/shop/monitor]}
`

// bed is two pretended clusters, filled with what the texts describe.
func bed(t *testing.T, src, dst string) Run {
	t.Helper()
	p, err := plan.Parse("p.yaml", []byte(bedPlan))
	if err != nil {
		t.Fatal(err)
	}
	valid, problems := p.Validate()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return Run{
		Owner:       naming.Owner{PlanName: "shop", PlanUID: "5f0c3d9e-27b1", RunUID: "run1"},
		Plan:        valid,
		Source:      cluster.Source{Cluster: pretend(t, src)},
		Destination: cluster.Destination{Cluster: pretend(t, dst)},
	}
}

func pretend(t *testing.T, text string) *cluster.Cluster {
	t.Helper()
	b := fake.NewClientBuilder().WithScheme(cluster.Scheme()).WithReturnManagedFields()
	for _, o := range objects(t, text) {
		b = b.WithObjects(o)
	}
	return &cluster.Cluster{Client: b.Build(), VeleroNamespace: "velero", Discovery: &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: served()}}}
}

func served() []*metav1.APIResourceList {
	kind := func(gv string, namespaced bool, kinds ...string) *metav1.APIResourceList {
		l := &metav1.APIResourceList{GroupVersion: gv}
		for _, k := range kinds {
			l.APIResources = append(l.APIResources, metav1.APIResource{Name: strings.ToLower(k) + "s", Kind: k, Namespaced: namespaced, Verbs: metav1.Verbs{"list", "delete"}})
		}
		return l
	}
	core := kind("v1", true, "Pod", "Service", "ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim")
	core.APIResources = append(core.APIResources, kind("v1", false, "Namespace", "PersistentVolume").APIResources...)
	core.APIResources = append(core.APIResources, metav1.APIResource{Name: "pods/log", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"list", "delete"}})
	return []*metav1.APIResourceList{
		core, kind("apps/v1", true, "Deployment", "ReplicaSet", "StatefulSet"),
		kind("rbac.authorization.k8s.io/v1", false, "ClusterRole", "ClusterRoleBinding"),
		kind("storage.k8s.io/v1", false, "StorageClass"),
	}
}

func objects(t *testing.T, text string) []client.Object {
	t.Helper()
	var out []client.Object
	for doc := range strings.SplitSeq(text, "\n---\n") {
		if strings.TrimSpace(doc) == "" {
			continue
		}
		raw, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw); err != nil {
			t.Fatalf("%v in %s", err, doc)
		}
		out = append(out, u)
	}
	return out
}

// settle runs a step until it has nothing more to do, acting twice each time:
// that must be as once. It returns the last decision.
func settle(t *testing.T, s pipeline.Step) pipeline.Decision {
	t.Helper()
	for range 10 {
		d, err := s.Next(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", s.Name(), err)
		}
		if d.Verdict != pipeline.Act {
			return d
		}
		for range 2 {
			if err := s.Act(t.Context()); err != nil {
				t.Fatalf("%s: %v", s.Name(), err)
			}
		}
	}
	t.Fatalf("%s wants to act again and again", s.Name())
	return pipeline.Decision{}
}

var errKilled = errors.New("killed")

// killedAfter is a cluster whose client dies after n writes have taken effect.
func killedAfter(t *testing.T, c *cluster.Cluster, n int) *cluster.Cluster {
	t.Helper()
	inner, ok := c.Client.(client.WithWatch)
	if !ok {
		t.Fatal("not a fake client")
	}
	spend := func() error {
		if n--; n < 0 {
			return errKilled
		}
		return nil
	}
	dying := *c
	dying.Client = interceptor.NewClient(inner, interceptor.Funcs{
		Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := spend(); err != nil {
				return err
			}
			return w.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := spend(); err != nil {
				return err
			}
			return w.Delete(ctx, o, opts...)
		},
	})
	return &dying
}

// snapshot is everything about the workloads that a user would miss.
func snapshot(t *testing.T, c client.Client, namespace string) map[string]map[string]any {
	t.Helper()
	ws, err := workloads(t.Context(), c, []string{namespace})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]any{}
	for _, w := range ws {
		o := quiesce.Workload{Unstructured: w.DeepCopy()}
		o.SetResourceVersion("")
		o.SetManagedFields(nil)
		if len(o.GetAnnotations()) == 0 {
			o.SetAnnotations(nil)
		}
		out[w.ID()] = o.Object
	}
	return out
}

func sameWorkloads(t *testing.T, got, want map[string]map[string]any) {
	t.Helper()
	for id, w := range want {
		if !equality.Semantic.DeepEqual(got[id], w) {
			g, _ := yaml.Marshal(got[id])
			b, _ := yaml.Marshal(w)
			t.Errorf("%s is not as it was, got:\n%swant:\n%s", id, g, b)
		}
	}
}

// edit changes an object of a pretended cluster, as its controllers or a person would.
func edit(t *testing.T, c client.Client, apiVersion, kind, namespace, name string, v any, path ...string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, u); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(u.Object, v, path...); err != nil {
		t.Fatal(err)
	}
	write := c.Update
	if path[0] == "status" {
		write = func(ctx context.Context, o client.Object, _ ...client.UpdateOption) error {
			return c.Status().Update(ctx, o)
		}
	}
	if err := write(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

func exists(t *testing.T, c client.Client, apiVersion, kind, namespace, name string) bool {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, u)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}
