package preflight

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mig-cli/mig/internal/discover"
)

// withVelero are the sides whose Velero was seen.
func (l look) withVelero() []side {
	return slices.DeleteFunc(l.reached(), func(s side) bool { return s.facts.HasGap(discover.PartVelero) || !s.facts.Velero.Server.Found })
}

// perSide gathers what there is to say of each side's Velero.
func (l look) perSide(say func(side) string) []string {
	var out []string
	for _, s := range l.withVelero() {
		if said := say(s); said != "" {
			out = append(out, s.name+" ("+said+")")
		}
	}
	return out
}

// newestMinor is the newest minor version of Velero 1 that mig was tested with.
const newestMinor = 18

func untested(l look) []Condition {
	newer := l.perSide(func(s side) string {
		apart, ok := minorsApart(fmt.Sprintf("v%d.%d.0", oldestMajor, newestMinor), s.facts.Velero.Server.Version)
		if ok && apart > 0 {
			return s.facts.Velero.Server.Version
		}
		return ""
	})
	return found(Advisory, VeleroUntested, "NewerThanTested", newer, fmt.Sprintf("Velero is newer than v%d.%d, the newest that mig was tested with: %%s", oldestMajor, newestMinor), "")
}

func versionUnknown(l look) []Condition {
	silent := l.perSide(func(s side) string {
		if s.facts.Velero.Server.Version == "" {
			return s.facts.Velero.Server.Image
		}
		return ""
	})
	return found(Advisory, VeleroVersionUnknown, "TagTellsNone", silent, "Velero's image does not tell its version: %s: whether it is one that mig works with is unknown", "")
}

func agentVersions(l look) []Condition {
	differ := l.perSide(func(s side) string {
		server, agent := s.facts.Velero.Server.Version, s.facts.Velero.NodeAgent.Version
		if server == "" || agent == "" || server == agent {
			return ""
		}
		return "server " + server + ", node-agent " + agent
	})
	return found(Warn, NodeAgentVersionDiffers, "VersionsDiffer", differ, "node-agent is of another version than its server: %s", "give both one image")
}

// features compares the flag that changes what a backup holds: with it, objects
// are kept in every version that the source serves.
func features(l look) []Condition {
	const flag = "EnableAPIGroupVersions"
	var with []string
	sides := l.withVelero()
	for _, s := range sides {
		if slices.Contains(s.facts.Velero.Server.Features, flag) {
			with = append(with, s.name+" ("+flag+")")
		}
	}
	if len(sides) < 2 || len(with) != 1 {
		return nil
	}
	return found(Warn, VeleroFeaturesDiffer, "OnOneSideOnly", with, "a feature flag of Velero that changes what a backup holds is on for one side only: %s", "start both servers with the same --features")
}

func uploader(l look) []Condition {
	restic := l.perSide(func(s side) string {
		if s.facts.Velero.Server.Uploader == "restic" {
			return "--uploader-type=restic"
		}
		return ""
	})
	return found(Error, UploaderUnsupported, "Restic", restic, "Velero copies volumes with restic: %s: newer versions cannot restore that, and mig works with kopia", "write --uploader-type=kopia into its arguments: kubectl --context CONTEXT -n velero edit deployment velero")
}

func restoreOnly(l look) []Condition {
	if !l.src.Velero.Server.RestoreOnly {
		return nil
	}
	return found(Error, VeleroRestoreOnly, "RestoreOnly", []string{l.src.Velero.Namespace + "/velero"}, "Velero's server %s on the source makes no backups (--restore-only)", fmt.Sprintf("take --restore-only out of its arguments: kubectl --context %s -n %s edit deployment velero", l.src.Context, l.src.Velero.Namespace))
}

func oadp(l look) []Condition {
	kept := l.perSide(func(s side) string {
		if s.facts.Velero.Server.OADP {
			return "namespace " + s.facts.Velero.Namespace
		}
		return ""
	})
	return found(Advisory, OADPManaged, "KeptByOADP", kept, "the OADP operator keeps Velero: %s: change it in its DataProtectionApplication, not beside it", "")
}

// shortestTTL is how long a backup should live at least: a run that was
// interrupted is taken up the next morning.
const shortestTTL = 24 * time.Hour

