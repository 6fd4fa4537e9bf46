package step

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/velero"
)

// EnsureStageRestore asks Velero on the destination for the restore of the
// volumes into fresh claims.
func EnsureStageRestore(r Run) pipeline.Step {
	return &ensure{
		name: velero.StepStageRestore,
		on:   r.Destination,
		objects: func(ctx context.Context) ([]client.Object, error) {
			agent, err := nodeAgent(ctx, r.Destination.Cluster)
			if err != nil {
				return nil, err
			}
			modifiers, err := velero.StageModifiers(r.Owner, r.Plan, r.Destination.VeleroNamespace, agent)
			if err != nil {
				return nil, err
			}
			return []client.Object{modifiers, velero.StageRestore(r.Owner, r.Plan, r.Destination.VeleroNamespace)}, nil
		},
		note: backupNote{
			Step: velero.StepStageRestore, On: r.restoreRef(r.Owner.StageRestore()),
			list: list{Say: fmt.Sprintf("restore of %s asked for", english.Plural(len(r.Plan.Copied()), "volume", ""))},
		},
	}
}

// StageRestoreCreated waits for the restore of the volumes, and proves of every
// claim that it is bound, that its data is back and that Velero's mark was
// taken out of the volume again.
func StageRestoreCreated(r Run) pipeline.Step {
	return &askAgain{Step: stageRestoreCreated{r}, look: r.refusedRestore(r.Owner.StageRestore())}
}

type stageRestoreCreated struct{ r Run }

func (s stageRestoreCreated) Name() string              { return "StageRestoreCreated" }
func (s stageRestoreCreated) Act(context.Context) error { return nil }

// stageState is all that the step looks at.
type stageState struct {
	restore  *velerov1.Restore
	captures []velero.Capture
	claims   map[string]corev1.PersistentVolumeClaimPhase // by the source's namespace/name
	pods     []corev1.Pod                                 // the stage pods on the destination
}

