package preflight

import (
	"fmt"

	"github.com/mig-cli/mig/internal/discover"
)

// Conditions of the connection.
const (
	SourceReachable      = "SourceReachable"      // the source answers, as Kubernetes does, and takes our credentials
	DestinationReachable = "DestinationReachable" // the destination does
	ClustersDistinct     = "ClustersDistinct"     // the two contexts are two clusters, whatever they are called
)

func connectionChecks() []check {
	return []check{
		func(l look) []Condition { return []Condition{reachable(SourceReachable, "source", l.src.Facts)} },
		func(l look) []Condition {
			return []Condition{reachable(DestinationReachable, "destination", l.dst.Facts)}
		},
		distinct,
	}
}

// reasons of a cluster that was not reached.
func reachReason(r discover.Reach) string {
	reason, ok := map[discover.Reach]string{
		discover.Unreachable:   "Unreachable",
		discover.NotKubernetes: "NotKubernetes",
		discover.Untrusted:     "CertificateNotTrusted",
		discover.Denied:        "CredentialsRefused",
	}[r]
	if !ok {
		return "CannotBeAsked"
	}
	return reason
}

func reachable(kind, side string, f discover.Facts) Condition {
	where := fmt.Sprintf("%s cluster (context %s, %s)", side, f.Context, f.Server)
	if f.Reach == discover.Reached {
		return required(kind, fmt.Sprintf("%s runs Kubernetes %s", where, f.Version))
	}
	return required(kind, "", problem{
		reason: reachReason(f.Reach), message: fmt.Sprintf("%s: %s: %s", where, f.Reach.Says(), f.Error),
		objects: []string{f.Context}, hint: "see for yourself with: kubectl --context " + f.Context + " version",
	})
}

func distinct(l look) []Condition {
	s, d := l.src.UID, l.dst.UID
	contexts := []string{l.src.Context, l.dst.Context}
	if l.src.Reach != discover.Reached || l.dst.Reach != discover.Reached {
		return nil // told by the two before
	}
	if s == "" || d == "" {
		return []Condition{required(ClustersDistinct, "", problem{
			status: Unknown, reason: "IdentityUnknown", objects: contexts,
			message: "the uid of the namespace kube-system, by which clusters are told apart, cannot be read on both",
			hint:    "grant get on the namespace kube-system on both clusters",
		})}
	}
	if s == d {
		return []Condition{required(ClustersDistinct, "", problem{
			reason: "OneCluster", objects: contexts,
			message: fmt.Sprintf("contexts %s and %s are one cluster (kube-system has the uid %s): a rollback would delete the source", contexts[0], contexts[1], s),
			hint:    "name another context in spec.source.context or spec.destination.context",
		})}
	}
	return []Condition{required(ClustersDistinct, "source and destination are two clusters")}
}
