package render

import (
	"fmt"
	"time"

	"github.com/mig-cli/mig/internal/progress"
)

// keptEvents is how many of the last happenings the live view holds.
const keptEvents = 50

// model is what the live view knows of a run, apart from how it is drawn.
type model struct {
	title   string
	run     string // the kind of the run whose steps are listed
	began   time.Time
	steps   []step // those of the run, in order; the names of later ones may not be known
	current int    // index of the step under way; -1 before the first
	volumes []*volume
	of      string // the step that the volumes belong to
	events  []event
}

// step is a line of the list of steps.
type step struct {
	name    string
	state   progress.State // empty: not begun
	since   time.Time
	elapsed time.Duration
	note    string
}

// event is a happening as it is shown.
type event struct {
	at    time.Time
	state progress.State
	text  string
}

func newModel(title string, names []string, now time.Time) *model {
	m := &model{title: title, began: now, current: -1}
	m.announce(names)
	return m
}

// apply takes an update in.
func (m *model) apply(u progress.Update) {
	if u.Number > 0 {
		m.follow(u.Run)
		m.applyStep(u)
	}
	if len(u.Amounts) > 0 {
		m.applyAmounts(u)
	}
	switch u.State {
	case progress.Happened, progress.Warning, progress.Stalled, progress.Blocked, progress.Failed, progress.RunStart:
		m.happened(u)
	}
}

// follow begins a new list of steps where another run begins within this one,
// such as the recovery after a failure.
func (m *model) follow(run string) {
	if m.run != "" && m.run != run {
		m.title += ", " + run
		m.steps, m.volumes, m.current = nil, nil, -1
	}
	m.run = run
}

// announce says what the steps of the run are called.
func (m *model) announce(names []string) {
	for i, n := range names {
		if i == len(m.steps) {
			m.steps = append(m.steps, step{})
		}
		m.steps[i].name = n
	}
}

func (m *model) applyStep(u progress.Update) {
	for len(m.steps) < max(u.Of, u.Number) {
		m.steps = append(m.steps, step{})
	}
	i := u.Number - 1
	s := &m.steps[i]
	s.name = u.Step
	m.current = i
	switch u.State {
	case progress.Happened, progress.Warning:
		if s.state == "" { // a step can tell a fact before it starts to wait
			s.state, s.since = progress.Started, u.Time
		}
		return
	case progress.Started, progress.Waiting, progress.Stalled:
		if s.since.IsZero() {
			s.since = u.Time
		}
	}
	s.state, s.elapsed, s.note = u.State, u.Elapsed, said(u.Note)
}

// applyAmounts shows the volumes of the last step that told of any: they stay
// to be seen while the next steps do their work.
func (m *model) applyAmounts(u progress.Update) {
	if m.of != u.Step {
		m.of, m.volumes = u.Step, nil
	}
	for _, a := range u.Amounts {
		m.volume(a.Item).update(a, u.Time)
	}
}

func (m *model) volume(item string) *volume {
	for _, v := range m.volumes {
		if v.item == item {
			return v
		}
	}
	v := &volume{item: item}
	m.volumes = append(m.volumes, v)
	return v
}

func (m *model) happened(u progress.Update) {
	text := about(u.Step, u.Note)
	if u.State == progress.Stalled {
		text = u.Step + ": nothing has moved for a while: " + said(u.Note)
	}
	if side := u.Note.Regarding().Side; side != "" {
		text = fmt.Sprintf("%s: %s", side, text)
	}
	m.tell(event{at: u.Time, state: u.State, text: text})
}

func (m *model) tell(e event) {
	m.events = append(m.events, e)
	if extra := len(m.events) - keptEvents; extra > 0 {
		m.events = m.events[extra:]
	}
}
