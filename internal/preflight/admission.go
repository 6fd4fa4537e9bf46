package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mig-cli/mig/internal/discover"
)

// Conditions of what namespaces let pods have.
const (
	HelpersRefused   = "HelpersRefused"   // limits keep the pods from being made that volumes are copied through
	HelpersCrowded   = "HelpersCrowded"   // a quota does, while the application runs
	PodQuotaTooSmall = "PodQuotaTooSmall" // for the application's pods, or for the helpers
	PodsRefused      = "PodsRefused"      // limits of the destination keep the application's pods from being made
)

func admissionChecks() []check {
	return []check{helperLimits, helpersCrowded, podQuotas, podLimits}
}

// helper is what one of mig's helper pods asks for, as package velero makes it.
func helper() discover.Resources {
	return discover.Resources{
		Requests: map[string]string{"cpu": "10m", "memory": "32Mi"},
		Limits:   map[string]string{"cpu": "100m", "memory": "64Mi"},
	}
}

// copiesOf is how many claims of a source namespace are copied.
func copiesOf(l look) map[string]int64 {
	out := map[string]int64{}
	for _, v := range l.plan.Copied() {
		out[v.Namespace()]++
	}
	return out
}

// helperLimits finds limits that a helper pod does not keep: the source's, where
// they are made, and those of destination namespaces that are there already.
func helperLimits(l look) []Condition {
	var names []string
	var edit string
	refused := func(s side, of func(string) string) {
		for ns := range inOrder(copiesOf(l)) {
			for _, r := range s.facts.LimitRanges {
				if why := breaks(r, []discover.Resources{helper()}); r.Namespace == of(ns) && why != "" {
					names = append(names, fmt.Sprintf("LimitRange/%s of the %s (%s)", r.Key(), s.name, why))
					edit = orElse(edit, fmt.Sprintf("kubectl --context %s edit limitrange %s -n %s", s.facts.Context, r.Name, r.Namespace))
				}
			}
		}
	}
	refused(l.sides[0], func(ns string) string { return ns })
	refused(l.sides[1], l.plan.DestinationNamespace)
	return found(Error, HelpersRefused, "LimitRangeExceeded", names, "limits keep the helper pods from being made that volumes are copied through: %s",
		fmt.Sprintf("let containers have %s there for the time of the migration: %s", says(helper()), edit))
}

// says is what a container asks for, in words.
func says(r discover.Resources) string {
	var out []string
	for _, name := range sortedKeys(r.Requests) {
		out = append(out, fmt.Sprintf("%s %s to %s", name, r.Requests[name], r.Limits[name]))
	}
	return strings.Join(out, " and ")
}

