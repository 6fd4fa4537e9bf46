package render

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/mig-cli/mig/internal/progress"
)

// redraw is how often the live view is drawn while nothing happens: clocks go on.
const redraw = 250 * time.Millisecond

// BarsOptions say where and how the live view is drawn.
type BarsOptions struct {
	Writer io.Writer
	Size   func() (width, height int) // of the terminal, now
	Colour bool
	Title  string
}

// Bars is the live view of a run on a terminal: the steps, a bar for each
// volume, the last happenings. One goroutine owns the terminal.
type Bars struct {
	o       BarsOptions
	p       palette
	changed chan struct{}
	done    chan struct{}
	closing sync.Once
	stopped chan struct{}

	mu sync.Mutex
	m  *model

	drawn []int // widths of the lines on the terminal, the owner's alone
}

// NewBars starts the live view.
func NewBars(o BarsOptions) *Bars {
	b := &Bars{
		o: o, p: newPalette(o.Writer, o.Colour), m: newModel(o.Title, nil, time.Now()),
		changed: make(chan struct{}, 1), done: make(chan struct{}), stopped: make(chan struct{}),
	}
	go b.own()
	return b
}

// Emit takes an update to be drawn soon.
func (b *Bars) Emit(u progress.Update) {
	b.mu.Lock()
	b.m.apply(u)
	b.mu.Unlock()
	b.wake()
}

// Say shows a sentence among the happenings.
func (b *Bars) Say(text string) {
	b.mu.Lock()
	b.m.tell(event{at: time.Now(), state: progress.Warning, text: text})
	b.mu.Unlock()
	b.wake()
}

// Announce shows what the steps of the run are called, before they begin.
func (b *Bars) Announce(names []string) {
	b.mu.Lock()
	b.m.announce(names)
	b.mu.Unlock()
	b.wake()
}

// Close draws the end for good, all steps and volumes of it, and leaves the
// cursor below.
func (b *Bars) Close() {
	b.closing.Do(func() { close(b.done) })
	<-b.stopped
}

func (b *Bars) wake() {
	select {
	case b.changed <- struct{}{}:
	default: // it will be drawn anyway
	}
}

// own draws until the view is closed.
func (b *Bars) own() {
	defer close(b.stopped)
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	b.write(hideCursor)
	for {
		select {
		case <-b.done:
			w, _ := b.o.Size()
			b.draw(w, func(now time.Time) []string { return b.m.lastFrame(b.p, now, w) })
			b.write(showCursor)
			return
		case <-b.changed:
		case <-tick.C:
		}
		w, h := b.o.Size()
		b.draw(w, func(now time.Time) []string { return b.m.frame(b.p, now, w, h-1) }) // the cursor's line stays free
	}
}

// What a terminal is told, by ECMA-48.
const (
	hideCursor   = "\x1b[?25l"
	showCursor   = "\x1b[?25h"
	clearBelow   = "\x1b[J"
	clearToRight = "\x1b[K"
	cursorUp     = "\x1b[%dA"
)

// draw puts a frame over the last one.
func (b *Bars) draw(width int, frame func(now time.Time) []string) {
	b.mu.Lock()
	lines := frame(time.Now())
	b.mu.Unlock()
	var out strings.Builder
	if up := b.rows(width); up > 0 {
		fmt.Fprintf(&out, "\r"+cursorUp, up)
	}
	b.drawn = b.drawn[:0]
	for _, l := range lines {
		out.WriteString(clearToRight + l + "\r\n") // cleared first: behind a full line it would eat the last column
		b.drawn = append(b.drawn, ansi.StringWidth(l))
	}
	out.WriteString(clearBelow)
	b.write(out.String())
}

// rows is how many rows the last frame takes now: a terminal that was made
// narrower has wrapped its lines.
func (b *Bars) rows(width int) int {
	n := 0
	for _, w := range b.drawn {
		n += max((w+width-1)/max(width, 1), 1)
	}
	return n
}

func (b *Bars) write(s string) {
	_, _ = io.WriteString(b.o.Writer, s) // a terminal that went away must not stop a run that moves data
}
