package step

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/mover"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/velero"
)

// Mounting says which claims a run mounts in stage pods.
type Mounting int

// The ways to mount.
const (
	EveryClaim Mounting = iota // the application is stopped
	IdleClaims                 // the application runs: those that no running pod of it mounts
)

// EnsureStagePods makes a pod for every copied claim that needs one, since
// Velero's file-system backup sees only what a running pod mounts.
func EnsureStagePods(r Run, which Mounting) pipeline.Step {
	note := progress.Remark{Why: "EnsureStagePods", Say: "stage pods for " + english.Plural(len(r.Plan.Copied()), "claim", "")}
	if which == IdleClaims {
		note.Say = "stage pods for claims that no running pod mounts"
	}
	return &ensure{
		name:    "EnsureStagePods",
		on:      r.Source,
		objects: func(ctx context.Context) ([]client.Object, error) { return r.stagePods(ctx, which) },
		note:    note,
	}
}

// toMount are the copied claims that need a stage pod.
func (r Run) toMount(ctx context.Context, which Mounting) ([]plan.Volume, error) {
	if which == EveryClaim {
		return r.Plan.Copied(), nil
	}
	pods, err := podsIn(ctx, r.Source, r.copiedNamespaces())
	if err != nil {
		return nil, err
	}
	mounted := liveClaims(pods)
	return slices.DeleteFunc(r.Plan.Copied(), func(v plan.Volume) bool { return mounted[v.Claim] }), nil
}

// liveClaims are the claims, namespace/name, that running pods other than mig's
// mount.
func liveClaims(pods []corev1.Pod) map[string]bool {
	out := map[string]bool{}
	for i := range pods {
		p := &pods[i]
		if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil || p.Labels[naming.LabelCreatedBy] == naming.CreatedBy {
			continue
		}
		for _, v := range p.Spec.Volumes {
			switch {
			case v.PersistentVolumeClaim != nil:
				out[p.Namespace+"/"+v.PersistentVolumeClaim.ClaimName] = true
			case v.Ephemeral != nil:
				out[p.Namespace+"/"+p.Name+"-"+v.Name] = true
			}
		}
	}
	return out
}

func (r Run) stagePods(ctx context.Context, which Mounting) ([]client.Object, error) {
	volumes, err := r.toMount(ctx, which)
	if err != nil || len(volumes) == 0 {
		return nil, err
	}
	agent, err := nodeAgent(ctx, r.Source.Cluster)
	if err != nil {
		return nil, err
	}
	uids, err := r.claimUIDs(ctx)
	if err != nil {
		return nil, err
	}
	var backups velerov1.PodVolumeBackupList
	if err := r.Source.List(ctx, &backups, client.InNamespace(r.Source.VeleroNamespace)); err != nil {
		return nil, err
	}
	pods, err := r.podNames(ctx)
	if err != nil {
		return nil, err
	}
	made, err := r.stagePodsMade(ctx)
	if err != nil {
		return nil, err
	}
	var out []client.Object
	for _, v := range volumes {
		name, there := made[v.Claim]
		if there {
			out = append(out, velero.StagePod(r.Owner, v, name, agent))
			continue
		}
		name = stagePodName(v.Namespace(), v.Name(), uids[v.Claim], backups.Items, pods)
		out = append(out, velero.StagePod(r.Owner, v, name, agent))
	}
	return out, nil
}

// stagePodsMade are the names of the stage pods that the run has, by their
// claims. A name that is free now may have been another pod's when they were
// made: a second pod for the same claim would be restored without its volume.
func (r Run) stagePodsMade(ctx context.Context) (map[string]string, error) {
	pods, err := listStagePods(ctx, r.Source, r.Owner)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, p := range pods {
		out[naming.ClaimOf(&p)] = p.Name
	}
	return out, nil
}

// stagePodName is the pod name of the claim's newest completed PodVolumeBackup,
// under which kopia finds the parent snapshot, unless a pod that is not ours
// bears it now; else the claim's own stable name. pods maps namespace/name of
// the pods there are to whether they are stage pods of ours.
func stagePodName(namespace, claim, uid string, backups []velerov1.PodVolumeBackup, pods map[string]bool) string {
	var last *velerov1.PodVolumeBackup
	for i := range backups {
		b := &backups[i]
		if b.Spec.Tags["pvc-uid"] != uid || b.Status.Phase != velerov1.PodVolumeBackupPhaseCompleted {
			continue
		}
		if last == nil || last.CreationTimestamp.Before(&b.CreationTimestamp) {
			last = b
		}
	}
	if last == nil {
		return naming.StagePod(namespace, claim)
	}
	if ours, taken := pods[namespace+"/"+last.Spec.Pod.Name]; taken && !ours {
		return naming.StagePod(namespace, claim)
	}
	return last.Spec.Pod.Name
}

func (r Run) podNames(ctx context.Context) (map[string]bool, error) {
	out := map[string]bool{}
	for _, ns := range r.copiedNamespaces() {
		var list corev1.PodList
		if err := r.Source.List(ctx, &list, client.InNamespace(ns)); err != nil {
			return nil, err
		}
		for _, p := range list.Items {
			out[p.Namespace+"/"+p.Name] = naming.OfPlanUID(p.Labels) == r.Owner.PlanUID
		}
	}
	return out, nil
}

