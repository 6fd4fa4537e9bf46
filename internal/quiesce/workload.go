// Package quiesce says which patch stops a workload, which patch brings it back
// exactly as it was, and which pods still write. It works on values and knows
// neither clients nor plans nor time: who looks, patches and waits is others'
// business.
//
// What was there before is written on the object in the same patch as the
// change, so there is no instant at which the one is true without the other.
package quiesce

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mig-cli/mig/internal/naming"
)

// means is how workloads of a kind are stopped.
type means int

const (
	byReplicas means = iota + 1
	bySelector       // a DaemonSet: of a node that does not exist
	bySuspend
	byItself // a Job: it ends, and is not cut short
)

// Kind is a kind of workload.
type Kind struct {
	schema.GroupVersionKind
	// Optional kinds are not served by every cluster.
	Optional bool

	means means
}

// Kinds are the kinds that make pods, in the order in which they are stopped:
// CronJobs first, so that none fires between. A kind that is not here (an
// operator's own) is stopped by a person, and the gate sees its pods.
func Kinds() []Kind {
	return []Kind{
		{GroupVersionKind: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"}, means: bySuspend},
		{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, means: byReplicas},
		{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}, means: byReplicas},
		{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, means: byReplicas},
		{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ReplicationController"}, means: byReplicas},
		{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}, means: bySelector},
		{GroupVersionKind: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, means: byItself},
	}
}

// Workload is an object of one of the kinds, as the cluster has it.
type Workload struct{ *unstructured.Unstructured }

// ID is how plan.Quiesce.Except names a workload: Kind/namespace/name.
func (w Workload) ID() string { return w.GetKind() + "/" + w.GetNamespace() + "/" + w.GetName() }

func (w Workload) String() string { return w.GetKind() + " " + w.GetNamespace() + "/" + w.GetName() }

func (w Workload) means() means {
	for _, k := range Kinds() {
		if k.Kind == w.GetKind() && k.Group == w.GroupVersionKind().Group {
			return k.means
		}
	}
	return 0
}

// Stoppable says whether a patch stops it, if nothing else decides on it.
func (w Workload) Stoppable() bool {
	return w.means() != 0 && w.means() != byItself && !w.dependent()
}

// dependent says whether another workload or an operator makes and scales it:
// a ReplicaSet of a Deployment, a Job of a CronJob. Patching it would race with
// its owner. Deployments and StatefulSets of an operator are stopped all the
// same: whether the operator puts up with it is seen by the gate.
func (w Workload) dependent() bool {
	switch w.GetKind() {
	case "ReplicaSet", "ReplicationController", "Job":
		return metav1.GetControllerOf(w) != nil
	default:
		return false
	}
}

// asks says whether the object as it is asks for pods.
func (w Workload) asks() bool {
	switch w.means() {
	case byReplicas:
		return w.replicas() > 0
	case bySelector:
		_, parked, _ := unstructured.NestedString(w.Object, "spec", "template", "spec", "nodeSelector", naming.NodeSelectorQuiesced)
		return !parked
	case bySuspend:
		return !w.suspended()
	case byItself:
		return !w.finished() && !w.suspended()
	default:
		return false
	}
}

// replicas is what is asked for; no number means one (the API's default).
func (w Workload) replicas() int64 {
	n, found, err := unstructured.NestedInt64(w.Object, "spec", "replicas")
	if !found || err != nil {
		return 1
	}
	return n
}

func (w Workload) suspended() bool {
	s, _, _ := unstructured.NestedBool(w.Object, "spec", "suspend")
	return s
}

func (w Workload) finished() bool {
	conditions, _, _ := unstructured.NestedSlice(w.Object, "status", "conditions")
	for _, c := range conditions {
		m, ok := c.(map[string]any)
		if ok && m["status"] == "True" && (m["type"] == "Complete" || m["type"] == "Failed") {
			return true
		}
	}
	return false
}

// whenScaled is what becomes of a StatefulSet's claims when it is scaled down.
func (w Workload) whenScaled() string {
	s, _, _ := unstructured.NestedString(w.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled")
	return s
}

// Observed says whether the workload's controller has seen the object as it is.
// Without it the status is that of another time. A CronJob's controller keeps
// no such account.
func (w Workload) Observed() bool {
	if m := w.means(); m != byReplicas && m != bySelector {
		return true
	}
	seen, _, _ := unstructured.NestedInt64(w.Object, "status", "observedGeneration")
	return seen >= w.GetGeneration()
}

// Readiness is how many of the wanted pods are ready.
type Readiness struct{ Ready, Wanted int64 }

func (r Readiness) String() string { return fmt.Sprintf("%d/%d", r.Ready, r.Wanted) }

// Readiness reads the workload's status; CronJobs and Jobs have none.
func (w Workload) Readiness() Readiness {
	number := func(path ...string) int64 {
		n, _, _ := unstructured.NestedInt64(w.Object, path...)
		return n
	}
	switch w.means() {
	case byReplicas:
		return Readiness{Ready: number("status", "readyReplicas"), Wanted: w.replicas()}
	case bySelector:
		return Readiness{Ready: number("status", "numberReady"), Wanted: number("status", "desiredNumberScheduled")}
	default:
		return Readiness{}
	}
}

// Before is how ready the workload was before this plan stopped it, or is now
// where it did not.
func (w Workload) Before(o naming.Owner) Readiness {
	if !w.ours(o) {
		return w.Readiness()
	}
	r, ok := parseReadiness(w.GetAnnotations()[naming.AnnQuiesceReady])
	if !ok {
		return w.Readiness()
	}
	return r
}

func parseReadiness(s string) (Readiness, bool) {
	ready, wanted, found := strings.Cut(s, "/")
	r, err1 := strconv.ParseInt(ready, 10, 64)
	n, err2 := strconv.ParseInt(wanted, 10, 64)
	return Readiness{Ready: r, Wanted: n}, found && err1 == nil && err2 == nil
}

// Raiser is who last set the field that brings the workload up, of all but mig
// itself: the name that the client gave itself; empty where the cluster kept none.
func (w Workload) Raiser() string {
	switch w.means() {
	case byReplicas:
		return w.changer("spec", "replicas")
	case bySelector:
		return w.changer("spec", "template", "spec", "nodeSelector")
	case bySuspend:
		return w.changer("spec", "suspend")
	default:
		return ""
	}
}

func (w Workload) changer(path ...string) string {
	var last metav1.ManagedFieldsEntry
	for _, e := range w.GetManagedFields() {
		if e.Manager == naming.CreatedBy || !sets(e, path) {
			continue
		}
		if last.Manager == "" || e.Time != nil && (last.Time == nil || last.Time.Before(e.Time)) {
			last = e
		}
	}
	return last.Manager
}
