//go:build e2e

package cases

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/plan"
)

func TestAPodForWhichThereIsNoNodeIsNamedWithWhatItAsksFor(t *testing.T) {
	p := open(t, scenario{"F01", "scheduling", api})
	lens := deployment("dome", "lens")
	lens.Spec.Template.Spec.NodeSelector = map[string]string{"sky.example/altitude": "high"}
	p.given(p.src(), namespace("dome"), lens, deployment("dome", "clock"))
	p.planned("dome")
	c := p.wantBlocked(p.validated(), "NodesUnfit", "Deployment/dome/lens", "sky.example/altitude=high", "0 of 2 nodes")
	if c.names("clock") {
		t.Errorf("a pod that runs anywhere is named too: %+v", c)
	}
	p.exits(blocked, "migrate")

	p.changed(p.dst(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-d2"}}, `{"metadata":{"labels":{"sky.example/altitude":"high"}}}`)
	t.Cleanup(func() {
		p.changed(p.dst(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-d2"}}, `{"metadata":{"labels":{"sky.example/altitude":null}}}`)
	})
	p.wantReady(p.validated())
}

// changed merges a patch into an object; the cluster's own controllers may write
// it at the same time.
func (p *place) changed(c *cluster.Cluster, o client.Object, patch string) {
	p.t.Helper()
	p.must(c.Patch(context.WithoutCancel(p.t.Context()), o, client.RawPatch("application/merge-patch+json", []byte(patch))))
}

func TestClassesOfPodsThatTheDestinationLacksAreNamedWithTheirUsers(t *testing.T) {
	p := open(t, scenario{"F05", "scheduling", api})
	knight := deployment("castle", "knight")
	knight.Spec.Template.Spec.PriorityClassName = "nobility"
	page := deployment("castle", "page")
	page.Spec.Template.Spec.RuntimeClassName = ptr.To("dungeon")
	p.given(p.src(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "nobility"}, Value: 4711},
		&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "dungeon"}, Handler: "chains"}, namespace("castle"), knight, page)
	p.planned("castle")
	v := p.validated()
	c := p.wantFound(v, "PriorityClassMissing", "nobility", "4711", "Deployment/castle/knight")
	p.wantFound(v, "RuntimeClassMissing", "dungeon", "chains", "Deployment/castle/page")

	// What is told to be done is enough.
	_, command, _ := strings.Cut(c.Hint, "kubectl ")
	r, err := p.lab.Run(t.Context(), p.dir, append([]string{"kubectl"}, strings.Fields(command)...)...)
	p.must(err)
	if r.Code != 0 {
		t.Fatal(r)
	}
	p.cleared(p.dst(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "nobility"}})
	p.given(p.dst(), &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "dungeon"}, Handler: "chains"})
	p.wantReady(p.validated())
}

func TestATakenNodePortIsNamedWithItsOwner(t *testing.T) {
	p := open(t, scenario{"G01", "network", api})
	p.given(p.src(), namespace("pier"), nodePort("pier", "ferry", 30555), nodePort("pier", "tug", 30556))
	p.given(p.dst(), namespace("beach"), nodePort("beach", "kiosk", 30555))
	p.planned("pier")
	c := p.wantBlocked(p.validated(), "NodePortTaken", "Service/pier/ferry", "30555", "beach/kiosk")
	if c.names("tug") {
		t.Errorf("a port that is free is named too: %+v", c)
	}
	p.deleted(p.dst(), nodePort("beach", "kiosk", 0))
	p.wantReady(p.validated())
}

func nodePort(namespace, name string, port int32) *corev1.Service {
	s := &corev1.Service{ObjectMeta: in(namespace, name)}
	s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: port}}}
	return s
}

func TestLimitsThatKeepHelpersFromBeingMadeAreToldBeforeTheApplicationIsStopped(t *testing.T) {
	p := open(t, scenario{"H03", "admission", api})
	limits := &corev1.LimitRange{ObjectMeta: in("bakery", "portions")}
	limits.Spec.Limits = []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Min: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("48Mi")}}}
	p.given(p.src(), storageClass("tin", "smiths.example"), namespace("bakery"), limits, claim("bakery", "dough", "tin"), deployment("bakery", "oven", mountsClaim("dough")))
	p.given(p.dst(), storageClass("tin", "smiths.example"))
	p.planned("bakery")
	p.wantBlocked(p.validated(), "HelpersRefused", "LimitRange/bakery/portions", "memory", "48Mi", "32Mi")
	p.exits(blocked, "stage")
	p.changed(p.src(), limits, `{"spec":{"limits":[{"type":"Container","min":{"memory":"16Mi"}}]}}`)
	p.wantReady(p.validated())
}

func TestAWebhookThatNobodyAnswersForIsNamedOnceWithWhatItWouldRefuse(t *testing.T) {
	p := open(t, scenario{"H05", "admission", api})
	p.given(p.src(), namespace("gallery"), policyOf("gallery", "night"), policyOf("gallery", "day"), namespace("cellars"), policyOf("cellars", "dark"))
	p.given(p.dst(), guardOf("guards", "gallery"))
	p.planned("gallery,cellars")
	c := p.wantBlocked(p.validated(), "WebhookDown", "ValidatingWebhookConfiguration/guards", "strict.guards.example", "post/sentry", "Fail", "NetworkPolicy/gallery/night", "NetworkPolicy/gallery/day")
	if len(c.Objects) != 1 || c.names("meek.guards.example") || c.names("cellars") {
		t.Errorf("want one webhook, and no namespace that it does not select: %+v", c)
	}
	p.editPlan("gallery", func(p *plan.Plan) {
		p.Spec.Accept = append(p.Spec.Accept, plan.Accept{Type: c.Type, Object: c.Objects[0], Why: "it is up by then"})
	})
	p.wantReady(p.validated())
}