// StagePodsCreated waits until every claim that needs one is mounted by a
// running stage pod.
func StagePodsCreated(r Run, which Mounting) pipeline.Step { return stagePodsCreated{r, which} }

type stagePodsCreated struct {
	r     Run
	which Mounting
}

func (s stagePodsCreated) Name() string              { return "StagePodsCreated" }
func (s stagePodsCreated) Act(context.Context) error { return nil }

func (s stagePodsCreated) Next(ctx context.Context) (pipeline.Decision, error) {
	pods, err := listStagePods(ctx, s.r.Source, s.r.Owner)
	if err != nil {
		return pipeline.Decision{}, err
	}
	volumes, err := s.r.toMount(ctx, s.which)
	if err != nil {
		return pipeline.Decision{}, err
	}
	return decideStagePods(pods, claimsOf(volumes)), nil
}

func decideStagePods(pods []corev1.Pod, claims []string) pipeline.Decision {
	running := map[string]bool{}
	var waiting []string
	for _, p := range pods {
		if podReady(&p) {
			running[naming.ClaimOf(&p)] = true
			continue
		}
		waiting = append(waiting, fmt.Sprintf("%s/%s: %s", p.Namespace, p.Name, podTrouble(&p)))
	}
	var missing []string
	for _, claim := range claims {
		if !running[claim] {
			missing = append(missing, claim)
		}
	}
	note := remark{Why: "StagePodsCreated"}
	switch {
	case len(missing) == 0:
		note.Say = "mounted by running stage pods: " + english.Plural(len(claims), "claim", "")
		return pipeline.Decision{Verdict: pipeline.Done, Note: note}
	case len(waiting) == 0:
		note.list = list{Say: "stage pods are gone, of ", Names: missing}
		return pipeline.Decision{Verdict: pipeline.Failed, Note: note}
	default:
		note.list = list{Say: "waiting for stage pods: ", Names: waiting, Between: "; "}
		return pipeline.Decision{Verdict: pipeline.Wait, Note: note}
	}
}

// EnsureStagePodsDeleted removes the stage pods of both clusters and waits
// until they are gone: only then can the application's pods mount the volumes.
func EnsureStagePodsDeleted(r Run) pipeline.Step { return stagePodsDeleted{r} }

type stagePodsDeleted struct{ r Run }

func (s stagePodsDeleted) Name() string { return "EnsureStagePodsDeleted" }

func (s stagePodsDeleted) Next(ctx context.Context) (pipeline.Decision, error) {
	pods, err := s.pods(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	return decideStagePodsDeleted(pods), nil
}

func decideStagePodsDeleted(pods []corev1.Pod) pipeline.Decision {
	note := progress.Remark{Why: "EnsureStagePodsDeleted", Say: "no stage pod is left"}
	if len(pods) == 0 {
		return pipeline.Decision{Verdict: pipeline.Done, Note: note}
	}
	note.Say = fmt.Sprintf("waiting for %s to be gone", english.Plural(len(pods), "stage pod", ""))
	for _, p := range pods {
		if p.DeletionTimestamp == nil {
			note.Say = "deleting " + english.Plural(len(pods), "stage pod", "")
			return pipeline.Decision{Verdict: pipeline.Act, Note: note}
		}
	}
	return pipeline.Decision{Verdict: pipeline.Wait, Note: note}
}

func (s stagePodsDeleted) Act(ctx context.Context) error {
	for _, c := range []client.Client{s.r.Source, s.r.Destination} {
		pods, err := helperPods(ctx, c, s.r.Owner.OfRun())
		if err != nil {
			return err
		}
		for i := range pods {
			if err := c.Delete(ctx, &pods[i]); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}

func (s stagePodsDeleted) pods(ctx context.Context) ([]corev1.Pod, error) {
	src, err := helperPods(ctx, s.r.Source, s.r.Owner.OfRun())
	if err != nil {
		return nil, err
	}
	dst, err := helperPods(ctx, s.r.Destination, s.r.Owner.OfRun())
	return append(src, dst...), err
}

// helperPods are the pods that runs have made for themselves: those that mount
// volumes, and those that read them.
func helperPods(ctx context.Context, c client.Client, of labels.Selector) ([]corev1.Pod, error) {
	made, err := labels.NewRequirement(naming.LabelStep, selection.In, append(mover.Steps(), velero.StepStagePods))
	if err != nil {
		return nil, err
	}
	var list corev1.PodList
	err = c.List(ctx, &list, client.MatchingLabelsSelector{Selector: of.Add(*made)})
	return list.Items, err
}

// listStagePods are the run's stage pods in all namespaces of a cluster.
func listStagePods(ctx context.Context, c client.Client, o naming.Owner) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := c.List(ctx, &list, client.MatchingLabels(velero.StagePodLabels(o)))
	return list.Items, err
}

func podReady(p *corev1.Pod) bool {
	if p.DeletionTimestamp != nil {
		return false
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// podTrouble says in a line why a pod does not run yet.
func podTrouble(p *corev1.Pod) string {
	for _, s := range append(append([]corev1.ContainerStatus{}, p.Status.InitContainerStatuses...), p.Status.ContainerStatuses...) {
		if w := s.State.Waiting; w != nil && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating" {
			return strings.TrimSuffix(w.Reason+": "+w.Message, ": ")
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason + ": " + c.Message
		}
	}
	return string(p.Status.Phase)
}
