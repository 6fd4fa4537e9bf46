package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mig-cli/mig/internal/discover"
)

// Conditions of the connection.
const (
	SourceReachable      = "SourceReachable"      // the source answers, as Kubernetes does, and takes our credentials
	DestinationReachable = "DestinationReachable" // the destination does
	ClustersDistinct     = "ClustersDistinct"     // the two contexts are two clusters, whatever they are called
	CredentialsExpiring  = "CredentialsExpiring"  // a run may outlive them, and could not bring the source up again
	CertificateExpiring  = "CertificateExpiring"  // the API server's, soon
	TLSNotVerified       = "TLSNotVerified"       // the kubeconfig says not to check who answers
	ClocksDiffer         = "ClocksDiffer"         // object stores refuse, and expiry dates mislead
)

// Times before an end. A run takes hours, the first of which must not be the
// last; a day leaves time to ask for new credentials.
const (
	tooSoon         = 2 * time.Hour
	soon            = 24 * time.Hour
	soonCertificate = 3 * 24 * time.Hour
)

// mostSkew is how far clocks may differ before anybody minds.
const mostSkew = time.Minute

func connectionChecks() []check {
	return []check{
		func(l look) []Condition { return []Condition{reachable(SourceReachable, "source", l.src.Facts)} },
		func(l look) []Condition {
			return []Condition{reachable(DestinationReachable, "destination", l.dst.Facts)}
		},
		distinct, credentials, certificates, insecure, clocks,
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
	where := strings.TrimSpace(fmt.Sprintf("%s cluster (context %s, %s)", side, f.Context, f.Server))
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
			hint:    "grant get on the namespace kube-system on both clusters, or run the same command again if a cluster is unwell",
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

// side is one of the two clusters with its name.
type side struct {
	name  string // source, destination; cluster, where there is one alone
	facts discover.Facts
}

// reached are the sides that answered.
func (l look) reached() []side {
	return slices.DeleteFunc(slices.Clone(l.sides), func(s side) bool { return s.facts.Reach != discover.Reached })
}

// credentials warns of such that end soon. Those that end within the first
// hours of a run could end it with the source down.
func credentials(l look) []Condition {
	var ending, atOnce []string
	for _, s := range l.reached() {
		a := s.facts.Access
		if a.CredentialsUntil.IsZero() || a.Now.IsZero() {
			continue
		}
		shown := fmt.Sprintf("%s (%s of context %s, until %s)", s.name, cmp.Or(a.Credentials, "credentials"), s.facts.Context, stamp(a.CredentialsUntil))
		switch left := a.CredentialsUntil.Sub(a.Now); {
		case left < tooSoon:
			atOnce = append(atOnce, shown)
		case left < soon:
			ending = append(ending, shown)
		}
	}
	const hint = "log in again, so that they last as long as the run"
	return slices.Concat(
		risk(CredentialsExpiring, "EndDuringRun", atOnce, "our credentials end soon: %s: a run that takes longer could not bring the source up again", hint),
		found(Warn, CredentialsExpiring, "EndSoon", ending, "our credentials end soon: %s", hint),
	)
}

func certificates(l look) []Condition {
	var ending []string
	for _, s := range l.reached() {
		a := s.facts.Access
		if !a.CertificateUntil.IsZero() && !a.Now.IsZero() && a.CertificateUntil.Sub(a.Now) < soonCertificate {
			ending = append(ending, fmt.Sprintf("%s (%s, until %s)", s.name, s.facts.Server, stamp(a.CertificateUntil)))
		}
	}
	return found(Warn, CertificateExpiring, "EndSoon", ending, "the API server's certificate ends soon: %s", "tell whoever rules the cluster")
}

func insecure(l look) []Condition {
	var open []string
	for _, s := range l.reached() {
		if s.facts.Access.Insecure {
			open = append(open, fmt.Sprintf("%s (context %s)", s.name, s.facts.Context))
		}
	}
	return found(Warn, TLSNotVerified, "InsecureByKubeconfig", open, "the kubeconfig says insecure-skip-tls-verify: %s: whoever answers there gets our credentials",
		"write the cluster's certificate-authority into the kubeconfig instead")
}

// clocks compares those of the two API servers, both measured against this
// machine's, and that of each Velero with its API server's.
func clocks(l look) []Condition {
	var out []string
	s, d := l.src.Access, l.dst.Access
	if apart := s.Ahead - d.Ahead; !s.Now.IsZero() && !d.Now.IsZero() && apart.Abs() > mostSkew {
		which := "behind"
		if apart < 0 {
			which = "ahead of"
		}
		out = append(out, fmt.Sprintf("destination (%s %s the source)", apart.Abs(), which))
	}
	for _, side := range l.reached() {
		at, ok := side.facts.Velero.Location(l.spec.Storage.Location)
		if ahead := at.LastValidated.Sub(side.facts.Access.Now); ok && !at.LastValidated.IsZero() && !side.facts.Access.Now.IsZero() && ahead > mostSkew {
			out = append(out, fmt.Sprintf("%s Velero (%s ahead of its API server)", side.name, ahead.Round(time.Second)))
		}
	}
	return found(Warn, ClocksDiffer, "Skewed", out, "clocks differ: %s: object stores refuse requests that are minutes off, and backups expire by the destination's clock",
		"let the nodes set their clocks (NTP)")
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
