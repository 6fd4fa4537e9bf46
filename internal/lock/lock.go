// Package lock keeps two runs from working on the same plan or namespace at
// once, by Leases in Velero's namespace of a cluster. It knows what is held and
// by whom, not what for.
//
// A run renews one lease. The namespaces that it works on are claimed by leases
// that are not renewed but refer to that one: they live and die with it, so a
// thousand namespaces cost no more renewals than one. Whether a holder lives is
// seen by watching its lease for as long as it is good for; clocks of two
// machines are never compared.
package lock

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
)

// The times of a lease, those of Kubernetes' own leader election.
const (
	Duration = 15 * time.Second // how long a lease is good without being renewed
	Renew    = 5 * time.Second  // between two renewals
	retryIn  = time.Second      // after a renewal that failed, and between two looks at another's lease
)

// ErrLost is the cause of a context whose lease another has taken, or that
// could not be renewed for the locker's patience.
var ErrLost = errors.New("the lease of this run is lost")

// HeldError is a plan or namespace that a living run holds.
type HeldError struct {
	What   string // namespace shop on the source
	Holder string // who: user, and the plan and run
	Host   string // host and process
	Since  time.Time
}

func (e *HeldError) Error() string {
	since := ""
	if !e.Since.IsZero() {
		since = " since " + e.Since.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s is held%s by %s from %s", e.What, since, e.Holder, e.Host)
}

// Holder says who wants a lock, for the message to whoever comes second.
type Holder struct {
	Owner naming.Owner
	User  string // as the cluster knows them
	Host  string
	PID   int
}

// Locker takes locks for one process. The zero values of Patience and Waiting
// are useful.
type Locker struct {
	Holder Holder
	// Waiting is told of a dead holder's lease that must run out first: what
	// it is, and whose it was. It is told once for each lease, of several
	// clusters from several goroutines.
	Waiting func(what string, holder *HeldError)
	// Patience is how long a lease that cannot be renewed, because the cluster
	// does not answer, is believed to be ours still. Zero means two minutes.
	// A lease that another took is lost at once.
	Patience time.Duration
}

// hold is the locks that this process holds on one cluster.
type hold struct {
	locker Locker
	c      *cluster.Cluster
	token  string
	run    lease
	claims []lease
	side   string
	turn   lease
	queue  sights // of whoever has the turn
	cancel context.CancelCauseFunc
	stop   chan struct{} // closed by Release
	done   chan struct{} // closed when renewing has ended
	once   sync.Once
}

// Place is what is wanted on one cluster.
type Place struct {
	Cluster    *cluster.Cluster
	Side       string // names the cluster in messages: source, destination
	Namespaces []string
}

// Held are the locks that this process holds on all clusters.
type Held struct {
	on     []*hold
	cancel context.CancelCauseFunc // of the work
}

// AcquireAll takes the run's lease on each cluster and claims namespaces there:
// all or none.
//
// The context that it returns ends with ErrLost when a lease is lost; work
// under it. A living holder is a *HeldError within one renewal; dead ones are
// waited out, all at once, at most Duration after the first look. Release the
// locks when the work is done; until then they are renewed, also after ctx has
// ended. After ErrLost nothing may be changed in the clusters any more, not
// even to put things back: they are in another run's hands.
func (l Locker) AcquireAll(ctx context.Context, places ...Place) (context.Context, *Held, error) {
	all := &Held{}
	for _, p := range places {
		all.on = append(all.on, l.want(p))
	}
	if err := all.take(ctx); err != nil {
		return nil, nil, errors.Join(err, all.drop(context.WithoutCancel(ctx)))
	}
	work, cancel := context.WithCancelCause(ctx)
	all.cancel = cancel
	for _, h := range all.on {
		h.cancel = cancel
		go h.renew(context.WithoutCancel(ctx))
	}
	return work, all, nil
}

// Acquire is AcquireAll on one cluster.
func (l Locker) Acquire(ctx context.Context, c *cluster.Cluster, side string, namespaces ...string) (context.Context, *Held, error) {
	return l.AcquireAll(ctx, Place{Cluster: c, Side: side, Namespaces: namespaces})
}

func (l Locker) want(p Place) *hold {
	h := &hold{locker: l, c: p.Cluster, token: rand.Text(), side: p.Side, queue: sights{}, stop: make(chan struct{}), done: make(chan struct{})}
	h.run = lease{name: l.Holder.Owner.RunLease(), what: fmt.Sprintf("plan %s on the %s", l.Holder.Owner.PlanName, p.Side)}
	h.turn = lease{name: naming.TurnLease, what: "the turn with Velero on the " + p.Side, of: h.run.name}
	for _, ns := range sorted(p.Namespaces) {
		h.claims = append(h.claims, lease{
			name: naming.NamespaceLease(ns), what: fmt.Sprintf("namespace %s on the %s", ns, p.Side), of: h.run.name,
		})
	}
	return h
}

// take waits on all clusters at once, then takes on one after the other: of two
// that want the same, the first to come gets all.
func (all *Held) take(ctx context.Context) error {
	found, errs := make([]leases, len(all.on)), make([]error, len(all.on))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var waits sync.WaitGroup
	for i, h := range all.on {
		waits.Go(func() {
			if found[i], errs[i] = h.waitOut(ctx); errs[i] != nil {
				cancel(errs[i]) // the others need not wait any longer
			}
		})
	}
	waits.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	for i, h := range all.on {
		if err := h.take(ctx, found[i]); err != nil {
			return err
		}
	}
	return nil
}

// Release gives the locks back. It is safe to call twice, and after they were
// lost. What cannot be given back runs out by itself.
func (all *Held) Release(ctx context.Context) error {
	for _, h := range all.on {
		h.end()
	}
	all.cancel(context.Canceled)
	return all.drop(ctx)
}

func (all *Held) drop(ctx context.Context) error {
	var errs []error
	for _, h := range all.on {
		errs = append(errs, h.drop(ctx))
	}
	return errors.Join(errs...)
}

// sorted is the order in which all processes take their claims, so that of two
// that want the same ones the first to come gets all.
func sorted(namespaces []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(namespaces)))
}

// end stops renewing.
func (h *hold) end() {
	h.once.Do(func() { close(h.stop) })
	<-h.done
}

// identity is what the lease's holderIdentity says: enough for a person who
// looks with kubectl, and another for every process.
func (h *hold) identity() string {
	o := h.locker.Holder
	return fmt.Sprintf("%s_%s_%d_%s", o.Owner.RunUID, o.Host, o.PID, h.token[:8])
}

// about is who holds a lease, as its annotation says it.
type about struct {
	Plan string `json:"plan"`
	Run  string `json:"run"`
	User string `json:"user"`
	Host string `json:"host"`
	PID  int    `json:"pid"`
}

func (h *hold) about() string {
	o := h.locker.Holder
	text, _ := json.Marshal(about{Plan: o.Owner.PlanName, Run: o.Owner.RunUID, User: o.User, Host: o.Host, PID: o.PID}) //nolint:errchkjson // strings and a number
	return string(text)
}
