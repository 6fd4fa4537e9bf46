package record

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mig-cli/mig/internal/progress"
)

// textLimit bounds, in bytes, one text of a record.
const textLimit = 4 << 10

// replicaPause is how long a replica that could not be written is left alone,
// where the run may go on without it.
const replicaPause = 30 * time.Second

// besideLimit bounds a write that nobody waits for.
const besideLimit = 15 * time.Second

// Journal writes the record of one run, transition by transition. Its methods
// may be called from several goroutines. Everything is on both clusters when a
// method returns without an error; doing it again after an error writes
// nothing twice. Errors: *EndedError where another process ended the run or
// took it over; else the cluster's own.
type Journal struct {
	store   *Store
	mu      sync.Mutex
	run     Run
	packer  *packer
	source  *copyOn
	replica *copyOn // nil where there is no destination
	told    map[string]bool
	spoken  bool              // this process has added an event
	begun   map[string]bool   // steps that this process has worked on
	now     *corev1.ConfigMap // the source's head as last seen; nil: look again
	trouble error
	again   time.Time // not before then is the replica tried again
	beside  sync.WaitGroup
}

func (s *Store) journal(r Run, parts []part, content map[string][]byte) *Journal {
	owner := s.ownerOf(r.UID)
	j := &Journal{store: s, run: r, told: map[string]bool{}, begun: map[string]bool{}, source: newCopy(s.src.Cluster, owner)}
	j.packer = newPacker(owner.RunRecordPart, parts)
	for name, data := range content {
		j.packer.data[name], j.source.has[name] = data, true
	}
	if s.dst.Cluster != nil {
		j.replica = newCopy(s.dst.Cluster, owner)
	}
	for _, e := range r.Events {
		j.told[e.key()] = true
	}
	return j
}

// Run is the run as it is recorded now.
func (j *Journal) Run() Run {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.run.clone()
}

// IsDone says whether the step came to its end, in this process or before.
func (j *Journal) IsDone(step string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.run.IsDone(step)
}

// Keep writes a transition down. The same one again is kept once.
func (j *Journal) Keep(ctx context.Context, u progress.Update) error {
	return j.change(ctx, func(*Run) { j.apply(u) })
}

// Emit makes a journal a progress.Sink that hears of steps beginning, so that
// whoever reads the record sees at what the run is. It writes beside the run,
// which need not wait for it: what is lost here is told by the next transition.
func (j *Journal) Emit(u progress.Update) {
	if u.State == progress.Started && u.Step != "" {
		j.KeepBeside(u)
	}
}

// KeepBeside is Keep for who cannot wait for the clusters, because they may be
// what is away: it is kept at once and written as soon as one of them takes it,
// with the next transition at the latest.
func (j *Journal) KeepBeside(u progress.Update) {
	j.mu.Lock()
	j.apply(u)
	j.mu.Unlock()
	j.beside.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), besideLimit)
		defer cancel()
		_ = j.change(ctx, func(*Run) {})
	})
}

// Forget takes steps back: they are done again by the next process that comes
// to them. Unknown names are ignored.
func (j *Journal) Forget(ctx context.Context, steps ...string) error {
	return j.change(ctx, func(r *Run) {
		for i, s := range r.Steps {
			if slices.Contains(steps, s.Name) && s.State != StepPending {
				r.Steps[i].State, r.Steps[i].Ended = StepPending, time.Time{}
				r.Steps[i].Round++
				delete(j.begun, s.Name)
			}
		}
	})
}

// Changed writes down what the run is about to change on objects that were
// there before. The same change of the same field is kept once.
func (j *Journal) Changed(ctx context.Context, changes ...Change) error {
	return j.change(ctx, func(r *Run) {
		for _, c := range changes {
			c.Before, c.After = clean(c.Before), clean(c.After)
			if c.At.IsZero() {
				c.At = time.Now()
			}
			if !slices.ContainsFunc(r.Changes, c.sameAs) {
				r.Changes = append(r.Changes, c)
			}
		}
	})
}

func (c Change) sameAs(other Change) bool {
	c.At = other.At
	return c == other
}

// Copied writes down how much was copied of claims.
func (j *Journal) Copied(ctx context.Context, volumes ...Volume) error {
	return j.change(ctx, func(r *Run) { r.setVolumes(volumes) })
}

// Update changes what else the run says of itself: SourceDown,
// DestinationStarted, conditions, accepted findings, steps to come.
func (j *Journal) Update(ctx context.Context, change func(*Run)) error {
	return j.change(ctx, func(r *Run) {
		change(r)
		r.hideFindings()
	})
}

// Finish writes the end of the run and of its record's upkeep: parts that
// nothing refers to any more are removed.
func (j *Journal) Finish(ctx context.Context, state State, message string) error {
	j.beside.Wait()
	j.mu.Lock()
	j.again = time.Time{} // the last word is worth another try
	j.mu.Unlock()
	err := j.change(ctx, func(r *Run) {
		r.State, r.Message = state, clean(message)
		if state.Ended() && r.Ended.IsZero() {
			r.Ended = time.Now()
		}
	})
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sweep(ctx)
	return j.writePlan(ctx)
}

// ReplicaTrouble is why the destination's replica is behind; nil where it is not.
func (j *Journal) ReplicaTrouble() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.trouble
}

