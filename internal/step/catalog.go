package step

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/discover"
)

// listsAtOnce bounds the lists that run at the same time: a cluster's fair
// queueing lets one client have about as many.
const listsAtOnce = 10

// catalog is every kind of a cluster whose objects can be listed and deleted.
// It is asked for once.
type catalog struct {
	of    *cluster.Cluster
	kinds []servedKind
	holes []string // API groups that did not answer
}

type servedKind struct {
	schema.GroupVersionKind
	namespaced bool
}

// read asks for the kinds. An API group that does not answer (an aggregated
// API that is down) is a hole, not an end.
func (c *catalog) read() error {
	if c.kinds != nil {
		return nil
	}
	lists, err := discovery.ServerPreferredResources(c.of.Discovery)
	c.holes = discover.DownAPIs(err)
	if err != nil && c.holes == nil {
		return err
	}
	c.kinds = deletable(lists)
	return nil
}

// deletable are the kinds whose objects can be listed and deleted.
func deletable(lists []*metav1.APIResourceList) []servedKind {
	var out []servedKind
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			continue
		}
		for _, res := range l.APIResources {
			if strings.Contains(res.Name, "/") || !slices.Contains(res.Verbs, "list") || !slices.Contains(res.Verbs, "delete") {
				continue
			}
			out = append(out, servedKind{gv.WithKind(res.Kind), res.Namespaced})
		}
	}
	return out
}

// listing is what was found of several kinds.
type listing struct {
	items  []item
	unread []string // kinds that may not be read
}

// list reads the metadata of all objects of the kinds that want wants, kinds
// side by side; their order stays. A kind that may not be read is noted, one
// that went away since is not.
func (c *catalog) list(ctx context.Context, want func(servedKind) bool, opts ...client.ListOption) (listing, error) {
	var (
		group errgroup.Group
		mu    sync.Mutex
		found = make([][]item, len(c.kinds))
		out   listing
	)
	group.SetLimit(listsAtOnce)
	for i, k := range c.kinds {
		if !want(k) {
			continue
		}
		group.Go(func() error {
			items, err := listMetadata(ctx, c.of, k, opts...)
			switch {
			case apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err):
				mu.Lock()
				defer mu.Unlock()
				out.unread = append(out.unread, k.Kind)
			case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			case err != nil:
				return fmt.Errorf("%s objects: %w", k.Kind, err)
			}
			found[i] = items
			return nil
		})
	}
	err := group.Wait()
	out.items = slices.Concat(found...)
	slices.Sort(out.unread)
	out.unread = slices.Compact(out.unread)
	return out, err
}

// listMetadata reads one kind, in pages.
func listMetadata(ctx context.Context, c client.Client, k servedKind, opts ...client.ListOption) ([]item, error) {
	const page = 500
	var out []item
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
	for {
		paged := append(slices.Clone(opts), client.Limit(page), client.Continue(list.Continue))
		if err := c.List(ctx, list, paged...); err != nil {
			return out, err
		}
		for i := range list.Items {
			m := list.Items[i]
			m.SetGroupVersionKind(k.GroupVersionKind)
			out = append(out, item{kind: k.GroupVersionKind, namespaced: k.namespaced, meta: &m})
		}
		if list.Continue == "" {
			return out, nil
		}
	}
}
