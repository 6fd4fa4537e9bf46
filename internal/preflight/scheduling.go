package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mig-cli/mig/internal/discover"
)

// Conditions of what pods need of the destination's nodes and classes.
const (
	NodesUnfit           = "NodesUnfit"           // pods would wait for a node that is not there
	NodesUnfitLater      = "NodesUnfitLater"      // so would pods that nobody wants now
	PreferredNodesGone   = "PreferredNodesGone"   // pods will run on nodes that they like less
	PriorityClassMissing = "PriorityClassMissing" // pods that name it are refused
	PriorityDiffers      = "PriorityDiffers"      // other pods would be pushed aside, or these
	RuntimeClassMissing  = "RuntimeClassMissing"  // pods that name it are refused
	RuntimeDiffers       = "RuntimeDiffers"       // the same name, another runtime
)

func schedulingChecks() []check {
	return []check{nodesUnfit, preferredNodes, priorities, runtimes}
}

// nodesUnfit finds pods that no node of the destination is for. A restore that
// makes them succeeds, and the application does not come up.
func nodesUnfit(l look) []Condition {
	if len(l.dst.Nodes) == 0 {
		return nil // not known, or a cluster without nodes, where nothing runs at all
	}
	var now, later []string
	for _, n := range l.src.PodNeeds {
		why := unfit(n, l.dst.Nodes)
		switch {
		case why == "":
		case n.Pods > 0:
			now = append(now, fmt.Sprintf("%s (%s)", n.Workload, why))
		default:
			later = append(later, fmt.Sprintf("%s (%s)", n.Workload, why))
		}
	}
	const said = "no node of the destination is for these pods: %s"
	hint := fmt.Sprintf("label a node there: kubectl --context %s label node NAME KEY=VALUE, or change what the workload asks for on the source; where nodes are made when they are needed, accept it", l.dst.Context)
	return slices.Concat(
		risk(NodesUnfit, "NoNodeMatches", now, said+": they would wait for one", hint),
		found(Warn, NodesUnfitLater, "NoNodeMatches", later, said+"; at the moment none is wanted", hint),
	)
}

// unfit says why no node is for a workload's pods; empty where one is.
func unfit(n discover.PodNeeds, nodes []discover.Node) string {
	var matching, tolerated int
	for _, node := range nodes {
		if !matches(n, node) {
			continue
		}
		matching++
		if !slices.ContainsFunc(node.Taints, func(t discover.Taint) bool { return !tolerates(n, t) }) {
			tolerated++
		}
	}
	switch {
	case tolerated > 0:
		return ""
	case matching > 0:
		return fmt.Sprintf("it tolerates the taints of none of %d nodes: %s", matching, few(taintsOf(n, nodes)))
	default:
		return fmt.Sprintf("%s: 0 of %d nodes match", asked(n), len(nodes))
	}
}

func matches(n discover.PodNeeds, node discover.Node) bool {
	for key, value := range n.NodeSelector {
		if have, ok := node.Labels[key]; !ok || have != value {
			return false
		}
	}
	return len(n.Nodes) == 0 || slices.ContainsFunc(n.Nodes, func(t discover.NodeTerm) bool { return t.Fits(node) })
}

func tolerates(n discover.PodNeeds, taint discover.Taint) bool {
	return slices.ContainsFunc(n.Tolerations, func(t discover.Toleration) bool { return t.Tolerates(taint) })
}

