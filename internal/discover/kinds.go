package discover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/plan"
)

// lookAtKinds finds the source's objects that the destination would not take:
// those of kinds or versions that it does not serve, and those about which it
// would ask a webhook that does not answer. Only such kinds are listed, so that
// two clusters on which all is well are asked nothing more.
func lookAtKinds(ctx context.Context, src cluster.Source, dst cluster.Destination, s *SourceFacts, d *DestinationFacts, v plan.Valid) {
	var down []hook
	l := newLook(ctx, dst.Cluster)
	l.optional(PartWebhooks, func(ctx context.Context) (err error) { down, err = hooksThatAreDown(ctx, dst.Client); return err })
	d.Gaps = append(d.Gaps, l.wait()...)

	apart := kindsApart(s.Kinds, d.Kinds, downGroups(d.Gaps))
	var kinds []schema.GroupVersionKind
	for _, k := range s.Kinds {
		asked := slices.ContainsFunc(down, func(h hook) bool { return h.isAskedAbout(k) })
		if _, differs := apart[k.groupKind()]; differs || asked {
			kinds = append(kinds, schema.GroupVersionKind{Group: k.Group, Version: k.Preferred, Kind: k.Kind})
		}
	}
	var found []held
	l = newLook(ctx, src.Cluster)
	l.optional(PartUnserved, func(ctx context.Context) (err error) {
		found, err = listKinds(ctx, v.SourceNamespaces(), kinds, func(h held) string { return h.Namespace },
			func(kind schema.GroupVersionKind) page[held] { return heldPage(src.Client, kind) })
		found = slices.DeleteFunc(found, func(h held) bool { return h.Stays || isInEveryNamespace(h.Object) })
		slices.SortFunc(found, func(a, b held) int { return inOrderOfNames(a.Object, b.Object) })
		return err
	})
	s.Gaps = append(s.Gaps, l.wait()...)
	s.Unserved = unserved(apart, found)
	d.Webhooks = webhooks(down, found, s, d, v)

	l = newLook(ctx, src.Cluster)
	l.optional(PartUnserved, func(ctx context.Context) error { return markDefined(ctx, src.Client, s.Unserved, s.Kinds) })
	l.optional(PartSubscriptions, func(ctx context.Context) error { return s.lookAtSubscriptions(ctx, src.Client, v.SourceNamespaces()) })
	s.Gaps = append(s.Gaps, l.wait()...)
	l = newLook(ctx, dst.Cluster)
	l.optional(PartSubscriptions, func(ctx context.Context) error { return markCatalogs(ctx, dst.Client, s.Subscriptions) })
	d.Gaps = append(d.Gaps, l.wait()...)
}

func (k Kind) groupKind() schema.GroupKind { return schema.GroupKind{Group: k.Group, Kind: k.Kind} }

// downGroups are the groups of which nobody knows what a cluster serves.
func downGroups(gaps []Gap) []string {
	var out []string
	for _, g := range gaps {
		for _, gv := range g.Objects {
			group, _, _ := strings.Cut(gv, "/")
			out = append(out, group)
		}
	}
	return out
}

// kindsApart are the kinds of the source that the destination does not serve in
// the version in which they are backed up.
func kindsApart(here, there []Kind, unknown []string) map[schema.GroupKind]Unserved {
	out := map[schema.GroupKind]Unserved{}
	if len(there) == 0 {
		return out // not known
	}
	served := map[schema.GroupKind][]string{}
	for _, k := range there {
		served[k.groupKind()] = k.Versions
	}
	for _, k := range here {
		versions := served[k.groupKind()]
		if slices.Contains(versions, k.Preferred) || slices.Contains(unknown, k.Group) {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(k.Versions), func(v string) bool { return v == k.Preferred })
		out[k.groupKind()] = Unserved{Kind: k.groupKind().String(), Version: k.Preferred, Others: others, There: versions}
	}
	return out
}

// unserved are those of the kinds of which there are objects.
func unserved(apart map[schema.GroupKind]Unserved, found []held) []Unserved {
	objects := map[schema.GroupKind][]string{}
	for _, h := range found {
		gk := h.groupKind()
		objects[gk] = append(objects[gk], h.Namespace+"/"+h.Name)
	}
	var out []Unserved
	for gk, u := range apart {
		if u.Objects = objects[gk]; len(u.Objects) > 0 {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b Unserved) int { return cmp.Compare(a.Kind, b.Kind) })
	return out
}

// markDefined notes which kinds that the destination does not know at all bring
// their definition along: Velero backs it up with the objects.
func markDefined(ctx context.Context, c client.Client, kinds []Unserved, all []Kind) error {
	names := map[string]string{}
	for _, k := range all {
		names[k.groupKind().String()] = k.Resource + "." + k.Group
	}
	var wanted []string
	for _, u := range kinds {
		if len(u.There) == 0 {
			wanted = append(wanted, names[u.Kind])
		}
	}
	found, err := getEach(ctx, c, wanted, func() *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		return o
	})
	for i := range kinds {
		kinds[i].Defined = len(kinds[i].There) == 0 && slices.ContainsFunc(found, func(o *metav1.PartialObjectMetadata) bool { return o.Name == names[kinds[i].Kind] })
	}
	return err
}

