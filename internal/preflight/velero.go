package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mig-cli/mig/internal/discover"
)

// Conditions of Velero and of the storage between the clusters.
const (
	SourceVeleroReady           = "SourceVeleroReady"           // server and APIs of Velero are there and ready
	DestinationVeleroReady      = "DestinationVeleroReady"      // on the destination too
	NodeAgentMissing            = "NodeAgentMissing"            // Velero cannot read volumes of pods on these nodes
	SourceNodeAgentReady        = "SourceNodeAgentReady"        // node-agent is there to read volumes
	DestinationNodeAgentReady   = "DestinationNodeAgentReady"   // node-agent is there to write volumes
	SourceStorageAvailable      = "SourceStorageAvailable"      // Velero can use the plan's storage location
	DestinationStorageAvailable = "DestinationStorageAvailable" // on the destination too
	StorageShared               = "StorageShared"               // both locations are one place: same provider, bucket and prefix
	SourceStorageReadOnly       = "SourceStorageReadOnly"       // Velero refuses to back up there
	DestinationStorageReadOnly  = "DestinationStorageReadOnly"  // restores work, a new repository would not
	StorageWritableByBoth       = "StorageWritableByBoth"       // the destination's Velero expires and maintains the source's backups
	RepositoryPasswordShared    = "RepositoryPasswordShared"    // the destination can open what the source wrote
	VeleroVersionsDiffer        = "VeleroVersionsDiffer"        // a combination that nobody tested
	VeleroTooOld                = "VeleroTooOld"                // a run could not stop what hangs
	VeleroUntested              = "VeleroUntested"              // newer than what mig was tested with
	VeleroVersionUnknown        = "VeleroVersionUnknown"        // its image does not tell
	VeleroRestoreOnly           = "VeleroRestoreOnly"           // the source's makes no backups
	VeleroFeaturesDiffer        = "VeleroFeaturesDiffer"        // a flag that changes what is in a backup
	UploaderUnsupported         = "UploaderUnsupported"         // restic, which newer Veleros cannot restore
	OADPManaged                 = "OADPManaged"                 // changes belong into its DataProtectionApplication
	BackupsExpireSoon           = "BackupsExpireSoon"           // a run that is taken up later would find none
	StorageCredentialsBroken    = "StorageCredentialsBroken"    // the Secret of a location is missing, empty or no such thing
	StorageTrustDiffers         = "StorageTrustDiffers"         // one side trusts the store's certificate and the other may not
	StorageNotWatched           = "StorageNotWatched"           // Velero was told not to look whether it is there
	ProviderPluginMissing       = "ProviderPluginMissing"       // Velero cannot speak to the object store
	ClassMapsOfOthers           = "ClassMapsOfOthers"           // somebody else changes storage classes in every restore
	MigControllerAlive          = "MigControllerAlive"          // the reference system works beside us
	VeleroBusy                  = "VeleroBusy"                  // a run would wait for somebody else's backup or restore
	NodeAgentHostPath           = "NodeAgentHostPath"           // node-agent does not see the pods' volumes
	NodeAgentUnprivileged       = "NodeAgentUnprivileged"       // SELinux would keep it from them
	NodeAgentVersionDiffers     = "NodeAgentVersionDiffers"     // from its own server's
	NodeAgentNotEverywhere      = "NodeAgentNotEverywhere"      // nodes of the destination on which no volume can be restored
)

func veleroChecks() []check {
	return []check{
		func(l look) []Condition { return veleroReady(SourceVeleroReady, "source", l.src.Facts) },
		func(l look) []Condition { return veleroReady(DestinationVeleroReady, "destination", l.dst.Facts) },
		func(l look) []Condition { return agentReady(l, SourceNodeAgentReady, "source", l.src.Facts) },
		func(l look) []Condition { return agentReady(l, DestinationNodeAgentReady, "destination", l.dst.Facts) },
		agentOnNodes,
		func(l look) []Condition { return storageAvailable(l, SourceStorageAvailable, "source", l.src.Facts) },
		func(l look) []Condition {
			return storageAvailable(l, DestinationStorageAvailable, "destination", l.dst.Facts)
		},
		storageShared, storageTrust, storageWatched, storageCredentials, providerPlugins, accessModes, passwordShared,
		versions, tooOld, untested, versionUnknown, agentVersions, features, uploader, restoreOnly, oadp, expiry,
		classMaps, migControllers, busy, agentPlaces, agentEverywhere,
	}
}

