package step

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/velero"
)

// item is an object of the destination, without its content.
type item struct {
	kind       schema.GroupVersionKind
	namespaced bool
	meta       *metav1.PartialObjectMetadata
}

func (i item) String() string {
	if i.namespaced {
		return i.kind.Kind + " " + i.meta.Namespace + "/" + i.meta.Name
	}
	return i.kind.Kind + " " + i.meta.Name
}

func (i item) ref() progress.Ref {
	return progress.Ref{
		Side: progress.OnDestination, APIVersion: i.kind.GroupVersion().String(), Kind: i.kind.Kind,
		Namespace: i.meta.Namespace, Name: i.meta.Name, UID: string(i.meta.UID),
	}
}

// staysItem is an object of ours that is not deleted.
type staysItem struct {
	item
	why string
}

// survey is all that a rollback must know of the destination, from one look.
type survey struct {
	ours    []item            // made by the plan's runs: to be deleted
	below   []item            // not labelled, but owned by what is ours: goes with it
	foreign map[string][]item // by namespace: made by others
	kept    map[string]bool   // namespaces with volumes that are to stay
	made    []corev1.Namespace
	stays   []staysItem
	volumes []corev1.PersistentVolume // of claims that are gone, to be deleted by their provisioner
	claims  map[types.UID]bool        // that are there
	unread  []string                  // kinds that could not be looked at
}

// look takes surveys of the destination.
type look struct {
	r          Run
	catalog    catalog
	keepStaged bool
	since      time.Time // of the first claim that the plan's runs made themselves, as far as it was seen
}

func newLook(r Run) look { return look{r: r, catalog: catalog{of: r.Destination.Cluster}} }

func (s look) butForStaged() look {
	s.keepStaged = true
	return s
}

func (s *look) survey(ctx context.Context) (survey, error) {
	v := survey{foreign: map[string][]item{}, kept: map[string]bool{}, claims: map[types.UID]bool{}}
	if err := s.catalog.read(); err != nil {
		return v, err
	}
	v.unread = append(v.unread, s.catalog.holes...)
	mine, since, err := s.mine(ctx)
	if err != nil {
		return v, err
	}
	for _, ns := range s.r.Plan.SourceNamespaces() {
		if err := s.inNamespace(ctx, &v, s.r.Plan.DestinationNamespace(ns), mine); err != nil {
			return v, err
		}
	}
	if err := s.clusterScoped(ctx, &v, mine); err != nil {
		return v, err
	}
	for _, it := range v.ours {
		if made := it.meta.CreationTimestamp.Time; velero.IsStaged(it.meta, s.r.Owner.PlanUID) && (s.since.IsZero() || made.Before(s.since)) {
			s.since = made
		}
	}
	if !s.since.IsZero() && (since.IsZero() || s.since.Before(since)) {
		since = s.since
	}
	return v, s.persistentVolumes(ctx, &v, since)
}

// mine are the names of the plan's restores, and when the first was made. The
// backups outlive the restores, so their runs are known even when somebody has
// deleted a Restore.
func (s *look) mine(ctx context.Context) (map[string]bool, time.Time, error) {
	d := s.r.Destination
	ours := []client.ListOption{client.InNamespace(d.VeleroNamespace), client.MatchingLabelsSelector{Selector: s.r.Owner.OfPlan()}}
	var restores velerov1.RestoreList
	var backups velerov1.BackupList
	if err := errors.Join(d.List(ctx, &restores, ours...), d.List(ctx, &backups, ours...)); err != nil {
		return nil, time.Time{}, err
	}
	names := map[string]bool{}
	var since time.Time
	for _, r := range restores.Items {
		names[r.Name] = true
		if since.IsZero() || r.CreationTimestamp.Time.Before(since) {
			since = r.CreationTimestamp.Time
		}
	}
	runs := []string{s.r.Owner.RunUID}
	for _, b := range backups.Items {
		runs = append(runs, b.Labels[naming.LabelRun])
	}
	for _, run := range runs {
		if run != "" {
			o := naming.Owner{PlanName: s.r.Owner.PlanName, PlanUID: s.r.Owner.PlanUID, RunUID: run}
			names[o.StageRestore()], names[o.FinalRestore()] = true, true
		}
	}
	return names, since, nil
}

// isOurs says whether a run of the plan made the object, itself or through one
// of its restores. Records are for good.
func (s *look) isOurs(m metav1.Object, restores map[string]bool) bool {
	l := m.GetLabels()
	if restores[l[naming.VeleroRestoreName]] {
		return true
	}
	return naming.OfPlanUID(l) == s.r.Owner.PlanUID && l[naming.LabelRecord] == ""
}

