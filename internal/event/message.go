package event

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mig-cli/mig/internal/progress"
)

// Limits of events.k8s.io/v1, in bytes.
const (
	noteLimit     = 1024
	nameLimit     = 128 // of reason and action
	instanceLimit = 128
)

// message is what one update says, before it is said of a cluster's objects.
type message struct {
	kind   string // corev1.EventTypeNormal or corev1.EventTypeWarning
	reason string
	action string
	note   string
	step   string
	object progress.Ref // the zero Ref: the run itself
	about  bool         // the object is what it regards; else it is what the run's record is related to
	ends   bool         // it is about the run as a whole
	again  bool         // told again in the same words it is the same Event, counted
}

func messageOf(u progress.Update) message {
	object := u.Note.Regarding()
	return message{
		kind: kindOf(u), reason: clamp(reasonOf(u), nameLimit), action: clamp(cmp.Or(u.Step, u.Run, "run"), nameLimit),
		note: noteOf(u), step: u.Step, object: object,
		about: object.Side != "" && object.Name != "" && (u.State == progress.Happened || u.State == progress.Warning) && !u.Recurs,
		again: u.Repeats(),
		ends:  u.State == progress.RunStart || u.State == progress.RunFinish,
	}
}

// reasonOf is the name that the happening is known by: a step's end has the
// step's own, whatever it found.
func reasonOf(u progress.Update) string {
	own := cmp.Or(u.Note.Reason(), u.Step, "Progress")
	if u.Step == "" {
		return own
	}
	switch u.State {
	case progress.Done:
		return u.Step
	case progress.Failed:
		return u.Step + "Failed"
	case progress.Stalled:
		return u.Step + "TakingTooLong"
	case progress.Blocked:
		return u.Step + "Blocked"
	default:
		return own
	}
}

// kindOf says whether a person should look.
func kindOf(u progress.Update) string {
	switch u.State {
	case progress.Warning, progress.Stalled, progress.Blocked, progress.Failed:
		return corev1.EventTypeWarning
	case progress.RunFinish:
		switch u.Note.Reason() {
		case "Completed", "RolledBack", "Cancelled", "PlanClosed":
			return corev1.EventTypeNormal
		}
		return corev1.EventTypeWarning
	default:
		return corev1.EventTypeNormal
	}
}

// noteOf is the text. Only what the note itself says can be cut: the numbers
// before it are short.
func noteOf(u progress.Update) string {
	before := prefix(u)
	rest := noteLimit - len(before)
	text := strings.Join(strings.Fields(progress.Redact(progress.Within(u.Note, rest))), " ")
	return before + progress.Cut(text, rest)
}

func prefix(u progress.Update) string {
	if u.Step == "" {
		return ""
	}
	where, took := fmt.Sprintf("Step %d of %d", u.Number, u.Of), short(u.Elapsed)
	switch u.State {
	case progress.Done:
		return fmt.Sprintf("%s completed in %s: ", where, took)
	case progress.Failed:
		return fmt.Sprintf("%s failed after %s: ", where, took)
	case progress.Stalled:
		return fmt.Sprintf("%s is taking too long, %s so far: ", where, took)
	case progress.Blocked:
		return fmt.Sprintf("%s is blocked, a person must decide: ", where)
	default:
		return ""
	}
}

func short(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// tells is what makes the message another than the run's others of its reason.
// Facts and ends of steps are the same however often a resumed run comes by
// them, until the step is taken back and done in another round, and so is what
// is counted when it happens again; what else may truly happen again has its time.
func tells(u progress.Update, m message, round int) []string {
	object := ""
	if m.about {
		object = fmt.Sprintf("%s/%s/%s/%s", m.object.Side, m.object.Kind, m.object.Namespace, m.object.Name)
	}
	switch u.State {
	case progress.Done, progress.Happened, progress.Warning, progress.Stalled:
		return []string{u.Step, object, fmt.Sprintf("round %d", round)}
	case progress.RunStart, progress.RunFinish:
		switch m.reason {
		case "Started", "Completed", "RolledBack": // once in a run's life
			return nil
		}
	}
	return []string{u.Step, object, fmt.Sprint(u.Time.UnixMicro())}
}

func clamp(s string, limit int) string { return s[:min(len(s), limit)] }
