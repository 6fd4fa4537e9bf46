package naming

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestNamesOfTheLongestPlanFitALabel(t *testing.T) {
	o := Owner{PlanName: strings.Repeat("very-long.", 24) + "x", PlanUID: "5f0c8a52-6f1e-4c40-9a38-0b6a7f0e9a11", RunUID: NewRunUID("seed")}
	names := map[string]string{
		"initial backup": o.InitialBackup(), "stage backup": o.StageBackup(), "final restore": o.FinalRestore(),
		"skip policy": o.SkipVolumesPolicy(), "stage modifiers": o.StageModifiers(), "run record": o.RunRecord(), "plan record": o.PlanRecord(),
		"stage pod": StagePod("shop", strings.Repeat("data-", 50)+"0"),
	}
	seen := map[string]string{}
	for what, name := range names {
		if errs := validation.IsDNS1123Label(name); len(errs) > 0 {
			t.Errorf("%s: %q is not a label (%d characters): %v", what, name, len(name), errs)
		}
		if other, ok := seen[name]; ok {
			t.Errorf("%s and %s share the name %q", what, other, name)
		}
		seen[name] = what
	}
	for k, v := range o.Labels("EnsureStageBackup") {
		if errs := validation.IsQualifiedName(k); len(errs) > 0 {
			t.Errorf("label key %q: %v", k, errs)
		}
		if errs := validation.IsValidLabelValue(v); len(errs) > 0 {
			t.Errorf("label value %q: %v", v, errs)
		}
	}
}

func TestTwoLongClaimsNeverShareAStagePod(t *testing.T) {
	long := strings.Repeat("data-", 20)
	if a, b := StagePod("shop", long+"0"), StagePod("shop", long+"1"); a == b {
		t.Errorf("both are named %q", a)
	}
	if a, b := StagePod("shop", "data"), StagePod("store", "data"); a == b {
		t.Errorf("claims of two namespaces share %q", a)
	}
}

func TestTheSameClaimHasTheSameStagePodInEveryRun(t *testing.T) {
	if a, b := StagePod("shop", "data-db-0"), StagePod("shop", "data-db-0"); a != b {
		t.Errorf("got %q and %q", a, b)
	}
}

func TestWhatARunMadeIsSelectedByItsOwnKeysOnly(t *testing.T) {
	o := Owner{PlanName: "shop", PlanUID: "p", RunUID: "r"}
	other := Owner{PlanName: "shop", PlanUID: "q", RunUID: "r"}
	set := func(m map[string]string) mapLabels { return m }
	if !o.OfRun().Matches(set(o.Labels("x"))) || !o.OfPlan().Matches(set(o.Labels(""))) {
		t.Error("a run does not find its own objects")
	}
	if o.OfPlan().Matches(set(other.Labels("x"))) {
		t.Error("a plan of the same name is taken for ours")
	}
	if o.OfPlan().Matches(set(map[string]string{RefMigratedByPlan: "p"})) {
		t.Error("an object of the reference system is taken for ours")
	}
}

type mapLabels map[string]string

func (m mapLabels) Has(k string) bool              { _, ok := m[k]; return ok }
func (m mapLabels) Get(k string) string            { return m[k] }
func (m mapLabels) Lookup(k string) (string, bool) { v, ok := m[k]; return v, ok }
