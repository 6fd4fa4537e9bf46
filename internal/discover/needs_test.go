package discover

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
)

func TestAKindIsBackedUpInTheVersionThatItsClusterLikesBest(t *testing.T) {
	resource := func(name, kind string) metav1.APIResource {
		return metav1.APIResource{Name: name, Kind: kind, Namespaced: true, Verbs: []string{"list"}}
	}
	group := &metav1.APIGroup{
		Name: "light.test", PreferredVersion: metav1.GroupVersionForDiscovery{GroupVersion: "light.test/v1", Version: "v1"},
		Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "light.test/v2", Version: "v2"}, {GroupVersion: "light.test/v1", Version: "v1"}},
	}
	got := kindsOf(group, []*metav1.APIResourceList{
		{GroupVersion: "light.test/v2", APIResources: []metav1.APIResource{resource("lamps", "Lamp"), resource("wicks", "Wick"), resource("lamps/status", "Lamp")}},
		{GroupVersion: "light.test/v1", APIResources: []metav1.APIResource{resource("lamps", "Lamp"), {Name: "suns", Kind: "Sun", Verbs: []string{"list"}}}},
	})
	want := []Kind{
		{Group: "light.test", Kind: "Lamp", Resource: "lamps", Versions: []string{"v1", "v2"}, Preferred: "v1"},
		{Group: "light.test", Kind: "Wick", Resource: "wicks", Versions: []string{"v2"}, Preferred: "v2"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestOnlyTheVersionOfTheBackupCounts(t *testing.T) {
	kind := func(group string, versions ...string) Kind {
		return Kind{Group: group, Kind: "Lamp", Versions: versions, Preferred: versions[0]}
	}
	here := []Kind{kind("same", "v1"), kind("older", "v1beta1", "v1"), kind("gone", "v1alpha1"), kind("apart", "v1", "v2"), kind("down", "v1")}
	there := []Kind{kind("same", "v2", "v1"), kind("older", "v1", "v1beta1"), kind("apart", "v2")}
	got := kindsApart(here, there, []string{"down"})
	want := map[schema.GroupKind]Unserved{
		{Group: "gone", Kind: "Lamp"}:  {Kind: "Lamp.gone", Version: "v1alpha1", Others: []string{}},
		{Group: "apart", Kind: "Lamp"}: {Kind: "Lamp.apart", Version: "v1", Others: []string{"v2"}, There: []string{"v2"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := kindsApart(here, nil, nil); len(got) > 0 {
		t.Errorf("what the destination serves is not known, and is told to differ: %+v", got)
	}
}

func TestAWebhookIsAskedAboutWhatItsRulesName(t *testing.T) {
	rule := func(group, resource string, on admissionregistrationv1.OperationType, scope admissionregistrationv1.ScopeType) hook {
		return hook{rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{on},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v9"}, Resources: []string{resource}, Scope: &scope},
		}}}
	}
	deployment := Kind{Group: "apps", Kind: "Deployment", Resource: "deployments", Preferred: "v1"}
	for name, c := range map[string]struct {
		of   hook
		want bool
	}{
		"by name":            {rule("apps", "deployments", admissionregistrationv1.Create, admissionregistrationv1.AllScopes), true},
		"by everything":      {rule("*", "*", admissionregistrationv1.OperationAll, admissionregistrationv1.NamespacedScope), true},
		"and their parts":    {rule("apps", "*/*", admissionregistrationv1.Create, admissionregistrationv1.AllScopes), true},
		"another kind":       {rule("apps", "daemonsets", admissionregistrationv1.Create, admissionregistrationv1.AllScopes), false},
		"a part of it":       {rule("apps", "deployments/scale", admissionregistrationv1.Create, admissionregistrationv1.AllScopes), false},
		"another group":      {rule("", "deployments", admissionregistrationv1.Create, admissionregistrationv1.AllScopes), false},
		"when it is changed": {rule("apps", "deployments", admissionregistrationv1.Update, admissionregistrationv1.AllScopes), false},
		"without namespaces": {rule("*", "*", admissionregistrationv1.Create, admissionregistrationv1.ClusterScope), false},
	} {
		if got := c.of.isAskedAbout(deployment); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// guard is a webhook that is asked about every Deployment at a Service of its
// name in the namespace guards.
func guard(name string, with func(*admissionregistrationv1.ValidatingWebhook)) *admissionregistrationv1.ValidatingWebhookConfiguration {
	w := admissionregistrationv1.ValidatingWebhook{
		Name: name + ".guard.test", ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "guards", Name: name}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"*"}, Resources: []string{"deployments"}},
		}},
	}
	if with != nil {
		with(&w)
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistrationv1.ValidatingWebhook{w}}
}

