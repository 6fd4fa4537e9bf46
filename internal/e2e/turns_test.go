//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mig-cli/mig/internal/labtest"
)

// standing is when a plan's application stood still for want of Velero's work.
type standing struct {
	plan     string
	from, to time.Time
}

// stood reads it from the plan's Events.
func (s *scenario) stood() standing {
	s.t.Helper()
	events, err := labtest.Events(s.t.Context(), s.src(), s.planUID)
	s.must(err)
	st := standing{plan: s.name}
	for i := range events {
		switch events[i].Reason {
		case "QuiesceApplications":
			st.from = events[i].Time
		case "FinalRestoreCreated":
			st.to = events[i].Time
		}
	}
	if st.from.IsZero() || st.to.IsZero() {
		s.t.Fatalf("plan %s tells not when it stood still: %+v", s.name, st)
	}
	return st
}

func TestThreePlansAtOnceNeverStandInEachOthersQueue(t *testing.T) {
	t.Parallel()
	var plans []*scenario
	for i := range 3 {
		s := newScenario(t, fmt.Sprintf("e2e-turn-%d", i+1))
		s.deployNotes(5)
		s.makePlan(nil)
		plans = append(plans, s)
	}
	results, errs := make([]labtest.Result, len(plans)), make([]error, len(plans))
	var runs sync.WaitGroup
	for i, s := range plans {
		runs.Go(func() { results[i], errs[i] = s.lab.Run(t.Context(), s.dir, s.mig, "migrate", s.name) })
	}
	t.Run("a second run of a plan is told who has it", func(t *testing.T) { plans[0].on(t).isHeld() })
	runs.Wait()
	waited := 0
	var all []standing
	for i, s := range plans {
		s.must(errs[i])
		s.ended(results[i], done)
		if strings.Contains(results[i].Stdout+results[i].Stderr, "waiting until another run of mig is through with Velero, nothing is stopped yet") {
			waited++
		}
		_, err := s.lab.Arrived(t.Context(), s.name, s.dest, labtest.NotesWriting)
		s.must(err)
		all = append(all, s.stood())
	}
	if waited < len(plans)-1 {
		t.Errorf("%d of %d plans said that they wait", waited, len(plans))
	}
	slices.SortFunc(all, func(a, b standing) int { return cmp.Compare(a.from.UnixNano(), b.from.UnixNano()) })
	for i, next := range all[1:] {
		if before := all[i]; next.from.Before(before.to) {
			t.Errorf("%s stood still from %s while %s had Velero until %s", next.plan, next.from, before.plan, before.to)
		}
	}
	t.Run("what is left on the objects is read with kubectl alone", func(t *testing.T) { auditIsKept(t, plans[0], plans[1], plans[2]) })
}

// isHeld wants a second process to be refused at once.
func (s *scenario) isHeld() {
	s.t.Helper()
	s.must(labtest.WaitForEvent(s.t.Context(), s.src(), s.planUID, "Started", patience))
	for _, command := range [][]string{{"migrate"}, {"stage"}, {"rollback", "--yes"}} {
		r := s.run(command...)
		s.ended(r, locked)
		s.says(r, "is held since", "plan "+s.name, "--wait")
	}
}
