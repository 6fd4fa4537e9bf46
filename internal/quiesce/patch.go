package quiesce

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mig-cli/mig/internal/naming"
)

const (
	retain  = "Retain"
	dispose = "Delete"
)

// Change is one patch of one workload. Patch is a JSON merge patch that is
// refused with a conflict when the object is no longer the one that was read.
type Change struct {
	Patch []byte
	Field string // what it changes
	From  string
	To    string
}

func (c Change) String() string {
	if c.Field == "" {
		return "annotations"
	}
	return fmt.Sprintf("%s %s → %s", c.Field, c.From, c.To)
}

// RecordLostError is a workload that was stopped and no longer says how it was.
type RecordLostError struct{ Workload string }

func (e *RecordLostError) Error() string {
	return fmt.Sprintf("%s was stopped by mig, but its annotation %s is gone or unreadable: set its replicas by hand and remove its annotations %s*",
		e.Workload, naming.RefPreQuiesceReplicas, naming.Prefix)
}

// Stop is the next patch on the way to a stopped workload, for one that is
// Running or Protected and observed: first its claims are protected where
// scaling would delete them, then it is stopped.
func Stop(w Workload, o naming.Owner) (Change, error) {
	if w.whenScaled() == dispose {
		return protect(w, o)
	}
	n := newNote(w, o)
	c := Change{}
	var spec map[string]any
	switch w.means() {
	case byReplicas:
		old := strconv.FormatInt(w.replicas(), 10)
		n.remember(naming.RefPreQuiesceReplicas, old)
		if w.GetKind() == "Deployment" {
			paused, _, _ := unstructured.NestedBool(w.Object, "spec", "paused")
			n.remember(naming.RefPreQuiescePaused, strconv.FormatBool(paused))
		}
		c.Field, c.From, c.To = "replicas", old, "0"
		spec = map[string]any{"replicas": 0}
	case bySelector:
		selector, _, _ := unstructured.NestedMap(w.Object, "spec", "template", "spec", "nodeSelector")
		old, err := json.Marshal(selector)
		if err != nil {
			return Change{}, err
		}
		n.remember(naming.RefPreQuiesceSelector, string(old))
		c.Field, c.From, c.To = "node selector", string(old), "no node"
		spec = nested(map[string]any{naming.NodeSelectorQuiesced: "true"}, "template", "spec", "nodeSelector")
	case bySuspend:
		n.remember(naming.RefPreQuiesceSuspend, "false")
		c.Field, c.From, c.To = "suspend", "false", "true"
		spec = map[string]any{"suspend": true}
	default:
		return Change{}, fmt.Errorf("%s cannot be stopped", w)
	}
	n.mark(markStopped)
	return c.with(w, n.annotations, spec)
}

// protect takes care that a StatefulSet's claims outlive its scaling to zero:
// with whenScaled Delete the cluster would delete them, and the data.
func protect(w Workload, o naming.Owner) (Change, error) {
	n := newNote(w, o)
	n.annotations[naming.AnnQuiesceWhenScaled] = dispose
	n.mark(markProtected)
	return Change{Field: "whenScaled", From: dispose, To: retain}.with(w, n.annotations, whenScaledSpec(retain))
}

// Start is the patch that brings a Marked workload back. It takes back what
// the plan has changed and nothing else: who has scaled, resumed or re-targeted
// the workload in between keeps that.
func Start(w Workload) (Change, error) {
	annotations := forget(w)
	c := Change{}
	spec, err := c.back(w)
	if err != nil {
		return Change{}, err
	}
	// What is left says that somebody must still see it as ready as it was.
	annotations[naming.AnnQuiesceState] = markStarting
	delete(annotations, naming.AnnQuiescePlan)
	delete(annotations, naming.AnnQuiesceReady)
	return c.with(w, annotations, spec)
}

// back is the spec part of the patch that brings a Marked workload back.
func (c *Change) back(w Workload) (map[string]any, error) {
	spec := map[string]any{}
	if policy := w.GetAnnotations()[naming.AnnQuiesceWhenScaled]; policy != "" && w.whenScaled() == retain {
		spec = whenScaledSpec(policy)
		c.Field, c.From, c.To = "whenScaled", retain, policy
	}
	if w.mark() == markStopped && !w.asks() {
		return spec, c.undo(w, spec)
	}
	return spec, nil
}

// undo adds to spec what the workload was before it was stopped.
func (c *Change) undo(w Workload, spec map[string]any) error {
	switch w.means() {
	case byReplicas:
		n, err := w.replicasBefore()
		if err != nil {
			return err
		}
		spec["replicas"] = n
		c.Field, c.From, c.To = "replicas", "0", strconv.FormatInt(n, 10)
	case bySelector:
		spec["template"] = nested(selectorBefore(w), "spec")
		c.Field, c.From, c.To = "node selector", "no node", w.GetAnnotations()[naming.RefPreQuiesceSelector]
	case bySuspend:
		spec["suspend"] = false
		c.Field, c.From, c.To = "suspend", "true", "false"
	case byItself:
	}
	return nil
}

