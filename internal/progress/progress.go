// Package progress carries what a run does to whoever shows it: bars, lines,
// JSON, Kubernetes Events, the run record. It knows neither what is done nor
// how it is shown, and imports nothing of ours.
package progress

import (
	"sync"
	"time"
)

// Side is the cluster that an object lives on.
type Side string

// The two clusters of a run.
const (
	OnSource      Side = "source"
	OnDestination Side = "destination"
)

// Ref names an object of one of the clusters.
type Ref struct {
	Side       Side   `json:"side,omitempty"`
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	UID        string `json:"uid,omitempty"`
}

// Note is one thing that happened. Every kind of note is a small struct with
// named fields that knows its own reason, text and object, so that none can be
// sent with another's.
type Note interface {
	// Reason is the CamelCase name that Events, records and scripts know it by.
	Reason() string
	// Text says it to a person, in one line.
	Text() string
	// Regarding is the object that it is about; the zero Ref means the run itself.
	Regarding() Ref
}

// Remark is a note that only says something: what a step waits for, what it
// will do. What is kept for good has a type of its own.
type Remark struct {
	Why string // a CamelCase reason
	Say string
	On  Ref
}

// Reason is the remark's reason.
func (r Remark) Reason() string { return r.Why }

// Text is the remark's sentence.
func (r Remark) Text() string { return r.Say }

// Regarding is the remark's object.
func (r Remark) Regarding() Ref { return r.On }

// State is where a step stands.
type State string

// The states of a step. Waiting is told again whenever its note or its amounts
// change; the others are transitions and are told once.
const (
	Started   State = "started"   // the step has looked and found something to do
	Waiting   State = "waiting"   // what it waits for, and how far it is
	Stalled   State = "stalled"   // nothing moved for the step's limit; it goes on waiting
	Happened  State = "happened"  // a fact beside the step's own transitions: a workload quiesced, a volume restored
	Warning   State = "warning"   // like Happened, for what a person should look at
	Done      State = "done"      // the step's end is observed
	Skipped   State = "skipped"   // done by an earlier process of the same run
	Blocked   State = "blocked"   // a person must decide; nothing was changed by the step
	Failed    State = "failed"    // the step will not come to its end
	RunStart  State = "run-start" // the run began or was taken up again
	RunFinish State = "run-finish"
)

// Transition says whether the state is told once and kept for good: in the run
// record and as an Event.
func (s State) Transition() bool { return s != Waiting && s != Skipped && s != Started }

// Amount is how far one volume is. Total is 0 while it is not known yet.
type Amount struct {
	Item  string `json:"item"`  // the claim, namespace/name on the source
	Done  int64  `json:"done"`  // bytes
	Total int64  `json:"total"` // bytes
}

// Update is one moment of a run.
type Update struct {
	Time    time.Time
	Run     string // the kind of run: migrate, rollback
	Step    string // empty for what is about the run as a whole
	Number  int    // of the step, from 1; the same before and after a resume
	Of      int    // number of steps
	State   State
	Note    Note // never nil
	Amounts []Amount
	Elapsed time.Duration // since the step started; set with Done, Blocked and Failed
	// Recurs: it comes and goes with something that the run needs. It is told
	// and kept every time, also in the same words.
	Recurs bool
}

// Repeats says whether the update is one that may be told again in the same
// words and then counts again.
func (u Update) Repeats() bool { return u.Recurs || u.State == Stalled }

// Sink takes updates. It cannot fail or slow the run: what it cannot deliver
// it says by its own means.
type Sink interface {
	Emit(Update)
}

// Tee gives every update to each sink in order.
func Tee(sinks ...Sink) Sink { return tee(sinks) }

type tee []Sink

func (t tee) Emit(u Update) {
	for _, s := range t {
		s.Emit(u)
	}
}

// Recorder keeps every update, for tests and summaries.
type Recorder struct {
	mu      sync.Mutex
	updates []Update
}

// Emit keeps the update.
func (r *Recorder) Emit(u Update) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.updates = append(r.updates, u)
}

// Updates are those received so far.
func (r *Recorder) Updates() []Update {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Update(nil), r.updates...)
}
