package discover

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/naming"
)

// planRecord is what of a plan's record is of interest here; package record
// writes it.
type planRecord struct {
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Namespaces []struct {
		Source      string `json:"source"`
		Destination string `json:"destination"`
	} `json:"namespaces"`
	LastRun struct {
		UID     string    `json:"uid"`
		Kind    string    `json:"kind"`
		State   string    `json:"state"`
		Started time.Time `json:"started"`
	} `json:"lastRun"`
}

// recordKey is the key of a plan's record that holds it.
const recordKey = "plan.json"

// listPlans are the plans of which the cluster has a record. One that cannot be
// read is left to the commands that need it.
func listPlans(ctx context.Context, c client.Client, namespace string) ([]OtherPlan, error) {
	out, err := all(ctx, func(ctx context.Context, opts ...client.ListOption) ([]OtherPlan, metav1.ListMeta, error) {
		var list corev1.ConfigMapList
		err := c.List(ctx, &list, opts...)
		return each(list.Items, planOf), list.ListMeta, err
	}, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: naming.Owner{}.Records(naming.RecordPlan)})
	out = slices.DeleteFunc(out, func(p OtherPlan) bool { return p.UID == "" })
	slices.SortFunc(out, func(a, b OtherPlan) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID)) })
	return out, err
}

func planOf(m *corev1.ConfigMap) OtherPlan {
	var r planRecord
	if json.Unmarshal([]byte(m.Data[recordKey]), &r) != nil {
		return OtherPlan{}
	}
	out := OtherPlan{Name: r.Name, UID: r.UID, Run: r.LastRun.UID, Kind: r.LastRun.Kind, State: r.LastRun.State, Started: r.LastRun.Started}
	for _, n := range r.Namespaces {
		out.Namespaces = append(out.Namespaces, n.Source, n.Destination)
	}
	slices.Sort(out.Namespaces)
	out.Namespaces = slices.Compact(out.Namespaces)
	return out
}

func listNodes(ctx context.Context, c client.Client) ([]Node, error) {
	return all(ctx, func(ctx context.Context, opts ...client.ListOption) ([]Node, metav1.ListMeta, error) {
		var list corev1.NodeList
		err := c.List(ctx, &list, opts...)
		return each(list.Items, nodeOf), list.ListMeta, err
	})
}

func nodeOf(n *corev1.Node) Node {
	return Node{
		Name: n.Name, Unschedulable: n.Spec.Unschedulable, Labels: maps.Clone(n.Labels), Taints: taintsOf(n),
		Ready: slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}),
	}
}

// taintsOf are a node's own taints. Those that say how the node is at the moment
// pass by themselves.
func taintsOf(n *corev1.Node) []Taint {
	var out []Taint
	for _, t := range n.Spec.Taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(t.Key, "node.kubernetes.io/") {
			out = append(out, Taint{t.Key, t.Value, string(t.Effect)})
		}
	}
	return out
}

// listFreeVolumes are the volumes that are bound to no claim.
func listFreeVolumes(ctx context.Context, c client.Client) ([]FreeVolume, error) {
	out, err := all(ctx, func(ctx context.Context, opts ...client.ListOption) ([]FreeVolume, metav1.ListMeta, error) {
		var list corev1.PersistentVolumeList
		err := c.List(ctx, &list, opts...)
		return each(list.Items, freeVolumeOf), list.ListMeta, err
	})
	return slices.DeleteFunc(out, func(v FreeVolume) bool { return v.Name == "" }), err
}

func freeVolumeOf(pv *corev1.PersistentVolume) FreeVolume {
	ref := pv.Spec.ClaimRef
	bound := ref != nil && ref.UID != ""
	if bound || pv.DeletionTimestamp != nil || (pv.Status.Phase != corev1.VolumeAvailable && pv.Status.Phase != corev1.VolumePending && pv.Status.Phase != "") {
		return FreeVolume{}
	}
	out := FreeVolume{
		Name: pv.Name, StorageClass: pv.Spec.StorageClassName, Capacity: pv.Spec.Capacity.Storage().String(),
		VolumeMode: string(corev1.PersistentVolumeFilesystem),
	}
	if pv.Spec.VolumeMode != nil {
		out.VolumeMode = string(*pv.Spec.VolumeMode)
	}
	for _, m := range pv.Spec.AccessModes {
		out.AccessModes = append(out.AccessModes, string(m))
	}
	if ref != nil {
		out.ReservedFor = ref.Namespace + "/" + ref.Name
	}
	return out
}

func listQuotas(ctx context.Context, c client.Client, namespaces []string) ([]Quota, error) {
	return inNamespaces(ctx, namespaces, func(q Quota) string { return q.Namespace },
		func(ctx context.Context, opts ...client.ListOption) ([]Quota, metav1.ListMeta, error) {
			var list corev1.ResourceQuotaList
			err := c.List(ctx, &list, opts...)
			return each(list.Items, func(q *corev1.ResourceQuota) Quota {
				return Quota{Namespace: q.Namespace, Name: q.Name, Hard: quantities(q.Spec.Hard), Used: quantities(q.Status.Used), Scopes: scopesOf(q)}
			}), list.ListMeta, err
		})
}

// scopesOf are the scopes of a quota in either way to write them.
func scopesOf(q *corev1.ResourceQuota) []string {
	var out []string
	for _, s := range q.Spec.Scopes {
		out = append(out, string(s))
	}
	if q.Spec.ScopeSelector != nil {
		for _, e := range q.Spec.ScopeSelector.MatchExpressions {
			out = append(out, string(e.ScopeName))
		}
	}
	return out
}

func quantities(l corev1.ResourceList) map[string]string {
	out := make(map[string]string, len(l))
	for name, q := range l {
		out[string(name)] = q.String()
	}
	return out
}

func listCapacity(ctx context.Context, c client.Client) ([]Capacity, error) {
	return all(ctx, func(ctx context.Context, opts ...client.ListOption) ([]Capacity, metav1.ListMeta, error) {
		var list storagev1.CSIStorageCapacityList
		err := c.List(ctx, &list, opts...)
		return each(list.Items, func(s *storagev1.CSIStorageCapacity) Capacity {
			out := Capacity{StorageClass: s.StorageClassName}
			if s.Capacity != nil {
				out.Left = s.Capacity.String()
			}
			if s.MaximumVolumeSize != nil {
				out.Largest = s.MaximumVolumeSize.String()
			}
			return out
		}), list.ListMeta, err
	})
}