// replicasBefore is written twice, under the reference system's key and as the
// wanted half of the readiness: one is enough.
func (w Workload) replicasBefore() (int64, error) {
	if n, err := strconv.ParseInt(w.GetAnnotations()[naming.RefPreQuiesceReplicas], 10, 64); err == nil {
		return n, nil
	}
	if r, ok := parseReadiness(w.GetAnnotations()[naming.AnnQuiesceReady]); ok {
		return r.Wanted, nil
	}
	return 0, &RecordLostError{Workload: w.String()}
}

// selectorBefore is the merge patch of a pod spec that leaves the selector
// without our key: removed where it was not there before.
func selectorBefore(w Workload) map[string]any {
	selector, _, _ := unstructured.NestedMap(w.Object, "spec", "template", "spec", "nodeSelector")
	if len(selector) == 1 && w.GetAnnotations()[naming.RefPreQuiesceSelector] == "null" {
		return map[string]any{"nodeSelector": nil}
	}
	return map[string]any{"nodeSelector": map[string]any{naming.NodeSelectorQuiesced: nil}}
}

// Settle is the patch that removes the last marks, once the workload is as
// ready as it was or where the marks are copies: a Deployment's controller
// copies its annotations to its ReplicaSets and never removes them there, and
// `kubectl rollout undo` would bring them back.
func Settle(w Workload) (Change, error) { return Change{}.with(w, forget(w), nil) }

// Done is what has been done to a Stopped workload, as its marks tell it.
func Done(w Workload) string {
	switch w.means() {
	case byReplicas:
		n, err := w.replicasBefore()
		if err != nil {
			return "replicas 0"
		}
		return fmt.Sprintf("replicas %d → 0", n)
	case bySelector:
		return "runs on no node"
	case bySuspend:
		return "suspend false → true"
	default:
		return ""
	}
}

// Asks is what a workload asks for.
func Asks(w Workload) string {
	switch w.means() {
	case byReplicas:
		return fmt.Sprintf("replicas %d", w.replicas())
	case bySelector:
		return "runs on its nodes"
	case bySuspend:
		return "suspend false"
	default:
		return ""
	}
}

// CopiedMarks says whether the plan's marks came to the workload from its owner.
func CopiedMarks(w Workload, o naming.Owner) bool { return w.ours(o) && w.dependent() }

// note is what is written on a workload before it is changed.
type note struct {
	w           Workload
	annotations map[string]any
	kept        map[string]string
}

func newNote(w Workload, o naming.Owner) *note {
	n := &note{w: w, kept: map[string]string{}, annotations: map[string]any{
		naming.AnnQuiescePlan:  o.PlanUID,
		naming.AnnQuiesceRun:   o.RunUID,
		naming.AnnQuiesceReady: w.Readiness().String(),
	}}
	// A workload on its way back up has not been ready since; what counts is how
	// it was before it was first stopped.
	if was, ok := w.GetAnnotations()[naming.AnnQuiesceReady]; ok && w.ours(o) && w.mark() != markStopped {
		n.annotations[naming.AnnQuiesceReady] = was
	}
	return n
}

// remember writes an old value under the reference system's key. A value that
// somebody else had there is kept aside and put back in the end.
func (n *note) remember(key, value string) {
	if was, ok := n.w.GetAnnotations()[key]; ok && !n.w.remembers() {
		n.kept[key] = was
	}
	n.annotations[key] = value
}

// remembers says whether the preQuiesce annotations on the workload are mig's:
// beside the mark of a stopped one they are, or where they are copies.
func (w Workload) remembers() bool { return w.mark() == markStopped || w.dependent() }

func (n *note) mark(state string) {
	n.annotations[naming.AnnQuiesceState] = state
	if len(n.kept) > 0 {
		kept, _ := json.Marshal(n.kept) // a map of strings cannot fail
		n.annotations[naming.AnnQuiesceKept] = string(kept)
	}
}

// forget is the annotations part of a patch that leaves no mark of ours.
func forget(w Workload) map[string]any {
	keys := []string{
		naming.AnnQuiesceState, naming.AnnQuiescePlan, naming.AnnQuiesceRun, naming.AnnQuiesceReady, naming.AnnQuiesceWhenScaled, naming.AnnQuiesceKept,
	}
	if w.remembers() {
		keys = append(keys, naming.RefPreQuiesceReplicas, naming.RefPreQuiescePaused, naming.RefPreQuiesceSuspend, naming.RefPreQuiesceSelector)
	}
	before := w.GetAnnotations()
	annotations := map[string]any{}
	for _, key := range keys {
		if _, ok := before[key]; ok {
			annotations[key] = nil
		}
	}
	var kept map[string]string
	if json.Unmarshal([]byte(before[naming.AnnQuiesceKept]), &kept) == nil {
		for key, value := range kept {
			annotations[key] = value
		}
	}
	return annotations
}

func (c Change) with(w Workload, annotations, spec map[string]any) (Change, error) {
	patch := map[string]any{"metadata": map[string]any{"resourceVersion": w.GetResourceVersion(), "annotations": annotations}}
	if len(spec) > 0 {
		patch["spec"] = spec
	}
	raw, err := json.Marshal(patch)
	c.Patch = raw
	return c, err
}

func whenScaledSpec(policy string) map[string]any {
	return nested(map[string]any{"whenScaled": policy}, "persistentVolumeClaimRetentionPolicy")
}

func nested(v map[string]any, path ...string) map[string]any {
	for _, p := range slices.Backward(path) {
		v = map[string]any{p: v}
	}
	return v
}
