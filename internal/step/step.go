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

// What a note's parts may have, in bytes, so that its text fits what an Event
// takes (1,024 bytes) with the number of its step before it.
const (
	nameBytes   = 120 // a name that stands among other words
	namesBytes  = 640 // a list of names, the longest of which has 317
	reasonBytes = 640 // what others say in their own words
)
