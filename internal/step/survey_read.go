package step

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/progress"
)

// toDelete is what must be deleted and is not yet on its way: objects one by
// one, and the namespaces that mig made and that hold nothing of others.
func (v survey) toDelete() []item {
	var out []item
	for _, it := range v.ours {
		if it.meta.DeletionTimestamp == nil {
			out = append(out, it)
		}
	}
	for i := range v.made {
		ns := &v.made[i]
		if v.empty(ns.Name) && ns.DeletionTimestamp == nil {
			m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: ns.Name, UID: ns.UID}}
			kind := corev1.SchemeGroupVersion.WithKind("Namespace")
			m.SetGroupVersionKind(kind)
			out = append(out, item{kind: kind, meta: m})
		}
	}
	return out
}

// empty says whether a namespace holds nothing of others, as far as was looked.
func (v survey) empty(namespace string) bool {
	return len(v.foreign[namespace]) == 0 && len(v.unread) == 0 && !v.kept[namespace]
}

// pods are those of ours that have not ended.
func (v survey) pods() []item {
	var out []item
	for _, it := range append(slices.Clone(v.ours), v.below...) {
		if it.kind.Kind == "Pod" && it.kind.Group == "" {
			out = append(out, it)
		}
	}
	return out
}

// left is what is still there and should not be, each with what holds it.
func (v survey) left() []string {
	out := heldTexts(append(slices.Clone(v.ours), v.below...))
	for i := range v.made {
		if v.made[i].DeletionTimestamp != nil {
			out = append(out, namespaceText(&v.made[i]))
		}
	}
	for i := range v.volumes {
		out = append(out, volumeText(&v.volumes[i]))
	}
	return out
}

// heldTexts names those first that a finalizer holds: the others only wait for them.
func heldTexts(items []item) []string {
	var held, others []string
	for _, it := range items {
		text := heldText(it.kind.Kind, it.meta)
		if len(it.meta.Finalizers) > 0 {
			held = append(held, text)
		} else {
			others = append(others, text)
		}
	}
	return append(held, others...)
}

func namespaceText(ns *corev1.Namespace) string {
	var why []string
	for _, c := range ns.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			why = append(why, c.Message)
		}
	}
	if len(why) == 0 {
		return heldText("Namespace", ns)
	}
	return heldText("Namespace", ns) + ": " + strings.Join(why, "; ")
}

func volumeText(pv *corev1.PersistentVolume) string {
	text := fmt.Sprintf("PersistentVolume %s is %s and waits for its provisioner to delete it", pv.Name, pv.Status.Phase)
	if pv.Status.Message != "" {
		text += ": " + pv.Status.Message
	}
	return text
}

// staying are the things that are not deleted, each with the reason.
func (v survey) staying() []progress.Note {
	var out []progress.Note
	for _, s := range v.stays {
		out = append(out, progress.Remark{Why: "LeftInPlace", Say: s.String() + " stays on the destination: " + s.why, On: s.ref()})
	}
	for _, ns := range v.made {
		if ns.DeletionTimestamp == nil && !v.empty(ns.Name) && !v.kept[ns.Name] {
			out = append(out, progress.Remark{
				Why: "LeftInPlace", Say: "namespace " + ns.Name + " stays on the destination: " + v.occupants(ns.Name),
				On: progress.Ref{Side: progress.OnDestination, APIVersion: "v1", Kind: "Namespace", Name: ns.Name, UID: string(ns.UID)},
			})
		}
	}
	return out
}

func (v survey) occupants(namespace string) string {
	if len(v.foreign[namespace]) == 0 {
		return "what is in it could not all be seen: " + few(v.unread)
	}
	var all []string
	for _, it := range v.foreign[namespace] {
		all = append(all, it.String())
	}
	return "not of this plan's runs: " + few(all)
}

// changed warns of objects of ours that somebody has worked on since they were
// made: they are deleted with the rest.
func (v survey) changed() []progress.Note {
	var out []progress.Note
	for _, it := range v.ours {
		if it.meta.DeletionTimestamp != nil {
			continue
		}
		if who, when := editor(it); who != "" {
			out = append(out, progress.Remark{
				Why: "ChangedSinceRestore", On: it.ref(),
				Say: fmt.Sprintf("%s was changed by %s at %s, after it was restored; it is deleted all the same", it, who, when.UTC().Format(time.DateTime)),
			})
		}
	}
	return out
}

// writtenOn are kinds that the cluster's own programs write on, under names of
// all sorts: provisioners on claims, whoever reports on Events.
var writtenOn = []string{"PersistentVolumeClaim", "PersistentVolume", "Pod", "Event"} //nolint:gochecknoglobals // a constant list

// editor is who last changed an object's own content since it was made here,
// of all but the cluster's controllers, Velero and mig. Velero restores an
// object with its managed fields, and so with the times at which they were
// written on the source.
func editor(it item) (string, time.Time) {
	if slices.Contains(writtenOn, it.kind.Kind) {
		return "", time.Time{}
	}
	var who string
	var when time.Time
	for _, e := range it.meta.ManagedFields {
		if e.Subresource != "" || e.Time == nil || isController(e.Manager) || e.Time.Time.Before(when) || !e.Time.After(it.meta.CreationTimestamp.Time) {
			continue
		}
		who, when = e.Manager, e.Time.Time
	}
	return who, when
}

func isController(manager string) bool {
	return manager == naming.CreatedBy || manager == "kubelet" || manager == "cloud-controller-manager" ||
		strings.HasPrefix(manager, "kube-") || strings.HasPrefix(manager, "velero")
}
