// Package event tells a run's transitions as Kubernetes Events on both
// clusters, so that whoever looks with kubectl at a claim, a workload or the
// run's record reads what was done to it. It knows neither steps nor Velero.
//
// Events are created directly, not through client-go's broadcaster: a run
// sends few, must not lose the last one at its exit, and must not say twice
// what a process that died has said; their names see to that.
package event

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/progress"
)

// Controller is the reportingController of mig's Events.
const Controller = "mig"

// queueLength bounds what waits to be sent to one cluster, for example while
// it does not answer.
const queueLength = 1 << 14

// What an earlier process wrote into the record in its last moments may not
// have been sent: it is sent again, unless Events of that time are gone anyway.
const (
	lastMoments = 5 * time.Minute // longer than a run waits for a cluster that is away
	tooOld      = 30 * time.Minute
)

// Config says for whom a sink speaks, and where.
type Config struct {
	Owner       naming.Owner
	Source      cluster.Source
	Destination cluster.Destination
	// Instance is the reportingInstance: host and process.
	Instance string
	// Earlier is what earlier processes of this run have told, from the run's
	// record. Of it nothing is told twice, and what may not have been sent is.
	Earlier []progress.Update
	// Round says how often a step was done and taken back; nil: never.
	Round func(step string) int
	// Trouble is told, once a cluster, why Events cannot be sent there. It is
	// called from other goroutines. nil: nobody.
	Trouble func(progress.Side, error)
}

// Sink is a progress.Sink that sends Events. Emit never waits.
type Sink struct {
	cfg    Config
	cancel context.CancelFunc
	lines  map[progress.Side]*line

	mu     sync.Mutex
	closed bool
	last   time.Time           // eventTime of the last one; every next one is later
	said   map[string][]string // texts by what tells messages apart, without their number
	times  map[string]int32    // how often an Event was told, by its name; of those that are counted
}

// New starts a sink. The context's values are used, not its end: what a run
// says of its end must be sent too. Close ends it.
func New(ctx context.Context, cfg Config) *Sink {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Sink{cfg: cfg, cancel: cancel, lines: map[progress.Side]*line{}, said: map[string][]string{}, times: map[string]int32{}}
	s.open(ctx, progress.OnSource, cfg.Source.Cluster)
	s.open(ctx, progress.OnDestination, cfg.Destination.Cluster)
	s.catchUp()
	return s
}

func (s *Sink) open(ctx context.Context, side progress.Side, c *cluster.Cluster) {
	if c == nil {
		return
	}
	l := newLine(c, s.cfg.Owner, func(err error) {
		if s.cfg.Trouble != nil {
			s.cfg.Trouble(side, err)
		}
	})
	s.lines[side] = l
	go l.work(ctx)
}

// catchUp remembers what was told before, and sends again its last moments.
func (s *Sink) catchUp() {
	earlier := slices.Clone(s.cfg.Earlier)
	if len(earlier) == 0 {
		return
	}
	slices.SortStableFunc(earlier, func(a, b progress.Update) int { return a.Time.Compare(b.Time) })
	end := earlier[len(earlier)-1].Time
	for _, u := range earlier {
		s.emit(u, end.Sub(u.Time) <= lastMoments && time.Since(u.Time) <= tooOld)
	}
}

// Emit queues an Event where the update is a transition.
func (s *Sink) Emit(u progress.Update) { s.emit(u, true) }

func (s *Sink) emit(u progress.Update, send bool) {
	if !u.State.Transition() || u.Note == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := messageOf(u)
	name := s.name(u, m)
	at := s.tick(u.Time)
	times := int32(1)
	if m.again {
		s.times[name]++
		times = s.times[name]
	}
	if !send || s.closed {
		return
	}
	for side, l := range s.lines {
		if m.about && m.object.Side != side {
			continue
		}
		l.add(s.build(side, m, name, at, times))
	}
}

// name is the Event's name. A fact that is told with another text is another:
// those are numbered.
func (s *Sink) name(u progress.Update, m message) string {
	round := 0
	if s.cfg.Round != nil && u.Step != "" {
		round = s.cfg.Round(u.Step)
	}
	apart := tells(u, m, round)
	base := s.cfg.Owner.Event(m.reason, apart...)
	text := u.Note.Text()
	n := slices.Index(s.said[base], text)
	if n < 0 {
		n = len(s.said[base])
		s.said[base] = append(s.said[base], text)
	}
	if n == 0 {
		return base
	}
	return s.cfg.Owner.Event(m.reason, append(apart, fmt.Sprint(n))...)
}

// tick makes times that grow: sorted by eventTime, the Events are in the order
// in which they were told, even after a resume on a machine whose clock is behind.
func (s *Sink) tick(at time.Time) time.Time {
	at = at.Truncate(time.Microsecond) // as the API keeps it
	if !at.After(s.last) {
		at = s.last.Add(time.Microsecond)
	}
	s.last = at
	return at
}

// Close sends what is queued and ends the sink. It returns an error where ctx
// ended first, or where Events could not be sent; not where we may not send
// any, which Trouble was told.
func (s *Sink) Close(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		for _, l := range s.lines {
			close(l.queue)
		}
	}
	s.mu.Unlock()
	defer s.cancel()
	var errs []error
	for side, l := range s.lines {
		select {
		case <-l.done:
		case <-ctx.Done():
			s.cancel()
			<-l.done
		}
		if n := l.unsent(); n > 0 {
			errs = append(errs, fmt.Errorf("%d Events were not sent to the %s", n, side))
		}
	}
	return errors.Join(errs...)
}