func (s stageRestoreCreated) Next(ctx context.Context) (pipeline.Decision, error) {
	state, err := s.look(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	return decideStageRestore(state), nil
}

func (s stageRestoreCreated) look(ctx context.Context) (stageState, error) {
	restore, err := s.r.restore(ctx, s.r.Owner.StageRestore())
	if err != nil {
		return stageState{}, err
	}
	captures, err := s.r.captures(ctx, true)
	if err != nil {
		return stageState{}, err
	}
	pods, err := listStagePods(ctx, s.r.Destination, s.r.Owner)
	if err != nil {
		return stageState{}, err
	}
	claims, err := s.claims(ctx)
	return stageState{restore: restore, captures: captures, claims: claims, pods: pods}, err
}

func (s stageRestoreCreated) claims(ctx context.Context) (map[string]corev1.PersistentVolumeClaimPhase, error) {
	out := map[string]corev1.PersistentVolumeClaimPhase{}
	for _, ns := range s.r.copiedNamespaces() {
		var list corev1.PersistentVolumeClaimList
		if err := s.r.Destination.List(ctx, &list, client.InNamespace(s.r.Plan.DestinationNamespace(ns))); err != nil {
			return nil, err
		}
		for _, c := range list.Items {
			out[ns+"/"+c.Name] = c.Status.Phase
		}
	}
	return out, nil
}

func decideStageRestore(st stageState) pipeline.Decision {
	note := backupNote{Step: "StageRestoreCreated", On: restoreRef(st.restore)}
	d := pipeline.Decision{
		Verdict: pipeline.Wait, Amounts: velero.RestoreAmounts(st.captures),
		Facts: append(restoresBegun(st.captures), restoreFacts(st.captures)...), Warnings: restoresFailed(st.captures),
	}
	lost := lostVolumes(st.captures, velero.Capture.RestoreFailure)
	switch outcome := velero.RestoreOutcome(st.restore); {
	case len(lost) > 0:
		d.Verdict, note.list = pipeline.Failed, list{Names: lost, Between: "; "}
	case outcome == velero.Broken:
		d.Verdict, note.Say = pipeline.Failed, velero.RestoreTrouble(st.restore)
	case outcome == velero.Running:
		note.list = waitingForRestore(st)
		d.Stall = noPlace(note.On, st.captures)
	default:
		d.Verdict, note.list = provenRestore(st)
	}
	d.Note = note
	return d
}

// provenRestore is the last word on a restore that Velero calls Completed.
func provenRestore(st stageState) (pipeline.Verdict, list) {
	var left, unbound []string
	for _, c := range st.captures {
		if !c.Restored() {
			left = append(left, c.Claim)
		}
		if st.claims[c.Claim] != corev1.ClaimBound {
			unbound = append(unbound, fmt.Sprintf("%s (%s)", c.Claim, orAbsent(st.claims[c.Claim])))
		}
	}
	marked := marked(st.pods)
	switch {
	case len(left) > 0:
		return pipeline.Failed, list{Say: fmt.Sprintf("Velero calls restore %s Completed, but it has left out the data of ", st.restore.Name), Names: left}
	case len(unbound) > 0:
		return pipeline.Wait, list{Say: "waiting for claims to be bound: ", Names: unbound}
	case len(marked) > 0:
		return pipeline.Wait, list{Say: "waiting for Velero's mark to be taken out of the volumes: ", Names: marked}
	default:
		return pipeline.Done, list{Say: fmt.Sprintf("restored into fresh claims: %s, %s", english.Plural(len(st.captures), "volume", ""), humanize.IBytes(uint64(velero.Bytes(st.captures))))}
	}
}

// marked are the stage pods whose volume may still hold Velero's mark: their
// waiting container, which removes it, has not ended.
func marked(pods []corev1.Pod) []string {
	var out []string
	for _, p := range pods {
		for _, s := range p.Status.InitContainerStatuses {
			if t := s.State.Terminated; t == nil || t.ExitCode != 0 {
				out = append(out, p.Namespace+"/"+p.Name)
			}
		}
	}
	return out
}

func waitingForRestore(st stageState) list {
	if st.restore.Status.Phase == "" {
		return list{Say: "waiting for Velero to take up restore " + st.restore.Name}
	}
	l := list{Say: "Velero restore " + st.restore.Name + ": " + string(st.restore.Status.Phase), Between: "; "}
	for _, p := range st.pods {
		if p.Status.Phase == corev1.PodPending && podTrouble(&p) != string(corev1.PodPending) {
			l.Names = append(l.Names, fmt.Sprintf("%s/%s: %s", p.Namespace, p.Name, podTrouble(&p)))
		}
	}
	if len(l.Names) > 0 {
		l.Say += "; "
	}
	return l
}

// noPlace explains volumes that are ready to be restored and that their
// node-agent does not begin with, though it is at none of ours. An agent gives
// back the place of a PodVolumeRestore when that ends; one that was deleted as
// it ran never ends, and its place is lost until the agent starts anew (velero
// pkg/controller/pod_volume_restore_controller.go).
func noPlace(restore progress.Ref, captures []velero.Capture) progress.Note {
	n := lostPlace{On: restore}
	for _, c := range captures {
		switch {
		case c.Restore == nil:
		case c.Restore.Status.Phase == velerov1.PodVolumeRestorePhaseInProgress:
			return nil
		case c.Restore.Status.Phase == velerov1.PodVolumeRestorePhasePrepared:
			n.Ready = append(n.Ready, c.Claim)
			n.Nodes = append(n.Nodes, c.Restore.Status.Node)
			n.Namespace = c.Restore.Namespace
		}
	}
	if len(n.Ready) == 0 {
		return nil
	}
	slices.Sort(n.Nodes)
	n.Nodes = slices.Compact(n.Nodes)
	return n
}

// lostPlace are volumes that a node-agent does not begin with.
type lostPlace struct {
	On        progress.Ref // the restore
	Nodes     []string     // whose node-agents they wait for
	Ready     []string     // claims
	Namespace string       // Velero's
}

func (n lostPlace) Reason() string          { return "StageRestoreCreated" }
func (n lostPlace) Regarding() progress.Ref { return n.On }
func (n lostPlace) Text() string            { return n.say(wholeBytes) }

// Fit names fewer claims and nodes; the command stays whole.
func (n lostPlace) Fit(limit int) string { return n.say(limit) }

func (n lostPlace) say(limit int) string {
	const ready, why = "ready, but not begun by the node-agent of ", ". If nothing else is restored there, it has lost its place to a PodVolumeRestore that was deleted as it ran; start it anew: "
	command := fmt.Sprintf("kubectl delete pod -n %s -l name=node-agent --field-selector spec.nodeName=%s", n.Namespace, n.Nodes[0])
	room := limit - len(ready) - len(": ") - len(why) - len(command)
	nodes := progress.Several(n.Nodes, ", ", room/3)
	return ready + nodes + ": " + progress.Several(n.Ready, ", ", room-len(nodes)) + why + command
}

func restoreFacts(captures []velero.Capture) []progress.Note {
	var out []progress.Note
	for _, c := range captures {
		if !c.Restored() || c.Restore == nil {
			continue
		}
		out = append(out, volumeNote{
			Why: "VolumeRestored", On: restoredClaimRef(c), Bytes: c.Restore.Status.Progress.TotalBytes,
			Took: took(c.Restore.Status.StartTimestamp, c.Restore.Status.CompletionTimestamp),
		})
	}
	return out
}

// restoredClaimRef is the claim on the destination: the source's name in the
// namespace of the pod that it was restored through.
func restoredClaimRef(c velero.Capture) progress.Ref {
	ref := claimRef(progress.OnDestination, c.Claim)
	ref.Namespace = c.Restore.Spec.Pod.Namespace
	return ref
}

func took(start, end *metav1.Time) time.Duration {
	if start == nil || end == nil {
		return 0
	}
	return end.Sub(start.Time)
}

func orAbsent(p corev1.PersistentVolumeClaimPhase) string {
	if p == "" {
		return "absent"
	}
	return string(p)
}

func (r Run) restore(ctx context.Context, name string) (*velerov1.Restore, error) {
	var out velerov1.Restore
	err := r.Destination.Get(ctx, client.ObjectKey{Namespace: r.Destination.VeleroNamespace, Name: name}, &out)
	return &out, err
}

func restoreRef(r *velerov1.Restore) progress.Ref {
	return progress.Ref{
		Side: progress.OnDestination, APIVersion: velerov1.SchemeGroupVersion.String(), Kind: "Restore",
		Namespace: r.Namespace, Name: r.Name, UID: string(r.UID),
	}
}

func (r Run) restoreRef(name string) progress.Ref {
	v := velerov1.Restore{}
	v.Namespace, v.Name = r.Destination.VeleroNamespace, name
	return restoreRef(&v)
}