func expiry(l look) []Condition {
	ttl := l.src.Velero.Server.BackupTTL
	if ttl <= 0 || ttl >= shortestTTL {
		return nil
	}
	return found(Warn, BackupsExpireSoon, "ShortTTL", []string{"source (" + ttl.String() + ")"},
		"backups expire soon by Velero's --default-backup-ttl: %s: a run that is taken up later finds none and begins again", "give it a day or more")
}

// neverStaleBelow is how long a location may go without being looked at,
// whatever its frequency: a busy Velero is late.
const neverStaleBelow = 10 * time.Minute

// isStale says whether Velero has stopped looking at a location.
func isStale(l discover.Location, now time.Time) bool {
	every := time.Minute // Velero's own default
	if l.ValidatedEvery != nil {
		every = *l.ValidatedEvery
	}
	return every > 0 && !now.IsZero() && !l.LastValidated.IsZero() && now.Sub(l.LastValidated) > max(5*every, neverStaleBelow)
}

func storageWatched(l look) []Condition {
	blind := l.perSide(func(s side) string {
		at, ok := s.facts.Velero.Location(l.spec.Storage.Location)
		if ok && at.ValidatedEvery != nil && *at.ValidatedEvery == 0 {
			return at.Name
		}
		return ""
	})
	return found(Advisory, StorageNotWatched, "ValidationOff", blind, "Velero does not look whether the storage location is still there (validationFrequency: 0s): %s", "")
}

// storageTrust finds a store whose certificate only one side is told to trust:
// Velero's plugin may trust it there by other means and call the location
// Available, and the volumes' repository does not.
func storageTrust(l look) []Condition {
	s, d, ok := bothLocations(l)
	if !ok || s.Authority == d.Authority {
		return nil
	}
	lacks, has, location := l.sides[1], l.sides[0], d
	if d.Authority {
		lacks, has, location = has, lacks, s
	}
	if location.Config["insecureSkipTLSVerify"] == "true" {
		return nil
	}
	name := lacks.facts.Velero.Namespace + "/" + location.Name
	return risk(StorageTrustDiffers, "AuthorityMissing", []string{fmt.Sprintf("%s (of the %s, context %s)", name, lacks.name, lacks.facts.Context)},
		fmt.Sprintf("BackupStorageLocation %%s is not told which certificate authority to trust, and the %s's is: volumes may not be copied where the store's certificate is not trusted", has.name),
		fmt.Sprintf("set spec.objectStorage.caCert there, as on context %s", has.facts.Context))
}

func storageCredentials(l look) []Condition {
	broken := l.perSide(func(s side) string {
		at, ok := s.facts.Velero.Location(l.spec.Storage.Location)
		if !ok || at.Secret == nil || at.Secret.Flaw == "" {
			return ""
		}
		return fmt.Sprintf("Secret %s/%s %s", s.facts.Velero.Namespace, at.Secret.Name, at.Secret.Flaw)
	})
	return found(Error, StorageCredentialsBroken, "SecretUnusable", broken, "the credentials of storage location "+escaped(l.spec.Storage.Location)+" cannot work: %s",
		"write working credentials into the Secret that the location names; Velero reads it anew by itself")
}

// providerPlugins says why a location cannot work: its plugin is not among
// Velero's. One that is Available has proved that it is.
func providerPlugins(l look) []Condition {
	known := map[string]string{"aws": "plugin-for-aws", "azure": "plugin-for-microsoft-azure", "gcp": "plugin-for-gcp"}
	missing := l.perSide(func(s side) string {
		at, ok := s.facts.Velero.Location(l.spec.Storage.Location)
		provider := strings.TrimPrefix(at.Provider, "velero.io/")
		image := known[provider]
		if !ok || at.Phase == "Available" || image == "" ||
			slices.ContainsFunc(s.facts.Velero.Server.Plugins, func(p string) bool { return strings.Contains(p, image) }) {
			return ""
		}
		return "provider " + provider
	})
	return found(Error, ProviderPluginMissing, "NoPlugin", missing, "Velero has no plugin for the object store: %s", "velero plugin add IMAGE, whose name is velero-plugin-for-PROVIDER")
}

