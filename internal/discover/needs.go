package discover

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
)

// lookAtNeeds asks, when both sides are known, for what the plan's objects need
// of the destination and may not find there. What the source has no need of is
// not asked for: then nobody is bothered with a right for it.
func lookAtNeeds(ctx context.Context, src cluster.Source, dst cluster.Destination, s *SourceFacts, d *DestinationFacts, v plan.Valid) {
	if s.Reach != Reached || d.Reach != Reached {
		return
	}
	here, there := newLook(ctx, src.Cluster), newLook(ctx, dst.Cluster)
	here.classes(&s.Facts, s.PodNeeds)
	there.classes(&d.Facts, s.PodNeeds)
	if len(s.Services) > 0 {
		there.optional(PartServices, func(ctx context.Context) (err error) {
			d.Services, err = allServicesWithPorts(ctx, dst.Client)
			return err
		})
	}
	s.Gaps = append(s.Gaps, here.wait()...)
	d.Gaps = append(d.Gaps, there.wait()...)
	lookAtKinds(ctx, src, dst, s, d, v)
}

// classes asks for the classes of pods, where pods name some.
func (l *look) classes(f *Facts, needs []PodNeeds) {
	if slices.ContainsFunc(needs, func(n PodNeeds) bool { return n.PriorityClass != "" }) {
		l.optional(PartPriorities, func(ctx context.Context) (err error) {
			f.PriorityClasses, err = listPriorityClasses(ctx, l.c.Client)
			return err
		})
	}
	if slices.ContainsFunc(needs, func(n PodNeeds) bool { return n.RuntimeClass != "" }) {
		l.optional(PartRuntimes, func(ctx context.Context) (err error) {
			f.RuntimeClasses, err = listRuntimeClasses(ctx, l.c.Client)
			return err
		})
	}
}

// allNeeds is what the pods of all workloads need, and pods that none of them
// has made.
func (a *apps) allNeeds() []PodNeeds {
	var out []PodNeeds
	for _, t := range a.allTemplated() {
		if t.needs == nil || strings.HasPrefix(t.Controller, "CronJob/") { // told by its CronJob
			continue
		}
		t.needs.Pods = t.pods()
		out = append(out, *t.needs)
	}
	for _, p := range a.pods {
		if p.needs != nil && !p.Finished() && !p.Static && p.OfPlan == "" {
			p.needs.Pods = 1
			out = append(out, *p.needs)
		}
	}
	slices.SortStableFunc(out, func(x, y PodNeeds) int { return cmp.Compare(x.Workload, y.Workload) })
	return out
}

// pods is how many pods a workload wants now.
func (t templated) pods() int64 {
	switch {
	case t.Suspended, t.Kind == "DaemonSet":
		return 0
	case t.Kind == "Job":
		return int64(t.Active)
	case t.Kind == "CronJob":
		return 1
	default:
		return int64(t.Replicas)
	}
}

// needsOf is what a pod template asks of its cluster; nil without a template.
func needsOf(workload string, pod *corev1.PodSpec) *PodNeeds {
	if pod == nil {
		return nil
	}
	n := &PodNeeds{Workload: workload, NodeSelector: pod.NodeSelector, PriorityClass: pod.PriorityClassName}
	_, rest, _ := strings.Cut(workload, "/")
	n.Namespace, _, _ = strings.Cut(rest, "/")
	if pod.RuntimeClassName != nil {
		n.RuntimeClass = *pod.RuntimeClassName
	}
	n.affinity(pod.Affinity)
	for _, t := range pod.Tolerations {
		n.Tolerations = append(n.Tolerations, Toleration{t.Key, t.Value, t.Operator == corev1.TolerationOpExists, string(t.Effect)})
	}
	for _, c := range pod.Containers {
		n.Containers = append(n.Containers, Resources{quantities(c.Resources.Requests), quantities(c.Resources.Limits)})
	}
	return n
}

func (n *PodNeeds) affinity(a *corev1.Affinity) {
	if a == nil || a.NodeAffinity == nil {
		return
	}
	if required := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		n.Nodes = each(required.NodeSelectorTerms, nodeTermOf)
	}
	for _, p := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		n.Preferred = append(n.Preferred, nodeTermOf(&p.Preference))
	}
}

