// Package mover makes the pods in which mig-mover works next to a volume, and
// reads what they said when they ended. It knows neither steps nor plans.
package mover

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/mig-cli/mig/internal/manifest"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/velero"
)

// StepVerify is the step that the pods with manifests are made by.
const StepVerify = "VolumesVerified"

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
	annotations := o.Annotations()
	annotations[naming.AnnClaim] = v.Claim
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: o.VerifyPod(v.Claim), Labels: o.Labels(StepVerify), Annotations: annotations},
		Spec: corev1.PodSpec{
			NodeName:                      v.Pod.Spec.NodeName,
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: ptr.To(int64(0)),
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name:            container,
				Image:           image,
				ImagePullPolicy: corev1.PullIfNotPresent,
				Args:            []string{"manifest", "--root", path(v), "--hash", "--encoding", string(manifest.Base64), "--summary", summaryFile},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
				}},
				SecurityContext: agent.SecurityContext,
				// Of one that failed, what it said instead.
				TerminationMessagePath: summaryFile, TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				VolumeMounts: []corev1.VolumeMount{{
					Name: "host-pods", MountPath: hostPods, ReadOnly: true, MountPropagation: ptr.To(corev1.MountPropagationHostToContainer),
				}},
			}},
			SecurityContext: &corev1.PodSecurityContext{RunAsUser: ptr.To(int64(0))}, // every file must be readable
			Volumes: []corev1.Volume{{Name: "host-pods", VolumeSource: corev1.VolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: agent.HostPods},
			}}},
		},
	}
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
	for _, status := range p.Status.ContainerStatuses {
		ended := status.State.Terminated
		if ended == nil {
			continue
		}
		if ended.ExitCode != 0 {
			return s, fmt.Errorf("%s ended with code %d: %s", container, ended.ExitCode, strings.TrimSpace(ended.Reason+" "+ended.Message))
		}
		if err := json.Unmarshal([]byte(ended.Message), &s); err != nil || !s.End || len(s.Carried) == 0 {
			return s, fmt.Errorf("%s ended without saying what it found: %q", container, ended.Message)
		}
		return s, nil
	}
	if p.Status.Reason != "" || p.Status.Message != "" { // evicted, or its node is gone
		return s, errors.New(strings.TrimSpace(p.Status.Reason + ": " + p.Status.Message))
	}
	return s, errors.New("it ended without a container that ran")
}
