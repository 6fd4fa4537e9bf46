package discover

import (
	"cmp"
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
)

// WholeObjects lists what namespaces hold, as it is, of every kind that can be
// listed: without what every namespace has by itself and what a controller makes
// of something else. Errors are gathered beside what could be listed.
func WholeObjects(ctx context.Context, c *cluster.Cluster, namespaces []string) ([]*unstructured.Unstructured, error) {
	found, err := getNamespaces(ctx, c.Client, namespaces)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	kinds, err := listableKinds(c.Discovery)
	var errs []error
	if err != nil {
		errs = append(errs, err)
	}
	out, err := listKinds(ctx, each(found, func(n *Namespace) string { return n.Name }), kinds, (*unstructured.Unstructured).GetNamespace,
		func(kind schema.GroupVersionKind) page[*unstructured.Unstructured] { return wholePage(c.Client, kind) })
	errs = append(errs, err)
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out, errors.Join(errs...)
}

func wholePage(c client.Client, kind schema.GroupVersionKind) page[*unstructured.Unstructured] {
	return func(ctx context.Context, opts ...client.ListOption) ([]*unstructured.Unstructured, metav1.ListMeta, error) {
		list := unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := c.List(ctx, &list, opts...)
		var out []*unstructured.Unstructured
		for i := range list.Items {
			if o := &list.Items[i]; metav1.GetControllerOf(o) == nil && !isInEveryNamespace(namedOf(o)) {
				out = append(out, o)
			}
		}
		return out, metav1.ListMeta{Continue: list.GetContinue(), RemainingItemCount: list.GetRemainingItemCount(), ResourceVersion: list.GetResourceVersion()}, err
	}
}

func namedOf(o *unstructured.Unstructured) Object {
	return Object{Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}