func taintsOf(n discover.PodNeeds, nodes []discover.Node) []string {
	var out []string
	for _, node := range nodes {
		for _, t := range node.Taints {
			if matches(n, node) && !tolerates(n, t) {
				out = append(out, strings.TrimSuffix(t.Key+"="+t.Value, "=")+":"+t.Effect)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// asked is what a workload asks of its nodes.
func asked(n discover.PodNeeds) string {
	var out []string
	for _, key := range sortedKeys(n.NodeSelector) {
		out = append(out, key+"="+n.NodeSelector[key])
	}
	var terms []string
	for _, t := range n.Nodes {
		terms = append(terms, rulesOf(t))
	}
	if len(terms) > 0 {
		out = append(out, strings.Join(terms, " or "))
	}
	return strings.Join(out, ", ")
}

func rulesOf(t discover.NodeTerm) string {
	var out []string
	for _, r := range t {
		out = append(out, strings.TrimSpace(r.Key+" "+r.Operator+" "+strings.Join(r.Values, "|")))
	}
	return strings.Join(out, " and ")
}

// preferredNodes tells of wishes that no node of the destination grants.
func preferredNodes(l look) []Condition {
	if len(l.dst.Nodes) == 0 {
		return nil
	}
	var names []string
	for _, n := range l.src.PodNeeds {
		var gone []string
		for _, t := range n.Preferred {
			if !slices.ContainsFunc(l.dst.Nodes, t.Fits) {
				gone = append(gone, rulesOf(t))
			}
		}
		if len(gone) > 0 {
			names = append(names, fmt.Sprintf("%s (%s)", n.Workload, strings.Join(gone, ", ")))
		}
	}
	return found(Advisory, PreferredNodesGone, "NoNodeMatches", names, "pods prefer nodes that the destination does not have: %s: they run on others", "")
}

// users are the workloads that name a class, by the class.
func users(l look, class func(discover.PodNeeds) string) map[string][]string {
	out := map[string][]string{}
	for _, n := range l.src.PodNeeds {
		if name := class(n); name != "" {
			out[name] = append(out[name], n.Workload)
		}
	}
	return out
}

// priorities compares the priority classes that pods name.
func priorities(l look) []Condition {
	if l.dst.HasGap(discover.PartPriorities) {
		return nil
	}
	var missing, differ []string
	hint := "make it there: kubectl --context " + l.dst.Context + " create priorityclass NAME --value=…"
	for name, used := range inOrder(users(l, func(n discover.PodNeeds) string { return n.PriorityClass })) {
		here, known := priorityOf(l.src.Facts, name)
		there, ok := priorityOf(l.dst.Facts, name)
		switch {
		case strings.HasPrefix(name, "system-"): // every cluster has them
		case !ok && known:
			if len(missing) == 0 {
				hint = fmt.Sprintf("make it there: kubectl --context %s create priorityclass %s --value=%d", l.dst.Context, name, here)
			}
			missing = append(missing, fmt.Sprintf("PriorityClass %s (value %d on the source; used by %s)", name, here, few(used)))
		case !ok:
			missing = append(missing, fmt.Sprintf("PriorityClass %s (used by %s)", name, few(used)))
		case known && here != there:
			differ = append(differ, fmt.Sprintf("PriorityClass %s (%d on the source, %d on the destination; used by %s)", name, here, there, few(used)))
		}
	}
	return slices.Concat(
		found(Error, PriorityClassMissing, "NotOnDestination", missing, "not on the destination: %s: pods that name it are refused", hint),
		found(Warn, PriorityDiffers, "ValuesDiffer", differ, "the same name and another priority: %s: what is evicted for whom is another matter there",
			"see both with: kubectl get priorityclass NAME, and name another class in the workloads if it matters"),
	)
}

func priorityOf(f discover.Facts, name string) (int32, bool) {
	for _, c := range f.PriorityClasses {
		if c.Name == name {
			return c.Value, true
		}
	}
	return 0, false
}

// runtimes compares the runtime classes that pods name.
func runtimes(l look) []Condition {
	if l.dst.HasGap(discover.PartRuntimes) {
		return nil
	}
	var missing, differ []string
	var first string
	for name, used := range inOrder(users(l, func(n discover.PodNeeds) string { return n.RuntimeClass })) {
		here, there := handlerOf(l.src.Facts, name), handlerOf(l.dst.Facts, name)
		switch {
		case there == "":
			first = orElse(first, name)
			missing = append(missing, fmt.Sprintf("RuntimeClass %s (handler %s on the source; used by %s)", name, cmp.Or(here, "unknown"), few(used)))
		case here != "" && here != there:
			differ = append(differ, fmt.Sprintf("RuntimeClass %s (handler %s on the source, %s on the destination; used by %s)", name, here, there, few(used)))
		}
	}
	return slices.Concat(
		found(Error, RuntimeClassMissing, "NotOnDestination", missing, "not on the destination: %s: pods that name it are refused",
			fmt.Sprintf("if the nodes there have its handler: kubectl --context %s get runtimeclass %s -o yaml | kubectl --context %s create -f -", l.src.Context, first, l.dst.Context)),
		found(Warn, RuntimeDiffers, "HandlersDiffer", differ, "the same name and another runtime: %s", "see that it is meant for the same: kubectl get runtimeclass NAME -o yaml"),
	)
}

func handlerOf(f discover.Facts, name string) string {
	for _, c := range f.RuntimeClasses {
		if c.Name == name {
			return c.Handler
		}
	}
	return ""
}
