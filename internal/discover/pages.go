package discover

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is how many objects are asked for at once.
const pageSize = 500

// fewNamespaces is how many namespaces are listed one by one without asking how
// much the whole cluster holds: what few namespaces cost must not depend on the
// others.
const fewNamespaces = 10

// pageCost is how many lists of single namespaces take as long as one page of
// the whole cluster, about: a page is full, a namespace mostly is not.
const pageCost = 10

// page fetches one page of a list, already turned into the values that are
// kept, and where it stands in the list.
type page[T any] func(ctx context.Context, opts ...client.ListOption) (items []T, at metav1.ListMeta, err error)

// all fetches every page. A list that grew too old between two pages is taken
// again from its start, in one piece.
func all[T any](ctx context.Context, get page[T], opts ...client.ListOption) ([]T, error) {
	items, at, err := get(ctx, slices.Concat(opts, []client.ListOption{client.Limit(pageSize)})...)
	if err != nil {
		return nil, err
	}
	return onward(ctx, get, items, at, opts...)
}

// onward fetches the pages after the first.
func onward[T any](ctx context.Context, get page[T], out []T, at metav1.ListMeta, opts ...client.ListOption) ([]T, error) {
	for at.Continue != "" {
		items, next, err := get(ctx, slices.Concat(opts, []client.ListOption{client.Limit(pageSize), client.Continue(at.Continue)})...)
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			items, _, err = get(ctx, opts...)
			return items, err
		}
		if err != nil {
			return nil, err
		}
		out, at = append(out, items...), next
	}
	return out, nil
}

// inNamespaces fetches the list for each of the namespaces, in their order. For
// many it looks at a first page of the whole cluster, which tells how much
// there is, and takes what costs less: the other pages, or the namespaces one by
// one. So it does, too, where the whole cluster may not be listed.
func inNamespaces[T any](ctx context.Context, namespaces []string, namespaceOf func(T) string, get page[T]) ([]T, error) {
	if len(namespaces) <= fewNamespaces {
		return inEachNamespace(ctx, namespaces, get)
	}
	items, at, err := get(ctx, client.Limit(pageSize))
	if apierrors.IsForbidden(err) || (err == nil && pagesAfter(at)*pageCost > len(namespaces)) {
		return inEachNamespace(ctx, namespaces, get)
	}
	if err != nil {
		return nil, err
	}
	if items, err = onward(ctx, get, items, at); err != nil {
		return nil, err
	}
	return inOrder(items, namespaces, namespaceOf), nil
}

// pagesAfter is how many pages are to come; a server that does not tell has few.
func pagesAfter(at metav1.ListMeta) int {
	if at.RemainingItemCount == nil {
		return 0
	}
	return int((*at.RemainingItemCount + pageSize - 1) / pageSize)
}

// eachInParallel bounds the lists of one kind in several namespaces that are
// fetched at once, beside those of other kinds.
const eachInParallel = 8

// inEachNamespace lists the namespaces one by one. What was found before an
// error is given with it.
func inEachNamespace[T any](ctx context.Context, namespaces []string, get page[T]) ([]T, error) {
	found, errs := make([][]T, len(namespaces)), make([]error, len(namespaces))
	var group errgroup.Group
	group.SetLimit(eachInParallel)
	for i, ns := range namespaces {
		group.Go(func() error {
			found[i], errs[i] = all(ctx, get, client.InNamespace(ns))
			return nil
		})
	}
	_ = group.Wait() // errors are told in the order of the namespaces
	for _, err := range errs {
		if err != nil {
			return slices.Concat(found...), err
		}
	}
	return slices.Concat(found...), nil
}

// getEach gets the cluster-wide objects of some names, in their order, without
// those that are not there. What was found is given also with an error.
func getEach[O client.Object](ctx context.Context, c client.Client, names []string, empty func() O) ([]O, error) {
	found, errs := make([]O, len(names)), make([]error, len(names))
	var group errgroup.Group
	group.SetLimit(inParallel)
	for i, name := range names {
		group.Go(func() error {
			found[i] = empty()
			errs[i] = c.Get(ctx, client.ObjectKey{Name: name}, found[i])
			return nil
		})
	}
	_ = group.Wait() // errors are told in the order of the names
	var out []O
	var first error
	for i, err := range errs {
		switch {
		case err == nil:
			out = append(out, found[i])
		case first == nil:
			first = client.IgnoreNotFound(err)
		}
	}
	return out, first
}

// inOrder keeps what is in the namespaces, in their order.
func inOrder[T any](items []T, namespaces []string, namespaceOf func(T) string) []T {
	place := make(map[string]int, len(namespaces))
	for i, ns := range namespaces {
		place[ns] = i
	}
	items = slices.DeleteFunc(items, func(t T) bool { _, wanted := place[namespaceOf(t)]; return !wanted })
	slices.SortStableFunc(items, func(a, b T) int { return place[namespaceOf(a)] - place[namespaceOf(b)] })
	return items
}
