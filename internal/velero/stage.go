package velero

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
)

// NodeAgent is what the pods of a run take from the node-agent of their cluster: they
// must run where it runs, and its image is there already.
type NodeAgent struct {
	Image        string
	Tolerations  []corev1.Toleration
	NodeSelector map[string]string
	// For what reads volumes as node-agent itself does.
	HostPods        string // the kubelet's directory of pods on a node; empty: node-agent does not see it
	SecurityContext *corev1.SecurityContext
	// For what reads the object store as node-agent itself does.
	ServiceAccount string
	Keys           *corev1.SecretKeySelector // of locations that name none; nil: no Secret
	Proxies        []corev1.EnvVar
	PullSecrets    []corev1.LocalObjectReference
}

// stageContainer is the one container of a stage pod.
const stageContainer = "stage"

// stageVolume is the volume of a stage pod, and the beginning of their names
// where it has several; Velero counts it into the identity of a snapshot only
// where the claim has no name.
const stageVolume = "data"

// restoreWait is the init container that Velero puts into a restored pod
// (velero pkg/restorehelper).
const restoreWait = "restore-wait"

// nobody is a user that owns nothing: the stage pod itself never reads the data.
const nobody int64 = 65534

// StagePod mounts claims of one namespace that no pod of the application mounts,
// so that Velero's file-system backup sees them. It does nothing, reads nothing
// and changes nothing: no fsGroup (that would chown the volume), no service
// account token, and a security context that every Pod Security level admits.
// It bears name, which is the pod name of the claims' last PodVolumeBackups
// where there are some: kopia finds the parent snapshot by it.
func StagePod(o naming.Owner, name string, agent NodeAgent, mounted ...plan.Volume) *corev1.Pod {
	labels := StagePodLabels(o)
	labels[naming.RefStagePod] = "True"
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: o.Annotations()},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyAlways,
			TerminationGracePeriodSeconds: ptr.To(int64(0)),
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			Tolerations:                   agent.Tolerations,
			NodeSelector:                  agent.NodeSelector,
			SecurityContext:               &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name:            stageContainer,
				Image:           agent.Image,
				ImagePullPolicy: corev1.PullIfNotPresent,
				// Velero's image holds this program to keep a pod running (velero cmd/velero-helper).
				Command:         []string{"/velero-helper", "pause"},
				Resources:       stageResources(),
				SecurityContext: stageSecurity(),
			}},
		},
	}
	var claims []string
	for i, v := range mounted {
		volume := stageVolume
		if len(mounted) > 1 {
			volume += "-" + strconv.Itoa(i)
		}
		claims = append(claims, v.Claim)
		pod.Namespace = v.Namespace()
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: "/" + volume})
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.Name()},
		}})
	}
	pod.Annotations[naming.AnnClaim] = naming.ForClaims(claims...)
	return pod
}

// Placement is where the pods of an application may run.
type Placement struct {
	NodeSelector map[string]string
	NodeAffinity *corev1.NodeAffinity
	Tolerations  []corev1.Toleration
}

// MountPod mounts copied claims on the destination, so that volumes are made for
// them and mig-mover can write into these from Velero's namespace. They are
// those that one pod of the application mounts, and where is where that may run:
// a class that makes a volume where its first pod is must not make two of them
// where no pod can have both. Like StagePod it reads and changes nothing itself.
func MountPod(o naming.Owner, p plan.Valid, agent NodeAgent, where Placement, mounted ...plan.Volume) *corev1.Pod {
	first := mounted[0]
	pod := StagePod(o, naming.StagePod(first.Namespace(), first.Name()), agent, mounted...)
	pod.Namespace = p.DestinationNamespace(first.Namespace())
	if len(where.NodeSelector) > 0 {
		pod.Spec.NodeSelector = maps.Clone(where.NodeSelector)
		maps.Copy(pod.Spec.NodeSelector, agent.NodeSelector)
	}
	pod.Spec.Tolerations = append(slices.Clone(agent.Tolerations), where.Tolerations...)
	if where.NodeAffinity != nil {
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: where.NodeAffinity}
	}
	return pod
}

// stageResources are small and set on both sides, so that a quota which asks
// for them admits the pod.
func stageResources() corev1.ResourceRequirements {
	small := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")}
	return corev1.ResourceRequirements{Requests: small, Limits: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
	}}
}

func stageSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsUser: ptr.To(nobody), RunAsGroup: ptr.To(nobody), RunAsNonRoot: ptr.To(true),
		AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// StageModifiers change what the stage restore makes on the destination, for
// this restore alone (Velero's class and image maps are the whole cluster's):
// every claim gets the class, access modes and size of the plan, every stage
// pod what the destination's node-agent has, and Velero's waiting container
// runs as root: as another user it can neither see its mark in a volume whose
// root directory is closed to it, nor remove the mark.
func StageModifiers(o naming.Owner, p plan.Valid, namespace string, agent NodeAgent) (*corev1.ConfigMap, error) {
	pod, err := stagePodPatch(agent)
	if err != nil {
		return nil, err
	}
	rules := []modifierRule{{
		Conditions:       modifierConditions{GroupResource: pods, LabelSelector: &metav1.LabelSelector{MatchLabels: StagePodLabels(o)}},
		StrategicPatches: []patchData{{PatchData: pod}},
	}}
	for _, v := range p.Copied() {
		patch, err := claimPatch(p, v)
		if err != nil {
			return nil, err
		}
		rules = append(rules, modifierRule{
			Conditions:   modifierConditions{GroupResource: claims, Namespaces: []string{v.Namespace()}, ResourceNameRegex: exactly(v.Name())},
			MergePatches: []patchData{{PatchData: patch}},
		})
	}
	return modifierConfigMap(o, namespace, o.StageModifiers(), StepStageRestore, rules)
}

func stagePodPatch(agent NodeAgent) (string, error) {
	// A list without a merge key is replaced (tolerations), a null removes.
	patch := map[string]any{"spec": map[string]any{
		"tolerations":  agent.Tolerations,
		"nodeSelector": replaceMap(agent.NodeSelector),
		"containers":   []map[string]any{{"name": stageContainer, "image": agent.Image}},
		"initContainers": []map[string]any{{"name": restoreWait, "securityContext": map[string]any{
			"runAsUser": 0, "runAsGroup": 0, "runAsNonRoot": false, "capabilities": nil,
		}}},
	}}
	return marshal(patch)
}

func replaceMap(m map[string]string) any {
	out := map[string]any{"$patch": "replace"}
	for k, v := range m {
		out[k] = v
	}
	return out
}

func claimPatch(p plan.Valid, v plan.Volume) (string, error) {
	spec := map[string]any{}
	if class := p.DestinationClass(v); class != "" {
		spec["storageClassName"] = class
	}
	if len(v.Destination.AccessModes) > 0 {
		spec["accessModes"] = v.Destination.AccessModes
	}
	if v.Destination.Size != "" {
		spec["resources"] = map[string]any{"requests": map[string]any{"storage": v.Destination.Size}}
	}
	return marshal(map[string]any{"spec": spec})
}

func marshal(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}
