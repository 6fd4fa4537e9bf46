package migrate

import (
	"slices"
	"testing"

	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/step"
)

func TestAPlanMaySetALimitForEveryStepThereIsAndForNoOther(t *testing.T) {
	r := runOf(t, plan.Volume{Claim: "shop/data", Action: plan.Copy, Verify: true})
	anew := byVelero(t, r)
	names := slices.Concat(namesOf(cutover(r, hooks{}, true)), namesOf(staging(r, hooks{}, true)), namesOf(rollback(r)), namesOf(closing(r)),
		namesOf(cutover(anew, hooks{}, true)), namesOf(staging(anew, hooks{}, true)))
	for _, steps := range [][]pipeline.Step{step.RecoverySteps(r), step.StageAbandoned(r)} {
		for _, s := range steps {
			names = append(names, s.Name())
		}
	}
	slices.Sort(names)
	if got, want := plan.StepNames(), slices.Compact(names); !slices.Equal(got, want) {
		t.Errorf("plan.StepNames() is %q\nthe tables have %q", got, want)
	}
}
