package preflight

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/plan"
)

// onDestination is a copied volume as it will be there.
type onDestination struct {
	plan.Volume
	claim     discover.Claim // on the source
	namespace string
	class     discover.StorageClass // zero where the destination does not have it
	known     bool                  // the class is there
}

// plannedVolumes are the copied volumes whose claim was seen, as they will be.
func plannedVolumes(l look) []onDestination {
	var out []onDestination
	for _, v := range l.plan.Copied() {
		c, ok := l.claims[v.Claim]
		if !ok {
			continue
		}
		class, known := l.dst.StorageClass(l.plan.DestinationClass(v))
		if l.plan.DestinationClass(v) == "" && !c.NoClass {
			class, known = l.dst.DefaultStorageClass()
		}
		out = append(out, onDestination{v, c, l.plan.DestinationNamespace(v.Namespace()), class, known})
	}
	return out
}

// modes are the access modes that the claim will have.
func (v onDestination) modes() []string {
	if len(v.Destination.AccessModes) > 0 {
		return v.Destination.AccessModes
	}
	return v.claim.AccessModes
}

// size is what the claim will ask for; nil where it cannot be read.
func (v onDestination) size() *resource.Quantity {
	return quantity(orElse(v.Destination.Size, v.claim.Requested))
}

func orElse(s, other string) string {
	if s != "" {
		return s
	}
	return other
}

// used is how full the volume is, as seen now, else as the plan says; 0: unknown.
func (v onDestination) used() int64 {
	if v.claim.UsedBytes > 0 {
		return v.claim.UsedBytes
	}
	if q := quantity(v.Used); q != nil {
		return q.Value()
	}
	return 0
}

// readOnly finds claims that may only ever be read: nothing can be restored into
// such a one.
func readOnly(l look) []Condition {
	var names []string
	for _, v := range l.planned {
		if modes := v.modes(); len(modes) > 0 && !slices.ContainsFunc(modes, func(m string) bool { return m != "ReadOnlyMany" }) {
			names = append(names, v.Claim+" (ReadOnlyMany)")
		}
	}
	return found(Error, ReadOnlyClaim, "ReadOnlyOnly", names, "claims that may only be read: %s: their data could not be written on the destination",
		"write destination: {accessModes: [ReadWriteMany]} for it in the plan, and let the pods mount it read-only")
}

// accessFit finds shared volumes on classes whose disks one node at a time can
// mount.
func accessFit(l look) []Condition {
	var names []string
	for _, v := range l.planned {
		if v.known && v.claim.VolumeMode != "Block" && !v.class.FitsModes(v.modes()) {
			names = append(names, fmt.Sprintf("%s (%s by class %s of %s)", v.Claim, strings.Join(v.modes(), ", "), v.class.Name, v.class.Provisioner))
		}
	}
	return risk(AccessModesUnfit, "OneNodeOnly", names, "volumes that several nodes mount, on a class that makes disks for one node: %s: the claim would wait for ever",
		"give it another class or accessModes in the plan's destination of the volume")
}

// topologies finds classes that make volumes only where the destination has no
// node.
func topologies(l look) []Condition {
	if len(l.dst.Nodes) == 0 {
		return nil // not known, or a cluster without nodes, where nothing runs at all
	}
	var names []string
	for _, v := range l.planned {
		if len(v.class.Topologies) > 0 && !slices.ContainsFunc(l.dst.Nodes, func(n discover.Node) bool { return isIn(n, v.class.Topologies) }) {
			names = append(names, fmt.Sprintf("%s (class %s)", v.Claim, v.class.Name))
		}
	}
	return found(Error, ClassUnreachable, "NoNodeInTopology", names, "the class makes volumes only where the destination has no node: %s",
		"give it another class in the plan's destination of the volume")
}

func isIn(n discover.Node, topologies []map[string][]string) bool {
	return slices.ContainsFunc(topologies, func(want map[string][]string) bool {
		for key, values := range want {
			if !slices.Contains(values, n.Labels[key]) {
				return false
			}
		}
		return true
	})
}

// templates finds StatefulSets whose later replicas would ask for a class that
// the destination does not have. The claims that are copied get theirs.
func templates(l look) []Condition {
	if l.dst.Reach != discover.Reached || l.dst.HasGap(discover.PartStorageClasses) {
		return nil
	}
	var names []string
	for _, w := range l.src.Workloads {
		for _, class := range w.TemplateClasses {
			to := orElse(l.spec.StorageClasses[class], class)
			if _, ok := l.dst.StorageClass(to); !ok && !l.ownClasses(w, class) {
				names = append(names, fmt.Sprintf("%s (class %s)", w.Key(), to))
			}
		}
	}
	return found(Warn, TemplateClassGone, "TemplateClassMissing", names, "StatefulSets whose claim templates ask for a class that the destination lacks: %s: later replicas would get no volume",
		"map the class in the plan's storageClasses")
}

