// Package record keeps the story of every run in the clusters, as ConfigMaps
// in Velero's namespace that a person reads with kubectl and a later mig reads
// to go on. The source's is the authority, the destination's its replica. It
// knows what happened, not what a step does.
package record

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/mig-cli/mig/internal/progress"
)

// Schema is the version of the records that this mig writes. It grows when an
// older mig could not go on from what a newer one wrote.
const Schema = 1

// State is where a run stands.
type State string

// The states of a run. All but Running are ends; an interrupted or failed run
// can be resumed.
const (
	Running     State = "Running"
	Completed   State = "Completed"
	Failed      State = "Failed"
	Interrupted State = "Interrupted"
	Cancelled   State = "Cancelled"
	RolledBack  State = "RolledBack"
)

// Ended says whether no process is meant to drive the run any more.
func (s State) Ended() bool { return s != Running }

// StepState is where a step of a recorded run stands.
type StepState string

// The states of a step.
const (
	StepPending StepState = ""
	StepRunning StepState = "Running"
	StepDone    StepState = "Done"
	StepBlocked StepState = "Blocked"
	StepFailed  StepState = "Failed"
)

// Run is one run of a plan.
type Run struct {
	Schema   int       `json:"schema"`
	UID      string    `json:"uid"`
	Kind     string    `json:"kind"` // migrate, rollback
	Plan     Plan      `json:"plan"`
	State    State     `json:"state"`
	Message  string    `json:"message,omitempty"` // why it ended so
	Who      string    `json:"who,omitempty"`     // the user, as the source knows them
	Host     string    `json:"host,omitempty"`    // where mig ran, host and process
	Version  string    `json:"version,omitempty"` // of mig
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"`
	Attempts int       `json:"attempts"` // processes that drove it
	Process  string    `json:"process"`  // of the last one, random: who else writes is a stranger

	SourceDown         bool `json:"sourceDown"`         // the run has stopped workloads of the source
	DestinationStarted bool `json:"destinationStarted"` // the point of no return: workloads may have started on the destination

	Steps      []Step      `json:"steps,omitempty"`
	Events     []Event     `json:"events,omitempty"`
	Changes    []Change    `json:"changes,omitempty"`
	Volumes    []Volume    `json:"volumes,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
	Accepted   []Accepted  `json:"accepted,omitempty"`

	// StorageClasses are those that the destination had when the plan was last
	// checked, sorted; nil: not looked at.
	StorageClasses []string `json:"storageClasses,omitempty"`
}

// Plan is the plan as the run froze it.
type Plan struct {
	Name   string `json:"name"`
	UID    string `json:"uid"`
	Digest string `json:"digest"` // of YAML, sha256:…
	YAML   string `json:"-"`      // kept beside the rest, readable

	Namespaces []Namespace `json:"namespaces,omitempty"`
}

// Namespace is one namespace of the plan under its two names.
type Namespace struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
}

// FrozenPlan is a plan with the text that it is run from, and its digest.
func FrozenPlan(name, uid, text string) Plan {
	sum := sha256.Sum256([]byte(text))
	return Plan{Name: name, UID: uid, YAML: text, Digest: "sha256:" + hex.EncodeToString(sum[:])}
}

// Step is one step of a run. Number and Name are the same before and after a
// resume.
type Step struct {
	Number   int           `json:"number"`
	Name     string        `json:"name"`
	State    StepState     `json:"state,omitempty"`
	Started  time.Time     `json:"started,omitzero"` // by the first attempt
	Ended    time.Time     `json:"ended,omitzero"`
	Took     time.Duration `json:"took,omitempty"` // of the last attempt
	Attempts int           `json:"attempts,omitempty"`
	Round    int           `json:"round,omitempty"` // how often it was done and taken back
	Note     string        `json:"note,omitempty"`
}

// Event is one transition, told when it happened.
type Event struct {
	Time    time.Time      `json:"time"`
	Step    string         `json:"step,omitempty"`
	Number  int            `json:"number,omitempty"`
	Of      int            `json:"of,omitempty"`
	Round   int            `json:"round,omitempty"` // of the step
	State   progress.State `json:"state"`
	Reason  string         `json:"reason"`
	Text    string         `json:"text"`
	Object  progress.Ref   `json:"object,omitzero"`
	Elapsed time.Duration  `json:"elapsed,omitempty"`
	Recurs  bool           `json:"recurs,omitempty"` // comes and goes: the same again is another
}

// Change is one thing that the run changed on an object that was there before.
type Change struct {
	Object progress.Ref `json:"object"`
	Field  string       `json:"field"`
	Before string       `json:"before"`
	After  string       `json:"after"`
	At     time.Time    `json:"at"`
}

// Volume is what was copied of one claim.
type Volume struct {
	Claim string `json:"claim"` // namespace/name on the source
	Bytes int64  `json:"bytes"`
	Files int64  `json:"files,omitempty"` // 0 where the copier does not say
	Step  string `json:"step,omitempty"`  // that said so last
}

// Condition is a finding that held when the run began.
type Condition struct {
	Type     string    `json:"type"`
	Category string    `json:"category,omitempty"`
	Status   string    `json:"status"`
	Reason   string    `json:"reason,omitempty"`
	Message  string    `json:"message,omitempty"`
	Since    time.Time `json:"since,omitzero"`
}

// Accepted is a finding that the plan accepts.
type Accepted struct {
	Type   string `json:"type"`
	Object string `json:"object"`
	Why    string `json:"why"`
}

// Step finds a step by its name; false where the run has none of this name.
func (r *Run) Step(name string) (Step, bool) {
	i := slices.IndexFunc(r.Steps, func(s Step) bool { return s.Name == name })
	if i < 0 {
		return Step{}, false
	}
	return r.Steps[i], true
}

// IsDone says whether the step came to its end and was not taken back.
func (r *Run) IsDone(step string) bool {
	s, ok := r.Step(step)
	return ok && s.State == StepDone
}

// Current is the step that the run is at: the one that did not come to its
// end; false where none is.
func (r *Run) Current() (Step, bool) {
	i := slices.IndexFunc(r.Steps, func(s Step) bool { return s.State != StepDone && s.State != StepPending })
	if i < 0 {
		return Step{}, false
	}
	return r.Steps[i], true
}

// IsAhead says whether this copy of a run's record tells more of it than the
// other: a cluster that was away for a while has an older one.
func (r *Run) IsAhead(other *Run) bool {
	if r.Attempts != other.Attempts {
		return r.Attempts > other.Attempts
	}
	return r.told().After(other.told())
}

// told is the last moment that the record tells of.
func (r *Run) told() time.Time {
	last := r.Started
	later := func(t time.Time) {
		if t.After(last) {
			last = t
		}
	}
	later(r.Ended)
	for _, s := range r.Steps {
		later(s.Started)
		later(s.Ended)
	}
	if n := len(r.Events); n > 0 {
		later(r.Events[n-1].Time)
	}
	return last
}

// Warnings are the events that a person should look at.
func (r *Run) Warnings() []Event {
	var out []Event
	for _, e := range r.Events {
		if e.IsWarning() {
			out = append(out, e)
		}
	}
	return out
}

// IsWarning says whether a person should look at the event.
func (e Event) IsWarning() bool {
	switch e.State {
	case progress.Warning, progress.Stalled, progress.Blocked, progress.Failed:
		return true
	default:
		return false
	}
}

// Told is what the run's processes have told, but for the rounds of steps that
// were taken back since.
func (r *Run) Told() []progress.Update {
	out := make([]progress.Update, 0, len(r.Events))
	for _, e := range r.Events {
		if s, _ := r.Step(e.Step); s.Round == e.Round {
			out = append(out, e.Update(r.Kind))
		}
	}
	return out
}

// Update is the moment as it was told when it happened, for a sink that may
// not have heard it: the process that kept it can have died before it was sent.
func (e Event) Update(kind string) progress.Update {
	return progress.Update{
		Time: e.Time, Run: kind, Step: e.Step, Number: e.Number, Of: e.Of, State: e.State, Elapsed: e.Elapsed, Recurs: e.Recurs,
		Note: progress.Remark{Why: e.Reason, Say: e.Text, On: e.Object},
	}
}

func (r *Run) clone() Run {
	c := *r
	c.Steps, c.Events, c.Changes = slices.Clone(r.Steps), slices.Clone(r.Events), slices.Clone(r.Changes)
	c.Volumes, c.Conditions, c.Accepted = slices.Clone(r.Volumes), slices.Clone(r.Conditions), slices.Clone(r.Accepted)
	c.StorageClasses = slices.Clone(r.StorageClasses)
	return c
}
