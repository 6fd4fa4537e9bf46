package lock

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/naming"
)

// leases are mig's leases of a cluster, by name.
type leases map[string]*coordinationv1.Lease

func (h *hold) list(ctx context.Context) (leases, error) {
	var found coordinationv1.LeaseList
	err := h.c.List(ctx, &found, client.InNamespace(h.c.VeleroNamespace), client.MatchingLabels{naming.LabelCreatedBy: naming.CreatedBy})
	if err != nil {
		return nil, fmt.Errorf("list the leases in namespace %s: %w", h.c.VeleroNamespace, err)
	}
	all := leases{}
	for i := range found.Items {
		all[found.Items[i].Name] = &found.Items[i]
	}
	return all, nil
}

// holding is the renewed lease by which a lease is held; nil where nobody can
// hold it any more: it was given back, or its run's lease is another's by now.
func (all leases) holding(l *coordinationv1.Lease) *coordinationv1.Lease {
	holder := deref(l.Spec.HolderIdentity)
	if holder == "" {
		return nil
	}
	of := l.Annotations[naming.AnnLease]
	if of == "" {
		return l
	}
	run := all[of]
	if run == nil || deref(run.Spec.HolderIdentity) != holder {
		return nil
	}
	return run
}

// sight is another's renewed lease and since when it has not moved, by our own
// clock.
type sight struct {
	holder string
	renew  metav1.MicroTime
	since  time.Time
}

func (w sight) moved(l *coordinationv1.Lease) bool {
	return w.holder != deref(l.Spec.HolderIdentity) || !w.renew.Equal(l.Spec.RenewTime)
}

// sights are the leases that are watched, by name.
type sights map[string]sight

// life is what is known of a lease's holder.
type life int

const (
	unknown life = iota // seen for the first time
	silent              // has not moved yet, and is good still
	living              // has moved
	dead                // has not moved for as long as it is good for
)

// look says how a holder is, and remembers what was seen.
func (s sights) look(run *coordinationv1.Lease) life {
	before, known := s[run.Name]
	switch {
	case known && !before.moved(run) && time.Since(before.since) < good(run):
		return silent
	case known && !before.moved(run):
		return dead
	}
	s[run.Name] = sight{holder: deref(run.Spec.HolderIdentity), renew: deref(run.Spec.RenewTime), since: time.Now()}
	if known {
		return living
	}
	return unknown
}

// waitOut returns when nobody living holds what is wanted, with the leases as
// they were then. All of them are watched at once before any is taken, so that
// a dead run that left many claims costs one waiting time.
func (h *hold) waitOut(ctx context.Context) (leases, error) {
	seen := sights{}
	for {
		all, err := h.list(ctx)
		if err != nil {
			return nil, err
		}
		free, err := h.allFree(ctx, all, seen)
		if free || err != nil {
			return all, err
		}
		if err := sleep(ctx, retryIn); err != nil {
			return nil, err
		}
	}
}

// allFree looks once at everything that is wanted. A lease that has moved since
// the last look has a living holder.
func (h *hold) allFree(ctx context.Context, all leases, seen sights) (bool, error) {
	free := true
	for _, l := range h.all() {
		found := all[l.name]
		if found == nil {
			continue
		}
		run := all.holding(found)
		if run == nil {
			continue
		}
		switch seen.look(run) {
		case unknown:
			free = false
			h.tell(l.what, found)
		case silent:
			free = false
		case living:
			return false, heldBy(l.what, found)
		case dead:
			expired, err := h.expire(ctx, all, run)
			if err != nil {
				return false, err
			}
			free = free && expired
		}
	}
	return free, nil
}

func (h *hold) tell(what string, found *coordinationv1.Lease) {
	if h.locker.Waiting != nil {
		h.locker.Waiting(what, heldBy(what, found))
	}
}

// good is for how long a lease is good without being renewed.
func good(l *coordinationv1.Lease) time.Duration {
	if s := deref(l.Spec.LeaseDurationSeconds); s > 0 {
		return time.Duration(s) * time.Second
	}
	return Duration
}

// expire removes a dead holder's lease, and says whether it is gone. Should the
// holder live after all, its next renewal finds nothing and it stops; should it
// just have renewed, ours fails, and the next look sees it move.
func (h *hold) expire(ctx context.Context, all leases, run *coordinationv1.Lease) (bool, error) {
	err := h.c.Delete(ctx, run, client.Preconditions{UID: &run.UID, ResourceVersion: &run.ResourceVersion})
	switch {
	case err == nil:
		delete(all, run.Name) // its claims are free with it
		return true, nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return false, nil
	default:
		return false, fmt.Errorf("lease %s/%s of a dead run: %w", run.Namespace, run.Name, err)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
