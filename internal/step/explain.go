package step

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/quiesce"
)

// traces is what can be told from about a namespace's trouble.
type traces struct {
	pods   []corev1.Pod
	claims []corev1.PersistentVolumeClaim
	events []corev1.Event // warnings
}

// evidence holds the traces of each namespace.
type evidence map[string]traces

// evidenceOf gathers what explains why workloads are not ready.
func evidenceOf(ctx context.Context, c client.Client, ws []quiesce.Workload) (evidence, error) {
	out := evidence{}
	for _, w := range ws {
		ns := w.GetNamespace()
		if _, ok := out[ns]; ok {
			continue
		}
		t, err := tracesIn(ctx, c, ns)
		if err != nil {
			return nil, err
		}
		out[ns] = t
	}
	return out, nil
}

func tracesIn(ctx context.Context, c client.Client, namespace string) (traces, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return traces{}, err
	}
	var claims corev1.PersistentVolumeClaimList
	if err := c.List(ctx, &claims, client.InNamespace(namespace)); err != nil {
		return traces{}, err
	}
	var events corev1.EventList
	if err := c.List(ctx, &events, client.InNamespace(namespace)); err != nil {
		return traces{}, err
	}
	warnings := slices.DeleteFunc(events.Items, func(e corev1.Event) bool { return e.Type != corev1.EventTypeWarning })
	return traces{pods: pods.Items, claims: claims.Items, events: warnings}, nil
}

// all explains each workload in a line.
func (e evidence) all(ws []quiesce.Workload) []string {
	out := make([]string, 0, len(ws))
	for _, w := range ws {
		out = append(out, fmt.Sprintf("%s %s ready: %s", w, w.Readiness(), e.why(w)))
	}
	return out
}

// why says why a workload is not ready.
func (e evidence) why(w quiesce.Workload) string {
	t := e[w.GetNamespace()]
	if !w.Observed() {
		return "its controller has not seen it yet"
	}
	pods := t.podsOf(w)
	if len(pods) == 0 {
		return t.whyNoPod(w)
	}
	why := "its pods are not ready yet"
	for i := range pods {
		if podReady(&pods[i]) {
			continue
		}
		cause, certain := t.whyPod(&pods[i])
		why = "pod " + pods[i].Name + ": " + cause
		if certain {
			break
		}
	}
	return why
}

func (t traces) podsOf(w quiesce.Workload) []corev1.Pod {
	selector := selectorOf(w)
	var out []corev1.Pod
	for i := range t.pods {
		if p := &t.pods[i]; selector.Matches(labels.Set(p.Labels)) && !quiesce.Finished(p) {
			out = append(out, *p)
		}
	}
	return out
}

// selectorOf reads the pods' selector: a label selector, or the plain map of a
// ReplicationController. None selects nothing.
func selectorOf(w quiesce.Workload) labels.Selector {
	raw, _, _ := unstructured.NestedMap(w.Object, "spec", "selector")
	if w.GetKind() == "ReplicationController" {
		raw = map[string]any{"matchLabels": raw}
	}
	var s metav1.LabelSelector
	if len(raw) == 0 || runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &s) != nil {
		return labels.Nothing()
	}
	selector, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// whyNoPod: a quota, a Pod Security level or a webhook refuses pods to whoever
// makes them, and the maker says so in its Events and conditions.
func (t traces) whyNoPod(w quiesce.Workload) string {
	if e := t.newest(func(e *corev1.Event) bool {
		o := e.InvolvedObject
		return o.Name == w.GetName() && o.Kind == w.GetKind() || w.GetKind() == "Deployment" && o.Kind == "ReplicaSet" && strings.HasPrefix(o.Name, w.GetName()+"-")
	}); e != nil {
		return "no pod: " + eventText(e)
	}
	if w.Readiness().Wanted == 0 {
		if w.GetKind() == "DaemonSet" {
			return "no node fits its node selector and tolerations"
		}
		return "it asks for no pods"
	}
	return "no pod is made yet"
}

// whyPod says what holds a pod up, and whether that is more than being slow.
func (t traces) whyPod(p *corev1.Pod) (string, bool) {
	if p.DeletionTimestamp != nil {
		return leavingText(p), false
	}
	if why := containerTrouble(p); why != "" {
		return why, true
	}
	if why := unscheduled(p); why != "" {
		return why + t.unboundClaims(p), true
	}
	if e := t.newest(func(e *corev1.Event) bool {
		return e.InvolvedObject.UID == p.UID && p.UID != "" || e.InvolvedObject.Kind == "Pod" && e.InvolvedObject.Name == p.Name
	}); e != nil {
		return eventText(e), true
	}
	for _, s := range p.Status.InitContainerStatuses {
		if s.State.Running != nil {
			return "init container " + s.Name + " is at work", false
		}
	}
	return strings.ToLower(string(p.Status.Phase)) + ", not ready yet", false
}

func leavingText(p *corev1.Pod) string {
	if len(p.Finalizers) > 0 {
		return "terminating, held by finalizer " + strings.Join(p.Finalizers, ", ")
	}
	return "terminating"
}

// containerTrouble: an image that cannot be pulled, a container that ends again
// and again, a ConfigMap that is not there.
func containerTrouble(p *corev1.Pod) string {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		w := s.State.Waiting
		if w == nil || w.Reason == "" || w.Reason == "ContainerCreating" || w.Reason == "PodInitializing" {
			continue
		}
		why := fmt.Sprintf("container %s: %s", s.Name, w.Reason)
		if last := s.LastTerminationState.Terminated; last != nil {
			why += fmt.Sprintf(": ended with code %d (%s), %d restarts", last.ExitCode, last.Reason, s.RestartCount)
			return strings.TrimSpace(why + " " + last.Message)
		}
		if w.Message != "" {
			why += ": " + w.Message
		}
		return why
	}
	return ""
}

func unscheduled(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "no node for it: " + c.Message
		}
	}
	return ""
}

// unboundClaims names the claims that a pod waits for, and what their
// provisioner says.
func (t traces) unboundClaims(p *corev1.Pod) string {
	out := ""
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		for i := range t.claims {
			c := &t.claims[i]
			if c.Name != v.PersistentVolumeClaim.ClaimName || c.Status.Phase == corev1.ClaimBound {
				continue
			}
			out += fmt.Sprintf("; claim %s is not bound", c.Name)
			if e := t.newest(func(e *corev1.Event) bool {
				return e.InvolvedObject.Kind == "PersistentVolumeClaim" && e.InvolvedObject.Name == c.Name
			}); e != nil {
				out += ": " + eventText(e)
			}
		}
	}
	return out
}

func (t traces) newest(about func(*corev1.Event) bool) *corev1.Event {
	var last *corev1.Event
	for i := range t.events {
		e := &t.events[i]
		if about(e) && (last == nil || seen(last).Before(seen(e))) {
			last = e
		}
	}
	return last
}

// seen is when an Event last happened: writers of the new API set only eventTime.
func seen(e *corev1.Event) *metav1.Time {
	if !e.LastTimestamp.IsZero() {
		return &e.LastTimestamp
	}
	t := metav1.NewTime(e.EventTime.Time)
	return &t
}

func eventText(e *corev1.Event) string { return e.Reason + ": " + strings.TrimSpace(e.Message) }