// held is an object with the labels that selectors look at.
type held struct {
	Object
	labels map[string]string
}

func (h held) groupKind() schema.GroupKind {
	return schema.FromAPIVersionAndKind(h.APIVersion, h.Kind).GroupKind()
}

func heldPage(c client.Client, kind schema.GroupVersionKind) page[held] {
	return func(ctx context.Context, opts ...client.ListOption) ([]held, metav1.ListMeta, error) {
		list := metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := c.List(ctx, &list, opts...)
		return each(list.Items, func(o *metav1.PartialObjectMetadata) held { return held{objectOf(kind, o), o.Labels} }), list.ListMeta, err
	}
}

// listKinds lists several kinds at once. One that cannot be listed is an error
// beside the others.
func listKinds[T any](ctx context.Context, namespaces []string, kinds []schema.GroupVersionKind, namespaceOf func(T) string, pageOf func(schema.GroupVersionKind) page[T]) ([]T, error) {
	var out []T
	var errs []error
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(inParallel)
	for _, kind := range kinds {
		group.Go(func() error {
			found, err := inNamespaces(ctx, namespaces, namespaceOf, pageOf(kind))
			mu.Lock()
			defer mu.Unlock()
			out = append(out, found...)
			if err != nil && !isNoSuchAPI(err) && !apierrors.IsMethodNotSupported(err) {
				errs = append(errs, fmt.Errorf("%s: %w", kind.GroupKind(), err))
			}
			return nil
		})
	}
	_ = group.Wait() // errors are gathered, so that the other kinds are listed
	return out, errors.Join(errs...)
}

// The kinds of the Operator Lifecycle Manager.
const olmGroup = "operators.coreos.com"

// lookAtSubscriptions lists what a user asked OLM for, and what OLM made of it.
func (s *SourceFacts) lookAtSubscriptions(ctx context.Context, c client.Client, namespaces []string) error {
	of := func(kind string) []schema.GroupVersionKind {
		for _, k := range s.Kinds {
			if k.Group == olmGroup && k.Kind == kind {
				return []schema.GroupVersionKind{{Group: k.Group, Version: k.Preferred, Kind: k.Kind}}
			}
		}
		return nil
	}
	var err error
	s.Subscriptions, err = listKinds(ctx, namespaces, of("Subscription"), func(s Subscription) string { return s.Namespace },
		func(kind schema.GroupVersionKind) page[Subscription] { return subscriptionPage(c, kind) })
	slices.SortFunc(s.Subscriptions, func(a, b Subscription) int { return cmp.Compare(a.Key(), b.Key()) })
	made, madeErr := listKinds(ctx, namespaces, slices.Concat(of("ClusterServiceVersion"), of("InstallPlan")), func(o Object) string { return o.Namespace },
		func(kind schema.GroupVersionKind) page[Object] { return metadataPage(c, kind) })
	slices.SortFunc(made, inOrderOfNames)
	for _, o := range made {
		s.Generated = append(s.Generated, o.Kind+"/"+o.Namespace+"/"+o.Name)
	}
	return errors.Join(err, madeErr)
}

func subscriptionPage(c client.Client, kind schema.GroupVersionKind) page[Subscription] {
	return func(ctx context.Context, opts ...client.ListOption) ([]Subscription, metav1.ListMeta, error) {
		list := unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := c.List(ctx, &list, opts...)
		return each(list.Items, func(o *unstructured.Unstructured) Subscription {
			text := func(field string) string { t, _, _ := unstructured.NestedString(o.Object, "spec", field); return t }
			return Subscription{Namespace: o.GetNamespace(), Name: o.GetName(), Package: text("name"), Catalog: text("sourceNamespace") + "/" + text("source")}
		}), metav1.ListMeta{Continue: list.GetContinue(), RemainingItemCount: list.GetRemainingItemCount()}, err
	}
}

// markCatalogs notes which subscriptions find their catalog on the destination.
func markCatalogs(ctx context.Context, c client.Client, subscriptions []Subscription) error {
	there := map[string]bool{}
	for i := range subscriptions {
		s := &subscriptions[i]
		if _, known := there[s.Catalog]; !known {
			namespace, name, _ := strings.Cut(s.Catalog, "/")
			o := &metav1.PartialObjectMetadata{}
			o.SetGroupVersionKind(schema.GroupVersionKind{Group: olmGroup, Version: "v1alpha1", Kind: "CatalogSource"})
			err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o)
			if err != nil && !isNoSuchAPI(err) {
				return err
			}
			there[s.Catalog] = err == nil
		}
		s.There = there[s.Catalog]
	}
	return nil
}
