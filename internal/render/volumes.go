package render

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/schollz/progressbar/v3"

	"github.com/mig-cli/mig/internal/progress"
)

// narrowest is the width of a bar below which it says nothing.
const narrowest = 5

// volume is the line of one volume: its name and a bar.
type volume struct {
	item  string
	since time.Time // begun: its total is known
	until time.Time // complete
	done  int64     // never goes back
	total int64
	bar   *progressbar.ProgressBar // nil until the total is known
	moved bool                     // seen moving: a rate can be told
}

// update takes a new amount.
func (v *volume) update(a progress.Amount, at time.Time) {
	if a.Total > 0 && a.Total != v.total { // a copier still counts
		if v.total == 0 {
			v.since = at
		}
		v.total, v.bar = a.Total, nil
	}
	if v.done = max(a.Done, v.done); v.total == 0 {
		return
	}
	v.done = min(v.done, v.total)
	if v.done == v.total && v.until.IsZero() {
		v.until = at
	}
	if v.bar == nil {
		v.bar, v.moved = newBar(v.total), false
		_ = v.bar.Set64(v.done) // its writer cannot fail
		return
	}
	if by := v.done - int64(v.bar.State().CurrentBytes); by > 0 {
		v.moved = true
		_ = v.bar.Add64(by)
	}
}

func (v *volume) complete() bool { return v.total > 0 && v.done == v.total }

func newBar(total int64) *progressbar.ProgressBar {
	return progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(io.Discard),
		progressbar.OptionUseIECUnits(true),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetTheme(progressbar.Theme{Saucer: "█", SaucerPadding: "░"}),
	)
}

// line is the volume's line, width columns where that is enough, with its name
// in the first nameWidth.
func (v *volume) line(nameWidth, width int) string {
	name := pad(shortenMiddle(v.item, nameWidth), nameWidth)
	room := width - nameWidth
	switch {
	case v.total == 0 && v.done == 0:
		name += "  waits for its turn"
	case v.total == 0:
		name += "  " + Size(v.done) + " so far"
	case v.complete():
		tail := " " + Size(v.total)
		if took := v.until.Sub(v.since); took > 0 { // how long one took that was complete when first seen is not known
			tail += " in " + Took(took)
		}
		name += v.full(room-len(tail)) + tail
	case !v.moved:
		// A rate since the first look would be that of an earlier process.
		tail := fmt.Sprintf(" %s of %s", Size(v.done), Size(v.total))
		name += draw(v.bar, room-len(tail)) + tail
	default:
		progressbar.OptionShowCount()(v.bar)
		progressbar.OptionShowBytes(true)(v.bar)
		progressbar.OptionSetPredictTime(true)(v.bar)
		name += draw(v.bar, room)
	}
	return ansi.Truncate(name, width, "…")
}

// full is the bar of a complete volume. A finished progressbar is never drawn
// again, so another takes its place when the terminal changes its width.
func (v *volume) full(room int) string {
	almost := newBar(v.total)
	_ = almost.Set64(v.total - 1) // its writer cannot fail
	beside := ansi.StringWidth(drawn(almost, narrowest)) - narrowest
	last := newBar(v.total)
	progressbar.OptionSetWidth(max(room-beside-1, narrowest))(last) // 100 % is a column wider than 99 %
	_ = last.Set64(v.total)
	return text(last)
}

// draw renders a bar so that all of it takes room columns: once to see what
// stands beside the bar, and again with what is left for it.
func draw(bar *progressbar.ProgressBar, room int) string {
	beside := ansi.StringWidth(drawn(bar, narrowest)) - narrowest
	return drawn(bar, max(room-beside, narrowest))
}

func drawn(bar *progressbar.ProgressBar, width int) string {
	progressbar.OptionSetWidth(width)(bar)
	_ = bar.RenderBlank() // its writer cannot fail
	return text(bar)
}

func text(bar *progressbar.ProgressBar) string {
	return strings.TrimRight(strings.TrimPrefix(bar.String(), "\r"), " ")
}

// pad fills a text with blanks to a width in columns.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(width-ansi.StringWidth(s), 0))
}

// shortenMiddle keeps both ends of a name: claims differ at either.
func shortenMiddle(s string, width int) string {
	w := ansi.StringWidth(s)
	if w <= width || width < 3 {
		return s
	}
	head := (width - 1) / 2
	return ansi.Truncate(s, head, "") + ansi.TruncateLeft(s, w-(width-1-head), "…")
}
