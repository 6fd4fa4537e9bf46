package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/naming"
)

// Conditions of the namespaces.
const (
	NamespacesFound       = "NamespacesFound"       // every namespace of the plan is on the source
	NamespaceTerminating  = "NamespaceTerminating"  // it is being deleted; nothing can be read from or made in it
	DestinationOccupied   = "DestinationOccupied"   // objects are there already: Velero leaves such as they are, and says Completed
	DestinationInUse      = "DestinationInUse"      // the namespace holds other objects, which stay
	PodSecurityRestricted = "PodSecurityRestricted" // Velero's helper must run as root to clean up after a volume's restore
	PodSecurityDiffers    = "PodSecurityDiffers"    // pods that the source admits may be refused
	NamespaceDiffers      = "NamespaceDiffers"      // it is there already, and stays as it is
	UIDRangesDiffer       = "UIDRangesDiffer"       // OpenShift would run pods as users who do not own the files
	NamespaceRefused      = "NamespaceRefused"      // the destination's rules do not let it be made
	PlanConflict          = "PlanConflict"          // another plan works, or has worked, on the same namespaces
	MigratedBefore        = "MigratedBefore"        // by another plan, to its end
)

const (
	enforceLabel = naming.PodSecurity
	restricted   = naming.PodSecurityRestricted
)

