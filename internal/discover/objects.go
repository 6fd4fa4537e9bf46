package discover

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
)

// isNoSuchAPI says whether the cluster does not serve the kind at all. An API
// that is down is served: what it holds is not known.
func isNoSuchAPI(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err)
}

// DownAPIs are the groups and versions that an error of asking a cluster for its
// kinds says are down, sorted: those of an APIService whose server does not
// answer. nil where the error is another one, or none.
func DownAPIs(err error) []string {
	var failed *discovery.ErrGroupDiscoveryFailed
	if !errors.As(err, &failed) {
		return nil
	}
	var out []string
	for gv := range failed.Groups {
		out = append(out, gv.String())
	}
	slices.Sort(out)
	return out
}

// groupLister tells which API groups a cluster serves; the discovery client does.
type groupLister interface {
	ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// lookAtAPIs asks for every API once: one that is down is an error that names
// it, beside what else is known.
func lookAtAPIs(d groupLister) (kinds []Kind, openShift bool, err error) {
	groups, lists, err := d.ServerGroupsAndResources()
	for _, g := range groups {
		openShift = openShift || g.Name == "security.openshift.io"
		kinds = append(kinds, kindsOf(g, lists)...)
	}
	return kinds, openShift, err
}

// kindsOf are the kinds of a group that a restore makes in namespaces, each with
// its versions, the one in which the cluster likes it best first.
func kindsOf(g *metav1.APIGroup, lists []*metav1.APIResourceList) []Kind {
	served := map[string][]metav1.APIResource{}
	for _, l := range lists {
		served[l.GroupVersion] = l.APIResources
	}
	versions := []string{g.PreferredVersion.GroupVersion}
	for _, v := range g.Versions {
		if v.GroupVersion != g.PreferredVersion.GroupVersion {
			versions = append(versions, v.GroupVersion)
		}
	}
	var out []Kind
	place := map[string]int{}
	for _, gv := range versions {
		version := gv[strings.LastIndex(gv, "/")+1:]
		for _, r := range served[gv] {
			if !r.Namespaced || strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || isMadeByCluster(g.Name, r.Name) {
				continue
			}
			at, known := place[r.Kind]
			if !known {
				at = len(out)
				place[r.Kind] = at
				out = append(out, Kind{Group: g.Name, Kind: r.Kind, Resource: r.Name, Preferred: version})
			}
			out[at].Versions = append(out[at].Versions, version)
		}
	}
	return out
}

// existingObjects are the objects of those of the namespaces that exist.
func existingObjects(ctx context.Context, c *cluster.Cluster, namespaces []string) ([]Object, error) {
	found, err := getNamespaces(ctx, c.Client, namespaces)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return objects(ctx, c, each(found, func(n *Namespace) string { return n.Name }))
}

// objects lists what the namespaces hold, of every kind that can be listed, by
// metadata alone; without what every namespace holds by itself.
func objects(ctx context.Context, c *cluster.Cluster, namespaces []string) ([]Object, error) {
	kinds, err := listableKinds(c.Discovery)
	var errs []error
	if DownAPIs(err) == nil { // an API that is down hides its kinds, not the others, and is told by itself
		errs = append(errs, err)
	}
	out, err := listKinds(ctx, namespaces, kinds, func(o Object) string { return o.Namespace },
		func(kind schema.GroupVersionKind) page[Object] { return metadataPage(c.Client, kind) })
	errs = append(errs, err)
	out = slices.DeleteFunc(out, isInEveryNamespace)
	slices.SortFunc(out, inOrderOfNames)
	return out, errors.Join(errs...)
}

func inOrderOfNames(a, b Object) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// metadataPage lists the metadata of a kind.
func metadataPage(c client.Client, kind schema.GroupVersionKind) page[Object] {
	return func(ctx context.Context, opts ...client.ListOption) ([]Object, metav1.ListMeta, error) {
		list := metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := c.List(ctx, &list, opts...)
		return each(list.Items, func(o *metav1.PartialObjectMetadata) Object { return objectOf(kind, o) }), list.ListMeta, err
	}
}

func objectOf(kind schema.GroupVersionKind, o *metav1.PartialObjectMetadata) Object {
	out := Object{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: o.Namespace, Name: o.Name,
		OfPlan: naming.OfPlanUID(o.Labels), Restore: o.Labels[naming.VeleroRestoreName], Owned: metav1.GetControllerOf(o) != nil,
		Stays: o.Labels[naming.VeleroExclude] == "true",
	}
	if o.DeletionTimestamp != nil {
		out.Finalizers = o.Finalizers
	}
	return out
}

// kindLister tells which kinds a cluster serves; the discovery client does.
type kindLister interface {
	ServerPreferredNamespacedResources() ([]*metav1.APIResourceList, error)
}

// listableKinds are the kinds that a restore could meet.
func listableKinds(d kindLister) ([]schema.GroupVersionKind, error) {
	lists, err := d.ServerPreferredNamespacedResources()
	var out []schema.GroupVersionKind
	for _, list := range lists {
		gv, parseErr := schema.ParseGroupVersion(list.GroupVersion)
		if parseErr != nil {
			continue
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && !strings.Contains(r.Name, "/") && !isMadeByCluster(gv.Group, r.Name) {
				out = append(out, gv.WithKind(r.Kind))
			}
		}
	}
	return out, err
}

// isMadeByCluster names the kinds that a cluster writes by itself and that a
// restore leaves out or that harm none.
func isMadeByCluster(group, resource string) bool {
	switch resource {
	case "events", "endpoints", "endpointslices", "controllerrevisions":
		return true
	default:
		return group == "metrics.k8s.io" || group == "custom.metrics.k8s.io" || group == "packages.operators.coreos.com"
	}
}

// isInEveryNamespace says of an object whether the cluster makes it in every
// namespace.
func isInEveryNamespace(o Object) bool {
	accounts := []string{"default", "builder", "deployer"} // the latter two on OpenShift
	switch o.Kind {
	case "ConfigMap":
		return o.Name == "kube-root-ca.crt" || o.Name == "openshift-service-ca.crt"
	case "ServiceAccount":
		return slices.Contains(accounts, o.Name)
	case "Secret":
		return slices.ContainsFunc(accounts, func(a string) bool {
			return strings.HasPrefix(o.Name, a+"-token-") || strings.HasPrefix(o.Name, a+"-dockercfg-")
		})
	case "RoleBinding":
		return strings.HasPrefix(o.Name, "system:")
	case "Service":
		return o.Namespace == metav1.NamespaceDefault && o.Name == "kubernetes"
	default:
		return false
	}
}
