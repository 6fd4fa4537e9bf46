// Package mover makes the pods in which mig-mover works next to a volume, and
// reads what they said when they ended. It knows neither steps nor plans.
package mover

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/mig-cli/mig/internal/manifest"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/velero"
)

// The steps that make pods.
const (
	StepVerify  = "VolumesVerified"
	StepProbe   = "MoverReady"
	StepRestore = velero.StepStageRestore // the same step, whoever restores
)

// Steps are all of them, by which their pods are found.
func Steps() []string { return []string{StepVerify, StepProbe, StepRestore} }

// container is the one container of a mover's pod.
const container = "mig-mover"

// summaryFile is what the kubelet keeps of a container when it has ended; at
// most 4 KiB of it.
const summaryFile = "/dev/termination-log"

// hostPods is where the pod sees the volumes of all pods of its node.
const hostPods = "/host_pods"

// Volume is a volume as a pod on a node mounts it.
type Volume struct {
	Claim string // namespace/name on the source, on either side
	Pod   *corev1.Pod
	PV    *corev1.PersistentVolume
}

// ManifestPod reads the whole volume through the mount of the pod that has it,
// as Velero's node-agent does: it mounts no claim itself, which a
// ReadWriteOncePod volume would not admit, is in Velero's namespace, where such
// pods are allowed, and can write nothing. What it has found is in the kubelet's
// last words of it, and in its log as a whole.
func ManifestPod(o naming.Owner, namespace, image string, v Volume, agent velero.NodeAgent) *corev1.Pod {
	p := pod(o, StepVerify, namespace, o.VerifyPod(v.Claim), image, v.Pod.Spec.NodeName, agent)
	p.Annotations[naming.AnnClaim] = v.Claim
	p.Spec.Containers[0].Args = []string{"manifest", "--root", path(v), "--hash", "--encoding", string(manifest.Base64), "--summary", summaryFile}
	seesVolumes(p, agent, true)
	return p
}

// ProbePod says by its end whether the image can be used on a node.
func ProbePod(o naming.Owner, namespace, image, node string, agent velero.NodeAgent) *corev1.Pod {
	p := pod(o, StepProbe, namespace, o.ProbePod(node), image, node, agent)
	p.Spec.Containers[0].Args = []string{"help"}
	return p
}

// pod is what all of mig-mover's pods have in common.
func pod(o naming.Owner, step, namespace, name, image, node string, agent velero.NodeAgent) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: o.Labels(step), Annotations: o.Annotations()},
		Spec: corev1.PodSpec{
			NodeName:                      node,
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: ptr.To(int64(0)),
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			ImagePullSecrets:              agent.PullSecrets,
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name:            container,
				Image:           image,
				ImagePullPolicy: corev1.PullIfNotPresent,
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
				}},
				SecurityContext: agent.SecurityContext,
				// Of one that failed, what it said instead.
				TerminationMessagePath: summaryFile, TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			}},
			SecurityContext: &corev1.PodSecurityContext{RunAsUser: ptr.To(int64(0))}, // every file must be readable
		},
	}
}

// seesVolumes lets a pod see what the kubelet has mounted for the pods of its node.
func seesVolumes(p *corev1.Pod, agent velero.NodeAgent, readOnly bool) {
	mounts(p, corev1.VolumeMount{MountPath: hostPods, ReadOnly: readOnly, MountPropagation: ptr.To(corev1.MountPropagationHostToContainer)},
		corev1.Volume{Name: "host-pods", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: agent.HostPods}}})
}

func mounts(p *corev1.Pod, at corev1.VolumeMount, v corev1.Volume) {
	at.Name = v.Name
	p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, at)
	p.Spec.Volumes = append(p.Spec.Volumes, v)
}

// path is where the kubelet mounts the volume for its pod. The directory of the
// plugin is any; CSI drivers mount one level below (velero
// pkg/podvolume/host_path.go).
func path(v Volume) string {
	p := fmt.Sprintf("%s/%s/volumes/*/%s", hostPods, v.Pod.UID, v.PV.Name)
	if v.PV.Spec.CSI != nil {
		p += "/mount"
	}
	return p
}

// Found reads what a pod that has ended found. Errors: how it failed.
func Found(p *corev1.Pod) (manifest.Summary, error) {
	var s manifest.Summary
	ended, err := endOf(p, exitDone)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal([]byte(ended.Message), &s); err != nil || !s.End || len(s.Carried) == 0 {
		return s, fmt.Errorf("%s ended without saying what it found: %q", container, ended.Message)
	}
	return s, nil
}

// Exit codes of mig-mover.
const (
	exitDone    = 0
	exitDiffers = 3
)

// endOf is how the container ended. Errors: with none of the codes that are
// wanted, in its own words, or without having run.
func endOf(p *corev1.Pod, codes ...int32) (*corev1.ContainerStateTerminated, error) {
	for _, status := range p.Status.ContainerStatuses {
		ended := status.State.Terminated
		switch {
		case ended == nil:
		case slices.Contains(codes, ended.ExitCode):
			return ended, nil
		default:
			return nil, fmt.Errorf("%s ended with code %d: %s", container, ended.ExitCode, strings.TrimSpace(ended.Reason+" "+lastWords(ended.Message)))
		}
	}
	if p.Status.Reason != "" || p.Status.Message != "" { // evicted, or its node is gone
		return nil, errors.New(strings.TrimSpace(p.Status.Reason + ": " + p.Status.Message))
	}
	return nil, errors.New("it ended without a container that ran")
}

// lastWords are what the program said when it failed, of a log that has its
// progress too.
func lastWords(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	said := slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "{") })
	return strings.Join(said, " ")
}

// Trouble says why a pod's container will not start as it is; empty: it may.
// The first failure to pull an image may pass, the kubelet's backing off tells
// that it has tried again.
func Trouble(p *corev1.Pod) string {
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && slices.Contains([]string{"ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"}, w.Reason) {
			return fmt.Sprintf("%s: %s", w.Reason, w.Message)
		}
	}
	return ""
}