func namespaceChecks() []check {
	return []check{namespacesFound, terminating, refusedNamespaces, conflicts, occupied, inUse, differs, uidRanges, podSecurity}
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
	var at []string // the contexts
	for _, ns := range l.plan.SourceNamespaces() {
		if n, ok := l.src.Namespace(ns); ok && n.Phase == phaseTerminating {
			names, at = append(names, ns+" on the source"+since(n, nil)), append(at, l.src.Context)
		}
		if n, ok := l.dst.Namespace(l.plan.DestinationNamespace(ns)); ok && n.Phase == phaseTerminating {
			names, at = append(names, n.Name+" on the destination"+since(n, l.dst.Objects)), append(at, l.dst.Context)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return found(Error, NamespaceTerminating, "Terminating", names, "being deleted: %s",
		fmt.Sprintf("wait until it is gone, or see what holds it with: kubectl --context %s get namespace %s -o yaml", at[0], strings.Fields(names[0])[0]))
}

const phaseTerminating = "Terminating"

// since says since when a namespace is being deleted, and what holds it: the
// objects with finalizers where they were seen, else what the cluster says.
func since(n discover.Namespace, objects []discover.Object) string {
	var said []string
	if !n.Since.IsZero() {
		said = append(said, "since "+stamp(n.Since))
	}
	var held []string
	for _, o := range objects {
		if o.Namespace == n.Name && len(o.Finalizers) > 0 {
			held = append(held, fmt.Sprintf("%s/%s with finalizer %s", o.Kind, o.Name, strings.Join(o.Finalizers, ", ")))
		}
	}
	if len(held) == 0 {
		held = n.HeldBy
	}
	if len(held) > 0 {
		said = append(said, "held by "+few(held))
	}
	if len(said) == 0 {
		return ""
	}
	return " (" + strings.Join(said, ", ") + ")"
}

// refusedNamespaces are those that the destination's own rules would not let a
// run make: a server-side dry run asked.
func refusedNamespaces(l look) []Condition {
	var names []string
	for _, r := range l.dst.Refused {
		names = append(names, fmt.Sprintf("%s (%s)", r.Object, r.Why))
	}
	return found(Error, NamespaceRefused, "DryRunRefused", names, "the destination would not let these namespaces be made: %s",
		"give the namespace on the source the labels that the rule asks for, or have it made on the destination before: it is then taken as it is")
}

// runNotEnded is the reason of a conflict with a run that is said to run.
const runNotEnded = "RunNotEnded"

// conflicts finds other plans with the same namespaces. A running one may be
// alive; one that has ended badly may have left things behind.
func conflicts(l look) []Condition {
	var running, open, done []string
	told := map[string]bool{}
	for _, side := range []struct {
		side
		namespaces []string
	}{{side{"source", l.src.Facts}, l.plan.SourceNamespaces()}, {side{"destination", l.dst.Facts}, l.destinationNamespaces()}} {
		for _, p := range side.facts.Plans {
			shared := common(p.Namespaces, side.namespaces)
			if p.UID == l.plan.UID() || len(shared) == 0 || told[p.UID] {
				continue
			}
			told[p.UID] = true
			shown := fmt.Sprintf("plan %s (%s %s of %s is %s; namespaces %s)", p.Name, p.Kind, p.Run, stamp(p.Started), p.State, few(shared))
			switch p.State {
			case "Running":
				running = append(running, shown)
			case "Failed", "Interrupted":
				open = append(open, shown)
			case "Completed":
				done = append(done, shown)
			}
		}
	}
	return slices.Concat(
		found(Error, PlanConflict, runNotEnded, running, "another run works on the same namespaces, or was killed at it: %s", "wait until it has ended; if nobody drives it: mig rollback with that plan's file"),
		risk(PlanConflict, "RunEndedBadly", open, "another plan's run on the same namespaces did not come to its end: %s: what it left behind may be in the way", "go on with that plan, or take it back with: mig rollback and its file"),
		found(Advisory, MigratedBefore, "CompletedBefore", done, "another plan has migrated the same namespaces: %s", ""),
	)
}

func (l look) destinationNamespaces() []string {
	var out []string
	for _, ns := range l.plan.SourceNamespaces() {
		out = append(out, l.plan.DestinationNamespace(ns))
	}
	return out
}

func common(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}

// Marks of OpenShift on a namespace: which users and SELinux levels its pods run
// with. A new namespace takes the source's along.
func openShiftMarks() []string {
	return []string{"openshift.io/sa.scc.uid-range", "openshift.io/sa.scc.supplemental-groups", "openshift.io/sa.scc.mcs"}
}

func uidRanges(l look) []Condition {
	var names []string
	for _, ns := range l.plan.SourceNamespaces() {
		here, ok := l.src.Namespace(ns)
		there, exists := l.dst.Namespace(l.plan.DestinationNamespace(ns))
		if !ok || !exists {
			continue
		}
		for _, key := range openShiftMarks() {
			if a, b := here.Annotations[key], there.Annotations[key]; a != b && b != "" && copiesIn(l, ns) {
				names = append(names, fmt.Sprintf("%s (%s is %s, on the source %s)", there.Name, strings.TrimPrefix(key, "openshift.io/sa.scc."), b, orNone(a)))
			}
		}
	}
	return found(Warn, UIDRangesDiffer, "RangesDiffer", names, "namespaces of the destination give their pods other users than the source: %s: files may belong to nobody there",
		"set the source's annotations on the namespace of the destination before the run: kubectl --context "+l.dst.Context+" annotate namespace NAME --overwrite openshift.io/sa.scc.uid-range=…")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// differs tells what a namespace that is there already lacks of the source's
// labels and annotations, or has otherwise: a run leaves it as it is.
func differs(l look) []Condition {
	var names []string
	for _, ns := range l.plan.SourceNamespaces() {
		here, ok := l.src.Namespace(ns)
		there, exists := l.dst.Namespace(l.plan.DestinationNamespace(ns))
		if !ok || !exists || there.OfPlan() == l.plan.UID() {
			continue
		}
		apart := slices.Concat(otherwise("label", here.Labels, there.Labels), otherwise("annotation", here.Annotations, there.Annotations))
		if len(apart) > 0 {
			names = append(names, fmt.Sprintf("%s (%s)", there.Name, few(apart)))
		}
	}
	return found(Warn, NamespaceDiffers, "LabelsDiffer", names, "namespaces that are on the destination already and differ from the source's: %s: they stay as they are",
		"set there what your policies, quotas and injectors look for, before the run")
}

func otherwise(what string, here, there map[string]string) []string {
	var out []string
	for _, key := range sortedKeys(here) {
		value, ok := there[key]
		switch {
		case isNotPortable(key) || (ok && value == here[key]):
		case ok:
			out = append(out, fmt.Sprintf("%s %s is %s, on the source %s", what, key, brief(value), brief(here[key])))
		default:
			out = append(out, fmt.Sprintf("%s %s=%s is missing", what, key, brief(here[key])))
		}
	}
	return out
}

// isNotPortable names the keys that belong to one cluster or that others write.
func isNotPortable(key string) bool {
	return key == "kubernetes.io/metadata.name" || key == "kubectl.kubernetes.io/last-applied-configuration" ||
		strings.HasPrefix(key, naming.Prefix) || strings.HasPrefix(key, "openshift.io/sa.scc.") || strings.Contains(key, "cattle.io/")
}

// brief keeps a message readable: an annotation may hold a file.
func brief(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
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
		if !o.Stays && slices.Contains(l.plan.SourceNamespaces(), o.Namespace) {
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
		case level == restricted && copiesIn(l, ns) && !l.plan.WithMover():
			refused = append(refused, l.plan.DestinationNamespace(ns))
		case exists && strictness(level) > strictness(here.Labels[enforceLabel]):
			stricter = append(stricter, fmt.Sprintf("%s (%s)", there.Name, level))
		}
	}
	return slices.Concat(
		found(Error, PodSecurityRestricted, "RestrictedEnforced", refused,
			"Pod Security restricted is enforced in %s on the destination, where volumes are restored: the helper that removes Velero's own marks from a volume must run as root",
			"have mig-mover restore, which needs nothing there (spec.helperImage), or enforce baseline for the migration: kubectl --context "+l.dst.Context+" label namespace NAME --overwrite "+enforceLabel+"=baseline (or on the source, where the namespace is not on the destination yet)"),
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
