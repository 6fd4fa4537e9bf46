package quiesce

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mig-cli/mig/internal/naming"
)

// Hope says what becomes of a pod that still runs.
type Hope int

// The hopes.
const (
	// Leaves: it is on its way out, or its stopped workload will delete it.
	Leaves Hope = iota + 1
	// Finishes: it belongs to a Job and ends when its work is done.
	Finishes
	// Stays: nothing that mig may do ends it, and it can write to a claim that
	// is to be copied. A person must decide.
	Stays
	// Harmless: nothing ends it, but it mounts no claim that is to be copied.
	Harmless
)

// Writer is a pod that still runs, or a Job that will make one.
type Writer struct {
	Kind            string
	Namespace, Name string
	Hope            Hope
	Top             string   // the workload that it belongs to in the end, Kind/namespace/name; empty for a bare pod
	Claims          []string // the claims to be copied that it mounts, namespace/name
	Why             string   // it still runs, for a person
}

func (w Writer) String() string {
	s := w.Kind + " " + w.Namespace + "/" + w.Name
	if len(w.Claims) > 0 {
		s += " (mounts " + strings.Join(w.Claims, ", ") + ")"
	}
	return s + ": " + w.Why
}

// Scope is what the gate looks for.
type Scope struct {
	Copied map[string]bool // claims that are copied, namespace/name
	Except map[string]bool // workloads that stay up, Kind/namespace/name
}

// Writers are the pods that still run. A pod that has finished writes no more;
// mig's own stage pods only hold volumes; pods of excepted workloads stay, unless
// they mount a claim that is to be copied.
func Writers(pods []corev1.Pod, workloads []Workload, s Scope) []Writer {
	known := byUID(workloads)
	var out []Writer
	for i := range pods {
		p := &pods[i]
		if Finished(p) || p.Labels[naming.LabelCreatedBy] == naming.CreatedBy {
			continue
		}
		chain := owners(p, known)
		w := Writer{Kind: "pod", Namespace: p.Namespace, Name: p.Name, Claims: mounted(p.Namespace, p.Name, p.Spec.Volumes, s.Copied)}
		if len(chain) > 0 {
			w.Top = chain[len(chain)-1].ID()
		}
		excepted := s.Except[w.Top]
		if excepted && len(w.Claims) == 0 {
			continue
		}
		w.Hope, w.Why = judge(p, chain, excepted, len(w.Claims) > 0)
		out = append(out, w)
	}
	return append(out, pausing(pods, workloads, known, s)...)
}

// pausing are the Jobs that run and have no pod just now: after a failure the
// next one comes in seconds or minutes.
func pausing(pods []corev1.Pod, workloads []Workload, known map[types.UID]Workload, s Scope) []Writer {
	busy := map[types.UID]bool{}
	for i := range pods {
		if ref := metav1.GetControllerOf(&pods[i]); ref != nil && !Finished(&pods[i]) {
			busy[ref.UID] = true
		}
	}
	var out []Writer
	for _, job := range workloads {
		if job.means() != byItself || !job.asks() || busy[job.GetUID()] || s.Except[job.ID()] {
			continue
		}
		chain := []Workload{job}
		if ref := metav1.GetControllerOf(job); ref != nil {
			if top, ok := known[ref.UID]; ok {
				chain = append(chain, top)
			}
		}
		w := Writer{Kind: "Job", Namespace: job.GetNamespace(), Name: job.GetName(), Top: chain[len(chain)-1].ID(), Claims: job.mounts(s.Copied)}
		w.Hope, w.Why = jobHope(chain, len(w.Claims) > 0)
		if !s.Except[w.Top] {
			out = append(out, w)
		}
	}
	return out
}

// mounts are the wanted claims in the workload's pod template.
func (w Workload) mounts(wanted map[string]bool) []string {
	var template corev1.PodTemplateSpec
	raw, _, _ := unstructured.NestedMap(w.Object, "spec", "template")
	if runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &template) != nil {
		return nil
	}
	return mounted(w.GetNamespace(), w.GetName(), template.Spec.Volumes, wanted)
}