func policyOf(namespace, name string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: in(namespace, name)}
}

// guardOf has two webhooks at a Service that is not there: a strict one for one
// namespace, and one whose silence is a yes.
func guardOf(name, namespace string) *admissionv1.ValidatingWebhookConfiguration {
	webhook := func(name string, policy admissionv1.FailurePolicyType) admissionv1.ValidatingWebhook {
		return admissionv1.ValidatingWebhook{
			Name: name, AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionv1.SideEffectClassNone), FailurePolicy: &policy,
			ClientConfig:      admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "post", Name: "sentry"}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{"networking.k8s.io"}, APIVersions: []string{"v1"}, Resources: []string{"networkpolicies"}},
			}},
		}
	}
	return &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks:   []admissionv1.ValidatingWebhook{webhook("strict.guards.example", admissionv1.Fail), webhook("meek.guards.example", admissionv1.Ignore)},
	}
}

func TestAVersionThatTheDestinationNoLongerServesIsNamedWithThoseThatItHas(t *testing.T) {
	p := open(t, scenario{"J01", "api-compat", api})
	p.served(p.src(), "Kite", "wind.example", "v1beta2")
	p.served(p.dst(), "Kite", "wind.example", "v2")
	p.served(p.src(), "Sail", "wind.example", "v1beta2")
	p.served(p.dst(), "Sail", "wind.example", "v2", "v1beta2")
	p.given(p.src(), namespace("hilltop"))
	p.custom(p.src(), "wind.example/v1beta2", "Kite", "hilltop", "red", nil)
	p.custom(p.src(), "wind.example/v1beta2", "Sail", "hilltop", "white", nil)
	p.planned("hilltop")
	c := p.wantBlocked(p.validated(), "VersionNotServed", "Kite.wind.example", "v1beta2", "v2", "hilltop/red")
	if c.names("Sail") {
		t.Errorf("a version that both serve is named too: %+v", c)
	}
}

func TestASubscriptionWithoutItsCatalogIsNamedAndWhatOLMMakesIsLeftOut(t *testing.T) {
	p := open(t, scenario{"K08", "ownership", api})
	for _, c := range []*cluster.Cluster{p.src(), p.dst()} {
		for _, kind := range []string{"Subscription", "CatalogSource", "ClusterServiceVersion"} {
			p.served(c, kind, "operators.coreos.com", "v1alpha1")
		}
	}
	const olm = "operators.coreos.com/v1alpha1"
	p.given(p.src(), namespace("choir"))
	p.custom(p.src(), olm, "Subscription", "choir", "organ", map[string]any{"name": "organ", "source": "pipes", "sourceNamespace": "crypt"})
	p.custom(p.src(), olm, "ClusterServiceVersion", "choir", "organ.v3", nil)
	p.planned("choir")
	v := p.validated()
	p.wantBlocked(v, "CatalogMissing", "Subscription/choir/organ", "crypt/pipes")
	p.wantFound(v, "GeneratedByOLM", "ClusterServiceVersion/choir/organ.v3")

	p.given(p.dst(), namespace("crypt"))
	p.custom(p.dst(), olm, "CatalogSource", "crypt", "pipes", nil)
	v = p.validated()
	p.wantFound(v, "SubscriptionsGoAlong", "Subscription/choir/organ")
	p.wantReady(v)
}

// served adds a kind to a cluster.
func (p *place) served(c *cluster.Cluster, kind, group string, versions ...string) {
	p.t.Helper()
	singular := strings.ToLower(kind)
	var all []any
	for i, v := range versions {
		all = append(all, map[string]any{
			"name": v, "served": true, "storage": i == 0,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		})
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": group, "scope": "Namespaced", "versions": all,
		"names": map[string]any{"kind": kind, "listKind": kind + "List", "singular": singular, "plural": singular + "s"},
	}}}
	o.SetAPIVersion("apiextensions.k8s.io/v1")
	o.SetKind("CustomResourceDefinition")
	o.SetName(singular + "s." + group)
	p.given(c, o)
	p.must(labtest.Until(p.t.Context(), patience, kind+" is served", func(context.Context) (labtest.NotYet, error) {
		list, err := c.Discovery.ServerResourcesForGroupVersion(group + "/" + versions[0])
		if err != nil || len(list.APIResources) == 0 {
			return "it is not", nil //nolint:nilerr // a kind that is not served yet is not found
		}
		return "", nil
	}))
}

// custom makes an object of such a kind.
func (p *place) custom(c *cluster.Cluster, apiVersion, kind, namespace, name string, spec map[string]any) {
	p.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	o.SetNamespace(namespace)
	o.SetName(name)
	(&applying{p: p, c: c}).one(o)
}
