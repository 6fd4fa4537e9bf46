//go:build e2e

package lock

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/labtest"
)

func TestARealClusterKeepsTwoRunsApart(t *testing.T) {
	lab, err := labtest.Find()
	if err != nil {
		t.Fatal(err)
	}
	c, some := lab.Source.Cluster, strings.ToLower(rand.Text())
	first, second := locker("first-"+some, "run-1", "jane"), locker("second-"+some, "run-2", "joe")
	_, held, err := first.AcquireAll(t.Context(), source(c, "lock-test-"+some))
	if err != nil {
		t.Fatal(err)
	}
	var other *HeldError
	if _, _, err := second.AcquireAll(t.Context(), source(c, "lock-test-"+some)); !errors.As(err, &other) || !strings.HasPrefix(other.Holder, "jane") {
		t.Errorf("got %v", err)
	}
	release(t, held)
	_, held, err = second.AcquireAll(t.Context(), source(c, "lock-test-"+some))
	if err != nil {
		t.Fatal(err)
	}
	kill(held)
	work, held, err := first.AcquireAll(t.Context(), source(c, "lock-test-"+some)) // waits for the dead one
	if err != nil || work.Err() != nil {
		t.Fatal(err, work.Err())
	}
	release(t, held)
	for _, l := range []Locker{first, second} {
		var left coordinationv1.LeaseList
		selector := client.MatchingLabelsSelector{Selector: l.Holder.Owner.OfPlan()}
		if err := c.List(t.Context(), &left, client.InNamespace(c.VeleroNamespace), selector); err != nil || len(left.Items) > 0 {
			t.Errorf("%d leases are left, %v", len(left.Items), err)
		}
	}
}
