// Package step holds the steps of a run, one file a subject. A step looks at
// the clusters (Next), decides with a pure function and acts (Act); doing it
// twice is as once. It knows neither the order of the steps nor who watches
// them, and waits for nothing itself.
package step

import (
	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
)

// Run is what the steps of one run work on.
type Run struct {
	Owner       naming.Owner
	Plan        plan.Valid
	Source      cluster.Source
	Destination cluster.Destination
}
