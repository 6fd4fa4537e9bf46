package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/mig-cli/mig/internal/progress"
)

// Groups is whose marks fold lines in the log of a CI job.
type Groups string

// The CIs whose marks are known.
const (
	GroupsGitHub Groups = "github"
	GroupsGitLab Groups = "gitlab"
)

// group is a folded part of a log: what a step says before its end. The end
// itself stays in sight.
type group struct {
	step string // with its run
	name string // of letters, digits and _, never twice in a log
}

// inGroup writes an update's line within its step's group, or below it.
func (l *Lines) inGroup(u progress.Update) {
	text := l.within(u) + line(u)
	switch {
	case u.State == progress.Happened && u.Step != "":
		l.fold(u, u.Time)
		l.print(u.Time, text)
		return
	case isLook(u.State): // what a person should look at is not folded away
		l.unfold(u.Time)
		if l.o.Groups == GroupsGitHub {
			l.annotate(u, text)
			return
		}
	case u.Step == "" || u.State == progress.Done || u.State == progress.Skipped:
		l.unfold(u.Time)
	}
	l.print(u.Time, text)
}

func isLook(s progress.State) bool {
	switch s {
	case progress.Warning, progress.Stalled, progress.Blocked, progress.Failed:
		return true
	default:
		return false
	}
}

// fold opens the group of the update's step, where it is not open.
func (l *Lines) fold(u progress.Update, now time.Time) {
	step := u.Run + "_" + u.Step
	if l.o.Groups == "" || l.open.step == step {
		return
	}
	l.unfold(now)
	l.folds++
	l.open = group{step: step, name: fmt.Sprintf("%s_%d", step, l.folds)}
	title := fmt.Sprintf("[%d/%d] %s", u.Number, u.Of, u.Step)
	if l.o.Groups == GroupsGitHub {
		_, _ = fmt.Fprintf(l.w, "::group::%s\n", escaped(title))
		return
	}
	_, _ = fmt.Fprintf(l.w, "\x1b[0Ksection_start:%d:%s[collapsed=true]\r\x1b[0K%s\n", now.Unix(), l.open.name, title)
}

// unfold closes the group that is open.
func (l *Lines) unfold(now time.Time) {
	switch {
	case l.open == group{}:
		return
	case l.o.Groups == GroupsGitHub:
		_, _ = fmt.Fprintln(l.w, "::endgroup::")
	default:
		_, _ = fmt.Fprintf(l.w, "\x1b[0Ksection_end:%d:%s\r\x1b[0K\n", now.Unix(), l.open.name)
	}
	l.open = group{}
}

// annotate writes a line that GitHub also shows on the page of the run.
func (l *Lines) annotate(u progress.Update, text string) {
	kind := "warning"
	if u.State == progress.Blocked || u.State == progress.Failed {
		kind = "error"
	}
	title := "mig " + u.Run
	if u.Step != "" {
		title += ": " + u.Step
	}
	_, _ = fmt.Fprintf(l.w, "::%s title=%s::%s %s\n", kind, property(title), u.Time.Format(clock), escaped(text))
}

// escaped is a text that ends no command of GitHub's log and begins none.
func escaped(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// property is escaped, for what stands between commas.
func property(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(escaped(s))
}
