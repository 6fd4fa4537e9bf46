package naming

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestNamesOfRecordsLeasesAndEventsAreAcceptedAtTheirLongest(t *testing.T) {
	o := Owner{PlanName: strings.Repeat("very-long.", 24) + "x", PlanUID: strings.Repeat("u", 63), RunUID: NewRunUID("seed")}
	names := map[string]string{
		"part of a record": o.RunRecordPart("conditions", strings.Repeat("f", 64)), "run's lease": o.RunLease(),
		"namespace's lease": NamespaceLease(strings.Repeat("n", 63)), "event": o.Event(strings.Repeat("EnsureStage", 30), "x"), "event of nothing": o.Event("…"),
	}
	for what, name := range names {
		if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
			t.Errorf("%s: %q: %v", what, name, errs)
		}
	}
}

func TestTheSameEventHasTheSameNameAndAnotherHasAnother(t *testing.T) {
	o := Owner{PlanUID: "p", RunUID: "r"}
	first := o.Event("VolumeRestored", "claim", "shop/data")
	if again := o.Event("VolumeRestored", "claim", "shop/data"); again != first {
		t.Errorf("got %q and %q", first, again)
	}
	for _, other := range []string{
		o.Event("VolumeRestored", "claim", "shop/logs"), o.Event("VolumeBackedUp", "claim", "shop/data"),
		o.Event("VolumeRestored", "claimshop/data"), Owner{PlanUID: "p", RunUID: "s"}.Event("VolumeRestored", "claim", "shop/data"),
	} {
		if other == first {
			t.Errorf("two events share %q", first)
		}
	}
}

func TestRecordsAreFoundByRunByPlanAndAllTogether(t *testing.T) {
	o := Owner{PlanName: "shop", PlanUID: "p", RunUID: "r"}
	run, plan := labels.Set(o.RecordLabels(RecordRun)), labels.Set(o.RecordLabels(RecordPlan))
	for what, finds := range map[string]bool{
		"its own run":        o.Records(RecordRun).Matches(run),
		"a run of the plan":  Owner{PlanUID: "p"}.Records(RecordRun).Matches(run),
		"a run of any plan":  Owner{}.Records(RecordRun).Matches(run),
		"the plan":           o.Records(RecordPlan).Matches(plan),
		"not another run":    !Owner{PlanUID: "p", RunUID: "s"}.Records(RecordRun).Matches(run),
		"not another's plan": !Owner{PlanUID: "q"}.Records(RecordRun).Matches(run),
		"not a run for plan": !o.Records(RecordPlan).Matches(run),
	} {
		if !finds {
			t.Errorf("%s: wrong", what)
		}
	}
}
