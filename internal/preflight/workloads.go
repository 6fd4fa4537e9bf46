package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mig-cli/mig/internal/discover"
)

// Conditions of the workloads, most of them of stopping and starting them.
const (
	BarePods           = "BarePods"           // no one starts them again, and the cutover cannot stop them
	JobsRunning        = "JobsRunning"        // they are not cut short, and would start again from their beginning
	HostPathData       = "HostPathData"       // data outside of claims, on a node: it is not copied
	EmptyDirData       = "EmptyDirData"       // a database's data in a volume that its pod takes with it
	NodePaths          = "NodePaths"          // the node's own files: every node has them
	ScratchVolumes     = "ScratchVolumes"     // what is lost with its pod anyway
	OwnedWorkloads     = "OwnedWorkloads"     // an operator would undo the quiesce
	GitOpsWorkloads    = "GitOpsWorkloads"    // a tool that applies manifests would undo the quiesce
	AutoscaledWorkload = "AutoscaledWorkload" // scaled to zero an autoscaler leaves it alone
	OwnBackupMarks     = "OwnBackupMarks"     // pods with the user's own marks for Velero
	ExceptMountsVolume = "ExceptMountsVolume" // a workload that stays up writes to a volume that is copied
	QuiesceDisabled    = "QuiesceDisabled"    // the last copy is made under a running application
)

func workloadChecks() []check {
	return []check{quiesceDisabled, barePods, jobsRunning, outside, owned, gitOps, autoscaled, ownMarks, exceptMounts}
}

func quiesces(l look) bool { return l.spec.Quiesce.Enabled == nil || *l.spec.Quiesce.Enabled }

func quiesceDisabled(l look) []Condition {
	if quiesces(l) || len(l.plan.Copied()) == 0 {
		return nil
	}
	return risk(QuiesceDisabled, "DisabledByPlan", []string{"spec.quiesce.enabled"},
		"%s is false: the application writes while its volumes are copied for the last time", "")
}

func barePods(l look) []Condition {
	var names []string
	for _, p := range l.src.Pods {
		if p.Controller == "" && !p.Static && !p.Finished() && p.OfPlan == "" {
			names = append(names, p.Key())
		}
	}
	return risk(BarePods, "NoController", names, "pods without a controller: %s: nothing stops them at the cutover, and while they mount a copied claim it waits",
		"delete them before the cutover")
}

func jobsRunning(l look) []Condition {
	var names []string
	for _, w := range l.src.Workloads {
		if w.Kind == "Job" && w.Active > 0 && !w.Suspended {
			names = append(names, w.Key())
		}
	}
	return risk(JobsRunning, "JobsRunning", names, "Jobs that run: %s: they are not cut short, and on the destination they would start again from their beginning",
		"wait until they are done")
}

// outside tells of volumes that are no claims: what is in them is not copied.
func outside(l look) []Condition {
	var hostPaths, emptyDirs, system, scratch []string
	for _, o := range l.src.Outside {
		shown := fmt.Sprintf("%s (%s)", o.Workload, o.Says())
		switch {
		case o.Class == discover.OutsideSystem:
			system = append(system, shown)
		case o.Class == discover.OutsideScratch:
			scratch = append(scratch, shown)
		case o.Path != "":
			hostPaths = append(hostPaths, shown)
		default:
			emptyDirs = append(emptyDirs, shown)
		}
	}
	return slices.Concat(
		risk(HostPathData, "HostPathMounted", hostPaths, "paths of a node that pods mount: %s: what is in there is not copied", "bring it over by other means"),
		risk(EmptyDirData, "DatabaseInEmptyDir", emptyDirs, "databases that keep their data in an emptyDir: %s: it is lost with the pod, so also at the cutover", "dump it first, or give it a claim"),
		found(Advisory, NodePaths, "NodesOwn", system, "files of the node itself that pods mount: %s: every node has its own", ""),
		found(Advisory, ScratchVolumes, "GoesWithPod", scratch, "volumes that go with their pod: %s: they begin empty on the destination, as after any restart", ""),
	)
}

