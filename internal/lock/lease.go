package lock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/naming"
)

// lease is one lease that is held or wanted.
type lease struct {
	name string
	what string                // for people
	of   string                // the run's lease that a claim refers to; empty: it is renewed itself
	seen *coordinationv1.Lease // as this process last wrote it; nil: not held
}

// take takes everything, the run's own lease first. all are the leases when
// nobody living held what is wanted; who came since is told, not waited for.
func (h *hold) take(ctx context.Context, all leases) error {
	for _, l := range h.all() {
		var err error
		if found := all[l.name]; found != nil {
			err = h.put(ctx, l, found)
		} else {
			err = h.create(ctx, l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (h *hold) all() []*lease {
	out := []*lease{&h.run}
	for i := range h.claims {
		out = append(out, &h.claims[i])
	}
	return out
}

func (h *hold) create(ctx context.Context, l *lease) error {
	next := h.build(l, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: h.c.VeleroNamespace, Name: l.name}})
	err := h.c.Create(ctx, next)
	if apierrors.IsAlreadyExists(err) {
		return h.lostRace(ctx, l)
	}
	if err != nil {
		return fmt.Errorf("lease %s/%s: %w", next.Namespace, next.Name, err)
	}
	l.seen = next
	return nil
}

func (h *hold) put(ctx context.Context, l *lease, found *coordinationv1.Lease) error {
	next := h.build(l, found)
	err := h.c.Update(ctx, next) // with the version that was found: only one can win
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return h.lostRace(ctx, l)
	}
	if err != nil {
		return fmt.Errorf("lease %s/%s: %w", next.Namespace, next.Name, err)
	}
	l.seen = next
	return nil
}

// lostRace tells who was faster.
func (h *hold) lostRace(ctx context.Context, l *lease) error {
	found, err := h.get(ctx, l.name)
	if err != nil {
		return err
	}
	if found == nil {
		return &HeldError{What: l.what, Holder: "a run that has just ended", Host: "elsewhere"}
	}
	if deref(found.Spec.HolderIdentity) == h.identity() { // the answer to our own request was lost
		l.seen = found
		return nil
	}
	return heldBy(l.what, found)
}

// build is the lease as this process holds it.
func (h *hold) build(l *lease, found *coordinationv1.Lease) *coordinationv1.Lease {
	next := found.DeepCopy()
	owner := h.locker.Holder.Owner
	next.Labels = owner.Labels("")
	next.Annotations = owner.Annotations()
	next.Annotations[naming.AnnHolder] = h.about()
	now := metav1.NewMicroTime(time.Now())
	identity, seconds := h.identity(), int32(Duration/time.Second)
	next.Spec = coordinationv1.LeaseSpec{HolderIdentity: &identity, AcquireTime: &now, RenewTime: &now, LeaseDurationSeconds: &seconds}
	if l.of != "" {
		next.Annotations[naming.AnnLease] = l.of
		next.Spec.RenewTime, next.Spec.LeaseDurationSeconds = nil, nil
	}
	return next
}

// drop gives everything back that is held, claims first.
func (h *hold) drop(ctx context.Context) error {
	errs := []error{h.remove(ctx, &h.turn)}
	for i := range h.claims {
		errs = append(errs, h.remove(ctx, &h.claims[i]))
	}
	return errors.Join(append(errs, h.remove(ctx, &h.run))...)
}

// remove deletes a lease if it is still ours, whatever else was changed on it.
func (h *hold) remove(ctx context.Context, l *lease) error {
	for l.seen != nil {
		uid, version := l.seen.UID, l.seen.ResourceVersion
		err := h.c.Delete(ctx, l.seen, client.Preconditions{UID: &uid, ResourceVersion: &version})
		switch {
		case err == nil, apierrors.IsNotFound(err):
			l.seen = nil
		case apierrors.IsConflict(err):
			if l.seen, err = h.ours(ctx, l); err != nil {
				return err
			}
		default:
			return fmt.Errorf("give back lease %s/%s: %w", l.seen.Namespace, l.name, err)
		}
	}
	return nil
}

// ours reads a lease again; nil where it is no longer ours.
func (h *hold) ours(ctx context.Context, l *lease) (*coordinationv1.Lease, error) {
	found, err := h.get(ctx, l.name)
	if err != nil || found == nil || deref(found.Spec.HolderIdentity) != h.identity() {
		return nil, err
	}
	return found, nil
}

// get reads a lease; nil where there is none.
func (h *hold) get(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	var found coordinationv1.Lease
	err := h.c.Get(ctx, client.ObjectKey{Namespace: h.c.VeleroNamespace, Name: name}, &found)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // none is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("lease %s/%s: %w", h.c.VeleroNamespace, name, err)
	}
	return &found, nil
}

// heldBy reads from a lease who holds it.
func heldBy(what string, found *coordinationv1.Lease) *HeldError {
	e := &HeldError{What: what, Holder: deref(found.Spec.HolderIdentity), Host: "an unknown host"}
	if found.Spec.AcquireTime != nil {
		e.Since = found.Spec.AcquireTime.Time
	}
	var a about
	if json.Unmarshal([]byte(found.Annotations[naming.AnnHolder]), &a) == nil && a.Host != "" {
		e.Holder = fmt.Sprintf("%s (plan %s, run %s)", a.User, a.Plan, a.Run)
		e.Host = fmt.Sprintf("%s, process %d", a.Host, a.PID)
	}
	return e
}

func deref[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}