// inNamespace looks at everything in a namespace. Velero's own is never one of a plan's.
func (s *look) inNamespace(ctx context.Context, v *survey, name string, restores map[string]bool) error {
	if name == s.r.Destination.VeleroNamespace {
		return nil
	}
	var ns corev1.Namespace
	if err := s.r.Destination.Get(ctx, client.ObjectKey{Name: name}, &ns); err != nil {
		return client.IgnoreNotFound(err)
	}
	all, err := s.list(ctx, v, func(k servedKind) bool { return k.namespaced }, client.InNamespace(name))
	if err != nil {
		return err
	}
	s.sort(v, name, all, restores)
	if naming.OfPlanUID(ns.Labels) == s.r.Owner.PlanUID {
		v.made = append(v.made, ns)
	}
	return nil
}

// list lists on the destination, and notes what may not be read.
func (s *look) list(ctx context.Context, v *survey, want func(servedKind) bool, opts ...client.ListOption) ([]item, error) {
	got, err := s.catalog.list(ctx, want, opts...)
	if err != nil {
		return nil, fmt.Errorf("on the destination: %w", err)
	}
	for _, kind := range got.unread {
		if !slices.Contains(v.unread, kind) {
			v.unread = append(v.unread, kind)
		}
	}
	return got.items, nil
}

// sort parts what is in a namespace in ours, what hangs below it, and what is
// others'.
func (s *look) sort(v *survey, namespace string, all []item, restores map[string]bool) {
	listed := map[string]bool{}
	for _, k := range s.catalog.kinds {
		if k.namespaced {
			listed[k.Kind] = true
		}
	}
	byUID := map[types.UID]item{}
	for _, it := range all {
		byUID[it.meta.UID] = it
	}
	for _, it := range all {
		if it.kind.Kind == "PersistentVolumeClaim" {
			v.claims[it.meta.UID] = true
		}
		switch {
		case byUID[it.meta.UID].kind != it.kind: // the same object under two groups
		case s.keepStaged && it.kind.Kind == "PersistentVolumeClaim" && velero.IsStaged(it.meta, s.r.Owner.PlanUID):
			v.kept[namespace] = true
		case s.isOurs(it.meta, restores) && !isPermanent(it):
			v.ours = append(v.ours, it)
		case isPermanent(it) || isNoise(it):
		case s.hangsBelow(it, byUID, listed, restores, len(all)):
			v.below = append(v.below, it)
		default:
			v.foreign[namespace] = append(v.foreign[namespace], it)
		}
	}
}

// hangsBelow says whether the garbage collector takes the object when ours are
// gone: an owner is ours, or hangs below ours, or is of a kind that was looked
// at and no longer there.
func (s *look) hangsBelow(it item, byUID map[types.UID]item, listed, restores map[string]bool, depth int) bool {
	for _, ref := range it.meta.OwnerReferences {
		owner, there := byUID[ref.UID]
		switch {
		case !there && listed[ref.Kind]:
			return true
		case there && (s.isOurs(owner.meta, restores) || depth > 0 && s.hangsBelow(owner, byUID, listed, restores, depth-1)):
			return true
		}
	}
	return false
}

// isPermanent is what a cluster puts into every namespace and puts back when it
// is deleted.
func isPermanent(i item) bool {
	switch i.kind.Kind {
	case "ConfigMap":
		return i.meta.Name == "kube-root-ca.crt" || i.meta.Name == "openshift-service-ca.crt"
	case "ServiceAccount":
		return slices.Contains([]string{"default", "builder", "deployer"}, i.meta.Name)
	default:
		return false
	}
}

// isNoise is what only tells of other objects, or goes with them.
func isNoise(i item) bool {
	switch i.kind.Kind {
	case "Event", "Endpoints", "EndpointSlice", "Lease":
		return true
	case "Secret":
		return i.meta.Annotations[corev1.ServiceAccountNameKey] != ""
	case "RoleBinding":
		return strings.HasPrefix(i.meta.Name, "system:")
	default:
		return false
	}
}

