package step

import (
	"context"
	"errors"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/quiesce"
)

// workloads are all workloads of the namespaces, kind by kind in the order in
// which they are stopped.
func workloads(ctx context.Context, c client.Client, namespaces []string) ([]quiesce.Workload, error) {
	var out []quiesce.Workload
	for _, kind := range quiesce.Kinds() {
		for _, ns := range namespaces {
			items, err := listKind(ctx, c, kind, ns)
			if err != nil {
				return nil, err
			}
			out = append(out, items...)
		}
	}
	return out, nil
}

func listKind(ctx context.Context, c client.Client, kind quiesce.Kind, namespace string) ([]quiesce.Workload, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := c.List(ctx, list, client.InNamespace(namespace))
	if kind.Optional && (meta.IsNoMatchError(err) || apierrors.IsNotFound(err)) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%ss of namespace %s: %w", kind.Kind, namespace, err)
	}
	out := make([]quiesce.Workload, 0, len(list.Items))
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(kind.GroupVersionKind) // items of a list may come without
		out = append(out, quiesce.Workload{Unstructured: &list.Items[i]})
	}
	return out, nil
}

func podsIn(ctx context.Context, c client.Client, namespaces []string) ([]corev1.Pod, error) {
	var out []corev1.Pod
	for _, ns := range namespaces {
		var list corev1.PodList
		if err := c.List(ctx, &list, client.InNamespace(ns)); err != nil {
			return nil, err
		}
		out = append(out, list.Items...)
	}
	return out, nil
}

func autoscalersIn(ctx context.Context, c client.Client, namespaces []string) ([]autoscalingv2.HorizontalPodAutoscaler, error) {
	var out []autoscalingv2.HorizontalPodAutoscaler
	for _, ns := range namespaces {
		var list autoscalingv2.HorizontalPodAutoscalerList
		if err := c.List(ctx, &list, client.InNamespace(ns)); err != nil {
			return nil, err
		}
		out = append(out, list.Items...)
	}
	return out, nil
}

// scaled maps the workloads that an autoscaler scales, Kind/namespace/name, to
// their autoscaler.
func scaled(hpas []autoscalingv2.HorizontalPodAutoscaler) map[string]autoscalingv2.HorizontalPodAutoscaler {
	out := map[string]autoscalingv2.HorizontalPodAutoscaler{}
	for _, h := range hpas {
		out[h.Spec.ScaleTargetRef.Kind+"/"+h.Namespace+"/"+h.Spec.ScaleTargetRef.Name] = h
	}
	return out
}

// tries bounds how often a patch is made anew because the object has changed
// under it. Controllers write a status now and then; more than this is a fight.
const tries = 5

// patchWorkload reads the workload anew, asks for the patch and sends it, until
// it fits. No patch (false) is nothing to do.
func patchWorkload(ctx context.Context, c client.Client, w quiesce.Workload, change func(quiesce.Workload) (quiesce.Change, bool, error)) error {
	var err error
	for range tries {
		now := quiesce.Workload{Unstructured: &unstructured.Unstructured{}}
		now.SetGroupVersionKind(w.GroupVersionKind())
		if err = c.Get(ctx, client.ObjectKeyFromObject(w), now.Unstructured); err != nil {
			return client.IgnoreNotFound(err)
		}
		ch, needed, e := change(now)
		if e != nil || !needed {
			return e
		}
		err = c.Patch(ctx, now.Unstructured, client.RawPatch(types.MergePatchType, ch.Patch), client.FieldOwner(naming.CreatedBy))
		if !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", w, err)
	}
	return nil
}

// patchAll goes on past a workload that cannot be patched, so that one of them
// does not keep the others from theirs.
func patchAll(ctx context.Context, c client.Client, ws []quiesce.Workload, change func(quiesce.Workload) (quiesce.Change, bool, error)) error {
	var errs []error
	for _, w := range ws {
		if err := patchWorkload(ctx, c, w, change); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// workloadNote is what happened to one workload.
type workloadNote struct {
	Why string // the reason
	On  progress.Ref
	Say string
}

// Reason is one of the workload reasons: Quiescing, Quiesced, Unquiesced, WorkloadReady.
func (n workloadNote) Reason() string { return n.Why }

// Text says it.
func (n workloadNote) Text() string { return n.Say }

// Regarding is the workload.
func (n workloadNote) Regarding() progress.Ref { return n.On }

func workloadRef(side progress.Side, w quiesce.Workload) progress.Ref {
	return progress.Ref{
		Side: side, APIVersion: w.GetAPIVersion(), Kind: w.GetKind(),
		Namespace: w.GetNamespace(), Name: w.GetName(), UID: string(w.GetUID()),
	}
}

// quiesces says whether the plan stops the application.
func quiesces(p plan.Valid) bool {
	enabled := p.Plan().Spec.Quiesce.Enabled
	return enabled == nil || *enabled
}

// scope is what the gate of a run looks for.
func (r Run) scope() quiesce.Scope {
	s := quiesce.Scope{Copied: map[string]bool{}, Except: map[string]bool{}}
	for _, v := range r.Plan.Plan().Spec.Volumes {
		if v.Action == plan.Copy || v.Action == plan.Move {
			s.Copied[v.Claim] = true
		}
	}
	for _, e := range r.Plan.Plan().Spec.Quiesce.Except {
		s.Except[e] = true
	}
	return s
}

// few tells the first of many, each as far as there is room, with the number of
// the others.
func few(all []string) string {
	const shown = 3
	return progress.Each(all, "; ", shown, reasonBytes)
}
