// Package migrate drives a run: it takes the locks, reads from the records how
// to begin, builds the list of steps of a cutover or a rollback, runs it, and
// brings the source up again where a run ends before anything has started on
// the destination. It knows the order of the steps, not what they do, and not
// who watches.
package migrate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/event"
	"github.com/mig-cli/mig/internal/lock"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/preflight"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/record"
	"github.com/mig-cli/mig/internal/step"
	"github.com/mig-cli/mig/internal/version"
)

// Times of a run.
const (
	poll      = 500 * time.Millisecond // between two looks at what is waited for
	patience  = 2 * time.Minute        // with a cluster that does not answer
	lastWords = 20 * time.Second       // to write down the end and give back the locks
)

// Options say what to run and who is told.
type Options struct {
	Kind        Kind
	Plan        plan.Valid
	Text        string // of the plan file, as it is frozen into the record
	Source      cluster.Source
	Destination cluster.Destination
	Sink        progress.Sink
	Stop        <-chan struct{}   // closed: end at the next safe point
	Wait        time.Duration     // how long to queue behind another run's locks; 0: not at all
	SourceOnly  bool              // a rollback brings the source up and leaves the destination, which may be away, alone
	Keep        bool              // a run that fails leaves the clusters as they are
	MaxDowntime time.Duration     // of the source; 0: as the plan says
	Say         func(line string) // what is said beside the steps; never nil
}

// Result is how a run ended.
type Result struct {
	Run     string // its uid
	Record  string // namespace/name of its record
	Kind    Kind
	State   record.State
	Message string
	LeftOut []string      // what the plan covers and the destination lacks
	Took    time.Duration // of the run, all its processes
	// Downtime is how long the source stood still until the destination was
	// ready; 0 where it did not.
	Downtime   time.Duration
	SourceDown bool // the source stands still now
}

// RefusedError is a command that does not fit what happened before.
type RefusedError struct{ Why, Hint string }

func (e *RefusedError) Error() string { return e.Why }

// StoppedError is a run that did not come to its end, with the state that it
// left the clusters in and the commands to go on or back.
type StoppedError struct {
	Err   error
	State string // of the clusters, in a line
	Hint  string
}

func (e *StoppedError) Error() string { return e.Err.Error() + "; " + e.State }

func (e *StoppedError) Unwrap() error { return e.Err }

// Run runs a plan to its end, from wherever an earlier run of it has left off.
// Errors: *RefusedError, *lock.HeldError, *StoppedError, or a cluster's own.
func Run(ctx context.Context, o Options) (Result, error) {
	d := &driver{o: o, owner: naming.Owner{PlanName: o.Plan.Name(), PlanUID: o.Plan.UID()}}
	return d.drive(ctx)
}

// driver is one process at one run.
type driver struct {
	o       Options
	owner   naming.Owner
	who     string
	store   *record.Store
	held    *lock.Held
	journal *record.Journal
	sink    progress.Sink // the caller's, the record's and the Events'
	events  *event.Sink
	watch   *watch
	classes []string // the destination's storage classes as the plan's last run knew them
}

func (d *driver) drive(ctx context.Context) (Result, error) {
	last, err := d.last(ctx)
	if err != nil {
		return Result{}, err
	}
	if err := d.known(ctx); err != nil {
		return Result{}, err
	}
	s := decideStart(d.o.Kind, last)
	d.owner.RunUID = runUID(s, last)
	if err := d.adopt(s, last); err != nil {
		return Result{}, err
	}
	if err := d.ready(ctx, s); err != nil {
		return Result{}, err
	}
	work, release, err := d.lock(ctx)
	if err != nil {
		return Result{}, err
	}
	defer release()
	// Only under the lock is what the record says true for us.
	if last, err = d.last(work); err != nil {
		return Result{}, err
	}
	return d.begin(work, decideStart(d.o.Kind, last), last)
}

// known refuses a plan that bears another's uid. Where the destination is left
// alone only the source is asked, whose last run was read already.
func (d *driver) known(ctx context.Context) error {
	if d.o.SourceOnly {
		return nil
	}
	return KnownUID(ctx, d.o.Source, d.o.Destination, d.o.Plan)
}