// clusterScoped looks for what the restores made outside namespaces. A restore
// makes only what was not there before.
func (s *look) clusterScoped(ctx context.Context, v *survey, restores map[string]bool) error {
	names := make([]string, 0, len(restores))
	for n := range restores {
		names = append(names, n)
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	byRestore, err := labels.NewRequirement(naming.VeleroRestoreName, selection.In, names)
	if err != nil {
		return err
	}
	outside := func(k servedKind) bool { return !k.namespaced && k.Kind != "Namespace" }
	items, err := s.list(ctx, v, outside, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*byRestore)})
	if err != nil {
		return err
	}
	for _, it := range items {
		why, err := s.mayGo(ctx, it, restores)
		if err != nil {
			return err
		}
		if why != "" {
			v.stays = append(v.stays, staysItem{it, why})
		} else {
			v.ours = append(v.ours, it)
		}
	}
	return nil
}

// mayGo says why a cluster-scoped object must stay; empty where it may go.
func (s *look) mayGo(ctx context.Context, it item, restores map[string]bool) (string, error) {
	switch it.kind.Kind {
	case "CustomResourceDefinition":
		return "deleting it would delete every object of its kind", nil
	case "ClusterRoleBinding":
		return s.bindingMayGo(ctx, it)
	case "ClusterRole":
		return s.roleMayGo(ctx, it, restores)
	case "PersistentVolume":
		return s.volumeMayGo(ctx, it)
	default:
		return "others may use it by now", nil
	}
}

func (s *look) bindingMayGo(ctx context.Context, it item) (string, error) {
	var b rbacv1.ClusterRoleBinding
	if err := s.r.Destination.Get(ctx, client.ObjectKey{Name: it.meta.Name}, &b); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	for _, subject := range b.Subjects {
		if !s.isMapped(subject.Namespace) {
			return "it grants rights to " + subject.Kind + " " + subject.Name + " outside the plan", nil
		}
	}
	return "", nil
}

func (s *look) roleMayGo(ctx context.Context, it item, restores map[string]bool) (string, error) {
	var cluster rbacv1.ClusterRoleBindingList
	var bindings rbacv1.RoleBindingList
	if err := errors.Join(s.r.Destination.List(ctx, &cluster), s.r.Destination.List(ctx, &bindings)); err != nil {
		return "", err
	}
	uses := func(ref rbacv1.RoleRef) bool { return ref.Kind == "ClusterRole" && ref.Name == it.meta.Name }
	for _, b := range cluster.Items {
		if uses(b.RoleRef) && !s.isOurs(&b, restores) {
			return "ClusterRoleBinding " + b.Name + " uses it", nil
		}
	}
	for _, b := range bindings.Items {
		if uses(b.RoleRef) && !s.isMapped(b.Namespace) {
			return "RoleBinding " + b.Namespace + "/" + b.Name + " uses it", nil
		}
	}
	return "", nil
}

// volumeMayGo: deleting a PersistentVolume that retains its data deletes the
// object alone. One that does not is left to its claim and its provisioner.
func (s *look) volumeMayGo(ctx context.Context, it item) (string, error) {
	var pv corev1.PersistentVolume
	if err := s.r.Destination.Get(ctx, client.ObjectKey{Name: it.meta.Name}, &pv); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		return "it goes with its claim", nil
	}
	return "", nil
}

func (s *look) isMapped(namespace string) bool {
	return slices.ContainsFunc(s.r.Plan.SourceNamespaces(), func(ns string) bool {
		return s.r.Plan.DestinationNamespace(ns) == namespace
	})
}

// persistentVolumes looks for the volumes of claims that the restores made and
// that are gone: those that are deleted with them are waited for, those that
// keep their data are named.
func (s *look) persistentVolumes(ctx context.Context, v *survey, since time.Time) error {
	if since.IsZero() {
		return nil
	}
	var list corev1.PersistentVolumeList
	if err := s.r.Destination.List(ctx, &list); err != nil {
		return err
	}
	for i := range list.Items {
		pv := list.Items[i]
		ref := pv.Spec.ClaimRef
		if ref == nil || !s.isMapped(ref.Namespace) || pv.CreationTimestamp.Time.Before(since) {
			continue
		}
		switch {
		case pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain && pv.Labels[naming.VeleroRestoreName] == "":
			m := &metav1.PartialObjectMetadata{ObjectMeta: pv.ObjectMeta}
			v.stays = append(v.stays, staysItem{item{kind: corev1.SchemeGroupVersion.WithKind("PersistentVolume"), meta: m}, "its storage class keeps the data of " + ref.Namespace + "/" + ref.Name})
		case pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && !v.claims[ref.UID]:
			v.volumes = append(v.volumes, pv)
		}
	}
	return nil
}
