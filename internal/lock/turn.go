package lock

import (
	"context"
	"errors"
	"slices"
)

// TakeTurn takes the turn on the named sides, all or none: the right to give
// work to a Velero that does one thing after the other. It does not wait: a
// *HeldError says whose turn it is, and who wants it asks again. What is asked
// for first on one side and second on the other by two runs keeps neither
// waiting for ever, as nobody holds one while it waits for another.
//
// A turn lives and dies with the run's lease. Taking it twice is as once. A dead
// holder's is taken once it was watched for as long as its lease is good for.
func (all *Held) TakeTurn(ctx context.Context, sides ...string) error {
	for _, h := range all.on {
		if !slices.Contains(sides, h.side) {
			continue
		}
		if err := h.takeTurn(ctx); err != nil {
			return errors.Join(err, all.GiveTurn(ctx))
		}
	}
	return nil
}

// GiveTurn gives the turn to whoever comes next. Doing it twice is as once.
func (all *Held) GiveTurn(ctx context.Context) error {
	var errs []error
	for _, h := range all.on {
		errs = append(errs, h.remove(ctx, &h.turn))
	}
	return errors.Join(errs...)
}

// HasTurn says whether the turn is had on the named sides.
func (all *Held) HasTurn(sides ...string) bool {
	return !slices.ContainsFunc(all.on, func(h *hold) bool { return slices.Contains(sides, h.side) && h.turn.seen == nil })
}

func (h *hold) takeTurn(ctx context.Context) error {
	if h.turn.seen != nil {
		return nil
	}
	all, err := h.list(ctx)
	if err != nil {
		return err
	}
	found := all[h.turn.name]
	if found == nil {
		return h.create(ctx, &h.turn)
	}
	if run := all.holding(found); run != nil {
		if h.queue.look(run) != dead {
			return heldBy(h.turn.what, found)
		}
		expired, err := h.expire(ctx, all, run)
		if err != nil {
			return err
		}
		if !expired {
			return heldBy(h.turn.what, found)
		}
	}
	return h.put(ctx, &h.turn, found)
}
