//go:build e2e

package preflight

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
)

// shared is for what is of a whole cluster: it goes with its test, for the other
// beds are on the same servers.
func (b *bed) shared(c client.Client, objects ...client.Object) {
	b.t.Helper()
	b.create(c, objects...)
	for _, o := range objects {
		b.goes(c, o)
	}
}

// goes deletes an object at the end of the test.
func (b *bed) goes(c client.Client, o client.Object) {
	b.t.Cleanup(func() {
		if err := c.Delete(context.WithoutCancel(b.t.Context()), o); client.IgnoreNotFound(err) != nil {
			b.t.Error(err)
		}
	})
}

// works adds a Deployment to the application.
func (b *bed) works(name string, with func(*corev1.PodSpec)) {
	b.t.Helper()
	labels := map[string]string{"app": name}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/app:1"}}}
	if with != nil {
		with(&pod)
	}
	b.create(b.src, &appsv1.Deployment{ObjectMeta: in(b.ns, name), Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
	}})
}

func (b *bed) service(namespace, name string, port int32) *corev1.Service {
	return &corev1.Service{ObjectMeta: in(namespace, name), Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: port, TargetPort: intstr.FromInt32(80)}},
	}}
}

// node gives the destination a ready node.
func (b *bed) node(with func(*corev1.Node)) {
	b.t.Helper()
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{"disk": "slow"}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	if with != nil {
		with(n)
	}
	b.shared(b.dst, n)
}

func schedulingCases() []realCase {
	return []realCase{
		{"a node label that the destination does not have", func(b *bed) {
			b.node(nil)
			b.works("press", func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"disk": "fast"} })
		}, want{NodesUnfit, "Deployment/APP/press", "disk=fast: 0 of 1 nodes match", blocks}},
		{"a taint that pods do not tolerate", func(b *bed) {
			b.node(func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: "team", Value: "red", Effect: corev1.TaintEffectNoSchedule}}
			})
		}, want{NodesUnfit, "StatefulSet/APP/db", "team=red:NoSchedule", blocks}},
		{"a wish for other nodes", func(b *bed) {
			b.node(nil)
			b.works("press", func(p *corev1.PodSpec) {
				term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "gpu", Operator: corev1.NodeSelectorOpExists}}}
				p.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: term}},
				}}
			})
		}, want{PreferredNodesGone, "Deployment/APP/press", "gpu Exists", informs}},
		{"a priority class that the destination does not have", func(b *bed) {
			b.shared(b.src, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, Value: 700})
			b.works("press", func(p *corev1.PodSpec) { p.PriorityClassName = "gold" })
		}, want{PriorityClassMissing, "PriorityClass gold", "value 700 on the source; used by Deployment/APP/press", blocks}},
		{"a priority class of another value", func(b *bed) {
			b.shared(b.src, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, Value: 700})
			b.shared(b.dst, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, Value: 5})
			b.works("press", func(p *corev1.PodSpec) { p.PriorityClassName = "gold" })
		}, want{PriorityDiffers, "PriorityClass gold", "700 on the source, 5 on the destination", informs}},
		{"a runtime class that the destination does not have", func(b *bed) {
			b.shared(b.src, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "cage"}, Handler: "kata"})
			b.works("press", func(p *corev1.PodSpec) { p.RuntimeClassName = ptr.To("cage") })
		}, want{RuntimeClassMissing, "RuntimeClass cage", "handler kata on the source", blocks}},
	}
}

func networkCases() []realCase {
	return []realCase{
		{"a node port that somebody on the destination has", func(b *bed) {
			b.create(b.src, b.service(b.ns, "desk", 30123))
			b.shared(b.dst, b.service("default", "bell", 30123))
		}, want{NodePortTaken, "Service/APP/desk", "30123 is default/bell's", blocks}},
	}
}

func admissionCases() []realCase {
	least := func(cpu string) corev1.LimitRangeSpec {
		return corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Min: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
	}
	quota := func(namespace, hard, used string) *corev1.ResourceQuota {
		q := &corev1.ResourceQuota{ObjectMeta: in(namespace, "cap"), Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(hard)}}}
		q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(used)}}
		return q
	}
	return []realCase{
		{"limits that helper pods are below", func(b *bed) {
			b.create(b.src, &corev1.LimitRange{ObjectMeta: in(b.ns, "lim"), Spec: least("50m")})
		}, want{HelpersRefused, "LimitRange/APP/lim of the source", "cpu: request 10m, minimum 50m", blocks}},
		{
			"a quota that the application uses up", func(b *bed) { b.create(b.src, quota(b.ns, "1", "1")) },
			want{HelpersCrowded, "ResourceQuota/APP/cap", "pods: 1/1 used", informs},
		},
		{
			"a quota without room for a helper", func(b *bed) { b.create(b.src, quota(b.ns, "0", "0")) },
			want{PodQuotaTooSmall, "ResourceQuota/APP/cap of the source", "for helper pods: pods: 1 needed", blocks},
		},
		{"a quota without room for the application", func(b *bed) {
			b.works("press", nil)
			b.create(b.dst, namespaced(b.ns), quota(b.ns, "4", "2"))
		}, want{PodQuotaTooSmall, "ResourceQuota/APP/cap of the destination", "for the application: pods: 2/4 used, 3 more needed", blocks}},
		{"limits of the destination that a pod is below", func(b *bed) {
			b.works("press", func(p *corev1.PodSpec) {
				p.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5m")}
			})
			b.create(b.dst, namespaced(b.ns), &corev1.LimitRange{ObjectMeta: in(b.ns, "lim"), Spec: least("8m")})
		}, want{PodsRefused, "Deployment/APP/press", "cpu: request 5m, minimum 8m", blocks}},
		{"a webhook whose server is gone", func(b *bed) {
			b.shared(b.dst, silent(b.ns, "statefulsets", nil))
		}, want{WebhookDown, "ValidatingWebhookConfiguration/APP.example.com", "service nowhere/nobody: there is no such Service; it is asked about StatefulSet/APP/db", blocks}},
	}
}