// Attempt is the number of the process that works on the step, from 1; of the
// run where the step's name is empty.
func (j *Journal) Attempt(step string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	if step == "" {
		return j.run.Attempts
	}
	s, _ := j.run.Step(step)
	if j.begun[step] {
		return s.Attempts
	}
	return s.Attempts + 1
}

// Round is how often the step was done and taken back.
func (j *Journal) Round(step string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	s, _ := j.run.Step(step)
	return s.Round
}

func (j *Journal) change(ctx context.Context, change func(*Run)) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(&j.run)
	return j.save(ctx)
}

// apply takes an update into the run.
func (j *Journal) apply(u progress.Update) {
	text := clean(progress.Within(u.Note, textLimit))
	e := Event{
		Time: u.Time, Step: u.Step, Number: u.Number, Of: u.Of, State: u.State,
		Reason: u.Note.Reason(), Text: text, Object: u.Note.Regarding(), Elapsed: u.Elapsed, Recurs: u.Recurs,
	}
	if u.Step != "" {
		e.Round = j.step(u, text).Round
		j.run.setVolumes(volumesOf(u))
	}
	if u.State.Transition() && !j.told[e.key()] && !j.isLast(e) {
		j.told[e.key()], j.spoken = true, true
		j.run.Events = append(j.run.Events, e)
	}
}

// key tells facts and ends of steps apart, which are recorded once however
// often a resumed run comes by them; everything else has its own time.
func (e Event) key() string {
	once := fmt.Sprintf("%s\n%d\n%s\n%s\n%v\n%s", e.Step, e.Round, e.State, e.Reason, e.Object, e.Text)
	again := once + "\n" + e.Time.Format(time.RFC3339Nano)
	switch e.State {
	case progress.Happened, progress.Warning, progress.Done:
		if !e.Recurs {
			return once
		}
		return again
	default:
		return again
	}
}

// isLast says whether the event is the last one told again: the engine keeps
// a transition once more when writing it failed.
func (j *Journal) isLast(e Event) bool {
	if !j.spoken {
		return false
	}
	last := j.run.Events[len(j.run.Events)-1]
	last.Time, last.Elapsed = e.Time, e.Elapsed
	return last == e
}

// step brings the state of the update's step up to date.
func (j *Journal) step(u progress.Update, text string) Step {
	s := j.ensureStep(u)
	if !j.begun[s.Name] {
		j.begun[s.Name] = true
		s.Attempts++
	}
	if s.Started.IsZero() {
		s.Started = u.Time.Add(-u.Elapsed)
	}
	s.Took = u.Elapsed
	switch u.State {
	case progress.Done:
		s.State, s.Ended, s.Note = StepDone, u.Time, text
	case progress.Blocked:
		s.State, s.Note = StepBlocked, text
	case progress.Failed:
		s.State, s.Note = StepFailed, text
	case progress.Started, progress.Stalled:
		s.State, s.Note = StepRunning, text
	default:
		s.State = StepRunning
	}
	return *s
}

func (j *Journal) ensureStep(u progress.Update) *Step {
	i := slices.IndexFunc(j.run.Steps, func(s Step) bool { return s.Name == u.Step })
	if i < 0 {
		i, _ = slices.BinarySearchFunc(j.run.Steps, u.Number, func(s Step, n int) int { return s.Number - n })
		j.run.Steps = slices.Insert(j.run.Steps, i, Step{Name: u.Step, Number: u.Number})
	}
	return &j.run.Steps[i]
}

func volumesOf(u progress.Update) []Volume {
	if u.State != progress.Done {
		return nil
	}
	out := make([]Volume, 0, len(u.Amounts))
	for _, a := range u.Amounts {
		out = append(out, Volume{Claim: a.Item, Bytes: a.Done, Step: u.Step})
	}
	return out
}

func (r *Run) setVolumes(volumes []Volume) {
	if len(volumes) == 0 {
		return
	}
	at := make(map[string]int, len(r.Volumes))
	for i, v := range r.Volumes {
		at[v.Claim] = i
	}
	for _, v := range volumes {
		i, ok := at[v.Claim]
		if !ok {
			at[v.Claim] = len(r.Volumes)
			r.Volumes = append(r.Volumes, v)
			continue
		}
		if v.Files == 0 {
			v.Files = r.Volumes[i].Files
		}
		r.Volumes[i] = v
	}
}

// clean makes a text fit to be read by others.
func clean(text string) string {
	return progress.Cut(progress.Redact(text), textLimit)
}

// hideFindings hides secrets in what others have said of the clusters.
func (r *Run) hideFindings() {
	for i := range r.Conditions {
		r.Conditions[i].Message = clean(r.Conditions[i].Message)
	}
	for i := range r.Accepted {
		r.Accepted[i].Why = clean(r.Accepted[i].Why)
	}
}

// hide hides secrets in all that is said in a record, whoever wrote it: an
// older mig may have known fewer of their shapes. The frozen plan stays as it
// is, for its digest.
func (r *Run) hide() {
	r.Message = clean(r.Message)
	for i := range r.Steps {
		r.Steps[i].Note = clean(r.Steps[i].Note)
	}
	for i := range r.Events {
		r.Events[i].Text = clean(r.Events[i].Text)
	}
	for i, c := range r.Changes {
		r.Changes[i].Before, r.Changes[i].After = clean(c.Before), clean(c.After)
	}
	r.hideFindings()
}

// restart makes the run this process's own.
func (r *Run) restart() {
	r.Attempts++
	r.Process = rand.Text()
	r.State, r.Ended, r.Message = Running, time.Time{}, ""
}
