package velero

import (
	appsv1 "k8s.io/api/apps/v1"
)

// NodeAgentDaemonSet is the name that Velero's installers give its node-agent.
const NodeAgentDaemonSet = "node-agent"

// NodeAgentOf reads from a node-agent's DaemonSet what stage pods take over.
func NodeAgentOf(ds *appsv1.DaemonSet) NodeAgent {
	spec := ds.Spec.Template.Spec
	agent := NodeAgent{Tolerations: spec.Tolerations, NodeSelector: spec.NodeSelector}
	if len(spec.Containers) > 0 {
		agent.Image = spec.Containers[0].Image
	}
	return agent
}
