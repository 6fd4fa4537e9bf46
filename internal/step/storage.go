package step

import (
	"context"
	"fmt"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
)

// StorageEnsured waits until the plan's storage location is Available on both
// clusters: a location that is not stops Velero silently.
func StorageEnsured(r Run) pipeline.Step { return storageEnsured{r} }

type storageEnsured struct{ r Run }

func (s storageEnsured) Name() string              { return "StorageEnsured" }
func (s storageEnsured) Act(context.Context) error { return nil }

func (s storageEnsured) Next(ctx context.Context) (pipeline.Decision, error) {
	src, err := s.location(ctx, s.r.Source.Cluster)
	if err != nil {
		return pipeline.Decision{}, err
	}
	dst, err := s.location(ctx, s.r.Destination.Cluster)
	if err != nil {
		return pipeline.Decision{}, err
	}
	return decideStorage(src, dst), nil
}

func decideStorage(src, dst *velerov1.BackupStorageLocation) pipeline.Decision {
	for _, at := range []struct {
		side progress.Side
		l    *velerov1.BackupStorageLocation
	}{{progress.OnSource, src}, {progress.OnDestination, dst}} {
		if at.l.Status.Phase != velerov1.BackupStorageLocationPhaseAvailable {
			note := progress.Remark{
				Why: "StorageEnsured", On: locationRef(at.side, at.l),
				Say: fmt.Sprintf("storage location %s on the %s is %s: %s", at.l.Name, at.side, orNew(string(at.l.Status.Phase)), whyLocation(at.l)),
			}
			return pipeline.Decision{Verdict: pipeline.Wait, Note: note}
		}
	}
	note := progress.Remark{
		Why: "StorageEnsured", On: locationRef(progress.OnSource, src),
		Say: fmt.Sprintf("storage location %s is Available on both clusters", src.Name),
	}
	return pipeline.Decision{Verdict: pipeline.Done, Note: note}
}

// whyLocation is what Velero says of a location that it cannot use.
func whyLocation(l *velerov1.BackupStorageLocation) string {
	if l.Status.Message != "" {
		return l.Status.Message
	}
	return fmt.Sprintf("Velero does not say why; its log may: kubectl -n %s logs deployment/velero", l.Namespace)
}

func (s storageEnsured) location(ctx context.Context, c *cluster.Cluster) (*velerov1.BackupStorageLocation, error) {
	var l velerov1.BackupStorageLocation
	err := c.Get(ctx, client.ObjectKey{Namespace: c.VeleroNamespace, Name: s.r.Plan.Plan().Spec.Storage.Location}, &l)
	return &l, err
}

func locationRef(side progress.Side, l *velerov1.BackupStorageLocation) progress.Ref {
	return progress.Ref{
		Side: side, APIVersion: velerov1.SchemeGroupVersion.String(), Kind: "BackupStorageLocation",
		Namespace: l.Namespace, Name: l.Name, UID: string(l.UID),
	}
}
