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
	// it is, and whose it was. It is told once for each lease.
	Waiting func(what string, holder *HeldError)
	// Patience is how long a lease that cannot be renewed, because the cluster
	// does not answer, is believed to be ours still. Zero means two minutes.
	// A lease that another took is lost at once.
	Patience time.Duration
}

// Held are the locks that this process holds on one cluster.
type Held struct {
	locker Locker
	c      *cluster.Cluster
	token  string
	run    lease
	claims []lease
	cancel context.CancelCauseFunc
	stop   chan struct{} // closed by Release
	done   chan struct{} // closed when renewing has ended
	once   sync.Once
}

// Acquire takes the run's lease on a cluster and claims namespaces of it: all
// or none. side names the cluster in messages: source, destination.
//
// The context that it returns ends with ErrLost when the lease is lost; work
// under it. A living holder is a *HeldError within one renewal; a dead one is
// waited out, at most Duration after the first look. Release the locks when
// the work is done; until then they are renewed, also after ctx has ended.
// After ErrLost nothing may be changed in the clusters any more, not even to
// put things back: they are in another run's hands.
func (l Locker) Acquire(ctx context.Context, c *cluster.Cluster, side string, namespaces ...string) (context.Context, *Held, error) {
	h := &Held{locker: l, c: c, token: rand.Text(), stop: make(chan struct{}), done: make(chan struct{})}
	h.run = lease{name: l.Holder.Owner.RunLease(), what: fmt.Sprintf("plan %s on the %s", l.Holder.Owner.PlanName, side)}
	for _, ns := range sorted(namespaces) {
		h.claims = append(h.claims, lease{
			name: naming.NamespaceLease(ns), what: fmt.Sprintf("namespace %s on the %s", ns, side), of: h.run.name,
		})
	}
	if err := h.take(ctx); err != nil {
		return nil, nil, errors.Join(err, h.drop(context.WithoutCancel(ctx)))
	}
	work, cancel := context.WithCancelCause(ctx)
	h.cancel = cancel
	go h.renew(context.WithoutCancel(ctx))
	return work, h, nil
}

// sorted is the order in which all processes take their claims, so that of two
// that want the same ones the first to come gets all.
func sorted(namespaces []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(namespaces)))
}

// Release gives the locks back. It is safe to call twice, and after they were
// lost. What cannot be given back runs out by itself.
func (h *Held) Release(ctx context.Context) error {
	h.once.Do(func() { close(h.stop) })
	<-h.done
	h.cancel(context.Canceled)
	return h.drop(ctx)
}

// identity is what the lease's holderIdentity says: enough for a person who
// looks with kubectl, and another for every process.
func (h *Held) identity() string {
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

func (h *Held) about() string {
	o := h.locker.Holder
	text, _ := json.Marshal(about{Plan: o.Owner.PlanName, Run: o.Owner.RunUID, User: o.User, Host: o.Host, PID: o.PID}) //nolint:errchkjson // strings and a number
	return string(text)
}