func veleroReady(kind, side string, f discover.Facts) []Condition {
	if f.Reach != discover.Reached || f.HasGap(discover.PartVelero) {
		return nil // told elsewhere
	}
	v := f.Velero
	where := fmt.Sprintf("in namespace %s of the %s (context %s)", v.Namespace, side, f.Context)
	p := problem{hint: fmt.Sprintf("kubectl --context %s -n %s get deployments,pods", f.Context, v.Namespace)}
	switch {
	case !v.Server.Found && len(v.Elsewhere) > 0:
		p.reason, p.objects = "VeleroElsewhere", v.Elsewhere
		p.message = fmt.Sprintf("no Velero %s; there is one in %s", where, few(v.Elsewhere))
		p.hint = fmt.Sprintf("set spec.%s.veleroNamespace: %s", side, v.Elsewhere[0])
	case !v.Server.Found:
		p.reason, p.objects = "VeleroMissing", []string{v.Namespace}
		p.message = "no Velero " + where
		p.hint = "install it: https://velero.io/docs/main/basic-install, with --use-node-agent"
	case len(v.MissingAPIs) > 0:
		p.reason, p.objects = "VeleroAPIsMissing", v.MissingAPIs
		p.message = fmt.Sprintf("Velero %s lacks APIs of velero.io/v1: %s", where, few(v.MissingAPIs))
		p.hint = "install its CustomResourceDefinitions: velero install --crds-only"
	case v.Server.Ready == 0:
		p.reason, p.objects = "VeleroNotReady", []string{v.Namespace + "/velero"}
		p.message = fmt.Sprintf("Velero's server %s is not ready (%d of %d pods)", where, v.Server.Ready, v.Server.Wanted)
	default:
		return []Condition{required(kind, strings.TrimSpace("Velero "+v.Server.Version)+" is ready "+where)}
	}
	return []Condition{required(kind, "", p)}
}

// lacksVelero: where Velero is not there at all, that is told once, and not also
// of each of its parts.
func lacksVelero(f discover.Facts) bool {
	return !f.HasGap(discover.PartVelero) && !f.Velero.Server.Found
}

// agentReady asks for node-agent where volumes are copied: without volumes a
// migration needs none.
func agentReady(l look, kind, side string, f discover.Facts) []Condition {
	if len(l.plan.Copied()) == 0 {
		return nil
	}
	return agentIsReady(kind, side, f)
}

func agentIsReady(kind, side string, f discover.Facts) []Condition {
	if f.Reach != discover.Reached || f.HasGap(discover.PartNodeAgent) || lacksVelero(f) {
		return nil
	}
	a, ns := f.Velero.NodeAgent, f.Velero.Namespace
	where := fmt.Sprintf("in namespace %s of the %s (context %s)", ns, side, f.Context)
	switch {
	case !a.Found:
		return []Condition{required(kind, "", problem{
			reason: "NodeAgentMissing", objects: []string{ns + "/node-agent"}, message: "no node-agent " + where + ": Velero cannot copy volumes",
			hint: "install Velero with --use-node-agent",
		})}
	case a.Ready == 0:
		return []Condition{required(kind, "", problem{
			reason: "NodeAgentNotReady", objects: []string{ns + "/node-agent"},
			message: fmt.Sprintf("node-agent %s is ready on no node (of %d)", where, a.Wanted),
			hint:    fmt.Sprintf("kubectl --context %s -n %s describe daemonset node-agent", f.Context, ns),
		})}
	}
	return []Condition{required(kind, fmt.Sprintf("node-agent is ready on %d of %d nodes %s", a.Ready, a.Wanted, where))}
}

// agentOnNodes finds the copied volumes whose pod runs on a node without a ready
// node-agent: Velero leaves such a volume out.
func agentOnNodes(l look) []Condition {
	agent := l.src.Velero.NodeAgent
	if !agent.Found || l.src.HasGap(discover.PartNodeAgent) {
		return nil
	}
	var claims, nodes []string
	for _, c := range l.copied {
		for _, m := range c.Running() {
			if !agent.ReadyOn(m.Node) {
				claims = append(claims, fmt.Sprintf("%s (pod %s on %s)", c.Key(), m.Pod, m.Node))
				nodes = append(nodes, m.Node)
			}
		}
		// A volume of one node is mounted there, whichever pod mounts it.
		if len(c.Running()) == 0 && len(c.TiedTo) > 0 && !slices.ContainsFunc(c.TiedTo, agent.ReadyOn) {
			claims = append(claims, fmt.Sprintf("%s (its volume is on %s)", c.Key(), strings.Join(c.TiedTo, ", ")))
			nodes = append(nodes, c.TiedTo...)
		}
	}
	hint := fmt.Sprintf("see why with: kubectl --context %s -n %s get pods -o wide", l.src.Context, l.src.Velero.Namespace)
	if len(nodes) > 0 {
		hint += "; a taint of " + nodes[0] + " may need a toleration in the DaemonSet node-agent"
	}
	return found(Error, NodeAgentMissing, "NoReadyNodeAgent", claims, "no ready node-agent on the node of %s: Velero would leave the data out", hint)
}

