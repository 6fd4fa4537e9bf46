package step

import (
	"context"
	"fmt"
	"regexp"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/velero"
)

// Reasons by which it is told that a run lacks what it needs, and that it is
// there again.
const (
	ReasonSourceUnreachable      = "SourceUnreachable"
	ReasonSourceBack             = "SourceUnreachableRecovered"
	ReasonDestinationUnreachable = "DestinationUnreachable"
	ReasonDestinationBack        = "DestinationUnreachableRecovered"
	ReasonLocationUnavailable    = "StorageLocationUnavailable"
	ReasonLocationBack           = "StorageLocationUnavailableRecovered"
	ReasonNodeAgentMissing       = "NodeAgentMissing"
	ReasonNodeAgentBack          = "NodeAgentMissingRecovered"
)

// Need is one thing that a run cannot do without, as it was seen.
type Need struct {
	Lost, Back string // the reasons
	On         progress.Ref
	Cause      string // why it is not there, in the same words while that is why; empty: it is there
	Missing    string // the sentence that tells of it, with what may change meanwhile
	There      string // the sentence that tells that it is there
}

// Key tells needs apart.
func (n Need) Key() string { return NeedKey(n.Lost, n.On) }

// NeedKey is the key of the need that was told of by its reason and object.
func NeedKey(lost string, on progress.Ref) string {
	return fmt.Sprintf("%s %s %s", lost, on.Side, on.Name)
}

// Lacking is a need that is not met.
type Lacking struct{ Need Need }

// Reason is the one of its loss.
func (n Lacking) Reason() string { return n.Need.Lost }

// Text says what is wrong with it.
func (n Lacking) Text() string { return n.Need.Missing }

// Regarding is the object.
func (n Lacking) Regarding() progress.Ref { return n.Need.On }

// Regained is a need that is met again.
type Regained struct{ Need Need }

// Reason is the one of its return.
func (n Regained) Reason() string { return n.Need.Back }

// Text says that it is there.
func (n Regained) Text() string { return n.Need.There }

// Regarding is the object.
func (n Regained) Regarding() progress.Ref { return n.Need.On }

// answerLimit is how long a cluster may take to answer while we only look
// whether it is there.
const answerLimit = 5 * time.Second

// Clusters asks each cluster whether it answers.
func (r Run) Clusters(ctx context.Context) []Need {
	out := []Need{clusterNeed(progress.OnSource, r.Source.Cluster, answers(ctx, r.Source.Cluster))}
	if r.Destination.Cluster != nil {
		out = append(out, clusterNeed(progress.OnDestination, r.Destination.Cluster, answers(ctx, r.Destination.Cluster)))
	}
	return out
}

func answers(ctx context.Context, c *cluster.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	_, err := c.Version(ctx)
	return err
}

func clusterNeed(side progress.Side, c *cluster.Cluster, err error) Need {
	n := Need{Lost: ReasonSourceUnreachable, Back: ReasonSourceBack, On: progress.Ref{Side: side}, Cause: cluster.WhyAway(err)}
	if side == progress.OnDestination {
		n.Lost, n.Back = ReasonDestinationUnreachable, ReasonDestinationBack
	}
	where := fmt.Sprintf("the %s (context %s)", side, progress.Cut(c.Access.Context, nameBytes))
	n.Missing = fmt.Sprintf("%s does not answer: %s; the run waits for it for a while", where, n.Cause)
	n.There = where + " answers again"
	return n
}

// Parts looks at what Velero needs on each cluster. What could not be looked at
// is left out: nothing is known of it.
func (r Run) Parts(ctx context.Context) []Need {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	var out []Need
	for _, at := range []struct {
		side progress.Side
		c    *cluster.Cluster
	}{{progress.OnSource, r.Source.Cluster}, {progress.OnDestination, r.Destination.Cluster}} {
		if at.c == nil {
			continue
		}
		l := velerov1.BackupStorageLocation{}
		l.Namespace, l.Name = at.c.VeleroNamespace, r.Plan.Plan().Spec.Storage.Location
		if err := at.c.Get(ctx, client.ObjectKeyFromObject(&l), &l); err == nil || apierrors.IsNotFound(err) {
			out = append(out, locationNeed(at.side, &l, err == nil))
		}
		if len(r.Plan.Copied()) == 0 {
			continue
		}
		ds := appsv1.DaemonSet{}
		ds.Namespace, ds.Name = at.c.VeleroNamespace, velero.NodeAgentDaemonSet
		if err := at.c.Get(ctx, client.ObjectKeyFromObject(&ds), &ds); err == nil || apierrors.IsNotFound(err) {
			out = append(out, agentNeed(at.side, &ds, err == nil))
		}
	}
	return out
}

// requestIDs are what object stores put into every answer, and is never the
// same twice.
var requestIDs = regexp.MustCompile(`(?i)\b(request|host)[ _-]?id:?[ =:]*[^\s,;]+`)

func locationNeed(side progress.Side, l *velerov1.BackupStorageLocation, found bool) Need {
	what := fmt.Sprintf("storage location %s on the %s", l.Name, side)
	n := Need{Lost: ReasonLocationUnavailable, Back: ReasonLocationBack, On: locationRef(side, l), There: what + " is Available again"}
	switch phase := l.Status.Phase; {
	case !found:
		n.Cause, n.Missing = "gone", what+" is not there any more"
	case phase == velerov1.BackupStorageLocationPhaseUnavailable:
		why := requestIDs.ReplaceAllString(whyLocation(l), "")
		n.Cause = string(phase) + " " + why
		n.Missing = fmt.Sprintf("%s is %s: %s", what, phase, progress.Cut(why, reasonBytes))
	}
	return n
}

func agentNeed(side progress.Side, ds *appsv1.DaemonSet, found bool) Need {
	what := "node-agent on the " + string(side)
	n := Need{
		Lost: ReasonNodeAgentMissing, Back: ReasonNodeAgentBack, There: what + " is ready on all its nodes again",
		On: progress.Ref{Side: side, APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: ds.Namespace, Name: ds.Name, UID: string(ds.UID)},
	}
	ready, wanted := ds.Status.NumberReady, ds.Status.DesiredNumberScheduled
	switch {
	case !found:
		n.Cause, n.Missing = "gone", what+" is not there any more: volumes are neither backed up nor restored"
	case wanted == 0:
		n.Cause, n.Missing = "no node", what+" fits no node: volumes are neither backed up nor restored"
	case ready == 0:
		n.Cause, n.Missing = "not ready", fmt.Sprintf("%s is ready on none of its %d nodes: volumes are neither backed up nor restored", what, wanted)
	case ready < wanted:
		n.Cause, n.Missing = "not on every node", fmt.Sprintf("%s is ready on %d of its %d nodes: volumes on the others wait", what, ready, wanted)
	}
	return n
}
