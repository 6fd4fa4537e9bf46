package naming

import (
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Values of LabelRecord: what a ConfigMap of the records holds.
const (
	RecordPlan = "plan" // one a plan: its runs
	RecordRun  = "run"  // one a run: its head, made for eyes
	RecordPart = "part" // what did not fit the head of a run
)

// Annotations of the leases.
const (
	AnnHolder = Prefix + "holder" // who holds it, as JSON, for the message to whoever comes second
	AnnLease  = Prefix + "lease"  // on a claimed namespace's lease: the renewed lease that it lives and dies with
)

// RecordLabels are the labels of a ConfigMap of the records.
func (o Owner) RecordLabels(what string) map[string]string {
	l := o.Labels("")
	if what == RecordPlan {
		delete(l, LabelRun) // it outlives the run
	}
	l[LabelRecord] = what
	return l
}

// Records selects the records of one sort: of this run where the owner has
// one, else of all runs of this plan, and of all plans where it has no uid.
func (o Owner) Records(what string) labels.Selector {
	want := labels.Set{LabelCreatedBy: CreatedBy, LabelRecord: what}
	for k, v := range o.RecordLabels(what) {
		if v != "" {
			want[k] = v
		}
	}
	return labels.SelectorFromSet(want)
}

// RunRecordPart is the name of a part of the run's record. It is made of the
// content's digest, so that a part, once written, is never another.
func (o Owner) RunRecordPart(section, digest string) string {
	return o.RunRecord() + "-" + section + "-" + strings.ToLower(hash(digest)[:8])
}

// RunLease is the name of the lease that a run of the plan renews: one a plan,
// so that two runs of it never meet.
func (o Owner) RunLease() string { return "mig-run-" + shorten(o.PlanUID, 40) }

// TurnLease is the name of the lease of whose turn it is with a cluster's
// Velero.
const TurnLease = "mig-turn"

// NamespaceLease is the name of the lease by which a run claims a namespace of
// its cluster.
func NamespaceLease(namespace string) string {
	return "mig-namespace-" + shorten(namespace, 30) + "-" + strings.ToLower(hash(namespace)[:8])
}

// Event is the name of an Event that the run sends. What is the reason; tells
// are all that makes it another than the run's other Events with this reason.
// A resumed run finds the same name and says nothing twice.
func (o Owner) Event(what string, tells ...string) string {
	flat := strings.Trim(strings.Map(lowerAlphanumeric, strings.ToLower(what)), "-")
	if flat == "" {
		flat = "note"
	}
	key := strings.Join(append([]string{o.PlanUID, o.RunUID, what}, tells...), "\n")
	return "mig-" + o.RunUID + "-" + shorten(flat, 60) + "-" + strings.ToLower(hash(key)[:12])
}

func lowerAlphanumeric(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
		return r
	}
	return '-'
}
