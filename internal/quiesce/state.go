package quiesce

import "github.com/mig-cli/mig/internal/naming"

// State is where a workload stands between running and stopped.
type State int

// The states.
const (
	// Running: it asks for pods, and must be stopped.
	Running State = iota + 1
	// Idle: it asks for none, by its user's will. It is neither stopped nor
	// brought back.
	Idle
	// Protected: its claims will outlive the scaling once its controller has
	// seen the patch; then it is stopped.
	Protected
	// Stopped: by this plan, with what was there before written on it.
	Stopped
	// Risen: this run stopped it, and somebody brought it back since.
	Risen
	// Ending: a Job that runs to its end.
	Ending
	// Dependent: its owner decides.
	Dependent
)

// The values of naming.AnnQuiesceState.
const (
	markProtected = "protected"
	markStopped   = "stopped"
	markStarting  = "starting"
)

// StateOf reads a workload. A workload that an earlier run of the plan stopped
// and a person brought back is simply running; one that this very run stopped
// has risen against it.
func StateOf(w Workload, o naming.Owner) State {
	switch {
	case w.means() == 0 || w.dependent():
		return Dependent
	case !w.asks():
		return w.idle(o)
	case w.means() == byItself:
		return Ending
	case !w.ours(o):
		return Running
	case w.mark() == markProtected && w.whenScaled() == retain:
		return Protected
	case w.mark() == markStopped && w.GetAnnotations()[naming.AnnQuiesceRun] == o.RunUID:
		return Risen
	default:
		return Running
	}
}

func (w Workload) idle(o naming.Owner) State {
	if w.ours(o) && w.mark() == markStopped {
		return Stopped
	}
	return Idle
}

// ours says whether this plan's marks are on the workload. Marks that a live
// mig-controller or another plan has put there are not.
func (w Workload) ours(o naming.Owner) bool {
	return w.mark() != "" && w.GetAnnotations()[naming.AnnQuiescePlan] == o.PlanUID
}

func (w Workload) mark() string { return w.GetAnnotations()[naming.AnnQuiesceState] }

// Marked says whether there is something to bring back or to tidy up on the
// workload: this plan stopped it, or began to.
func Marked(w Workload, o naming.Owner) bool {
	return w.ours(o) && !w.dependent() && w.mark() != markStarting
}

// Starting says whether the plan has brought it back, and nobody has yet seen
// it as ready as it was before.
func Starting(w Workload, o naming.Owner) bool {
	return w.ours(o) && !w.dependent() && w.mark() == markStarting
}

// ReadyAgain says whether a workload that was brought back is as ready as it
// was before. Who asks for fewer pods since is ready with those.
func ReadyAgain(w Workload, o naming.Owner) bool {
	now := w.Readiness()
	return w.Observed() && now.Ready >= min(w.Before(o).Ready, now.Wanted)
}