func storageAvailable(l look, kind, side string, f discover.Facts) []Condition {
	if f.Reach != discover.Reached || f.HasGap(discover.PartLocations) || lacksVelero(f) {
		return nil
	}
	name, ns := l.spec.Storage.Location, f.Velero.Namespace
	where := fmt.Sprintf("BackupStorageLocation %s/%s of the %s (context %s)", ns, name, side, f.Context)
	location, ok := f.Velero.Location(name)
	p := problem{objects: []string{ns + "/" + name}}
	switch {
	case !ok:
		p.reason, p.message = "LocationMissing", "no "+where
		p.hint = "make one, or name another in spec.storage.location; there are: " + locationNames(f.Velero)
	case location.Phase == "":
		p.status, p.reason = Unknown, "LocationNotValidated"
		p.message = where + " was not looked at by Velero yet"
		p.hint = "wait a minute and try again; Velero's server must run"
	case location.Phase != "Available":
		p.reason = "LocationUnavailable"
		p.message = fmt.Sprintf("%s is %s: %s", where, location.Phase, location.Message)
		p.hint = fmt.Sprintf("kubectl --context %s -n %s describe backupstoragelocation %s", f.Context, ns, name)
	case isStale(location, f.Access.Now):
		p.reason = "LocationStale"
		p.message = fmt.Sprintf("%s was last looked at by Velero at %s: whether it still is Available nobody knows", where, stamp(location.LastValidated))
		p.hint = fmt.Sprintf("see whether Velero's server works: kubectl --context %s -n %s logs deployment/velero", f.Context, ns)
	default:
		return []Condition{required(kind, where+" is Available")}
	}
	return []Condition{required(kind, "", p)}
}

func locationNames(v discover.Velero) string {
	if len(v.Locations) == 0 {
		return "none"
	}
	names := make([]string, 0, len(v.Locations))
	for _, l := range v.Locations {
		names = append(names, l.Name)
	}
	return few(names)
}

func bothLocations(l look) (src, dst discover.Location, ok bool) {
	src, here := l.src.Velero.Location(l.spec.Storage.Location)
	dst, there := l.dst.Velero.Location(l.spec.Storage.Location)
	return src, dst, here && there
}

func storageShared(l look) []Condition {
	s, d, ok := bothLocations(l)
	if !ok {
		return nil
	}
	name := l.spec.Storage.Location
	if s.Provider == d.Provider && s.Bucket == d.Bucket && strings.Trim(s.Prefix, "/") == strings.Trim(d.Prefix, "/") && s.Config["region"] == d.Config["region"] {
		return []Condition{required(StorageShared, "both clusters use "+place(s))}
	}
	return []Condition{required(StorageShared, "", problem{
		reason: "LocationsDiffer", objects: []string{name},
		message: fmt.Sprintf("storage location %s is %s on the source and %s on the destination: nothing would arrive", name, place(s), place(d)),
		hint:    "name a BackupStorageLocation in spec.storage.location that has the same bucket, prefix and region on both",
	})}
}

// place is where a location keeps things, without what each cluster may say in
// its own way (the address by which it reaches the store).
func place(l discover.Location) string {
	said := fmt.Sprintf("%s bucket %s", l.Provider, l.Bucket)
	if l.Prefix != "" {
		said += " prefix " + l.Prefix
	}
	if region := l.Config["region"]; region != "" {
		said += " region " + region
	}
	return said
}

