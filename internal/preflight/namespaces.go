package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mig-cli/mig/internal/discover"
)

// Conditions of the namespaces.
const (
	NamespacesFound       = "NamespacesFound"       // every namespace of the plan is on the source
	NamespaceTerminating  = "NamespaceTerminating"  // it is being deleted; nothing can be read from or made in it
	DestinationOccupied   = "DestinationOccupied"   // objects are there already: Velero leaves such as they are, and says Completed
	DestinationInUse      = "DestinationInUse"      // the namespace holds other objects, which stay
	PodSecurityRestricted = "PodSecurityRestricted" // Velero's helper must run as root to clean up after a volume's restore
	PodSecurityDiffers    = "PodSecurityDiffers"    // pods that the source admits may be refused
)

const (
	enforceLabel = "pod-security.kubernetes.io/enforce"
	restricted   = "restricted"
)

func namespaceChecks() []check {
	return []check{namespacesFound, terminating, occupied, inUse, podSecurity}
}

func namespacesFound(l look) []Condition {
	if l.src.Reach != discover.Reached || l.src.HasGap(discover.PartNamespaces) {
		return nil
	}
	var missing []string
	for _, ns := range l.plan.SourceNamespaces() {
		if _, ok := l.src.Namespace(ns); !ok {
			missing = append(missing, ns)
		}
	}
	if len(missing) > 0 {
		return []Condition{required(NamespacesFound, "", problem{
			reason: "NamespaceMissing", objects: missing,
			message: fmt.Sprintf("not on the source (context %s): %s", l.src.Context, few(missing)),
			hint:    "see what there is with: kubectl --context " + l.src.Context + " get namespaces",
		})}
	}
	return []Condition{required(NamespacesFound, "on the source: "+few(l.plan.SourceNamespaces()))}
}

func terminating(l look) []Condition {
	var names []string
	for _, ns := range l.plan.SourceNamespaces() {
		if n, ok := l.src.Namespace(ns); ok && n.Phase == "Terminating" {
			names = append(names, ns+" on the source")
		}
		if n, ok := l.dst.Namespace(l.plan.DestinationNamespace(ns)); ok && n.Phase == "Terminating" {
			names = append(names, n.Name+" on the destination")
		}
	}
	return found(Error, NamespaceTerminating, "Terminating", names, "being deleted: %s", "wait until it is gone, or see what holds it with: kubectl get namespace NAME -o yaml")
}

// occupied finds objects of the plan that are on the destination already, and
// were not made by a run of this plan.
func occupied(l look) []Condition {
	met, _ := foreign(l)
	return found(Error, DestinationOccupied, "ObjectsExist", met, "on the destination already: %s: Velero would leave them as they are and say Completed",
		"choose another destination namespace in the plan, delete them there, or, if a run of mig made them: mig rollback")
}

// inUse tells of other objects in the destination's namespaces; they stay.
func inUse(l look) []Condition {
	_, others := foreign(l)
	var names []string
	for _, ns := range sortedKeys(others) {
		names = append(names, fmt.Sprintf("%s (%d)", ns, others[ns]))
	}
	return found(Advisory, DestinationInUse, "NotEmpty", names, "objects of others in namespaces of the destination: %s; they stay", "")
}

// foreign are the destination's objects that no run of this plan made and that
// nothing there would make again: those that a restore would meet, by name, and
// the number of the others, by namespace.
func foreign(l look) (met []string, others map[string]int) {
	planned := map[string]bool{}
	for _, o := range l.src.Objects {
		if slices.Contains(l.plan.SourceNamespaces(), o.Namespace) {
			planned[identity(o, l.plan.DestinationNamespace(o.Namespace))] = true
		}
	}
	others = map[string]int{}
	for _, o := range l.dst.Objects {
		switch {
		case o.Owned, o.OfPlan == l.plan.UID():
		case planned[identity(o, o.Namespace)]:
			met = append(met, objectName(o))
		default:
			others[o.Namespace]++
		}
	}
	return met, others
}

// identity leaves the version out: two versions of a kind are one object.
func identity(o discover.Object, namespace string) string {
	group, _, hasGroup := strings.Cut(o.APIVersion, "/")
	if !hasGroup {
		group = ""
	}
	return strings.Join([]string{group, o.Kind, namespace, o.Name}, "|")
}

func objectName(o discover.Object) string { return o.Kind + "/" + o.Namespace + "/" + o.Name }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// podSecurity compares what the namespaces enforce. Labels of a namespace that
// is not there yet will be the source's.
func podSecurity(l look) []Condition {
	var refused, stricter []string
	for _, ns := range l.plan.SourceNamespaces() {
		here, _ := l.src.Namespace(ns)
		there, exists := l.dst.Namespace(l.plan.DestinationNamespace(ns))
		level := here.Labels[enforceLabel]
		if exists {
			level = there.Labels[enforceLabel]
		}
		switch {
		case level == restricted && copiesIn(l, ns):
			refused = append(refused, l.plan.DestinationNamespace(ns))
		case exists && strictness(level) > strictness(here.Labels[enforceLabel]):
			stricter = append(stricter, fmt.Sprintf("%s (%s)", there.Name, level))
		}
	}
	return slices.Concat(
		found(Error, PodSecurityRestricted, "RestrictedEnforced", refused,
			"Pod Security restricted is enforced in %s on the destination, where volumes are restored: the helper that removes Velero's own marks from a volume must run as root",
			"enforce baseline for the migration: kubectl --context "+l.dst.Context+" label namespace NAME --overwrite "+enforceLabel+"=baseline (or on the source, where the namespace is not on the destination yet)"),
		found(Warn, PodSecurityDiffers, "StricterOnDestination", stricter, "Pod Security is stricter on the destination than on the source: %s: pods may be refused there", ""),
	)
}

func strictness(level string) int {
	return map[string]int{"": 0, "privileged": 0, "baseline": 1, restricted: 2}[level]
}

func copiesIn(l look, namespace string) bool {
	for _, v := range l.plan.Copied() {
		if strings.HasPrefix(v.Claim, namespace+"/") {
			return true
		}
	}
	return false
}