// breaks says in what the containers of one pod break a rule; empty: in nothing.
// What a container does not ask for, the LimitRange gives it.
func breaks(r discover.LimitRange, containers []discover.Resources) string {
	if r.Type == "Pod" {
		containers = []discover.Resources{total(containers)}
	}
	var out []string
	for _, c := range containers {
		for name, least := range inOrder(r.Min) {
			out = append(out, beyond(name, "minimum", least, c, isSmaller)...)
		}
		for name, most := range inOrder(r.Max) {
			out = append(out, beyond(name, "maximum", most, c, func(a, b string) bool { return isSmaller(b, a) })...)
		}
		for name, most := range inOrder(r.Ratio) {
			request, limit, ratio := quantity(c.Requests[name]), quantity(c.Limits[name]), quantity(most)
			if request != nil && limit != nil && ratio != nil && limit.AsApproximateFloat64() > request.AsApproximateFloat64()*ratio.AsApproximateFloat64() {
				out = append(out, fmt.Sprintf("%s: limit %s is more than %s times request %s", name, limit, ratio, request))
			}
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

func beyond(name, what, bound string, c discover.Resources, is func(string, string) bool) []string {
	for _, got := range []struct{ of, value string }{{"request", c.Requests[name]}, {"limit", c.Limits[name]}} {
		if got.value != "" && is(got.value, bound) {
			return []string{fmt.Sprintf("%s: %s %s, %s %s", name, got.of, got.value, what, bound)}
		}
	}
	return nil
}

// total is what several containers ask for together.
func total(containers []discover.Resources) discover.Resources {
	sum := func(of func(discover.Resources) map[string]string) map[string]string {
		all := map[string]resource.Quantity{}
		for _, c := range containers {
			for name, value := range of(c) {
				if q := quantity(value); q != nil {
					have := all[name]
					have.Add(*q)
					all[name] = have
				}
			}
		}
		out := map[string]string{}
		for name, q := range all {
			out[name] = q.String()
		}
		return out
	}
	return discover.Resources{
		Requests: sum(asksFor),
		Limits:   sum(func(r discover.Resources) map[string]string { return r.Limits }),
	}
}

// asksFor is what a container asks for: where it says only what it takes at
// most, that.
func asksFor(r discover.Resources) map[string]string {
	out := maps.Clone(r.Limits)
	if out == nil {
		return r.Requests
	}
	maps.Copy(out, r.Requests)
	return out
}

// amounts is what pods take, by the names that quotas give it.
type amounts map[string]*resource.Quantity

// add counts pods that each have these containers.
func (a amounts) add(pods int64, containers []discover.Resources) {
	if pods == 0 {
		return
	}
	of := total(containers)
	put := func(value string, names ...string) {
		q := quantity(value)
		if q == nil {
			return
		}
		more := q.DeepCopy()
		more.Mul(pods)
		for _, name := range names {
			if a[name] == nil {
				a[name] = &resource.Quantity{}
			}
			a[name].Add(more)
		}
	}
	put("1", "pods", "count/pods")
	for _, name := range []string{"cpu", "memory"} {
		put(of.Requests[name], name, "requests."+name)
		put(of.Limits[name], "limits."+name)
	}
}

// over says what of a quota the pods do not find; used says whether what is used
// now stays used.
func (a amounts) over(q discover.Quota, used bool) string {
	var out []string
	for name, need := range inOrder(a) {
		hard := quantity(q.Hard[name])
		if hard == nil {
			continue
		}
		left, said := hard.DeepCopy(), fmt.Sprintf("%s: %s needed, %s is all there is", name, need, hard)
		if now := quantity(q.Used[name]); used && now != nil {
			left.Sub(*now)
			said = fmt.Sprintf("%s: %s/%s used, %s more needed", name, now, hard, need)
		}
		if left.Cmp(*need) < 0 {
			out = append(out, said)
		}
	}
	return strings.Join(out, ", ")
}

// counts says whether a quota counts ordinary pods: those without a deadline and
// with requests.
func counts(q discover.Quota) bool {
	return !slices.ContainsFunc(q.Scopes, func(s string) bool { return s != "NotTerminating" && s != "NotBestEffort" })
}

// helpersCrowded tells of quotas that are used up while the application runs.
// Once it is stopped there is room.
func helpersCrowded(l look) []Condition {
	copies := copiesOf(l)
	one := amounts{}
	one.add(1, []discover.Resources{helper()})
	var names []string
	for _, q := range l.src.Quotas {
		if why := one.over(q, true); copies[q.Namespace] > 0 && counts(q) && why != "" {
			names = append(names, fmt.Sprintf("ResourceQuota/%s/%s (%s)", q.Namespace, q.Name, why))
		}
	}
	return found(Warn, HelpersCrowded, "QuotaUsedUp", names, "quotas of the source leave no room for a helper pod while the application runs: %s: mig stage could not copy volumes that no running pod mounts",
		"raise the quota for the time of the migration, or leave such volumes to mig migrate, which stops the application first")
}

// podQuotas finds quotas that are too small: on the source for the helpers at
// the cutover, when the application is down; on the destination for them, and for
// the application.
func podQuotas(l look) []Condition {
	copies := copiesOf(l)
	helpers := func(ns string) amounts {
		out := amounts{}
		out.add(copies[ns], []discover.Resources{helper()})
		return out
	}
	var names []string
	for _, q := range l.src.Quotas {
		if why := helpers(q.Namespace).over(q, !quiesces(l)); counts(q) && why != "" {
			names = append(names, fmt.Sprintf("ResourceQuota/%s/%s of the source (for helper pods: %s)", q.Namespace, q.Name, why))
		}
	}
	pods := podsToCome(l)
	for _, ns := range l.plan.SourceNamespaces() {
		for _, q := range l.dst.Quotas {
			if q.Namespace != l.plan.DestinationNamespace(ns) || !counts(q) {
				continue
			}
			if why := helpers(ns).over(q, true); why != "" {
				names = append(names, fmt.Sprintf("ResourceQuota/%s/%s of the destination (for helper pods: %s)", q.Namespace, q.Name, why))
			} else if why := pods[ns].over(q, true); why != "" {
				names = append(names, fmt.Sprintf("ResourceQuota/%s/%s of the destination (for the application: %s)", q.Namespace, q.Name, why))
			}
		}
	}
	return found(Error, PodQuotaTooSmall, "QuotaExceeded", names, "quotas leave no room for pods: %s", fmt.Sprintf("raise the quota, or free what is used of it: kubectl --context %s (source) or %s (destination) describe quota NAME -n NAMESPACE", l.src.Context, l.dst.Context))
}

// podsToCome is what the source's workloads will take on the destination, by
// source namespace, without those that are there already.
func podsToCome(l look) map[string]amounts {
	there := map[string]bool{}
	for _, o := range l.dst.Objects {
		there[objectName(o)] = true
	}
	out := map[string]amounts{}
	for _, n := range l.src.PodNeeds {
		kind, rest, _ := strings.Cut(n.Workload, "/")
		_, name, _ := strings.Cut(rest, "/")
		if there[kind+"/"+l.plan.DestinationNamespace(n.Namespace)+"/"+name] {
			continue
		}
		if out[n.Namespace] == nil {
			out[n.Namespace] = amounts{}
		}
		out[n.Namespace].add(n.Pods, n.Containers)
	}
	return out
}

// podLimits finds pods that limits of the destination would refuse.
func podLimits(l look) []Condition {
	of := map[string][]discover.LimitRange{}
	for _, r := range l.dst.LimitRanges {
		of[r.Namespace] = append(of[r.Namespace], r)
	}
	var names []string
	for _, n := range l.src.PodNeeds {
		for _, r := range of[l.plan.DestinationNamespace(n.Namespace)] {
			if why := breaks(r, n.Containers); why != "" {
				names = append(names, fmt.Sprintf("%s (LimitRange %s, %s)", n.Workload, r.Key(), why))
			}
		}
	}
	return risk(PodsRefused, "LimitRangeExceeded", names, "limits of namespaces that are on the destination already refuse pods: %s", "change the limits there, or what the workload asks for")
}
