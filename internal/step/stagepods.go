package step

import (
	"context"
	"encoding/json"
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

	"github.com/mig-cli/mig/internal/cluster"
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
		for _, claim := range mountedBy(p) {
			out[claim] = true
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
	wanted, err := r.toGroup(ctx, volumes)
	if err != nil {
		return nil, err
	}
	made, err := listStagePods(ctx, r.Source, r.Owner)
	if err != nil {
		return nil, err
	}
	// Pods that the run has made stay as they are: a name that is free now may have been another pod's then, and of
	// two pods for one claim the second would be restored without its volume.
	there := mountedIn(made)
	var out []client.Object
	for i := range made {
		out = append(out, &made[i])
	}
	wanted = slices.DeleteFunc(wanted, func(w stageWish) bool { return there[w.Claim] })
	for _, g := range stageGroups(wanted) {
		out = append(out, velero.StagePod(r.Owner, g.name, agent, g.volumes...))
	}
	return out, nil
}

// stageWish is a volume that needs a stage pod.
type stageWish struct {
	plan.Volume

	last     string // the pod name of its last PodVolumeBackup, where that is free; else empty
	alone    bool   // it is restored through the stage pod, which decides where its volume is made
	affinity string // of its volume to nodes: what differs in it cannot be in one pod
}

// stageGroup is what one stage pod mounts.
type stageGroup struct {
	name    string
	volumes []plan.Volume
}

// mostTogether is how many volumes that no pod had together before are mounted by
// one pod: nodes can have but so many.
const mostTogether = 8

// stageGroups are the fewest pods, because Velero takes seconds for each (velero
// pkg/backup/backup.go looks every five seconds whether a pod's volumes are
// through). What went through one pod last time does so again.
func stageGroups(wishes []stageWish) []stageGroup {
	var out []stageGroup
	at := map[string]int{}
	for _, w := range wishes {
		key := strings.Join([]string{w.Namespace(), w.last, w.affinity}, "\n")
		if w.alone {
			key = w.Claim
		}
		i, ok := at[key]
		if !ok || w.last == "" && len(out[i].volumes) == mostTogether {
			i = len(out)
			at[key] = i
			name := w.last
			if name == "" || slices.ContainsFunc(out, func(g stageGroup) bool { return g.name == name && g.volumes[0].Namespace() == w.Namespace() }) {
				name = naming.StagePod(w.Namespace(), w.Name())
			}
			out = append(out, stageGroup{name: name})
		}
		out[i].volumes = append(out[i].volumes, w.Volume)
	}
	return out
}

// toGroup looks at all that decides which volumes a stage pod can mount together.
func (r Run) toGroup(ctx context.Context, volumes []plan.Volume) ([]stageWish, error) {
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
	staged, err := r.staged(ctx)
	if err != nil {
		return nil, err
	}
	var out []stageWish
	for _, v := range volumes {
		affinity, err := affinityOf(ctx, r.Source.Cluster, v)
		if err != nil {
			return nil, err
		}
		w := stageWish{Volume: v, alone: len(staged) == 0, affinity: affinity}
		if name := stagePodName(v.Namespace(), v.Name(), uids[v.Claim], backups.Items, pods); name != naming.StagePod(v.Namespace(), v.Name()) || wentThrough(backups.Items, uids[v.Claim], name) {
			w.last = name
		}
		out = append(out, w)
	}
	return out, nil
}

// wentThrough says whether a claim was ever backed up through a pod of that name.
func wentThrough(backups []velerov1.PodVolumeBackup, uid, pod string) bool {
	return slices.ContainsFunc(backups, func(b velerov1.PodVolumeBackup) bool {
		return b.Spec.Tags["pvc-uid"] == uid && b.Spec.Pod.Name == pod && b.Status.Phase == velerov1.PodVolumeBackupPhaseCompleted
	})
}

// boundVolume is the volume that a claim is bound to; nil where the claim cannot
// be read. Errors: the cluster's own.
func boundVolume(ctx context.Context, c *cluster.Cluster, namespace, name string) (*corev1.PersistentVolume, error) {
	var claim corev1.PersistentVolumeClaim
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &claim); err != nil {
		return nil, err
	}
	var pv corev1.PersistentVolume
	return &pv, c.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, &pv)
}

// mountedIn are the claims, namespace/name on the source, that pods of mig's are
// there for.
func mountedIn(pods []corev1.Pod) map[string]bool {
	out := map[string]bool{}
	for i := range pods {
		for _, claim := range naming.ClaimsOf(&pods[i]) {
			out[claim] = true
		}
	}
	return out
}

// affinityOf is on which nodes a claim's volume can be, in a form to compare;
// empty: on any.
func affinityOf(ctx context.Context, c *cluster.Cluster, v plan.Volume) (string, error) {
	pv, err := boundVolume(ctx, c, v.Namespace(), v.Name())
	switch {
	case pv == nil:
		return "", err
	case err != nil || pv.Spec.NodeAffinity == nil:
		return "", client.IgnoreNotFound(err)
	}
	text, err := json.Marshal(pv.Spec.NodeAffinity)
	return string(text), err
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
			for _, claim := range naming.ClaimsOf(&p) {
				running[claim] = true
			}
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
