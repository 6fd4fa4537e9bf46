package render

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"

	"github.com/mig-cli/mig/internal/progress"
)

// Bounds of the parts of a frame, in lines and columns.
const (
	fewestSteps   = 5
	fewestVolumes = 3
	fewestEvents  = 3
	mostEvents    = 8
	widestName    = 60
	stepNameWidth = 30
	widestBars    = 120 // wider says no more
)

// palette is how states are told apart: by sign always, by colour where there is any.
type palette struct {
	good, bad, careful, active, faint, strong lipgloss.Style
}

func newPalette(w io.Writer, colour bool) palette {
	profile := termenv.Ascii
	if colour {
		profile = termenv.ANSI // the reader's own sixteen colours
	}
	r := lipgloss.NewRenderer(w, termenv.WithProfile(profile))
	r.SetColorProfile(profile)
	r.SetHasDarkBackground(true) // never ask the terminal: its answer would be read as typed text
	return palette{
		good:    r.NewStyle().Foreground(lipgloss.Color("2")),
		bad:     r.NewStyle().Foreground(lipgloss.Color("1")).Bold(true),
		careful: r.NewStyle().Foreground(lipgloss.Color("3")),
		active:  r.NewStyle().Foreground(lipgloss.Color("6")).Bold(true),
		faint:   r.NewStyle().Faint(true),
		strong:  r.NewStyle().Bold(true),
	}
}

// sign is a state's mark and style.
func (p palette) sign(s progress.State) (string, lipgloss.Style) {
	switch s {
	case progress.Done, progress.Skipped:
		return "✓", p.good
	case progress.Failed:
		return "✗", p.bad
	case progress.Blocked:
		return "■", p.bad
	case progress.Stalled, progress.Warning:
		return "!", p.careful
	case progress.Started, progress.Waiting:
		return "▸", p.active
	case progress.Happened, progress.RunStart:
		return "•", p.faint
	default:
		return "·", p.faint
	}
}

// frame draws the model in at most height lines of at most width columns.
func (m *model) frame(p palette, now time.Time, width, height int) []string {
	rest := height - 1 // the title
	events := min(len(m.events), fewestEvents)
	volumes := min(len(m.volumes), fewestVolumes)
	rest -= block(events) + block(volumes)
	steps := min(len(m.steps), max(rest-1, fewestSteps)) // a blank before them
	rest -= block(steps)
	if more := min(len(m.volumes)-volumes, rest); more > 0 {
		volumes += more
		rest -= more
	}
	if more := min(min(len(m.events), mostEvents)-events, rest); more > 0 {
		events += more
	}
	out := []string{m.titleLine(p, now, min(width, widestBars))}
	out = append(out, section(m.stepLines(p, now, width, steps))...)
	out = append(out, section(m.volumeLines(p, min(width, widestBars), volumes))...)
	out = append(out, section(m.eventLines(p, width, events))...)
	return out[:min(len(out), max(height, 1))]
}

// lastFrame draws all steps and volumes, and the last happenings in full: it
// is what stays on the terminal.
func (m *model) lastFrame(p palette, now time.Time, width int) []string {
	out := []string{m.titleLine(p, now, min(width, widestBars))}
	out = append(out, section(m.stepLines(p, now, width, len(m.steps)))...)
	out = append(out, section(m.volumeLines(p, min(width, widestBars), len(m.volumes)))...)
	var told []string
	for _, e := range m.events[len(m.events)-min(mostEvents, len(m.events)):] {
		told = append(told, m.wrapped(p, e, width)...)
	}
	return append(out, section(told)...)
}

// block is how many lines a section of n takes, with the blank before it.
func block(n int) int {
	if n == 0 {
		return 0
	}
	return n + 1
}

func section(lines []string) []string {
	if len(lines) == 0 {
		return nil
	}
	return append([]string{""}, lines...)
}

func (m *model) titleLine(p palette, now time.Time, width int) string {
	age := Took(now.Sub(m.began))
	title := ansi.Truncate(m.title, width-len(age)-1, "…")
	return p.strong.Render(pad(title, width-len(age))) + age
}