// accessModes: a source that may not write cannot back up; a destination that
// may also write expires and maintains what is the source's.
func accessModes(l look) []Condition {
	s, d, ok := bothLocations(l)
	if !ok {
		return nil
	}
	name := []string{l.spec.Storage.Location}
	var out []Condition
	if s.AccessMode == "ReadOnly" {
		out = append(out, found(Error, SourceStorageReadOnly, "ReadOnly", name, "storage location %s is ReadOnly on the source: Velero refuses to back up there",
			fmt.Sprintf("kubectl --context %s -n %s patch backupstoragelocation %s --type merge -p '{\"spec\":{\"accessMode\":\"ReadWrite\"}}'", l.src.Context, l.src.Velero.Namespace, name[0]))...)
	}
	if d.AccessMode == "ReadOnly" {
		return append(out, found(Advisory, DestinationStorageReadOnly, "ReadOnly", name,
			"storage location %s is ReadOnly on the destination: its credentials must still be able to write, for the logs of restores", "")...)
	}
	return append(out, found(Advisory, StorageWritableByBoth, "ReadWrite", name,
		"storage location %s is ReadWrite on the destination: its Velero expires the source's backups too, when their time has come", "")...)
}

func passwordShared(l look) []Condition {
	both := l.src.Reach == discover.Reached && l.dst.Reach == discover.Reached
	if !both || lacksVelero(l.src.Facts) || lacksVelero(l.dst.Facts) || l.src.HasGap(discover.PartRepository) || l.dst.HasGap(discover.PartRepository) || len(l.plan.Copied()) == 0 {
		return nil
	}
	const secret = "velero-repo-credentials"
	s, d := l.src.Velero.RepoCredentials, l.dst.Velero.RepoCredentials
	p := problem{objects: []string{l.src.Velero.Namespace + "/" + secret, l.dst.Velero.Namespace + "/" + secret}}
	switch {
	case s == "" || d == "":
		p.status, p.reason = Unknown, "PasswordMissing"
		p.message = "Secret " + secret + " is not in Velero's namespace on both clusters: whether the destination could read the volumes cannot be told"
		p.hint = "Velero's server makes it when it starts"
	case s != d:
		p.reason = "PasswordsDiffer"
		p.message = "the password in Secret " + secret + " differs between the clusters: the destination could not read the volumes"
		p.hint = fmt.Sprintf("before the destination's Velero has written anything: copy the Secret from context %s (namespace %s) to context %s (namespace %s) and restart Velero there",
			l.src.Context, l.src.Velero.Namespace, l.dst.Context, l.dst.Velero.Namespace)
	default:
		return []Condition{required(RepositoryPasswordShared, "both clusters have the same repository password")}
	}
	return []Condition{required(RepositoryPasswordShared, "", p)}
}

// versions compares the servers. A newer destination reads what an older source
// wrote, one minor version at a time; an older one may not.
func versions(l look) []Condition {
	s, d := l.src.Velero.Server.Version, l.dst.Velero.Server.Version
	if s == "" || d == "" || minor(s) == minor(d) {
		return nil
	}
	shown := []string{"source (" + s + ")", "destination (" + d + ")"}
	if apart, ok := minorsApart(s, d); ok && apart == 1 {
		return found(Warn, VeleroVersionsDiffer, "DestinationNewer", shown, "Velero is of two versions: %s", "upgrade the source's, so that both are tested together")
	}
	return risk(VeleroVersionsDiffer, "VersionsDiffer", shown, "Velero is of two versions: %s: the destination's may not read what the source's writes", "bring both to one version")
}

// minorsApart is how many minor versions the second is newer; not ok across
// major versions.
func minorsApart(a, b string) (int, bool) {
	var majorA, minorA, majorB, minorB int
	n, _ := fmt.Sscanf(a, "v%d.%d.", &majorA, &minorA)
	m, _ := fmt.Sscanf(b, "v%d.%d.", &majorB, &minorB)
	return minorB - minorA, n == 2 && m == 2 && majorA == majorB
}

// The oldest Velero whose volume copies can be cancelled (spec.cancel of
// PodVolumeBackups and PodVolumeRestores); without it a claim that cannot bind
// blocks every restore of the cluster for hours.
const oldestMajor, oldestMinor = 1, 17

func tooOld(l look) []Condition {
	old := l.perSide(func(s side) string {
		var major, minor int
		version := s.facts.Velero.Server.Version
		if n, _ := fmt.Sscanf(version, "v%d.%d.", &major, &minor); n < 2 {
			return "" // not told by the image's tag
		}
		if major < oldestMajor || (major == oldestMajor && minor < oldestMinor) {
			return version
		}
		return ""
	})
	return found(Error, VeleroTooOld, "BelowOldest", old, fmt.Sprintf("Velero is older than v%d.%d, whose volume copies cannot be stopped: %%s", oldestMajor, oldestMinor), fmt.Sprintf("upgrade Velero, server and node-agent, to v%d.%d or newer; then see: mig cluster check CONTEXT", oldestMajor, oldestMinor))
}

// minor is major.minor of a version.
func minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}
