package discover

import (
	"context"

	"github.com/mig-cli/mig/internal/cluster"
)

// OneFacts is what was seen of one cluster without any plan.
type OneFacts struct {
	Facts
	Source      []Right `json:"sourceRights,omitempty"`      // what a run needs where it is the source
	Destination []Right `json:"destinationRights,omitempty"` // and where it is the destination
}

// As is what a cluster is to be in a migration.
type As struct{ Source, Destination bool }

// LookOne looks at one cluster without a plan. Rights are asked for the
// namespaces; without any, for all that there are and will be. The only error
// is ctx's.
func LookOne(ctx context.Context, c *cluster.Cluster, as As, namespaces []string) (OneFacts, error) {
	f := OneFacts{Facts: facts(c)}
	if !f.reach(ctx, c) {
		return f, ctx.Err()
	}
	l := newLook(ctx, c)
	l.common(&f.Facts, namespaces)
	l.busy(&f.Velero, as)
	in := namespaces
	if len(in) == 0 {
		in = []string{everyNamespace}
	}
	if as.Source {
		l.part(PartRights, func(ctx context.Context) (err error) {
			f.Source, err = askRights(ctx, c.Client, sourceRights(in, c.VeleroNamespace, false))
			return err
		})
	}
	if as.Destination {
		l.part(PartRights, func(ctx context.Context) (err error) {
			f.Destination, err = askRights(ctx, c.Client, destinationRights(in, c.VeleroNamespace, false))
			return err
		})
	}
	f.Gaps = l.wait()
	l = newLook(ctx, c)
	l.second(&f.Facts)
	f.Gaps = append(f.Gaps, l.wait()...)
	return f, ctx.Err()
}

// everyNamespace is where a right of all namespaces is.
const everyNamespace = ""

// busy asks what Velero has not ended yet.
func (l *look) busy(v *Velero, as As) {
	var backups, restores []Work
	l.optional(PartBusy, func(ctx context.Context) (err error) {
		if as.Source {
			backups, err = unfinishedBackups(ctx, l.c.Client, v.Namespace)
		}
		if err == nil && as.Destination {
			restores, err = unfinishedRestores(ctx, l.c.Client, v.Namespace)
		}
		v.Busy = append(backups, restores...)
		return err
	})
}