// classMaps tells of ConfigMaps that change storage classes in every restore of
// the destination. A run's own class is set after them; of two Velero takes none.
func classMaps(l look) []Condition {
	var maps []string
	for _, s := range l.sides {
		if s.name != "source" { // they matter where something is restored
			maps = append(maps, s.facts.Velero.ClassMaps...)
		}
	}
	if len(maps) > 1 {
		return found(Error, ClassMapsOfOthers, "TwoClassMaps", maps, "more than one ConfigMap is labelled velero.io/change-storage-class where volumes are restored: %s: Velero then restores no claim at all", "leave one of them the label")
	}
	return found(Warn, ClassMapsOfOthers, "ClassMapFound", maps, "a ConfigMap changes storage classes in every restore of the cluster: %s; it is left alone, the plan's classes are set after it", "")
}

func migControllers(l look) []Condition {
	alive := []string{}
	for _, s := range l.reached() {
		for _, c := range s.facts.Velero.MigControllers {
			alive = append(alive, fmt.Sprintf("%s on the %s (context %s)", c, s.name, s.facts.Context))
		}
	}
	return found(Warn, MigControllerAlive, "MigControllerAlive", alive, "a mig-controller runs: %s: its own migrations may stop the same workloads", "see that none of its MigMigrations runs")
}

// busy tells of what a run would wait for. The wait is before the application
// is stopped.
func busy(l look) []Condition {
	var waits []string
	for _, s := range l.withVelero() {
		place := 0
		for _, w := range s.facts.Velero.Busy {
			if w.OfPlan == l.plan.UID() {
				continue
			}
			place++
			waits = append(waits, fmt.Sprintf("%s %s on the %s (%s since %s, %s in the queue)", w.Kind, w.Name, s.name, w.Phase, stamp(w.Since), ordinal(place)))
		}
	}
	return found(Warn, VeleroBusy, "QueueNotEmpty", waits, "Velero does one thing at a time and has others to do first: %s: a run waits for them before it stops anything", "wait until they have ended, or find out why they do not")
}

func ordinal(n int) string {
	if n == 1 {
		return "first"
	}
	return fmt.Sprintf("number %d", n)
}

// agentPlaces: node-agent reads volumes through a directory of its node, for
// which SELinux wants it privileged.
func agentPlaces(l look) []Condition {
	if len(l.plan.Copied()) == 0 {
		return nil
	}
	return agentMounts(l)
}

func agentMounts(l look) []Condition {
	var blind, weak []string
	for _, s := range l.withVelero() {
		a := s.facts.Velero.NodeAgent
		name := s.facts.Velero.Namespace + "/node-agent on the " + s.name
		switch {
		case !a.Found:
		case a.HostPods == "":
			blind = append(blind, name+" (nothing is mounted at /host_pods)")
		case s.facts.OpenShift && !a.Privileged:
			weak = append(weak, name+" (context "+s.facts.Context+")")
		}
	}
	return slices.Concat(
		found(Error, NodeAgentHostPath, "NoHostPods", blind, "node-agent does not see the volumes of pods: %s", "mount the kubelet's directory, /var/lib/kubelet/pods, as the hostPath volume that Velero's installer makes"),
		found(Warn, NodeAgentUnprivileged, "NotPrivileged", weak, "node-agent is not privileged on OpenShift: %s: SELinux keeps it from volumes", "install with --privileged-node-agent, or set it in the DataProtectionApplication"),
	)
}

// agentEverywhere tells of nodes of the destination where no volume can be
// restored. The run's own pods keep away from them.
func agentEverywhere(l look) []Condition {
	if len(l.plan.Copied()) == 0 || !l.dst.Velero.NodeAgent.Found || l.dst.HasGap(discover.PartNodeAgent) {
		return nil
	}
	var without []string
	for _, n := range l.dst.Nodes {
		if n.Ready && !n.Unschedulable && !l.dst.Velero.NodeAgent.ReadyOn(n.Name) {
			without = append(without, n.Name)
		}
	}
	return found(Advisory, NodeAgentNotEverywhere, "NoReadyNodeAgent", without, "nodes of the destination without a ready node-agent: %s: no volume can be restored there", "")
}
