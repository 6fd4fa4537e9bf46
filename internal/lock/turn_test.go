package lock

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// onBoth is a run that holds its own plan on two clusters.
func onBoth(t *testing.T, plan string, src, dst server) *Held {
	t.Helper()
	_, held, err := locker(plan, "run-"+plan, "jane").AcquireAll(t.Context(),
		source(src.door().Cluster, plan), Place{Cluster: dst.door().Cluster, Side: "destination", Namespaces: []string{plan}})
	if err != nil {
		t.Fatal(err)
	}
	return held
}

func mustTurn(t *testing.T, h *Held, sides ...string) {
	t.Helper()
	if err := h.TakeTurn(t.Context(), sides...); err != nil || !h.HasTurn(sides...) {
		t.Fatalf("the turn is not had: %v", err)
	}
}

func mustWait(t *testing.T, h *Held, on string, sides ...string) {
	t.Helper()
	err := h.TakeTurn(t.Context(), sides...)
	var other *HeldError
	if !errors.As(err, &other) || !strings.Contains(err.Error(), on) {
		t.Fatalf("got %v, want to wait for the one %s", err, on)
	}
	if h.HasTurn(sides...) {
		t.Fatal("who waits has the turn all the same")
	}
}

func TestPlansTakeTurnsWithVelero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, dst := newServer(), newServer()
		shop, wiki := onBoth(t, "shop", src, dst), onBoth(t, "wiki", src, dst)
		mustTurn(t, shop, "source", "destination")
		mustTurn(t, shop, "source", "destination") // twice is as once
		for range 100 {                            // for minutes, however often it is asked for
			mustWait(t, wiki, "jane (plan shop, run run-shop)", "source", "destination")
			time.Sleep(time.Second)
		}
		if err := shop.GiveTurn(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustTurn(t, wiki, "source", "destination")
		mustWait(t, shop, "plan wiki", "source", "destination")
		release(t, wiki) // a run that ends without a word gives its turn too
		mustTurn(t, shop, "source", "destination")
		release(t, shop)
		if left := len(src.leases(t)) + len(dst.leases(t)); left > 0 {
			t.Errorf("%d leases are left", left)
		}
	})
}

func TestWhoWaitsOnOneClusterHoldsUpNobodyOnTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east, west, north := newServer(), newServer(), newServer()
		first, second, third := onBoth(t, "first", east, west), onBoth(t, "second", north, west), onBoth(t, "third", north, east)
		mustTurn(t, first, "source", "destination")                                         // east → west
		mustWait(t, second, "turn with Velero on the destination", "source", "destination") // north → west
		mustTurn(t, third, "source")                                                        // a stage on north, which second does not keep
		for _, h := range []*Held{first, second, third} {
			release(t, h)
		}
	})
}

func TestADeadRunsTurnIsTakenWhenItsLeaseHasRunOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, dst := newServer(), newServer()
		shop, wiki := onBoth(t, "shop", src, dst), onBoth(t, "wiki", src, dst)
		mustTurn(t, shop, "source", "destination")
		kill(shop)
		began := time.Now()
		for wiki.TakeTurn(t.Context(), "source", "destination") != nil {
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took < Duration || took > 3*Duration {
			t.Errorf("taken after %s of a lease that is good for %s", took, Duration)
		}
		release(t, wiki)
	})
}

func TestTheNextProcessOfADeadRunTakesTheTurnAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, dst := newServer(), newServer()
		shop := onBoth(t, "shop", src, dst)
		mustTurn(t, shop, "source", "destination")
		kill(shop)
		again := onBoth(t, "shop", src, dst) // waits its predecessor out
		if again.HasTurn("source", "destination") {
			t.Fatal("the dead process's turn counts as had")
		}
		mustTurn(t, again, "source", "destination")
		release(t, again)
	})
}
