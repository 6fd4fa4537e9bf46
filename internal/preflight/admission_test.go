package preflight

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/velero"
)

func TestLimitsAreComparedWithWhatHelperPodsReallyAskFor(t *testing.T) {
	pod := velero.StagePod(naming.Owner{PlanName: "p", PlanUID: "u", RunUID: "r"}, "helper", velero.NodeAgent{}, plan.Volume{Claim: "shop/data"})
	as := func(l corev1.ResourceList) map[string]string {
		out := map[string]string{}
		for name, q := range l {
			out[string(name)] = q.String()
		}
		return out
	}
	asked := pod.Spec.Containers[0].Resources
	if got := helper(); !maps.Equal(got.Requests, as(asked.Requests)) || !maps.Equal(got.Limits, as(asked.Limits)) {
		t.Errorf("got %+v, want %+v", got, asked)
	}
}

func TestOneNodeThatIsForAPodIsEnough(t *testing.T) {
	nodes := []discover.Node{
		{Name: "n1", Labels: map[string]string{"disk": "fast"}, Taints: []discover.Taint{{Key: "team", Value: "red", Effect: "NoSchedule"}}},
		{Name: "n2", Labels: map[string]string{"disk": "fast", "cores": "16"}, Taints: []discover.Taint{{Key: "team", Value: "blue", Effect: "NoSchedule"}}},
	}
	for name, n := range map[string]discover.PodNeeds{
		"by its label and a toleration of one taint": {NodeSelector: map[string]string{"disk": "fast"}, Tolerations: []discover.Toleration{{Key: "team", Value: "blue"}}},
		"by a toleration of everything":              {Tolerations: []discover.Toleration{{Exists: true}}},
		"by one of several terms": {Tolerations: []discover.Toleration{{Exists: true}}, Nodes: []discover.NodeTerm{
			{{Key: "disk", Operator: "In", Values: []string{"slow"}}}, {{Key: "cores", Operator: "Gt", Values: []string{"8"}}, {Key: "gpu", Operator: "DoesNotExist"}},
		}},
		"by what it is not": {Tolerations: []discover.Toleration{{Exists: true}}, Nodes: []discover.NodeTerm{{{Key: "disk", Operator: "NotIn", Values: []string{"slow"}}}}},
	} {
		if why := unfit(n, nodes); why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
}

func TestWhatNobodyCountsTakesNoQuota(t *testing.T) {
	w := newWorld()
	w.src.Quotas = []discover.Quota{
		{Namespace: "shop", Name: "of-jobs", Hard: map[string]string{"pods": "0"}, Scopes: []string{"Terminating"}},
		{Namespace: "else", Name: "of-others", Hard: map[string]string{"pods": "0"}},
	}
	w.src.LimitRanges = []discover.LimitRange{{Namespace: "shop", Name: "wide", Type: "Container", Min: map[string]string{"cpu": "1m"}, Max: map[string]string{"cpu": "4"}}}
	w.dst.Quotas = []discover.Quota{{Namespace: "shop-prod", Name: "cap", Hard: map[string]string{"pods": "2"}, Used: map[string]string{"pods": "1"}}}
	w.dst.Objects = []discover.Object{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop-prod", Name: "web", OfPlan: "5f0c3d9e"}}
	w.src.PodNeeds = []discover.PodNeeds{{Workload: "Deployment/shop/web", Namespace: "shop", Pods: 9}} // which the quota counts already
	for _, c := range w.check(t) {
		switch c.Type {
		case HelpersRefused, HelpersCrowded, PodQuotaTooSmall, PodsRefused:
			t.Errorf("%s: %s", c.Type, c.Message)
		}
	}
}

func TestANodePortIsNotTakenByTheServiceItselfNorWantedByOneThatStays(t *testing.T) {
	w := newWorld()
	w.src.Services = []discover.Service{
		{Namespace: "shop", Name: "web", NodePorts: []int32{30100}},
		{Namespace: "shop", Name: "own", NodePorts: []int32{30200}, Stays: true},
	}
	w.dst.Services = []discover.Service{{Namespace: "shop-prod", Name: "web", NodePorts: []int32{30100}}, {Namespace: "else", Name: "door", NodePorts: []int32{30200}}}
	for _, c := range w.check(t) {
		if c.Type == NodePortTaken {
			t.Errorf("got %s", c.Message)
		}
	}
}

func TestAVersionInCommonIsEnoughWhereVeleroKeepsThemAll(t *testing.T) {
	w := newWorld()
	w.src.Unserved = []discover.Unserved{{Kind: "Lamp.light.test", Version: "v1beta1", Others: []string{"v1"}, There: []string{"v1"}, Objects: []string{"shop/hall"}}}
	if got := one(t, w.check(t), VersionNotServed); !got.Blocks() || !strings.Contains(got.Message, "both serve v1") {
		t.Errorf("got %+v", got)
	}
	w.src.Velero.Server.Features, w.dst.Velero.Server.Features = []string{"EnableAPIGroupVersions"}, []string{"EnableAPIGroupVersions"}
	if conditions := w.check(t); !Ready(conditions) {
		t.Errorf("blocked by %+v", Blocking(conditions))
	}
}
