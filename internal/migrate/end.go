package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mig-cli/mig/internal/lock"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/record"
	"github.com/mig-cli/mig/internal/step"
)

// whole ends a run whose every step came to its end.
func (d *driver) whole(ctx context.Context) (Result, error) {
	if d.o.SourceOnly {
		return d.halfBack(ctx)
	}
	state, note := record.Completed, finished{Why: "Completed", Say: d.completedText()}
	if d.o.Kind == Rollback {
		state, note = record.RolledBack, finished{Why: "RolledBack", Say: "the destination holds nothing of the plan's runs any more and the source runs as before"}
		if err := d.endEarlierRuns(ctx); err != nil {
			return Result{}, err
		}
	}
	if d.o.Kind == Close {
		note = finished{Why: "PlanClosed", Say: fmt.Sprintf("plan %s is closed: nothing of its runs is left in the clusters but their records, and what was migrated", d.owner.PlanName)}
	}
	if err := d.journal.Update(ctx, func(r *record.Run) { r.SourceDown = d.o.Kind == Cutover && r.SourceDown }); err != nil {
		return Result{}, err
	}
	if err := d.finish(ctx, state, note); err != nil {
		return Result{}, err
	}
	return d.result(state, note.Say), nil
}

// halfBack ends a rollback of the source alone. The rest of it is still to be
// done, and a later rollback goes on with it.
func (d *driver) halfBack(ctx context.Context) (Result, error) {
	if err := d.journal.Update(ctx, func(r *record.Run) { r.SourceDown = false }); err != nil {
		return Result{}, err
	}
	note := finished{Why: "Interrupted", Say: "the source runs as before; the destination was left alone"}
	if err := d.finish(ctx, record.Interrupted, note); err != nil {
		return Result{}, err
	}
	result := d.result(record.Interrupted, note.Say)
	result.LeftOut = append(result.LeftOut, fmt.Sprintf("what the plan's runs made on the destination (context %s) is still there: when it answers again, run mig rollback %s",
		d.o.Destination.Access.Context, d.owner.PlanName))
	return result, nil
}

func (d *driver) completedText() string {
	r := d.journal.Run()
	if d.o.Kind == Stage {
		return fmt.Sprintf("the volumes of plan %s are staged; the cutover copies what changes from now on", d.owner.PlanName)
	}
	s := fmt.Sprintf("plan %s is on the destination", d.owner.PlanName)
	if n := len(leftOutOf(&r)); n > 0 {
		s = fmt.Sprintf("plan %s is on the destination, but %s left out", d.owner.PlanName, were(n))
	}
	if t := downtime(&r); t > 0 {
		s += fmt.Sprintf("; the application stood still for %s", t.Round(time.Second))
	}
	return s
}

func were(n int) string {
	if n == 1 {
		return "1 thing was"
	}
	return fmt.Sprintf("%d things were", n)
}

// endEarlierRuns says of the runs that this rollback took back that they are.
func (d *driver) endEarlierRuns(ctx context.Context) error {
	runs, err := d.store.List(ctx)
	if err != nil {
		return err
	}
	by := d.journal.Run()
	for _, r := range runs {
		if Kind(r.Kind) == Rollback || r.State == record.RolledBack {
			continue
		}
		if err := d.store.End(ctx, r.UID, record.RolledBack, "taken back by rollback "+d.owner.RunUID, by); err != nil {
			return err
		}
	}
	return nil
}

// broken ends a run that did not come to its end: it brings the source up
// where nothing has started on the destination, and says in what state the
// clusters are.
func (d *driver) broken(ctx context.Context, cause error) (Result, error) {
	if errors.Is(cause, lock.ErrLost) {
		// The clusters are in another's hands: not even the record is ours now.
		return Result{Run: d.owner.RunUID, Kind: d.o.Kind}, &StoppedError{
			Err: cause, State: "another mig may be at this plan now", Hint: "mig status " + d.owner.PlanName,
		}
	}
	if ctx.Err() != nil { // a second Ctrl-C: nothing more is done, only written down
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastWords)
		defer cancel()
		return d.stopped(ctx, cause, d.leftDown())
	}
	if d.o.Kind == Stage && !d.o.Keep {
		return d.abandoned(ctx, cause)
	}
	r := d.journal.Run()
	if d.o.Keep || d.o.Kind != Cutover || !r.SourceDown || d.hasStarted(ctx, r) {
		return d.stopped(ctx, cause, d.leftDown())
	}
	d.o.Say("nothing has started on the destination: bringing the source up again")
	if err := d.bringSourceUp(ctx); err != nil {
		return d.stopped(ctx, errors.Join(cause, err), d.leftDown())
	}
	return d.stopped(ctx, cause, "the source runs again as before")
}

