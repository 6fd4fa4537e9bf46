package render

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mig-cli/mig/internal/progress"
)

// firstHeartbeat is when a step that waits is first heard of, so that a reader
// knows what it does; then it is heard of seldom, so that a log stays short.
const firstHeartbeat = 5 * time.Second

// LinesOptions say how plain lines are written.
type LinesOptions struct {
	Heartbeat time.Duration // between two words of a step that waits; 0: none
	Groups    Groups        // how a CI folds a step's lines
}

// Lines shows a run as plain lines: one for each transition and a heartbeat
// while a step waits. They hold no control characters but those of GitLab's
// groups, where they were asked for.
type Lines struct {
	o     LinesOptions
	mu    sync.Mutex
	w     io.Writer
	open  group           // zero: none is
	folds int             // groups so far
	run   string          // the kind of the run
	last  progress.Update // of the step that is under way; its Note is nil between steps
	from  time.Time       // when that step was first heard of
	beat  *time.Timer
}

// NewLines starts a view that writes to w.
func NewLines(w io.Writer, o LinesOptions) *Lines { return &Lines{w: w, o: o} }

// Emit writes the update's line, if it has one.
func (l *Lines) Emit(u progress.Update) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch u.State {
	case progress.Started, progress.Waiting:
		l.wait(u)
		return
	case progress.RunFinish: // the command's own last words say it
		l.rest()
		return
	case progress.Done, progress.Skipped, progress.Blocked, progress.Failed:
		l.rest()
	}
	if l.o.Groups == "" {
		l.print(u.Time, l.within(u)+line(u))
		return
	}
	l.inGroup(u)
}

// within names a run within the run, such as the recovery after a failure.
func (l *Lines) within(u progress.Update) string {
	if l.run == "" {
		l.run = u.Run
	}
	if u.Step == "" || u.Run == l.run {
		return ""
	}
	return u.Run + " "
}

// Say writes a line of its own.
func (l *Lines) Say(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.print(time.Now(), text)
}

// Close ends the heartbeats.
func (l *Lines) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest()
	l.unfold(time.Now())
}

// wait keeps what is waited for, and sees that it is told after a while.
func (l *Lines) wait(u progress.Update) {
	if l.last.Note == nil {
		l.from = u.Time
		if l.o.Heartbeat > 0 {
			l.beat = time.AfterFunc(min(firstHeartbeat, l.o.Heartbeat), l.tick)
		}
	}
	l.last = u
}

func (l *Lines) rest() {
	if l.beat != nil {
		l.beat.Stop()
		l.beat = nil
	}
	l.last = progress.Update{}
}

func (l *Lines) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.beat == nil {
		return // the step ended while the timer fired
	}
	now := time.Now()
	l.fold(l.last, now)
	l.print(now, l.within(l.last)+waitingLine(l.last, now.Sub(l.from)))
	l.beat.Reset(l.o.Heartbeat)
}

func (l *Lines) print(t time.Time, text string) {
	// A log that cannot be written must not stop a run that moves data.
	_, _ = fmt.Fprintf(l.w, "%s %s\n", t.Format(clock), text)
}

// line is an update in one plain line, without its time.
func line(u progress.Update) string {
	if u.Step == "" {
		return runLine(u)
	}
	head := fmt.Sprintf("[%d/%d] %s: ", u.Number, u.Of, u.Step)
	text := about(u.Step, u.Note)
	switch u.State {
	case progress.Done:
		return head + "done in " + Took(u.Elapsed) + ": " + said(u.Note)
	case progress.Skipped:
		return head + said(u.Note)
	case progress.Blocked:
		return head + "blocked: " + said(u.Note)
	case progress.Failed:
		return head + "failed after " + Took(u.Elapsed) + ": " + said(u.Note)
	case progress.Stalled:
		return head + "nothing has moved for a while, still waiting after " + Took(u.Elapsed) + ": " + said(u.Note)
	case progress.Warning:
		return head + "warning: " + text
	default:
		return head + text
	}
}

// runLine is of the run as a whole: its text names it.
func runLine(u progress.Update) string {
	if u.State == progress.Warning {
		return "warning: " + about("", u.Note)
	}
	return said(u.Note)
}

func waitingLine(u progress.Update, since time.Duration) string {
	text := fmt.Sprintf("[%d/%d] %s: after %s: %s", u.Number, u.Of, u.Step, Took(since), said(u.Note))
	if far := amountsText(u.Amounts); far != "" {
		text += " (" + far + ")"
	}
	return text
}
