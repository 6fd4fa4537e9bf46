package labtest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
)

// Objects are what people and controllers wish for in a cluster, by
// "kind.group namespace/name": every object without its status and what the
// server counts in it.
type Objects map[string]map[string]any

// restless are the kinds that change by themselves in a cluster at rest, or
// are made anew when a workload is started again.
var restless = map[string]bool{ //nolint:gochecknoglobals // a constant of a map type
	"Event": true, "Lease": true, "Pod": true, "Endpoints": true, "EndpointSlice": true,
	"Node": true, "APIService": true, "ControllerRevision": true, "IPAddress": true, "LeaseCandidate": true,
	// Velero writes when it looked last into the specs or the labels of these.
	"BackupRepository": true, "BackupStorageLocation": true, "ServerStatusRequest": true,
}

// ObjectsOf reads all objects of some namespaces but Events, the namespaces
// themselves and the volumes bound to their claims.
func ObjectsOf(ctx context.Context, c *cluster.Cluster, namespaces ...string) (Objects, error) {
	all, err := AllObjects(ctx, c)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(all, func(_ string, o map[string]any) bool {
		return !slices.Contains(namespaces, homeOf(o)) || o["kind"] == "Event"
	})
	return all, nil
}

// homeOf is the namespace that an object belongs to, in a wide sense.
func homeOf(o map[string]any) string {
	u := unstructured.Unstructured{Object: o}
	switch u.GetKind() {
	case "Namespace":
		return u.GetName()
	case "PersistentVolume":
		ns, _, _ := unstructured.NestedString(o, "spec", "claimRef", "namespace")
		return ns
	default:
		return u.GetNamespace()
	}
}

// AllObjects reads all objects of a cluster but those that never rest. Of
// leases and Events, mig's own are there.
func AllObjects(ctx context.Context, c *cluster.Cluster) (Objects, error) {
	kinds, err := listable(c.Discovery)
	if err != nil {
		return nil, err
	}
	out := Objects{}
	for _, gvk := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := c.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list %s: %w", gvk.Kind, err)
		}
		for _, item := range list.Items {
			if (restless[gvk.Kind] || isUpkeep(item)) && item.GetLabels()[naming.LabelCreatedBy] != naming.CreatedBy {
				continue
			}
			out[fmt.Sprintf("%s %s/%s", gvk.GroupKind(), item.GetNamespace(), item.GetName())] = wish(item)
		}
	}
	return out, nil
}

// isUpkeep: Velero maintains each repository by a Job, whenever one is due
// (Velero's pkg/repository/maintenance).
func isUpkeep(u unstructured.Unstructured) bool {
	_, ok := u.GetLabels()["velero.io/repo-name"]
	return ok && u.GetKind() == "Job"
}

// wish is what of an object somebody wants.
func wish(u unstructured.Unstructured) map[string]any {
	o := u.DeepCopy()
	delete(o.Object, "status")
	for _, field := range []string{"resourceVersion", "managedFields", "generation"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	return o.Object
}

func listable(d discovery.DiscoveryInterface) ([]schema.GroupVersionKind, error) {
	lists, err := discovery.ServerPreferredResources(d)
	if err != nil {
		return nil, err
	}
	var out []schema.GroupVersionKind
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "watch"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			out = append(out, gv.WithKind(r.Kind))
		}
	}
	return out, nil
}

// Without are the objects without some keys, as "metadata/annotations/KEY",
// in any of them.
func (o Objects) Without(annotations ...string) Objects {
	out := Objects{}
	for key, object := range o {
		u := (&unstructured.Unstructured{Object: object}).DeepCopy()
		left := u.GetAnnotations()
		for _, a := range annotations {
			delete(left, a)
		}
		u.SetAnnotations(left)
		if len(left) == 0 {
			unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
		}
		out[key] = u.Object
	}
	return out
}