func nodeTermOf(t *corev1.NodeSelectorTerm) NodeTerm {
	var out NodeTerm
	for _, e := range t.MatchExpressions {
		out = append(out, NodeRule{Key: e.Key, Operator: string(e.Operator), Values: e.Values})
	}
	for _, e := range t.MatchFields {
		out = append(out, NodeRule{Key: e.Key, Operator: string(e.Operator), Values: e.Values, OfField: true})
	}
	return out
}

func listPriorityClasses(ctx context.Context, c client.Client) ([]PriorityClass, error) {
	return all(ctx, func(ctx context.Context, opts ...client.ListOption) ([]PriorityClass, metav1.ListMeta, error) {
		var list schedulingv1.PriorityClassList
		err := c.List(ctx, &list, opts...)
		return each(list.Items, func(p *schedulingv1.PriorityClass) PriorityClass { return PriorityClass{p.Name, p.Value} }), list.ListMeta, err
	})
}

func listRuntimeClasses(ctx context.Context, c client.Client) ([]RuntimeClass, error) {
	return all(ctx, func(ctx context.Context, opts ...client.ListOption) ([]RuntimeClass, metav1.ListMeta, error) {
		var list nodev1.RuntimeClassList
		err := c.List(ctx, &list, opts...)
		return each(list.Items, func(r *nodev1.RuntimeClass) RuntimeClass { return RuntimeClass{r.Name, r.Handler} }), list.ListMeta, err
	})
}

func servicePage(c client.Client) page[Service] {
	return func(ctx context.Context, opts ...client.ListOption) ([]Service, metav1.ListMeta, error) {
		var list corev1.ServiceList
		err := c.List(ctx, &list, opts...)
		return slices.DeleteFunc(each(list.Items, serviceOf), func(s Service) bool { return len(s.NodePorts) == 0 }), list.ListMeta, err
	}
}

// servicesWithPorts are the Services of the namespaces that have node ports.
func servicesWithPorts(ctx context.Context, c client.Client, namespaces []string) ([]Service, error) {
	return inNamespaces(ctx, namespaces, func(s Service) string { return s.Namespace }, servicePage(c))
}

// allServicesWithPorts are those of the whole cluster: a node port is every
// node's.
func allServicesWithPorts(ctx context.Context, c client.Client) ([]Service, error) {
	return all(ctx, servicePage(c))
}

func serviceOf(s *corev1.Service) Service {
	out := Service{Namespace: s.Namespace, Name: s.Name, Stays: s.Labels[naming.VeleroExclude] == "true"}
	for _, p := range s.Spec.Ports {
		if p.NodePort != 0 && !slices.Contains(out.NodePorts, p.NodePort) { // one port may be of two protocols
			out.NodePorts = append(out.NodePorts, p.NodePort)
		}
	}
	if p := s.Spec.HealthCheckNodePort; p != 0 {
		out.NodePorts = append(out.NodePorts, p)
	}
	return out
}

func listLimitRanges(ctx context.Context, c client.Client, namespaces []string) ([]LimitRange, error) {
	ranges, err := inNamespaces(ctx, namespaces, func(r []LimitRange) string {
		if len(r) == 0 {
			return ""
		}
		return r[0].Namespace
	}, func(ctx context.Context, opts ...client.ListOption) ([][]LimitRange, metav1.ListMeta, error) {
		var list corev1.LimitRangeList
		err := c.List(ctx, &list, opts...)
		return each(list.Items, limitRangesOf), list.ListMeta, err
	})
	return slices.Concat(ranges...), err
}

// limitRangesOf are the rules of one that hold for pods.
func limitRangesOf(r *corev1.LimitRange) []LimitRange {
	var out []LimitRange
	for _, l := range r.Spec.Limits {
		if l.Type == corev1.LimitTypeContainer || l.Type == corev1.LimitTypePod {
			out = append(out, LimitRange{
				Namespace: r.Namespace, Name: r.Name, Type: string(l.Type),
				Min: quantities(l.Min), Max: quantities(l.Max), Ratio: quantities(l.MaxLimitRequestRatio),
			})
		}
	}
	return out
}