// ownClasses says whether the claims that a set made of a class have each been
// given their own: its template gets that one too.
func (l look) ownClasses(w discover.Workload, class string) bool {
	made := false
	for _, v := range l.planned {
		if v.claim.Namespace != w.Namespace || v.claim.StatefulSet != w.Name || v.StorageClass != class {
			continue
		}
		if !v.known {
			return false
		}
		made = true
	}
	return made
}

// slack is what a restore needs beside the data: marks, and the blocks of
// directories that another file system counts otherwise.
func slack(used int64) int64 { return max(used/20, 16<<20) }

// sizes finds volumes that the plan makes smaller than they are.
func sizes(l look) []Condition {
	var unknown, tooSmall []string
	for _, v := range l.planned {
		if !isSmaller(v.Destination.Size, v.claim.Capacity) {
			continue
		}
		switch used := v.used(); {
		case used == 0:
			unknown = append(unknown, fmt.Sprintf("%s (%s, was %s)", v.Claim, v.Destination.Size, v.claim.Capacity))
		case v.size() != nil && v.size().Value() < used+slack(used):
			tooSmall = append(tooSmall, fmt.Sprintf("%s (%s for %s in use)", v.Claim, v.Destination.Size, bytes(used)))
		}
	}
	return slices.Concat(
		found(Error, SizeTooSmall, "SmallerThanUsed", tooSmall, "the data would not fit: %s", "write a larger destination size for it in the plan"),
		risk(SizeTooSmall, "SmallerThanSource", unknown, "smaller on the destination than on the source: %s: how much is used is not known", ""),
	)
}

// full finds volumes so full that a restore of the same size may not fit.
func full(l look) []Condition {
	var names []string
	for _, v := range l.planned {
		used, size := v.claim.UsedBytes, v.claim.SizeBytes
		if used == 0 || size == 0 || size-used >= slack(used) {
			continue
		}
		if want := v.size(); want == nil || want.Value() < used+slack(used) || !isSmaller(v.claim.Capacity, v.Destination.Size) {
			names = append(names, fmt.Sprintf("%s (%d%% of %s; write size: %s)", v.Claim, used*100/size, v.claim.Capacity, larger(v.claim.Capacity)))
		}
	}
	return found(Warn, VolumeFull, "NoRoomLeft", names, "volumes that are full: %s: a restore needs a little more room than the data",
		"write a larger destination: {size: …} for it in the plan")
}

// larger is a fifth more.
func larger(capacity string) string {
	q := quantity(capacity)
	if q == nil {
		return "a fifth more"
	}
	return bytes(q.Value() + q.Value()/5)
}

// bytes is a quantity in whole Mi, rounded up, or Gi where it comes out even.
func bytes(n int64) string {
	const mi = 1 << 20
	return resource.NewQuantity((n+mi-1)/mi*mi, resource.BinarySI).String()
}

func usedUnknown(l look) []Condition {
	var names []string
	for _, v := range l.planned {
		if v.used() == 0 {
			names = append(names, v.Claim)
		}
	}
	return found(Advisory, UsedUnknown, "NotMeasured", names, "how much of these volumes is in use is unknown, and so how long a copy takes: %s", "")
}

// quotas adds up what the claims of a namespace need against what its quotas on
// the destination have left.
func quotas(l look) []Condition {
	if len(l.dst.Quotas) == 0 {
		return nil
	}
	var names []string
	needs := l.needs()
	for _, q := range l.dst.Quotas {
		need := needs[q.Namespace]
		for _, name := range sortedKeys(need) {
			hard, used := quantity(q.Hard[name]), quantity(orElse(q.Used[name], "0"))
			if hard == nil || used == nil {
				continue
			}
			left := hard.DeepCopy()
			left.Sub(*used)
			if left.Cmp(*need[name]) < 0 {
				names = append(names, fmt.Sprintf("%s/%s (%s: %s used of %s, %s more needed)", q.Namespace, q.Name, name, used, hard, need[name]))
			}
		}
	}
	return found(Error, QuotaTooSmall, "QuotaExceeded", names, "quotas of the destination leave no room for the claims: %s", "raise the quota: kubectl --context "+l.dst.Context+" edit resourcequota NAME -n NAMESPACE; or write action: skip for volumes in the plan")
}

