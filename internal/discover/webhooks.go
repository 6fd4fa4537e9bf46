package discover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
)

// hook is a webhook whose no, or silence, keeps an object from being made, and
// whose server is a Service of the cluster.
type hook struct {
	configuration, name string
	service             client.ObjectKey
	rules               []admissionregistrationv1.RuleWithOperations
	namespaces, objects labels.Selector
	why                 string // its server does not answer
}

// isAskedAbout says whether the webhook is asked when an object of the kind is
// made. Versions are no matter: an object of another one is asked about in that
// of the rule.
func (h hook) isAskedAbout(k Kind) bool {
	return slices.ContainsFunc(h.rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		hasAny := func(in []string, wanted ...string) bool {
			return slices.ContainsFunc(in, func(s string) bool { return slices.Contains(wanted, s) })
		}
		return (r.Scope == nil || *r.Scope != admissionregistrationv1.ClusterScope) &&
			slices.ContainsFunc(r.Operations, func(o admissionregistrationv1.OperationType) bool {
				return o == admissionregistrationv1.Create || o == admissionregistrationv1.OperationAll
			}) &&
			hasAny(r.APIGroups, k.Group, "*") && hasAny(r.Resources, k.Resource, "*", "*/*")
	})
}

// hooksThatAreDown are the webhooks that must answer before an object is made,
// and whose Service is not there or has nobody behind it.
func hooksThatAreDown(ctx context.Context, c client.Client) ([]hook, error) {
	hooks, err := listHooks(ctx, c)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var errs []error
	why := map[client.ObjectKey]string{}
	for _, h := range hooks {
		why[h.service] = ""
	}
	var group errgroup.Group
	group.SetLimit(inParallel)
	for service := range maps.Clone(why) {
		group.Go(func() error {
			said, err := whyDown(ctx, c, service)
			mu.Lock()
			defer mu.Unlock()
			why[service] = said
			errs = append(errs, err)
			return nil
		})
	}
	_ = group.Wait() // errors are gathered, so that the other services are looked at
	for i := range hooks {
		hooks[i].why = why[hooks[i].service]
	}
	return slices.DeleteFunc(hooks, func(h hook) bool { return h.why == "" }), errors.Join(errs...)
}

// whyDown says why a Service does not answer; empty where it may.
func whyDown(ctx context.Context, c client.Client, key client.ObjectKey) (string, error) {
	var s corev1.Service
	err := c.Get(ctx, key, &s)
	if apierrors.IsNotFound(err) {
		return "there is no such Service", nil
	}
	if err != nil || s.Spec.Type == corev1.ServiceTypeExternalName {
		return "", err
	}
	var slices discoveryv1.EndpointSliceList
	if err := c.List(ctx, &slices, client.InNamespace(key.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: key.Name}); err != nil {
		return "", err
	}
	for _, slice := range slices.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				return "", nil
			}
		}
	}
	return "its Service has no ready endpoint", nil
}

// listHooks are the webhooks of both kinds that may refuse an object and are
// asked at a Service.
func listHooks(ctx context.Context, c client.Client) ([]hook, error) {
	validating, err := all(ctx, func(ctx context.Context, opts ...client.ListOption) ([][]hook, metav1.ListMeta, error) {
		var list admissionregistrationv1.ValidatingWebhookConfigurationList
		err := c.List(ctx, &list, opts...)
		return each(list.Items, func(o *admissionregistrationv1.ValidatingWebhookConfiguration) []hook {
			var out []hook
			for _, w := range o.Webhooks {
				out = append(out, hooksOf("ValidatingWebhookConfiguration/"+o.Name, w.Name, w.FailurePolicy, w.ClientConfig, w.Rules, w.NamespaceSelector, w.ObjectSelector)...)
			}
			return out
		}), list.ListMeta, err
	})
	if err != nil {
		return nil, err
	}
	mutating, err := all(ctx, func(ctx context.Context, opts ...client.ListOption) ([][]hook, metav1.ListMeta, error) {
		var list admissionregistrationv1.MutatingWebhookConfigurationList
		err := c.List(ctx, &list, opts...)
		return each(list.Items, func(o *admissionregistrationv1.MutatingWebhookConfiguration) []hook {
			var out []hook
			for _, w := range o.Webhooks {
				out = append(out, hooksOf("MutatingWebhookConfiguration/"+o.Name, w.Name, w.FailurePolicy, w.ClientConfig, w.Rules, w.NamespaceSelector, w.ObjectSelector)...)
			}
			return out
		}), list.ListMeta, err
	})
	return slices.Concat(slices.Concat(validating...), slices.Concat(mutating...)), err
}

// hooksOf is one webhook, or none where its silence harms nobody or its server
// is not in the cluster.
func hooksOf(configuration, name string, failure *admissionregistrationv1.FailurePolicyType, at admissionregistrationv1.WebhookClientConfig,
	rules []admissionregistrationv1.RuleWithOperations, namespaces, objects *metav1.LabelSelector,
) []hook {
	if at.Service == nil || (failure != nil && *failure == admissionregistrationv1.Ignore) {
		return nil
	}
	h := hook{configuration: configuration, name: name, service: client.ObjectKey{Namespace: at.Service.Namespace, Name: at.Service.Name}, rules: rules}
	h.namespaces, h.objects = selects(namespaces), selects(objects)
	return []hook{h}
}

// selects is a webhook's selector: none selects everything, as does one that
// cannot be read, which the server would not have taken.
func selects(s *metav1.LabelSelector) labels.Selector {
	if s == nil {
		return labels.Everything()
	}
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Everything()
	}
	return out
}

// webhooks are the hooks that would be asked about objects of the plan.
func webhooks(down []hook, found []held, s *SourceFacts, d *DestinationFacts, v plan.Valid) []Webhook {
	kinds := map[string]Kind{}
	for _, k := range s.Kinds {
		kinds[k.groupKind().String()] = k
	}
	of := map[string]labels.Set{}
	for _, ns := range v.SourceNamespaces() {
		of[ns] = labelsThere(s, d, ns, v.DestinationNamespace(ns), v)
	}
	var out []Webhook
	for _, h := range down {
		w := Webhook{Configuration: h.configuration, Name: h.name, Service: h.service.String(), Why: h.why}
		for _, o := range found {
			if h.isAskedAbout(kinds[o.groupKind().String()]) && h.namespaces.Matches(of[o.Namespace]) && h.objects.Matches(labels.Set(o.labels)) {
				w.Objects = append(w.Objects, fmt.Sprintf("%s/%s/%s", o.Kind, o.Namespace, o.Name))
			}
		}
		if len(w.Objects) > 0 {
			out = append(out, w)
		}
	}
	return out
}

// labelsThere are the labels that a namespace has on the destination, or will
// have when a run makes it.
func labelsThere(s *SourceFacts, d *DestinationFacts, ns, to string, v plan.Valid) labels.Set {
	if there, ok := d.Namespace(to); ok {
		return there.Labels
	}
	from, _ := s.Namespace(ns)
	out := newNamespace(from, to, naming.Owner{PlanName: v.Name(), PlanUID: v.UID()}).Labels
	out[corev1.LabelMetadataName] = to
	return out
}
