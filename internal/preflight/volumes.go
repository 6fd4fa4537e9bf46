package preflight

import (
	"fmt"
	"slices"

	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/plan"
)

// Conditions of the volumes.
const (
	ActionsChosen       = "ActionsChosen"       // every volume of the plan has an action
	ClaimNotInPlan      = "ClaimNotInPlan"      // nothing says what happens to its data
	ClaimVanished       = "ClaimVanished"       // the plan's claim is no longer on the source
	ClaimNotBound       = "ClaimNotBound"       // there is no volume to copy
	ClaimTerminating    = "ClaimTerminating"    // it is being deleted
	BlockVolume         = "BlockVolume"         // Velero's file-system backup cannot read it
	HostPathVolume      = "HostPathVolume"      // Velero's file-system backup refuses it
	StorageClassMissing = "StorageClassMissing" // the claim could never bind on the destination
	StorageClassUnset   = "StorageClassUnset"   // it takes the destination's default, and there is none
	SizeTooSmall        = "SizeTooSmall"        // smaller than on the source
	VolumeSkipped       = "VolumeSkipped"       // by the plan: the data stays behind
	UsedUnknown         = "UsedUnknown"         // how many bytes are to be copied cannot be told
	VolumeFull          = "VolumeFull"          // a restore needs a little more room than the data
	ReadOnlyClaim       = "ReadOnlyClaim"       // nothing can be restored into it
	AccessModesUnfit    = "AccessModesUnfit"    // the class's provisioner cannot make such volumes
	ClassUnreachable    = "ClassUnreachable"    // no node is where the class makes volumes
	TemplateClassGone   = "TemplateClassGone"   // later replicas of a StatefulSet would get no volume
	ExpansionLost       = "ExpansionLost"       // volumes could grow, and no longer can
	ReclaimDiffers      = "ReclaimDiffers"      // volumes go with their claims, and did not
	StaticVolume        = "StaticVolume"        // made by hand; the copy is a new volume
	FreeVolumeFits      = "FreeVolumeFits"      // a claim may bind to a volume of somebody else's data
	QuotaTooSmall       = "QuotaTooSmall"       // for the claims of a namespace
	CapacityTooSmall    = "CapacityTooSmall"    // what the storage says that it has left
)

func volumeChecks() []check {
	return []check{
		actionsChosen, notInPlan, vanished, unusable, readOnly, classes, accessFit, topologies, templates, sizes, full, usedUnknown,
		quotas, capacity, freeVolumes, statics, expansion, reclaim, skipped,
	}
}

func seesClaims(l look) bool {
	return l.src.Reach == discover.Reached && !l.src.HasGap(discover.PartClaims)
}

func actionsChosen(l look) []Condition {
	var open []string
	for _, v := range l.spec.Volumes {
		if v.Action == "" {
			open = append(open, v.Claim)
		}
	}
	if len(open) > 0 {
		return []Condition{required(ActionsChosen, "", problem{
			reason: "ActionNotChosen", objects: open, message: "select an action for " + few(open),
			hint: "write action: copy or action: skip for it in the plan's volumes",
		})}
	}
	return []Condition{required(ActionsChosen, fmt.Sprintf("volumes copied: %d, skipped: %d", len(l.plan.Copied()), len(l.spec.Volumes)-len(l.plan.Copied())))}
}

func notInPlan(l look) []Condition {
	planned := map[string]bool{}
	for _, v := range l.spec.Volumes {
		planned[v.Claim] = true
	}
	var names []string
	for _, c := range l.src.Claims {
		if !planned[c.Key()] && c.EphemeralOf == "" { // such a one comes and goes with its pod
			names = append(names, c.Key())
		}
	}
	return found(Error, ClaimNotInPlan, "ClaimNotInPlan", names, "on the source and not in the plan: %s: nothing says what happens to the data",
		"mig pv discover "+l.plan.Name()+" --update adds them to the plan")
}

func vanished(l look) []Condition {
	if !seesClaims(l) {
		return nil
	}
	var names []string
	for _, v := range l.spec.Volumes {
		if _, ok := l.claims[v.Claim]; !ok && v.Action != plan.Skip {
			names = append(names, v.Claim)
		}
	}
	return found(Error, ClaimVanished, "ClaimVanished", names, "in the plan and not on the source: %s", "take them out of the plan's volumes, or find out who deleted them")
}

// unusable finds copied volumes that Velero would leave out without an error.
func unusable(l look) []Condition {
	var unbound, deleted, block, hostPath []string
	for _, c := range l.copied {
		switch {
		case c.Terminating:
			deleted = append(deleted, c.Key())
		case c.Phase != "Bound":
			unbound = append(unbound, fmt.Sprintf("%s (%s)", c.Key(), c.Phase))
		case c.VolumeMode == "Block":
			block = append(block, c.Key())
		case c.Backend == "hostPath":
			hostPath = append(hostPath, c.Key())
		}
	}
	const skip = "write action: skip for it in the plan, and bring the data over by other means"
	return slices.Concat(
		found(Error, ClaimNotBound, "NotBound", unbound, "bound to no volume: %s: there is no data to copy", "write action: skip for it in the plan"),
		found(Error, ClaimTerminating, "BeingDeleted", deleted, "being deleted on the source: %s", "wait until it is gone, then take it out of the plan's volumes"),
		found(Error, BlockVolume, "BlockMode", block, "block volumes, which Velero's file-system backup cannot read: %s", skip),
		found(Error, HostPathVolume, "HostPath", hostPath, "hostPath volumes, which Velero's file-system backup leaves out: %s", skip),
	)
}

// classes finds claims that could never bind on the destination: a restore
// would hang on each for hours.
func classes(l look) []Condition {
	if l.dst.Reach != discover.Reached || l.dst.HasGap(discover.PartStorageClasses) {
		return nil
	}
	var missing, unset []string
	for _, v := range l.plan.Copied() {
		class := l.plan.DestinationClass(v)
		if class == "" {
			if _, ok := l.dst.DefaultStorageClass(); !ok || l.claims[v.Claim].NoClass {
				unset = append(unset, v.Claim)
			}
			continue
		}
		if _, ok := l.dst.StorageClass(class); !ok {
			missing = append(missing, fmt.Sprintf("%s (class %s)", v.Claim, class))
		}
	}
	hint := "map the class in the plan's storageClasses, or write destination: {storageClass: …} for the volume; the destination has: " + classNames(l.dst.Facts)
	return slices.Concat(
		found(Error, StorageClassMissing, "StorageClassMissing", missing, "no such storage class on the destination: %s", hint),
		found(Error, StorageClassUnset, "NoDefaultClass", unset, "no storage class is set for %s, and no default of the destination applies", hint),
	)
}

func classNames(f discover.Facts) string {
	if len(f.StorageClasses) == 0 {
		return "none"
	}
	names := make([]string, 0, len(f.StorageClasses))
	for _, c := range f.StorageClasses {
		names = append(names, c.Name)
	}
	return few(names)
}

func skipped(l look) []Condition {
	var names []string
	for _, v := range l.spec.Volumes {
		if v.Action == plan.Skip {
			names = append(names, v.Claim)
		}
	}
	return found(Advisory, VolumeSkipped, "SkippedByPlan", names, "by the plan neither claim nor data goes along: %s", "")
}
