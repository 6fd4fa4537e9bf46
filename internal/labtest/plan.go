package labtest

import "github.com/mig-cli/mig/internal/plan"

// EditPlan changes a plan file, as a person with an editor would. Comments of
// one's own are lost.
func EditPlan(path string, change func(*plan.Plan)) error {
	p, err := plan.Load(path)
	if err != nil {
		return err
	}
	change(p)
	return plan.Write(path, p, true)
}