// Ended are the pods that write no more and are about to be gone. Until then
// their volume is mounted, and their name, by which the copier finds what it
// copied before, is not free. One that a finalizer holds is not waited for.
func Ended(pods []corev1.Pod) []string {
	var out []string
	for i := range pods {
		if p := &pods[i]; Finished(p) && p.DeletionTimestamp != nil && len(p.Finalizers) == 0 {
			out = append(out, p.Namespace+"/"+p.Name)
		}
	}
	return out
}

// Finished says of a pod that none of its containers will run again.
func Finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func byUID(workloads []Workload) map[types.UID]Workload {
	m := make(map[types.UID]Workload, len(workloads))
	for _, w := range workloads {
		m[w.GetUID()] = w
	}
	return m
}

// owners are the workloads above a pod, the nearest first.
func owners(p *corev1.Pod, known map[types.UID]Workload) []Workload {
	var chain []Workload
	for ref := metav1.GetControllerOf(p); ref != nil; {
		w, ok := known[ref.UID]
		if !ok || len(chain) > len(known) {
			break
		}
		chain = append(chain, w)
		ref = metav1.GetControllerOf(w)
	}
	return chain
}

func judge(p *corev1.Pod, chain []Workload, excepted, mounts bool) (Hope, string) {
	switch {
	case p.DeletionTimestamp != nil:
		return Leaves, leaving(p)
	case excepted:
		return Stays, "its workload is excepted from the quiesce in the plan, but mounts a claim that is to be copied"
	case slices.ContainsFunc(chain, Workload.Stoppable) && !inJob(chain):
		return Leaves, "not yet deleted by its " + chain[len(chain)-1].String()
	case inJob(chain):
		return jobHope(chain, mounts)
	case !mounts:
		return Harmless, "runs on, " + strayOwner(p, chain)
	default:
		return Stays, strayOwner(p, chain) + ": mig cannot stop it"
	}
}

func leaving(p *corev1.Pod) string {
	s := "terminating since " + p.DeletionTimestamp.UTC().Format(time.TimeOnly)
	if g := p.DeletionGracePeriodSeconds; g != nil {
		// The timestamp is when the grace period ends.
		since := p.DeletionTimestamp.Add(-time.Duration(*g) * time.Second)
		s = fmt.Sprintf("terminating since %s (%ds to end by itself)", since.UTC().Format(time.TimeOnly), *g)
	}
	if len(p.Finalizers) > 0 {
		s += ", held by finalizer " + strings.Join(p.Finalizers, ", ")
	}
	if p.Status.Reason == "NodeLost" || nodeGone(p) {
		s += ", node " + p.Spec.NodeName + " does not answer"
	}
	return s
}

func nodeGone(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "DeletionByTaintManager"
	})
}

func inJob(chain []Workload) bool { return len(chain) > 0 && chain[0].GetKind() == "Job" }

// jobHope: a CronJob's Job ends soon and its CronJob is suspended. A Job of its
// own may run for days; a person decides.
func jobHope(chain []Workload, mounts bool) (Hope, string) {
	job := chain[0].String()
	switch {
	case len(chain) > 1:
		return Finishes, job + " of " + chain[1].String() + " runs to its end"
	case mounts:
		return Stays, job + " still runs: let it finish, or delete it"
	default:
		return Harmless, "runs on: " + job
	}
}

// strayOwner names the highest owner that can be seen.
func strayOwner(p *corev1.Pod, chain []Workload) string {
	ref := metav1.GetControllerOf(p)
	if len(chain) > 0 {
		ref = metav1.GetControllerOf(chain[len(chain)-1])
	}
	if ref == nil {
		return "no workload owns it"
	}
	return "owned by " + ref.Kind + " " + p.Namespace + "/" + ref.Name
}

// mounted are the wanted claims that a pod of this name mounts, read-only ones too: who may
// read only today may be given more by another container.
func mounted(namespace, name string, volumes []corev1.Volume, wanted map[string]bool) []string {
	var out []string
	for _, v := range volumes {
		claim := ""
		switch {
		case v.PersistentVolumeClaim != nil:
			claim = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			claim = name + "-" + v.Name
		}
		if key := namespace + "/" + claim; claim != "" && wanted[key] && !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out
}
