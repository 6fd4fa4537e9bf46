package cluster

import (
	"context"
	"strings"

	"github.com/mig-cli/mig/scripts/lab/internal/process"
)

// Part is a daemon or something else of a cluster that can be up or not.
type Part struct {
	Name string
	Up   bool
	PID  int // of a daemon
}

// ControlPlaneParts are the control plane's daemons, and whether the API server serves.
func (c Cluster) ControlPlaneParts() []Part {
	var parts []Part
	for _, daemon := range c.controlPlane() {
		parts = append(parts, c.part(daemon.Daemon, daemon.Name))
	}
	return append(parts, Part{Name: c.Name + " API", Up: c.serves()})
}

// NodeParts are the nodes' daemons, the nodes as the cluster sees them, and the addons.
func (c Cluster) NodeParts(ctx context.Context) []Part {
	var parts []Part
	for _, node := range c.nodes() {
		for _, daemon := range node.daemons() {
			parts = append(parts, c.part(daemon, node.net.Name+" "+daemon.Name))
		}
		status, err := c.Get(ctx, "get", "node", node.net.Name, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		parts = append(parts, Part{Name: c.Name + " " + node.net.Name + " ready", Up: err == nil && status == "True"})
	}
	available, err := c.Get(ctx, "-n", "kube-system", "get", "deployment", "coredns", "-o", "jsonpath={.status.availableReplicas}")
	return append(parts, c.part(c.provisioner(), "provisioner"), Part{Name: c.Name + " coredns", Up: err == nil && available == "1"})
}

func (c Cluster) part(daemon process.Daemon, name string) Part {
	record, alive := daemon.Record()
	part := Part{Name: c.Name + " " + strings.TrimPrefix(name, c.Name+" "), Up: alive}
	if alive {
		part.PID = record.PID
	}
	return part
}