// ready checks the plan of a first run before anything is written: a run that
// cannot begin leaves no lease, no record and no Event, least of all on a
// cluster that was meant by mistake. Prepare checks again under the lock.
func (d *driver) ready(ctx context.Context, s start) error {
	if d.o.Kind == Rollback || d.o.Kind == Close || s.way != fresh || s.leftovers {
		return nil
	}
	_, _, conditions, err := d.look(ctx)
	if err != nil {
		return err
	}
	f := findings(slices.DeleteFunc(conditions, preflight.Condition.IsHeld)) // the lock decides, and may wait
	if len(f.Blocking) == 0 {
		return nil
	}
	return &pipeline.BlockedError{Step: step.StepPrepare, Note: step.NotReady(f)}
}

// runUID is the last run's where it goes on, else a new one.
func runUID(s start, last *record.Run) string {
	if s.way == resume || s.way == bringBack {
		return last.UID
	}
	return naming.NewRunUID(rand.Text())
}

// adopt takes the plan as the last run froze it, where that run goes on or is
// taken back: a file that was edited since must not change what it works on.
// How the clusters are reached is the file's: it may be another machine's.
func (d *driver) adopt(s start, last *record.Run) error {
	takesBack := d.o.Kind == Rollback && s.way == fresh
	frozen := record.FrozenPlan(d.owner.PlanName, d.owner.PlanUID, d.o.Text)
	if s.way != resume && !takesBack || last.Plan.YAML == "" || last.Plan.Digest == frozen.Digest {
		return nil
	}
	v, err := thaw(d.o.Kind, []byte(last.Plan.YAML), d.o.Plan)
	if err != nil {
		return &RefusedError{
			Why:  fmt.Sprintf("run %s was begun by mig %s with a plan that this mig does not take: %v", last.UID, last.Version, err),
			Hint: "go on with that mig, or go back with: mig rollback " + d.owner.PlanName,
		}
	}
	d.o.Say("the plan file was changed since this run began; the run goes on with the plan as it was")
	d.o.Plan, d.o.Text = v, last.Plan.YAML
	return nil
}

// thaw reads the plan in a record, with the clusters reached as it is said now.
// What a run does must be understood to the last field, what takes it back not.
func thaw(kind Kind, frozen []byte, now plan.Valid) (plan.Valid, error) {
	const name = "the plan in the run's record"
	if kind == Rollback || kind == Close {
		v, err := plan.Thaw(name, frozen)
		return v.Reached(now), err
	}
	p, err := plan.Parse(name, frozen)
	if err != nil {
		return plan.Valid{}, err
	}
	v, problems := p.Validate()
	if len(problems) > 0 {
		return plan.Valid{}, &plan.LoadError{File: name, Problems: problems}
	}
	return v.Reached(now), nil
}

func (d *driver) newStore() *record.Store {
	s := record.New(d.o.Source, d.o.Destination, d.owner)
	s.DestinationMayBeAway = d.o.SourceOnly
	return s
}

func (d *driver) last(ctx context.Context) (*record.Run, error) {
	d.store = d.newStore()
	last, err := d.store.Latest(ctx)
	if errors.Is(err, record.ErrNoRun) {
		return nil, nil //nolint:nilnil // no run is an answer, not an error
	}
	return last, err
}

func (d *driver) namespaces() []record.Namespace {
	var out []record.Namespace
	for _, ns := range d.o.Plan.SourceNamespaces() {
		out = append(out, record.Namespace{Source: ns, Destination: d.o.Plan.DestinationNamespace(ns)})
	}
	return out
}

func (d *driver) begin(ctx context.Context, s start, last *record.Run) (Result, error) {
	d.owner.RunUID = runUID(s, last)
	d.store = d.newStore()
	switch s.way {
	case refuse:
		return Result{}, &RefusedError{Why: s.why, Hint: s.hint}
	case nothing:
		return Result{Kind: d.o.Kind, Message: s.why}, nil
	case bringBack:
		if err := d.finishEarlier(ctx, last); err != nil {
			return Result{}, err
		}
		return d.begin(ctx, start{way: fresh, leftovers: true}, last)
	default:
		return d.run(ctx, s, last)
	}
}

