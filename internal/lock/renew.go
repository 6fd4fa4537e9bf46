package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaultPatience rides out an API server that restarts.
const defaultPatience = 2 * time.Minute

// renew renews the run's lease until Release. It does not end with the work's
// context: what a run puts back after it was stopped needs the lock too.
func (h *hold) renew(ctx context.Context) {
	defer close(h.done)
	last, pause := time.Now(), Renew
	for {
		if !h.pause(pause) {
			return
		}
		start := time.Now()
		err := h.renewOnce(ctx)
		switch {
		case err == nil:
			last, pause = start, Renew
		case errors.Is(err, ErrLost):
			h.cancel(err)
			return
		case time.Since(last) >= h.patience():
			h.cancel(fmt.Errorf("%w: it could not be renewed for %s: %w", ErrLost, time.Since(last).Round(time.Second), err))
			return
		default:
			pause = retryIn
		}
	}
}

// pause waits; false when the locks are given back meanwhile.
func (h *hold) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-h.stop:
		return false
	case <-t.C:
		return true
	}
}

func (h *hold) patience() time.Duration {
	if h.locker.Patience > 0 {
		return h.locker.Patience
	}
	return defaultPatience
}

// renewOnce writes the time of the renewal. It fails with ErrLost only where
// the lease was seen in other hands.
func (h *hold) renewOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, Renew)
	defer cancel()
	next := h.run.seen.DeepCopy()
	now := metav1.NewMicroTime(time.Now())
	next.Spec.RenewTime = &now
	err := h.c.Update(ctx, next)
	if err == nil {
		h.run.seen = next
		return nil
	}
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return err
	}
	found, getErr := h.get(ctx, h.run.name)
	switch {
	case getErr != nil:
		return getErr
	case found == nil:
		return fmt.Errorf("%w: %s/%s is gone, another run may have its namespaces", ErrLost, h.c.VeleroNamespace, h.run.name)
	case deref(found.Spec.HolderIdentity) != h.identity():
		return fmt.Errorf("%w: %w", ErrLost, heldBy(h.run.what, found))
	}
	h.run.seen = found // someone else changed something else on it
	return err
}