// SameAs says which objects are gone, new or different; nil: none.
func (o Objects) SameAs(now Objects) error {
	var differ []string
	for _, key := range slices.Sorted(maps.Keys(o)) {
		got, ok := now[key]
		switch {
		case !ok:
			differ = append(differ, key+" is gone")
		case !reflect.DeepEqual(o[key], got):
			differ = append(differ, key+": "+firstDifference("", o[key], got))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if _, ok := o[key]; !ok {
			differ = append(differ, key+" was not there before")
		}
	}
	return listed("objects differ", differ)
}

// firstDifference walks down to the first field that differs.
func firstDifference(path string, was, is any) string {
	a, okA := was.(map[string]any)
	b, okB := is.(map[string]any)
	if !okA || !okB {
		return fmt.Sprintf("%s was %s, is %s", path, asJSON(was), asJSON(is))
	}
	both := maps.Clone(a)
	maps.Copy(both, b)
	for _, key := range slices.Sorted(maps.Keys(both)) {
		if !reflect.DeepEqual(a[key], b[key]) {
			return firstDifference(path+"/"+key, a[key], b[key])
		}
	}
	return path + " differs"
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if s := string(b); len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "") + "…"
	}
	return string(b)
}

// MadeByMig are the objects in a cluster that bear the plan's label, by
// "kind.group namespace/name", but for the records of its runs, which stay for
// audit.
func MadeByMig(ctx context.Context, c *cluster.Cluster, planUID string) ([]string, error) {
	kinds, err := listable(c.Discovery)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, gvk := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := c.List(ctx, list, client.MatchingLabels{naming.LabelPlan: planUID}); err != nil {
			return nil, fmt.Errorf("list %s: %w", gvk.Kind, err)
		}
		for _, item := range list.Items {
			if item.Labels[naming.LabelRecord] == "" && gvk.Kind != "Event" {
				out = append(out, fmt.Sprintf("%s %s/%s", gvk.GroupKind(), item.Namespace, item.Name))
			}
		}
	}
	return out, nil
}

// Exists says whether a namespace is there.
func Exists(ctx context.Context, c *cluster.Cluster, namespace string) (bool, error) {
	err := c.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	return err == nil, client.IgnoreNotFound(err)
}

// Anew are the objects without what differs between two times that the same
// objects were made: uids, times, addresses, names of volumes, and who made them.
func (o Objects) Anew() Objects {
	out := Objects{}
	for key, object := range o {
		u := (&unstructured.Unstructured{Object: object}).DeepCopy()
		if u.GetKind() == "PersistentVolume" {
			continue
		}
		for _, path := range []string{
			"metadata/uid", "metadata/creationTimestamp", "metadata/selfLink", "metadata/finalizers",
			"spec/volumeName", "spec/clusterIP", "spec/clusterIPs",
		} {
			unstructured.RemoveNestedField(u.Object, strings.Split(path, "/")...)
		}
		u.SetLabels(withoutKeys(u.GetLabels(), naming.LabelRun, naming.VeleroRestoreName, naming.VeleroBackupName))
		u.SetAnnotations(withoutKeys(u.GetAnnotations(), naming.AnnRunUID, naming.AnnMigratedAt, "volume.kubernetes.io/selected-node",
			appsv1.DeprecatedTemplateGeneration)) // it counts all changes, ours among them, and nobody can set it back
		owners := u.GetOwnerReferences()
		for i := range owners {
			owners[i].UID = ""
		}
		u.SetOwnerReferences(owners)
		out[key] = u.Object
	}
	return out
}

func withoutKeys(from map[string]string, keys ...string) map[string]string {
	for _, key := range keys {
		delete(from, key)
	}
	return from
}

// OfOthers are the objects that no mig has made, nor Velero of a mig's backups.
func (o Objects) OfOthers() Objects {
	out := Objects{}
	for key, object := range o {
		u := unstructured.Unstructured{Object: object}
		if u.GetLabels()[naming.LabelCreatedBy] != naming.CreatedBy && !ofVelerosWork[u.GetKind()] {
			out[key] = object
		}
	}
	return out
}

// ofVelerosWork are what Velero makes of a backup, and its repositories.
var ofVelerosWork = map[string]bool{ //nolint:gochecknoglobals // a constant of a map type
	"PodVolumeBackup": true, "PodVolumeRestore": true, "DownloadRequest": true, "DeleteBackupRequest": true,
	"BackupRepository": true, "Job": true,
}
