package discover

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is how many objects are asked for at once.
const pageSize = 500

// fewNamespaces is how many namespaces are listed one by one. Above, one list of
// the whole cluster costs fewer requests, and what is not wanted is dropped.
const fewNamespaces = 20

// page fetches one page of a list, already turned into the values that are
// kept, and the token of the next page.
type page[T any] func(ctx context.Context, opts ...client.ListOption) (items []T, next string, err error)

// all fetches every page. A list that grew too old between two pages is taken
// again from its start, in one piece.
func all[T any](ctx context.Context, get page[T], opts ...client.ListOption) ([]T, error) {
	var out []T
	token := ""
	for {
		items, next, err := get(ctx, slices.Concat(opts, []client.ListOption{client.Limit(pageSize), client.Continue(token)})...)
		if token != "" && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err)) {
			items, _, err = get(ctx, opts...)
			return items, err
		}
		if err != nil {
			return nil, err
		}
		out = append(out, items...)
		if token = next; token == "" {
			return out, nil
		}
	}
}

// inNamespaces fetches the list for each of the namespaces, in their order.
func inNamespaces[T any](ctx context.Context, namespaces []string, namespaceOf func(T) string, get page[T]) ([]T, error) {
	if len(namespaces) > fewNamespaces {
		return inMany(ctx, namespaces, namespaceOf, get)
	}
	var out []T
	for _, ns := range namespaces {
		items, err := all(ctx, get, client.InNamespace(ns))
		if err != nil {
			return out, err
		}
		out = append(out, items...)
	}
	return out, nil
}

func inMany[T any](ctx context.Context, namespaces []string, namespaceOf func(T) string, get page[T]) ([]T, error) {
	items, err := all(ctx, get)
	if err != nil {
		return nil, err
	}
	place := make(map[string]int, len(namespaces))
	for i, ns := range namespaces {
		place[ns] = i
	}
	items = slices.DeleteFunc(items, func(t T) bool { _, wanted := place[namespaceOf(t)]; return !wanted })
	slices.SortStableFunc(items, func(a, b T) int { return place[namespaceOf(a)] - place[namespaceOf(b)] })
	return items, nil
}