// builtin are the kinds whose controllers let their objects be scaled.
func builtin(controller string) bool {
	kind, _, _ := strings.Cut(controller, "/")
	return slices.Contains([]string{"", "Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "CronJob", "Job", "ReplicationController", "DeploymentConfig"}, kind)
}

func owned(l look) []Condition {
	var names []string
	for _, w := range l.src.Workloads {
		if !builtin(w.Controller) {
			names = append(names, fmt.Sprintf("%s (owned by %s)", w.Key(), w.Controller))
		}
	}
	return risk(OwnedWorkloads, "OwnedByOperator", names, "workloads that an operator keeps as it wants them: %s: it may start again what is quiesced",
		"stop the operator for the cutover")
}

func gitOps(l look) []Condition {
	var names []string
	for _, w := range l.src.Workloads {
		if w.GitOps != "" {
			names = append(names, fmt.Sprintf("%s (%s)", w.Key(), w.GitOps))
		}
	}
	return risk(GitOpsWorkloads, "AppliedAgainAndAgain", names, "workloads that are applied again and again: %s: that may start again what is quiesced",
		"suspend the synchronisation for the cutover")
}

func autoscaled(l look) []Condition {
	var names []string
	for _, w := range l.src.Workloads {
		if w.Kind == "HorizontalPodAutoscaler" {
			names = append(names, fmt.Sprintf("%s/%s (scales %s)", w.Namespace, w.Name, w.Scales))
		}
	}
	return found(Advisory, AutoscaledWorkload, "Autoscaled", names, "autoscalers: %s: they leave alone what is scaled to zero", "")
}

func ownMarks(l look) []Condition {
	var names []string
	for _, p := range l.src.Pods {
		if len(p.BackupVolumes) > 0 {
			names = append(names, p.Key())
		}
	}
	return found(Advisory, OwnBackupMarks, "BackupVolumesAnnotation", names, "pods that ask Velero for copies of their own: %s: in a run of mig the plan alone decides", "")
}

// exceptMounts finds workloads that stay up and mount a copied claim: the last
// copy would not be exact.
func exceptMounts(l look) []Condition {
	var names []string
	for _, p := range l.src.Pods {
		by := exceptedBy(l, p)
		if by == "" {
			continue
		}
		for _, c := range l.copied {
			if c.Namespace == p.Namespace && slices.ContainsFunc(c.MountedBy, func(m discover.Mounter) bool { return m.Pod == p.Name && !m.Finished() }) {
				names = append(names, fmt.Sprintf("%s (pod %s mounts %s)", by, p.Name, c.Name))
			}
		}
	}
	slices.Sort(names)
	return found(Error, ExceptMountsVolume, "ExceptMountsVolume", slices.Compact(names), "stays up by spec.quiesce.except and mounts a volume that is copied: %s",
		"take it out of spec.quiesce.except, or skip the volume")
}

// exceptedBy is the entry of spec.quiesce.except that a pod belongs to. A
// Deployment's pods belong to its ReplicaSets, which are named after it.
func exceptedBy(l look, p discover.Pod) string {
	for _, e := range l.spec.Quiesce.Except {
		parts := strings.SplitN(e, "/", 3)
		if len(parts) != 3 || parts[1] != p.Namespace {
			continue
		}
		kind, name, _ := strings.Cut(p.Controller, "/")
		ofDeployment := parts[0] == "Deployment" && kind == "ReplicaSet" && isHashOf(name, parts[2])
		ofCronJob := parts[0] == "CronJob" && kind == "Job" && isHashOf(name, parts[2])
		if ofDeployment || ofCronJob || (kind == parts[0] && name == parts[2]) {
			return e
		}
	}
	return ""
}

// isHashOf says whether a name is another one with one more part.
func isHashOf(name, base string) bool {
	rest, ok := strings.CutPrefix(name, base+"-")
	return ok && rest != "" && !strings.Contains(rest, "-")
}
