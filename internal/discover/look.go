package discover

import (
	"context"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/plan"
)

// Look looks at both clusters at once for a plan, and then, where a
// destination namespace exists already, for what the plan's objects would meet
// there. A part that cannot be looked at is a Gap in the facts. The only error
// is ctx's.
func Look(ctx context.Context, src cluster.Source, dst cluster.Destination, v plan.Valid) (SourceFacts, DestinationFacts, error) {
	return SourceFacts{}, DestinationFacts{}, ctx.Err()
}

// LookSource looks at the source for a plan.
func LookSource(ctx context.Context, src cluster.Source, v plan.Valid) (SourceFacts, error) {
	return SourceFacts{}, ctx.Err()
}

// LookDestination looks at the destination for a plan.
func LookDestination(ctx context.Context, dst cluster.Destination, v plan.Valid) (DestinationFacts, error) {
	return DestinationFacts{}, ctx.Err()
}