// finishEarlier brings the source up that an earlier run has left down.
func (d *driver) finishEarlier(ctx context.Context, last *record.Run) error {
	d.o.Say("an earlier run has left the source down: bringing it up first")
	if err := d.open(ctx, resume); err != nil {
		return err
	}
	err := d.bringSourceUp(ctx)
	if err == nil {
		err = d.journal.Finish(ctx, last.State, last.Message)
	}
	d.close(ctx)
	return err
}

// open begins or takes up the record and whoever is told.
func (d *driver) open(ctx context.Context, w way) error {
	r := record.Run{
		UID: d.owner.RunUID, Kind: string(d.o.Kind), Who: d.who, Host: fmt.Sprintf("%s, process %d", hostname(), os.Getpid()),
		Version: version.String(), Started: time.Now(),
		Plan: record.FrozenPlan(d.owner.PlanName, d.owner.PlanUID, d.o.Text),
	}
	r.Plan.Namespaces = d.namespaces()
	var err error
	if w == resume {
		d.journal, err = d.store.Resume(ctx, r)
	} else {
		d.journal, err = d.store.Create(ctx, r)
	}
	if err != nil {
		return err
	}
	recorded := d.journal.Run()
	destination := d.o.Destination
	if d.o.SourceOnly {
		destination = cluster.Destination{} // nobody is told there
	}
	d.events = event.New(ctx, event.Config{
		Owner: d.owner, Source: d.o.Source, Destination: destination,
		Instance: fmt.Sprintf("%s-%d", hostname(), os.Getpid()), Earlier: recorded.Told(), Round: d.journal.Round,
		Trouble: func(side progress.Side, err error) {
			d.o.Say(noEvents(side, d.context(side), err))
		},
	})
	d.sink = progress.Tee(d.o.Sink, d.journal, d.events)
	d.watch = d.newWatch()
	return nil
}

func (d *driver) context(side progress.Side) string {
	if side == progress.OnDestination {
		return d.o.Destination.Access.Context
	}
	return d.o.Source.Access.Context
}

// noEvents says that a cluster takes no Events: not yet, or not from us.
func noEvents(side progress.Side, context string, err error) string {
	where := fmt.Sprintf("the %s (context %s)", side, context)
	switch away := cluster.WhyAway(err); {
	case away != "":
		return fmt.Sprintf("Events wait until %s takes them: %s; the run record holds the same", where, away)
	case cluster.IsDenied(err):
		return fmt.Sprintf("Events cannot be written on %s; the run record holds the same: %v; what to grant says: mig cluster check %s --as %s --print-role",
			where, err, context, side)
	default:
		return fmt.Sprintf("Events cannot be written on %s; the run record holds the same: %s", where, cluster.Plain(err))
	}
}

// close sends what is still to be sent, also after ctx has ended.
func (d *driver) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	if err := d.events.Close(ctx); err != nil {
		d.o.Say("not every Event could be sent; the run record holds them: " + err.Error())
	}
}

func (d *driver) run(ctx context.Context, s start, last *record.Run) (Result, error) {
	if err := d.open(ctx, s.way); err != nil {
		return Result{}, err
	}
	defer d.close(ctx)
	if last != nil {
		d.classes = last.StorageClasses
	}
	leftovers := s.leftovers
	if s.way == resume {
		_, leftovers = last.Step(step.StepDestinationCleaned)
	} else if err := d.supersede(ctx, last); err != nil {
		return Result{}, err
	}
	if err := d.tell(ctx, progress.RunStart, d.started(s.way == resume)); err != nil {
		return Result{}, err
	}
	if last == nil {
		frozen := d.journal.Run().Plan
		if err := d.tell(ctx, progress.Happened, planCreated{Name: frozen.Name, UID: frozen.UID, Digest: frozen.Digest}); err != nil {
			return Result{}, err
		}
	}
	steps := stepsOf(d.rows(leftovers))
	if err := d.announce(ctx, steps); err != nil {
		return Result{}, err
	}
	if err := d.pipeline(ctx, string(d.o.Kind), steps, d.o.Stop).Run(ctx); err != nil {
		return d.broken(ctx, err)
	}
	return d.whole(ctx)
}

// supersede ends the record of a dead run that this one does not go on with: a
// stage that was killed before a cutover.
func (d *driver) supersede(ctx context.Context, last *record.Run) error {
	if last == nil || last.State != record.Running || d.o.Kind == Rollback {
		return nil
	}
	return d.store.End(ctx, last.UID, record.Interrupted, "given up for run "+d.owner.RunUID, d.journal.Run())
}