func TestWebhooksThatWouldRefuseAnObjectBySilenceAreFound(t *testing.T) {
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"tier": "front"}}}
	stays := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stays", Labels: map[string]string{naming.VeleroExclude: "true"}}}
	src := cluster.Source{Cluster: newCluster(t, "src", interceptor.Funcs{}, slices.Concat(veleroOn("node-1"), []client.Object{namespace("shop"), web, stays})...)}
	service := func(name string) *corev1.Service { return &corev1.Service{ObjectMeta: named("guards", name)} }
	alive := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "guards", Name: "awake-1", Labels: map[string]string{discoveryv1.LabelServiceName: "awake"}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
	}
	selector := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	dst := cluster.Destination{Cluster: newCluster(t, "dst", interceptor.Funcs{}, slices.Concat(veleroOn("node-2"), []client.Object{
		service("awake"), alive, service("asleep"), guard("awake", nil), guard("asleep", nil),
		guard("gone", func(w *admissionregistrationv1.ValidatingWebhook) {
			w.NamespaceSelector, w.ObjectSelector = selector(corev1.LabelMetadataName, "shop-prod"), selector("tier", "front")
		}),
		guard("meek", func(w *admissionregistrationv1.ValidatingWebhook) {
			w.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
		}),
		guard("elsewhere", func(w *admissionregistrationv1.ValidatingWebhook) {
			w.NamespaceSelector = selector(corev1.LabelMetadataName, "shop")
		}),
		guard("choosy", func(w *admissionregistrationv1.ValidatingWebhook) { w.ObjectSelector = selector("tier", "back") }),
	})...)}
	_, d, err := Look(t.Context(), src, dst, shopPlan(t))
	if err != nil || len(d.Gaps) > 0 {
		t.Fatalf("%v, %+v", err, d.Gaps)
	}
	want := []Webhook{
		{Configuration: "ValidatingWebhookConfiguration/asleep", Name: "asleep.guard.test", Service: "guards/asleep", Why: "its Service has no ready endpoint", Objects: []string{"Deployment/shop/web"}},
		{Configuration: "ValidatingWebhookConfiguration/gone", Name: "gone.guard.test", Service: "guards/gone", Why: "there is no such Service", Objects: []string{"Deployment/shop/web"}},
	}
	if !reflect.DeepEqual(d.Webhooks, want) {
		t.Errorf("got  %+v\nwant %+v", d.Webhooks, want)
	}
}

// asked counts what a cluster is asked for, by kind.
type asked struct {
	mu    sync.Mutex
	lists map[string]int
}

func (a *asked) list(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
	kind := l.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = strings.TrimPrefix(fmt.Sprintf("%T", l), "*")
	}
	a.mu.Lock()
	a.lists[kind]++
	a.mu.Unlock()
	return c.List(ctx, l, opts...)
}

func TestClustersOnWhichAllIsWellAreAskedForNoObjectsAndNoClasses(t *testing.T) {
	here, there := &asked{lists: map[string]int{}}, &asked{lists: map[string]int{}}
	src := cluster.Source{Cluster: newCluster(t, "src", interceptor.Funcs{List: here.list}, slices.Concat(shop(), veleroOn("node-1"))...)}
	dst := cluster.Destination{Cluster: newCluster(t, "dst", interceptor.Funcs{List: there.list}, veleroOn("node-2")...)}
	if _, _, err := Look(t.Context(), src, dst, shopPlan(t)); err != nil {
		t.Fatal(err)
	}
	for _, lists := range []map[string]int{here.lists, there.lists} {
		for kind, n := range lists {
			if kind == "v1.PriorityClassList" || kind == "v1.RuntimeClassList" || strings.Contains(kind, "Partial") || n > 2 { // ConfigMaps: records, and Velero's class maps
				t.Errorf("%s: asked %d times", kind, n)
			}
		}
	}
	if there.lists["v1.ServiceList"] > 0 || here.lists["v1.ServiceList"] != 1 {
		t.Errorf("without a node port the destination's Services are of no interest: %v, %v", here.lists, there.lists)
	}
}

func TestARightThatIsMissingLeavesItsCheckOutAndIsTold(t *testing.T) {
	web := &appsv1.Deployment{ObjectMeta: named("shop", "web")}
	web.Spec.Template.Spec.PriorityClassName = "gold"
	forbid := func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
		switch l.(type) {
		case *corev1.LimitRangeList, *admissionregistrationv1.ValidatingWebhookConfigurationList:
			return apierrors.NewForbidden(schema.GroupResource{}, "", nil)
		}
		if strings.Contains(fmt.Sprintf("%T", l), "PriorityClass") {
			return apierrors.NewForbidden(schema.GroupResource{}, "", nil)
		}
		return c.List(ctx, l, opts...)
	}
	src := cluster.Source{Cluster: newCluster(t, "src", interceptor.Funcs{}, slices.Concat(veleroOn("node-1"), []client.Object{namespace("shop"), web})...)}
	dst := cluster.Destination{Cluster: newCluster(t, "dst", interceptor.Funcs{List: forbid}, veleroOn("node-2")...)}
	_, d, err := Look(t.Context(), src, dst, shopPlan(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{PartLimitRanges, PartPriorities, PartWebhooks} {
		if !slices.ContainsFunc(d.Gaps, func(g Gap) bool { return g.Part == part && g.Optional && g.Denied }) {
			t.Errorf("%s: got %+v", part, d.Gaps)
		}
	}
}
