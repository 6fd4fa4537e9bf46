package velero

import (
	appsv1 "k8s.io/api/apps/v1"
)

// NodeAgentDaemonSet is the name that Velero's installers give its node-agent.
const NodeAgentDaemonSet = "node-agent"

// hostPodsVolume is the volume by which node-agent sees what the kubelet has
// mounted for the pods of its node (velero pkg/install/daemonset.go).
const hostPodsVolume = "host-pods"

// NodeAgentOf reads from a node-agent's DaemonSet what stage pods take over.
func NodeAgentOf(ds *appsv1.DaemonSet) NodeAgent {
	spec := ds.Spec.Template.Spec
	agent := NodeAgent{Tolerations: spec.Tolerations, NodeSelector: spec.NodeSelector}
	if len(spec.Containers) > 0 {
		agent.Image = spec.Containers[0].Image
		agent.SecurityContext = spec.Containers[0].SecurityContext
	}
	for _, v := range spec.Volumes {
		if v.Name == hostPodsVolume && v.HostPath != nil {
			agent.HostPods = v.HostPath.Path
		}
	}
	return agent
}
