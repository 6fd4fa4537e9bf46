//go:build e2e

package cases

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/plan"
)

func TestADestinationNamespaceThatIsBeingDeletedIsNamedWithWhatHoldsIt(t *testing.T) {
	p := open(t, scenario{"A01", "namespace-state", api})
	deed := configMap("teahouse", "deed")
	deed.Finalizers = []string{"notary.example/sealed"}
	p.given(p.dst(), namespace("teahouse"), deed)
	p.deleted(p.dst(), deed)
	p.deleted(p.dst(), namespace("teahouse"))
	host := deployment("teahouse", "host")
	p.given(p.src(), namespace("teahouse"), configMap("teahouse", "menu"), host)
	p.planned("teahouse")

	v := p.validated()
	c := p.wantBlocked(v, "NamespaceTerminating", "teahouse on the destination", "deed", "notary.example/sealed")
	if !strings.Contains(c.Message, "since") {
		t.Errorf("since when is not told: %s", c.Message)
	}
	p.exits(blocked, "migrate")
	p.keptSize(host)

	p.must(p.dst().Patch(t.Context(), deed, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	p.gone(p.dst(), "teahouse")
	p.wantReady(p.validated())
}

// keptSize wants a workload of the source to be as large as it was made.
func (p *place) keptSize(d *appsv1.Deployment) {
	p.t.Helper()
	now := &appsv1.Deployment{}
	p.must(p.src().Get(p.t.Context(), client.ObjectKeyFromObject(d), now))
	if *now.Spec.Replicas != 1 || len(now.Annotations) > 1 { // the Deployment controller's revision
		p.t.Errorf("the source's %s was changed: %d replicas, %v", d.Name, *now.Spec.Replicas, now.Annotations)
	}
}

func TestADestinationThatRefusesANamespaceSaysSoBeforeTheRun(t *testing.T) {
	p := open(t, scenario{"A06", "namespace-state", api})
	p.given(p.src(),
		namespace("parlour", "tax.example/office", "north"), configMap("parlour", "sofa"),
		namespace("attic"), configMap("attic", "trunk"))
	p.given(p.dst(), namespacesNeed("tax.example/office", "parlour", "attic")...)

	p.refuses(p.dst(), namespace("attic"))

	p.planned("parlour,attic")
	p.wantBlocked(p.validated(), "NamespaceRefused", "attic", "pay your taxes")
	p.exits(blocked, "migrate")

	p.editPlan("parlour", func(p *plan.Plan) { p.Spec.Namespaces = p.Spec.Namespaces[:1] })
	p.wantReady(p.validated())
}

// refuses waits until a policy works: the server takes some time to know it.
func (p *place) refuses(c *cluster.Cluster, o client.Object) {
	p.t.Helper()
	p.must(labtest.Until(p.t.Context(), patience, o.GetName()+" is refused", func(ctx context.Context) (labtest.NotYet, error) {
		if err := c.Create(ctx, o, client.DryRunAll); err == nil {
			return "it is not", nil
		}
		return "", nil
	}))
}

// namespacesNeed is a policy that refuses namespaces without a label. It is for
// those named: it works on for a while after it is deleted, and others make
// namespaces too.
func namespacesNeed(label string, names ...string) []client.Object {
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "taxed-namespaces"}}
	policy.Spec = admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: ptr.To(admissionv1.Fail),
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"namespaces"}},
			},
		}}},
		Validations: []admissionv1.Validation{{
			Expression: "!(object.metadata.name in ['" + strings.Join(names, "','") + "']) || has(object.metadata.labels) && '" + label + "' in object.metadata.labels",
			Message:    "pay your taxes",
		}},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: policy.ObjectMeta}
	binding.Spec = admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}
	return []client.Object{policy, binding}
}

func TestWhatDiffersInANamespaceThatIsThereAlreadyIsTold(t *testing.T) {
	p := open(t, scenario{"A04", "namespace-state", api})
	const enforce = "pod-security.kubernetes.io/enforce"
	here := namespace("smithy", "guild", "iron", enforce, "baseline")
	here.Annotations = map[string]string{"town.example/elder": "weyland"}
	p.given(p.src(), here, deployment("smithy", "anvil"))
	p.given(p.dst(), namespace("smithy", "guild", "gold"))
	p.planned("smithy")
	v := p.validated()
	p.wantFound(v, "NamespaceDiffers", "smithy", "guild", enforce, "town.example/elder")
	p.wantReady(v)
}
