package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/naming"
)

// Conditions of the rights.
const (
	SourceRights      = "SourceRightsGranted"      // we may do on the source all that a run does
	DestinationRights = "DestinationRightsGranted" // and on the destination, taking it back included
	EventsRefused     = "EventsRefused"            // what happens is told in the record alone
)

func rightsChecks() []check {
	return []check{
		func(l look) []Condition { return granted(SourceRights, "source", l.src.Facts) },
		func(l look) []Condition { return granted(DestinationRights, "destination", l.dst.Facts) },
		eventsRefused,
	}
}

// eventsRefused: one warning, whatever the number of namespaces.
func eventsRefused(l look) []Condition {
	var missing []string
	hint := "a run works without; to have them, whoever rules the cluster can grant them with:"
	for _, s := range l.reached() {
		rights := slices.DeleteFunc(slices.Clone(s.facts.Rights), func(r discover.Right) bool {
			return r.Group != eventsv1.GroupName || r.Allowed || r.Namespace == metav1.NamespaceDefault // told at the record instead
		})
		for _, r := range rights {
			missing = append(missing, fmt.Sprintf("%s of the %s", cmp.Or(r.Namespace, "any namespace"), s.name))
		}
		if len(rights) > 0 {
			hint += "\n" + Manifest(rights, s.facts)
		}
	}
	return found(Warn, EventsRefused, "RightsMissing", missing, "Events cannot be made in %s: what happens is told by the run's record alone", hint)
}

func granted(kind, side string, f discover.Facts) []Condition {
	if f.Reach != discover.Reached {
		return nil
	}
	if f.HasGap(discover.PartRights) {
		return []Condition{required(kind, "", problem{
			status: Unknown, reason: "RightsUnknown", message: fmt.Sprintf("the %s does not say what we may do", side), objects: []string{f.Context},
			hint: "see for yourself with: kubectl --context " + f.Context + " auth can-i --list",
		})}
	}
	var missing []discover.Right
	for _, r := range f.Rights {
		if !r.Allowed && !r.Optional {
			missing = append(missing, r)
		}
	}
	if len(missing) == 0 {
		return []Condition{required(kind, fmt.Sprintf("all %d rights that a run needs on the %s are there", len(f.Rights), side))}
	}
	names := make([]string, 0, len(missing))
	for _, r := range missing {
		names = append(names, rightName(r))
	}
	return []Condition{required(kind, "", problem{
		reason: "RightsMissing", objects: names, message: fmt.Sprintf("on the %s (context %s) we may not: %s", side, f.Context, few(names)),
		hint: "whoever rules the cluster can grant them with:\n" + Manifest(missing, f),
	})}
}

func rightName(r discover.Right) string {
	resource := resourceOf(r)
	if r.Group != "" {
		resource += "." + r.Group
	}
	if r.Namespace == "" {
		return fmt.Sprintf("%s %s (%s)", r.Verb, resource, r.Why)
	}
	return fmt.Sprintf("%s %s in %s (%s)", r.Verb, resource, r.Namespace, r.Why)
}

// resourceOf is resource/subresource, as a Role names it.
func resourceOf(r discover.Right) string {
	if r.Subresource == "" {
		return r.Resource
	}
	return r.Resource + "/" + r.Subresource
}

// Manifest writes rights as manifests that are ready to be applied: roles, and
// their bindings to whom the cluster takes us for. What is asked in a namespace
// that is not there yet is granted in all: a Role cannot be made before its
// namespace.
func Manifest(rights []discover.Right, f discover.Facts) string {
	rights = slices.Clone(rights)
	for i, r := range rights {
		if _, ok := f.Namespace(r.Namespace); !ok && r.Namespace != f.Velero.Namespace && r.Namespace != metav1.NamespaceDefault {
			rights[i].Namespace = ""
		}
	}
	docs := Roles(rights)
	if f.Access.User != "" {
		docs += bindings(rights, f.Access.User)
	}
	return docs
}

func bindings(rights []discover.Right, user string) string {
	namespaces := make([]string, 0, len(rights))
	for _, r := range rights {
		namespaces = append(namespaces, r.Namespace)
	}
	slices.Sort(namespaces)
	var b strings.Builder
	for _, ns := range slices.Compact(namespaces) {
		kind := ""
		if ns == "" {
			kind = "Cluster"
		}
		fmt.Fprintf(&b, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %sRoleBinding\nmetadata: %s\n", kind, staysBehind(ns))
		fmt.Fprintf(&b, "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %sRole, name: mig}\nsubjects:\n- %s\n", kind, subject(user))
	}
	return b.String()
}

// subject is a user as a binding names it.
func subject(user string) string {
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		namespace, name, _ := strings.Cut(account, ":")
		return fmt.Sprintf("{kind: ServiceAccount, namespace: %s, name: %s}", namespace, name)
	}
	return fmt.Sprintf("{kind: User, apiGroup: rbac.authorization.k8s.io, name: %q}", user)
}

// Roles writes rights as manifests: a ClusterRole for what is of the whole
// cluster, a Role in each namespace for the rest. Who gets them is left to say.
func Roles(rights []discover.Right) string {
	byNamespace := map[string][]discover.Right{}
	for _, r := range rights {
		byNamespace[r.Namespace] = append(byNamespace[r.Namespace], r)
	}
	namespaces := make([]string, 0, len(byNamespace))
	for ns := range byNamespace {
		namespaces = append(namespaces, ns)
	}
	slices.Sort(namespaces)
	var docs []string
	for _, ns := range namespaces {
		docs = append(docs, role(ns, byNamespace[ns]))
	}
	return strings.Join(docs, "---\n")
}

func role(namespace string, rights []discover.Right) string {
	var b strings.Builder
	b.WriteString("apiVersion: rbac.authorization.k8s.io/v1\n")
	if namespace == "" {
		b.WriteString("kind: ClusterRole\n")
	} else {
		b.WriteString("kind: Role\n")
	}
	fmt.Fprintf(&b, "metadata: %s\n", staysBehind(namespace))
	b.WriteString("rules:\n")
	for _, rule := range rules(rights) {
		fmt.Fprintf(&b, "- {apiGroups: [%q], resources: [%q], verbs: [%s]}\n", rule.group, rule.resource, strings.Join(rule.verbs, ", "))
	}
	return b.String()
}

// staysBehind is the metadata of what grants rights: it does not go along with
// the namespace, where it would meet what grants those on the destination.
func staysBehind(namespace string) string {
	if namespace == "" {
		return "{name: mig}"
	}
	return fmt.Sprintf("{name: mig, namespace: %s, labels: {%s: \"true\"}}", namespace, naming.VeleroExclude)
}

type rule struct {
	group, resource string
	verbs           []string
}

func rules(rights []discover.Right) []rule {
	sorted := slices.Clone(rights)
	slices.SortStableFunc(sorted, func(a, b discover.Right) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(resourceOf(a), resourceOf(b)))
	})
	var out []rule
	for _, r := range sorted {
		if n := len(out); n == 0 || out[n-1].group != r.Group || out[n-1].resource != resourceOf(r) {
			out = append(out, rule{group: r.Group, resource: resourceOf(r)})
		}
		if last := &out[len(out)-1]; !slices.Contains(last.verbs, r.Verb) {
			last.verbs = append(last.verbs, r.Verb)
		}
	}
	return out
}