// needs is what the plan's claims add to each namespace of the destination, by
// the names that quotas give it. Claims that are there already are counted by
// the quota itself.
func (l look) needs() map[string]map[string]*resource.Quantity {
	there := map[string]bool{}
	for _, o := range l.dst.Objects {
		if o.Kind == "PersistentVolumeClaim" {
			there[o.Namespace+"/"+o.Name] = true
		}
	}
	out := map[string]map[string]*resource.Quantity{}
	one := resource.MustParse("1")
	for _, v := range l.planned {
		size := v.size()
		if there[v.namespace+"/"+v.Name()] || size == nil {
			continue
		}
		if out[v.namespace] == nil {
			out[v.namespace] = map[string]*resource.Quantity{}
		}
		of := out[v.namespace]
		add(of, "persistentvolumeclaims", one)
		add(of, "requests.storage", *size)
		if v.class.Name != "" {
			add(of, v.class.Name+".storageclass.storage.k8s.io/persistentvolumeclaims", one)
			add(of, v.class.Name+".storageclass.storage.k8s.io/requests.storage", *size)
		}
	}
	return out
}

func add(to map[string]*resource.Quantity, name string, q resource.Quantity) {
	if to[name] == nil {
		to[name] = &resource.Quantity{Format: q.Format}
	}
	to[name].Add(q)
}

// capacity compares each claim with the largest volume that its driver says it
// can still make. Drivers that do not say are not guessed at.
func capacity(l look) []Condition {
	largest := map[string]*resource.Quantity{}
	for _, c := range l.dst.Capacity {
		q := quantity(orElse(c.Largest, c.Left))
		if q != nil && (largest[c.StorageClass] == nil || largest[c.StorageClass].Cmp(*q) < 0) {
			largest[c.StorageClass] = q
		}
	}
	var names []string
	for _, v := range l.planned {
		most, size := largest[v.class.Name], v.size()
		if most != nil && size != nil && size.Cmp(*most) > 0 {
			names = append(names, fmt.Sprintf("%s (%s, class %s has %s)", v.Claim, size, v.class.Name, most))
		}
	}
	return found(Warn, CapacityTooSmall, "StorageFull", names, "the storage of the destination says that it has no room: %s", "make room, or give the volume another class")
}

// freeVolumes finds volumes on the destination that a claim may bind to before
// a new one is made for it: what is in there is somebody else's.
func freeVolumes(l look) []Condition {
	var names []string
	for _, v := range l.planned {
		to := v.namespace + "/" + v.Name()
		for _, free := range l.dst.FreeVolumes {
			if fits(free, v, l.plan.DestinationClass(v.Volume), to) {
				names = append(names, fmt.Sprintf("%s (PersistentVolume %s, %s)", v.Claim, free.Name, free.Capacity))
			}
		}
	}
	return risk(FreeVolumeFits, "FitsByAccident", names, "a free volume of the destination fits by accident: %s: the claim may bind to it, and get or destroy what is in there",
		"delete it, reserve it with a claimRef, or give the volume another class in the plan")
}

func fits(free discover.FreeVolume, v onDestination, class, to string) bool {
	if class == "" && v.known {
		class = v.class.Name
	}
	have, want := quantity(free.Capacity), v.size()
	return free.StorageClass == class && free.VolumeMode == v.claim.VolumeMode && (free.ReservedFor == "" || free.ReservedFor == to) &&
		have != nil && want != nil && have.Cmp(*want) >= 0 && isSubset(v.modes(), free.AccessModes)
}

func isSubset(some, of []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(of, s) })
}

// statics tells of volumes that somebody made by hand: their copy is another
// volume, and the place stays the source's.
func statics(l look) []Condition {
	var names []string
	for _, v := range l.planned {
		if v.claim.Static && v.claim.Volume != "" && v.claim.Where != "" {
			names = append(names, fmt.Sprintf("%s (%s)", v.Claim, v.claim.Where))
		}
	}
	return found(Advisory, StaticVolume, "MadeByHand", names, "volumes that were made by hand: %s: the data is copied into a new volume, the place itself stays the source's", "")
}

func expansion(l look) []Condition {
	return l.classChange(ExpansionLost, "NotExpandable", "volumes could grow on the source and cannot on the destination: %s", func(from, to discover.StorageClass) bool {
		return from.Expandable && !to.Expandable
	})
}

func reclaim(l look) []Condition {
	return l.classChange(ReclaimDiffers, "DeletedWithClaim", "volumes were kept when their claim went, and on the destination go with it: %s", func(from, to discover.StorageClass) bool {
		return from.Reclaim == "Retain" && to.Reclaim == "Delete"
	})
}

// classChange tells of volumes whose class differs in a way that is good to know.
func (l look) classChange(kind, reason, message string, differs func(from, to discover.StorageClass) bool) []Condition {
	var names []string
	for _, v := range l.planned {
		from, ok := l.src.StorageClass(v.claim.StorageClass)
		if ok && v.known && differs(from, v.class) {
			names = append(names, fmt.Sprintf("%s (class %s → %s)", v.Claim, from.Name, v.class.Name))
		}
	}
	return found(Advisory, kind, reason, names, message, "")
}