func (d *driver) rows(leftovers bool) []row {
	h := hooks{
		check: d.check,
		stopping: func(ctx context.Context) error {
			return d.journal.Update(ctx, func(r *record.Run) { r.SourceDown = true })
		},
		starting: func(ctx context.Context) error {
			// The application never runs on both sides.
			if err := step.StillQuiesced(ctx, d.stepRun()); err != nil {
				return err
			}
			return d.journal.Update(ctx, func(r *record.Run) { r.DestinationStarted = true })
		},
		turn:      turn{d},
		overspent: d.overspent,
	}
	switch {
	case d.o.SourceOnly:
		return each("brings the source up as it was", step.RecoverySteps(d.stepRun())...)
	case d.o.Kind == Rollback:
		return rollback(d.stepRun())
	case d.o.Kind == Close:
		return closing(d.stepRun())
	case d.o.Kind == Stage:
		return staging(d.stepRun(), h, leftovers)
	default:
		return cutover(d.stepRun(), h, leftovers)
	}
}

func (d *driver) stepRun() step.Run {
	return step.Run{Owner: d.owner, Plan: d.o.Plan, Source: d.o.Source, Destination: d.o.Destination}
}

func (d *driver) pipeline(ctx context.Context, name string, steps []pipeline.Step, stop <-chan struct{}) pipeline.Pipeline {
	return pipeline.Pipeline{
		Name: name, Steps: d.watch.watched(name, steps), Sink: d.sink, Journal: d.journal, Limits: limits(d.o.Plan), Stop: stop,
		Passing:  func(err error) bool { return d.watch.passes(ctx, err) },
		Patience: patience, Poll: poll,
	}
}

// announce writes down the steps to come, so that whoever reads the record
// sees how far the run is.
func (d *driver) announce(ctx context.Context, steps []pipeline.Step) error {
	return d.journal.Update(ctx, func(r *record.Run) {
		for i, s := range steps {
			if _, ok := r.Step(s.Name()); !ok {
				r.Steps = append(r.Steps, record.Step{Number: i + 1, Name: s.Name()})
			}
		}
	})
}

// look looks at both clusters once.
func (d *driver) look(ctx context.Context) (discover.SourceFacts, discover.DestinationFacts, []preflight.Condition, error) {
	src, dst, err := discover.Look(ctx, d.o.Source, d.o.Destination, d.o.Plan)
	if err != nil {
		return src, dst, nil, err
	}
	return src, dst, preflight.Check(d.o.Plan, src, dst), nil
}

// check looks at both clusters once and says what keeps the plan from running.
func (d *driver) check(ctx context.Context) (step.Findings, error) {
	src, dst, conditions, err := d.look(ctx)
	if err != nil {
		return step.Findings{}, err
	}
	before := d.journal.Run().Conditions
	classes := classesOf(dst.Facts)
	err = d.journal.Update(ctx, func(r *record.Run) {
		r.Conditions, r.Accepted, r.StorageClasses = recorded(conditions), accepted(d.o.Plan), classes
	})
	if err != nil {
		return step.Findings{}, err
	}
	if n, changed := classesChanged(d.classes, classes); changed {
		if err := d.tell(ctx, progress.Happened, n); err != nil {
			return step.Findings{}, err
		}
	}
	if err := d.tellVelero(ctx, src.Facts, dst.Facts); err != nil {
		return step.Findings{}, err
	}
	return findings(conditions), d.tellFindings(ctx, conditions, before)
}

func (d *driver) tell(ctx context.Context, state progress.State, n progress.Note) error {
	u := progress.Update{Time: time.Now(), Run: string(d.o.Kind), State: state, Note: n}
	if err := d.journal.Keep(ctx, u); err != nil {
		return err
	}
	d.sink.Emit(u)
	return nil
}

func (d *driver) started(again bool) progress.Note {
	p := d.o.Plan.Plan()
	return started{
		Again: again, Kind: d.o.Kind, Plan: d.owner.PlanName, Namespaces: len(p.Spec.Namespaces), Volumes: len(d.o.Plan.Copied()),
		From: d.o.Source.Access.Context, To: d.o.Destination.Access.Context, Who: d.who,
	}
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return strings.ToLower(name)
}