// silent is a webhook that nobody answers for, and that is asked about objects of
// the group apps.
func silent(name, resource string, with func(*admissionregistrationv1.ValidatingWebhook)) *admissionregistrationv1.ValidatingWebhookConfiguration {
	w := admissionregistrationv1.ValidatingWebhook{
		Name: "all." + name + ".example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "nowhere", Name: "nobody"}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"*"}, Resources: []string{resource}},
		}},
		// Other beds make such objects, too.
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}},
	}
	if with != nil {
		with(&w)
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name + ".example.com"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{w}}
}

func TestAWebhookThatHarmsNobodyIsNotToldOnARealPair(t *testing.T) {
	b := newBed(t)
	b.shared(b.dst, silent(b.ns+"-meek", "statefulsets", func(w *admissionregistrationv1.ValidatingWebhook) {
		w.FailurePolicy, w.NamespaceSelector.MatchLabels[corev1.LabelMetadataName] = ptr.To(admissionregistrationv1.Ignore), b.ns
	}), silent(b.ns+"-others", "statefulsets", nil))
	for _, c := range b.check() {
		if c.Type == WebhookDown {
			t.Errorf("got %+v", c)
		}
	}
}

func kindCases() []realCase {
	return []realCase{
		{"a version that the destination no longer serves", func(b *bed) {
			b.defined(b.src.Cluster, "light.test", "Lamp", "v1beta1")
			b.defined(b.dst.Cluster, "light.test", "Lamp", "v1")
			b.custom(b.src.Cluster, "light.test/v1beta1", "Lamp", "hall", nil)
		}, want{VersionNotServed, "Lamp.light.test", "(v1beta1 on the source, v1 on the destination; both serve none; objects: APP/hall)", blocks}},
		{"a kind that the destination does not know yet", func(b *bed) {
			b.defined(b.src.Cluster, "dark.test", "Cave", "v1")
			b.custom(b.src.Cluster, "dark.test/v1", "Cave", "deep", nil)
		}, want{DefinitionsGoAlong, "Cave.dark.test", "objects: APP/deep", informs}},
		{"an operator that the destination cannot install", func(b *bed) {
			for _, c := range []*cluster.Cluster{b.src.Cluster, b.dst.Cluster} {
				b.defined(c, "operators.coreos.com", "Subscription", "v1alpha1")
			}
			b.custom(b.src.Cluster, "operators.coreos.com/v1alpha1", "Subscription", "till", map[string]any{"name": "till", "source": "own", "sourceNamespace": "market"})
		}, want{CatalogMissing, "Subscription/APP/till", "package till of CatalogSource market/own", blocks}},
		{"what OLM makes by itself", func(b *bed) {
			for _, c := range []*cluster.Cluster{b.src.Cluster, b.dst.Cluster} {
				b.defined(c, "operators.coreos.com", "InstallPlan", "v1alpha1")
			}
			b.custom(b.src.Cluster, "operators.coreos.com/v1alpha1", "InstallPlan", "x", nil)
		}, want{GeneratedByOLM, "InstallPlan/APP/x", "they are left out", informs}},
	}
}

func TestAVersionThatBothServeIsNotToldOnARealPair(t *testing.T) {
	b := newBed(t)
	b.defined(b.src.Cluster, "same.test", "Twin", "v1beta1")
	b.defined(b.dst.Cluster, "same.test", "Twin", "v1", "v1beta1")
	b.custom(b.src.Cluster, "same.test/v1beta1", "Twin", "left", nil)
	for _, c := range b.check() {
		if c.Type == VersionNotServed || c.Type == KindNotServed || c.Type == DefinitionsGoAlong {
			t.Errorf("got %+v", c)
		}
	}
}

// defined adds a kind to a cluster and waits until the cluster serves it.
func (b *bed) defined(c *cluster.Cluster, group, kind string, versions ...string) {
	b.t.Helper()
	singular := strings.ToLower(kind)
	var served []any
	for i, v := range versions {
		served = append(served, map[string]any{
			"name": v, "served": true, "storage": i == 0,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		})
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": singular + "s." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "versions": served,
			"names": map[string]any{"kind": kind, "listKind": kind + "List", "singular": singular, "plural": singular + "s"},
		},
	}}
	if err := c.Create(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
	b.goes(c, o)
	err := wait.PollUntilContextTimeout(b.t.Context(), 100*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		list, err := c.Discovery.ServerResourcesForGroupVersion(group + "/" + versions[0])
		return err == nil && len(list.APIResources) > 0, nil
	})
	if err != nil {
		b.t.Fatalf("%s is not served: %v", kind, err)
	}
}

// custom makes an object of a kind that is new: a client may have to look again.
func (b *bed) custom(c *cluster.Cluster, apiVersion, kind, name string, spec map[string]any) {
	b.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	o.SetNamespace(b.ns)
	o.SetName(name)
	err := wait.PollUntilContextTimeout(b.t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		err := c.Create(ctx, o)
		notYet := meta.IsNoMatchError(err) || apierrors.IsNotFound(err)
		if notYet {
			err = nil
		}
		return !notYet && err == nil, err
	})
	if err != nil {
		b.t.Fatalf("%s %s: %v", kind, name, err)
	}
	b.goes(c, o) // before its definition
}
