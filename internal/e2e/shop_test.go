//go:build e2e

package e2e

import (
	"testing"

	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/plan"
)

// silver is the destination's class that is not its default.
const silver = "dst-silver"

func TestAShopMovesWithAllItsDataAndComesBack(t *testing.T) {
	t.Parallel()
	s := newScenario(t, "e2e-shop", "e2e-front")
	ctx := t.Context()
	shop := s.lab.ShopIn(s.src(), s.name)
	s.must(shop.Open(ctx, 2))
	s.must(s.lab.Apply(ctx, s.src(), "e2e-front", labtest.FrontYAML))
	s.must(s.lab.WorkloadsReady(ctx, s.src(), "e2e-front", patience))
	front, err := labtest.ObjectsOf(ctx, s.src(), "e2e-front")
	s.must(err)
	s.makePlan(func(p *plan.Plan) {
		for i, v := range p.Spec.Volumes {
			if v.Name() == labtest.ArchiveClaim {
				p.Spec.Volumes[i].Destination.StorageClass = silver
			}
		}
	})
	s.succeeds("plan", "validate")
	r := s.succeeds("pv", "discover")
	s.says(r, labtest.DatabaseClaim, labtest.FilesClaim, labtest.ArchiveClaim)
	move, err := s.lab.Remember(ctx, s.planUID, s.name, s.dest)
	s.must(err)
	move.Watch(ctx, patience)

	s.succeeds("migrate")

	prove(t, move.Moved())
	t.Run("a claim has the class that the plan gave it", func(t *testing.T) {
		claimHasClass(t, s, labtest.ArchiveClaim, silver)
	})
	t.Run("a namespace without volumes came along under its own name", func(t *testing.T) {
		if err := s.lab.WorkloadsReady(t.Context(), s.dst(), "e2e-front", patience); err != nil {
			t.Error(err)
		}
	})
	t.Run("the Events on both clusters tell each step once and in order", func(t *testing.T) {
		for _, c := range s.lab.Both() {
			reasons := s.on(t).reasons(c)
			inOrder(t, reasons, append(append([]string{"Started"}, cutover()...), "Completed")...)
			toldOnce(t, reasons, cutover()...)
		}
	})
	t.Run("a second migrate is refused and changes nothing", func(t *testing.T) {
		in := s.on(t)
		again := in.run("migrate")
		in.ended(again, blocked)
		in.says(again, "rollback")
	})
	if t.Failed() {
		return // what rollback would destroy is evidence
	}

	s.succeeds("rollback", "--yes")

	prove(t, move.TakenBack())
	t.Run("the namespace without volumes is back too", func(t *testing.T) {
		if err := s.lab.GoneFromDestination(t.Context(), s.planUID, "e2e-front"); err != nil {
			t.Error(err)
		}
		if err := s.lab.SourceAsBefore(t.Context(), front, "e2e-front"); err != nil {
			t.Error(err)
		}
	})
	t.Run("the Events tell that it was rolled back", func(t *testing.T) {
		inOrder(t, s.on(t).reasons(s.src()), "Completed", "RolledBack")
	})
}

// prove makes a test of each proof.
func prove(t *testing.T, proofs []labtest.Proof) {
	t.Helper()
	for _, p := range proofs {
		t.Run(p.What, func(t *testing.T) {
			how, err := p.Prove(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Log(how)
		})
	}
}

func claimHasClass(t *testing.T, s *scenario, claim, class string) {
	t.Helper()
	got, err := labtest.ClassOf(t.Context(), s.dst(), s.dest, claim)
	if err != nil {
		t.Fatal(err)
	}
	if got != class {
		t.Errorf("claim %s has class %q, want %q", claim, got, class)
	}
}