// abandoned ends a stage that did not come to its end, without leaving anything
// of it but what it has copied.
func (d *driver) abandoned(ctx context.Context, cause error) (Result, error) {
	d.o.Say("removing the helpers of the stage")
	if err := d.recover(ctx, step.StageAbandoned(d.stepRun())); err != nil {
		return d.stopped(ctx, errors.Join(cause, err), "the application runs as before; helpers of the stage are left")
	}
	return d.stopped(ctx, cause, "the application runs as before")
}

// hasStarted says whether the application may run on the destination. What the
// record fears is looked at; an answer that cannot be had counts as yes.
func (d *driver) hasStarted(ctx context.Context, r record.Run) bool {
	if !r.DestinationStarted {
		return false
	}
	there, err := d.stepRun().FinalRestoreStarted(ctx)
	if err != nil || there {
		return true
	}
	return d.journal.Update(ctx, func(r *record.Run) { r.DestinationStarted = false }) != nil
}

// bringSourceUp puts the source back as it was before the run, and then stops
// what Velero still does for it.
func (d *driver) bringSourceUp(ctx context.Context) error {
	if err := d.recover(ctx, append(step.RecoverySteps(d.stepRun()), step.VeleroWorkStopped(d.stepRun()))); err != nil {
		return err
	}
	return d.journal.Update(ctx, func(r *record.Run) { r.SourceDown = false })
}

// recover runs steps that put things in order after a run that broke, whatever
// an earlier recovery has done.
func (d *driver) recover(ctx context.Context, steps []pipeline.Step) error {
	names := make([]string, 0, len(steps))
	for _, s := range steps {
		names = append(names, s.Name())
	}
	if err := d.journal.Forget(ctx, names...); err != nil {
		return err
	}
	return d.pipeline(ctx, "recovery", steps, nil).Run(ctx)
}

// leftDown says in a line what the run leaves as it is.
func (d *driver) leftDown() string {
	r := d.journal.Run()
	switch {
	case d.o.Kind == Stage:
		return "the application runs as before; helpers of the stage are left"
	case d.o.Kind == Rollback:
		return "the rollback can be taken up again"
	case d.o.Kind == Close:
		return "the closing can be taken up again"
	case r.DestinationStarted:
		return "the application may run on the destination; the source is down"
	case r.SourceDown:
		return "the source is down"
	default:
		return "the source was not touched"
	}
}

func (d *driver) stopped(ctx context.Context, cause error, clusters string) (Result, error) {
	state, reason := record.Failed, "MigrationFailed"
	var interrupted *pipeline.InterruptedError
	if errors.As(cause, &interrupted) || errors.Is(cause, context.Canceled) {
		state, reason = record.Interrupted, "Interrupted"
	}
	note := finished{Why: reason, Cause: cause, Say: clusters}
	err := &StoppedError{Err: cause, State: clusters, Hint: d.hint()}
	if e := d.finish(ctx, state, note); e != nil {
		err.Err = errors.Join(cause, fmt.Errorf("the run record could not be ended: %w", e))
	}
	return d.result(state, note.Text()), err
}

// hint names the commands to go on and to go back.
func (d *driver) hint() string {
	if d.o.Kind == Close {
		return "go on with: mig plan close " + d.owner.PlanName
	}
	on := fmt.Sprintf("go on with: mig %s %s", d.o.Kind, d.owner.PlanName)
	if d.o.Kind == Rollback || d.o.Kind == Stage {
		return on
	}
	return on + "; go back with: mig rollback " + d.owner.PlanName
}

func (d *driver) finish(ctx context.Context, state record.State, n progress.Note) error {
	if err := d.tell(ctx, progress.RunFinish, n); err != nil {
		return err
	}
	if err := d.journal.Finish(ctx, state, progress.Within(n, messageBytes)); err != nil {
		return err
	}
	if err := d.journal.ReplicaTrouble(); err != nil {
		d.o.Say("the destination's copy of the run record is behind: " + err.Error())
	}
	return nil
}

func (d *driver) result(state record.State, message string) Result {
	r := d.journal.Run()
	return Result{
		Run: d.owner.RunUID, Record: d.o.Source.VeleroNamespace + "/" + d.owner.RunRecord(), Kind: d.o.Kind,
		State: state, Message: message, LeftOut: leftOutOf(&r), Took: r.Ended.Sub(r.Started),
		Downtime: downtime(&r), SourceDown: r.SourceDown,
	}
}

// leftOutOf is what the run's record says was left out, by any of its processes.
func leftOutOf(r *record.Run) []string {
	var out []string
	for _, e := range r.Warnings() {
		if e.Reason == step.ReasonLeftOut {
			out = append(out, e.Text)
		}
	}
	return out
}

// downtime is from the first workload's stop on the source to the last one's
// readiness on the destination.
func downtime(r *record.Run) time.Duration {
	from, ok := r.Step("QuiesceApplications")
	to, there := r.Step("WorkloadsReady")
	if !ok || !there || from.Started.IsZero() || to.Ended.IsZero() {
		return 0
	}
	return to.Ended.Sub(from.Started)
}
