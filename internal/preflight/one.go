package preflight

import (
	"fmt"
	"slices"

	"github.com/mig-cli/mig/internal/discover"
)

// Conditions of one cluster without a plan.
const (
	ClusterReachable = "ClusterReachable" // it answers, as Kubernetes does, and takes our credentials
	VeleroReady      = "VeleroReady"
	NodeAgentReady   = "NodeAgentReady"
	StorageAvailable = "StorageAvailable" // at least one storage location is
	LocationTrouble  = "LocationTrouble"  // of another one
)

// CheckOne gives every condition of one cluster that needs no plan; the last one
// is Ready.
func CheckOne(f discover.OneFacts) []Condition {
	l := look{sides: []side{{"cluster", f.Facts}}}
	out := []Condition{reachable(ClusterReachable, "", f.Facts)}
	out = append(out, ofRole(SourceRights, "source", f.Facts, f.Source)...)
	out = append(out, ofRole(DestinationRights, "destination", f.Facts, f.Destination)...)
	out = append(out, veleroReady(VeleroReady, "cluster", f.Facts)...)
	out = append(out, agentIsReady(NodeAgentReady, "cluster", f.Facts)...)
	out = append(out, locations(f.Facts)...)
	for _, check := range []check{
		credentials, certificates, insecure, tooOld, untested, versionUnknown, agentVersions, uploader, oadp, classMaps, migControllers, busy, agentMounts,
	} {
		out = append(out, check(l)...)
	}
	for _, at := range f.Velero.Locations {
		l.spec.Storage.Location = at.Name
		for _, check := range []check{clocks, storageWatched, storageCredentials, providerPlugins} {
			out = append(out, check(l)...)
		}
	}
	out = append(out, apisDown("cluster", f.Facts)...)
	out = append(out, gaps("cluster", f.Facts)...)
	last := ready(out)
	if last.Status == True {
		last.Message = "the cluster is ready for migrations"
	} else {
		last.Message = "the cluster is not ready for migrations: " + few(last.Objects)
	}
	return append(out, last)
}

// ofRole says of one role whether its rights are there; nothing where nobody
// asked.
func ofRole(kind, role string, f discover.Facts, rights []discover.Right) []Condition {
	if rights == nil && !f.HasGap(discover.PartRights) {
		return nil
	}
	f.Rights = rights
	return granted(kind, role, f)
}

// locations wants one that is Available; of the others it tells.
func locations(f discover.Facts) []Condition {
	if f.Reach != discover.Reached || f.HasGap(discover.PartLocations) || lacksVelero(f) {
		return nil
	}
	var good, bad []string
	for _, at := range f.Velero.Locations {
		switch {
		case at.Phase == "":
			bad = append(bad, at.Name+" (not looked at by Velero yet)")
		case at.Phase != "Available":
			bad = append(bad, fmt.Sprintf("%s (%s: %s)", at.Name, at.Phase, at.Message))
		case isStale(at, f.Access.Now):
			bad = append(bad, at.Name+" (last looked at by Velero at "+stamp(at.LastValidated)+")")
		default:
			good = append(good, at.Name)
		}
	}
	hint := fmt.Sprintf("kubectl --context %s -n %s describe backupstoragelocations", f.Context, f.Velero.Namespace)
	if len(good) > 0 {
		return slices.Concat([]Condition{required(StorageAvailable, "Available: "+few(good))},
			found(Warn, LocationTrouble, "NotAvailable", bad, "not Available: %s", hint))
	}
	p := problem{reason: "NoneAvailable", message: "no storage location is Available: " + few(bad), objects: bad, hint: hint}
	if len(bad) == 0 {
		p.reason, p.message = "LocationMissing", "no BackupStorageLocation in namespace "+f.Velero.Namespace
		p.hint = "make one: velero backup-location create"
	}
	return []Condition{required(StorageAvailable, "", p)}
}