// stepLines shows n lines of the list: all of it, or the part around the
// current step with a word of what is left out. Later steps whose names are
// not known are only counted.
func (m *model) stepLines(p palette, now time.Time, width, n int) []string {
	from, to := window(len(m.steps), m.current, n)
	var out []string
	if from > 0 {
		out = append(out, p.good.Render("✓")+p.faint.Render(fmt.Sprintf(" %d steps done", from)))
	}
	for ; from < to && m.steps[from].name != ""; from++ {
		out = append(out, m.stepLine(p, from, now, width))
	}
	if left := len(m.steps) - from; left > 0 {
		out = append(out, p.faint.Render(fmt.Sprintf("· %d more steps", left)))
	}
	return out
}

// window chooses which of total lines to show in n lines: a line of each end
// goes to saying what is left out there.
func window(total, current, n int) (from, to int) {
	if total <= n {
		return 0, total
	}
	n = max(n-2, 1)
	from = min(max(current-n/2, 0), total-n)
	if from == 1 { // one line would be said in a line
		from = 0
	}
	to = from + n
	if from == 0 {
		to++ // no line is needed above
	}
	if to == total-1 {
		to--
	}
	if to >= total {
		return total - n - 1, total
	}
	return from, to
}

func (m *model) stepLine(p palette, i int, now time.Time, width int) string {
	s := m.steps[i]
	mark, style := p.sign(s.state)
	nameWidth := min(stepNameWidth, max(width/2, 10))
	head := fmt.Sprintf("%2d %s", i+1, pad(ansi.Truncate(s.name, nameWidth, "…"), nameWidth))
	elapsed := s.elapsed
	if s.state == progress.Started || s.state == progress.Waiting || s.state == progress.Stalled {
		elapsed = now.Sub(s.since)
	}
	if s.state == "" {
		return style.Render(ansi.Truncate(mark+" "+strings.TrimRight(head, " "), width, "…"))
	}
	age := Took(elapsed)
	if s.state == progress.Skipped {
		age = "-"
	}
	tail := ansi.Truncate(fmt.Sprintf(" %5s  %s", age, s.note), max(width-ansi.StringWidth(head)-2, 0), "…")
	if i == m.current {
		return style.Render(mark+" "+head) + tail
	}
	return style.Render(mark) + " " + head + p.faint.Render(tail)
}

func (m *model) volumeLines(p palette, width, n int) []string {
	shown, hidden := m.volumes, 0
	if len(shown) > n && n > 0 {
		shown = busiest(shown, n-1)
		hidden = len(m.volumes) - len(shown)
	}
	nameWidth := 0
	for _, v := range shown {
		nameWidth = max(nameWidth, ansi.StringWidth(v.item))
	}
	nameWidth = min(nameWidth, widestName, width*2/5)
	var out []string
	for _, v := range shown {
		out = append(out, v.line(nameWidth, width))
	}
	if hidden > 0 {
		out = append(out, p.faint.Render(ansi.Truncate(fmt.Sprintf("… %d more: %s in all", hidden, m.volumesText()), width, "…")))
	}
	return out
}

// busiest takes n volumes, those on their way first, then those that wait,
// then those that are complete.
func busiest(all []*volume, n int) []*volume {
	var out []*volume
	for _, want := range []func(*volume) bool{
		func(v *volume) bool { return v.done > 0 && !v.complete() },
		func(v *volume) bool { return v.done == 0 && !v.complete() },
		func(v *volume) bool { return v.complete() },
	} {
		for _, v := range all {
			if want(v) && len(out) < n {
				out = append(out, v)
			}
		}
	}
	return out
}

func (m *model) volumesText() string {
	amounts := make([]progress.Amount, 0, len(m.volumes))
	for _, v := range m.volumes {
		amounts = append(amounts, progress.Amount{Item: v.item, Done: v.done, Total: v.total})
	}
	return amountsText(amounts)
}

func (m *model) eventLines(p palette, width, n int) []string {
	var out []string
	for _, e := range m.events[len(m.events)-min(n, len(m.events)):] {
		out = append(out, p.event(e)+ansi.Truncate(e.text, max(width-eventHead, 0), "…"))
	}
	return out
}

// wrapped is an event on as many lines as it takes.
func (m *model) wrapped(p palette, e event, width int) []string {
	lines := wrap(e.text, max(width-eventHead, 1))
	for i, l := range lines {
		if i == 0 {
			lines[i] = p.event(e) + l
		} else {
			lines[i] = strings.Repeat(" ", eventHead) + l
		}
	}
	return lines
}

// eventHead is the width of an event's clock and sign.
const eventHead = len(clock) + 3

func (p palette) event(e event) string {
	mark, style := p.sign(e.state)
	return p.faint.Render(e.at.Format(clock)) + " " + style.Render(mark) + " "
}
