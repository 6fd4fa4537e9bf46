package step

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/quiesce"
	"github.com/mig-cli/mig/internal/velero"
)

// StepDestinationVolumesMounted is the name of the step DestinationVolumesMounted.
const StepDestinationVolumesMounted = "DestinationVolumesMounted"

// EnsureDestinationClaims makes the copied claims on the destination, for
// mig-mover to fill. Those that an earlier run of the plan has filled stay, with
// what is in them, unless the plan wants them otherwise now.
func EnsureDestinationClaims(r Run) pipeline.Step { return destinationClaims{r} }

type destinationClaims struct{ r Run }

func (s destinationClaims) Name() string { return velero.StepDestinationClaims }

// claimPair is a claim as it is on the destination and as the plan wants it.
type claimPair struct {
	have, want *corev1.PersistentVolumeClaim // nil: there is none; none is wanted
	ours       bool                          // have was made for this plan and not migrated with
}

func (p claimPair) name() string {
	if p.want != nil {
		return p.want.Namespace + "/" + p.want.Name
	}
	return p.have.Namespace + "/" + p.have.Name
}

// unfit says whether the claim that is there is not the one that is wanted.
func (p claimPair) unfit() bool {
	return p.have != nil && (p.want == nil || !velero.SuitsClaim(p.have, p.want))
}

func (s destinationClaims) Next(ctx context.Context) (pipeline.Decision, error) {
	pairs, err := s.look(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	return decideDestinationClaims(pairs), nil
}

func decideDestinationClaims(pairs []claimPair) pipeline.Decision {
	note := remark{Why: velero.StepDestinationClaims}
	var foreign, old, leaving, missing []string
	for _, p := range pairs {
		switch {
		case p.have == nil:
			missing = append(missing, p.name())
		case !p.ours:
			foreign = append(foreign, p.name())
		case p.have.DeletionTimestamp != nil:
			leaving = append(leaving, heldText("claim", p.have))
		case p.unfit():
			old = append(old, p.name())
		}
	}
	switch {
	case len(foreign) > 0:
		note.list = list{Say: "claims are on the destination that no run of this plan made: ", Names: foreign}
		return pipeline.Decision{Verdict: pipeline.Failed, Note: note}
	case len(old) > 0:
		note.list = list{Say: "removing claims that are not as the plan wants them now: ", Names: old}
		return pipeline.Decision{Verdict: pipeline.Act, Note: note}
	case len(leaving) > 0:
		note.list = list{Say: "waiting for claims to be gone: ", Names: leaving, Between: "; "}
		return pipeline.Decision{Verdict: pipeline.Wait, Note: note}
	case len(missing) > 0:
		note.list = list{Say: "making claims on the destination: ", Names: missing}
		return pipeline.Decision{Verdict: pipeline.Act, Note: note}
	default:
		note.Say = english.Plural(len(pairs), "claim", "") + " on the destination to be filled"
		return pipeline.Decision{Verdict: pipeline.Done, Note: note}
	}
}

func (s destinationClaims) Act(ctx context.Context) error {
	pairs, err := s.look(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range pairs {
		switch {
		case p.have == nil:
			if err := s.r.Destination.Create(ctx, p.want); err != nil && !apierrors.IsAlreadyExists(err) {
				errs = append(errs, fmt.Errorf("claim %s on the destination: %w", p.name(), err))
			}
		case p.ours && p.unfit():
			errs = append(errs, s.r.deleteStaged(ctx, p.have))
		}
	}
	return errors.Join(errs...)
}

// look pairs every claim that is wanted with what is there, and finds those of
// an earlier run that are no longer wanted.
func (s destinationClaims) look(ctx context.Context) ([]claimPair, error) {
	there, err := s.r.destinationClaims(ctx)
	if err != nil {
		return nil, err
	}
	var out []claimPair
	for _, v := range s.r.Plan.Copied() {
		var src corev1.PersistentVolumeClaim
		if err := s.r.Source.Get(ctx, client.ObjectKey{Namespace: v.Namespace(), Name: v.Name()}, &src); err != nil {
			return nil, err
		}
		p := claimPair{want: velero.DestinationClaim(s.r.Owner, s.r.Plan, v, &src)}
		if have, ok := there[p.name()]; ok {
			p.have, p.ours = have, velero.IsStaged(have, s.r.Owner.PlanUID)
			delete(there, p.name())
		}
		out = append(out, p)
	}
	for _, have := range there {
		if velero.IsStaged(have, s.r.Owner.PlanUID) {
			out = append(out, claimPair{have: have, ours: true})
		}
	}
	slices.SortFunc(out, func(a, b claimPair) int { return strings.Compare(a.name(), b.name()) })
	return out, nil
}

// destinationClaims are all claims in the destination's namespaces of the plan,
// by namespace/name.
func (r Run) destinationClaims(ctx context.Context) (map[string]*corev1.PersistentVolumeClaim, error) {
	out := map[string]*corev1.PersistentVolumeClaim{}
	for _, ns := range r.Plan.SourceNamespaces() {
		var list corev1.PersistentVolumeClaimList
		if err := r.Destination.List(ctx, &list, client.InNamespace(r.Plan.DestinationNamespace(ns))); err != nil {
			return nil, err
		}
		for i := range list.Items {
			out[list.Items[i].Namespace+"/"+list.Items[i].Name] = &list.Items[i]
		}
	}
	return out, nil
}

// staged are the destination's claims that were made for mig-mover to fill, in
// the order of their names. Where there are none, Velero restores the volumes.
func (r Run) staged(ctx context.Context) ([]*corev1.PersistentVolumeClaim, error) {
	there, err := r.destinationClaims(ctx)
	if err != nil {
		return nil, err
	}
	var out []*corev1.PersistentVolumeClaim
	for _, c := range there {
		if velero.IsStaged(c, r.Owner.PlanUID) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.PersistentVolumeClaim) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return out, nil
}

// deleteStaged deletes this very claim, and no other that took its name since.
func (r Run) deleteStaged(ctx context.Context, c *corev1.PersistentVolumeClaim) error {
	if c.DeletionTimestamp != nil {
		return nil
	}
	uid := c.UID
	return alreadyGone(r.Destination.Delete(ctx, c.DeepCopy(), client.Preconditions{UID: &uid}))
}

// StagedClaimsRemoved removes what mig-mover has filled on the destination and
// no application uses: before Velero restores into fresh claims, and when a plan
// is closed that was staged only.
func StagedClaimsRemoved(r Run) pipeline.Step { return stagedClaimsRemoved{r} }

type stagedClaimsRemoved struct{ r Run }

func (s stagedClaimsRemoved) Name() string { return "StagedClaimsRemoved" }

func (s stagedClaimsRemoved) Next(ctx context.Context) (pipeline.Decision, error) {
	left, err := s.r.staged(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	return decideStagedClaimsRemoved(left), nil
}

func decideStagedClaimsRemoved(left []*corev1.PersistentVolumeClaim) pipeline.Decision {
	note := remark{Why: "StagedClaimsRemoved", list: list{Say: "no claim of a stage is on the destination"}}
	if len(left) == 0 {
		return pipeline.Decision{Verdict: pipeline.Done, Note: note}
	}
	verdict := pipeline.Wait
	var names []string
	for _, c := range left {
		names = append(names, heldText("claim", c))
		if c.DeletionTimestamp == nil {
			verdict = pipeline.Act
		}
	}
	note.list = list{Say: "removing what a stage brought to the destination: ", Names: names, Between: "; "}
	return pipeline.Decision{Verdict: verdict, Note: note}
}

func (s stagedClaimsRemoved) Act(ctx context.Context) error {
	left, err := s.r.staged(ctx)
	for _, c := range left {
		err = errors.Join(err, s.r.deleteStaged(ctx, c))
	}
	return err
}

// DestinationVolumesMounted mounts the claims on the destination, each in a pod
// that does nothing, and waits until they run: only then are there volumes, on
// nodes that are known. It comes before the application stops.
func DestinationVolumesMounted(r Run) pipeline.Step { return destinationMounted{r} }

type destinationMounted struct{ r Run }

func (s destinationMounted) Name() string { return StepDestinationVolumesMounted }

func (s destinationMounted) Next(ctx context.Context) (pipeline.Decision, error) {
	pods, err := listStagePods(ctx, s.r.Destination, s.r.Owner)
	if err != nil {
		return pipeline.Decision{}, err
	}
	return decideMounted(pods, s.r.copiedClaims()), nil
}

func decideMounted(pods []corev1.Pod, claims []string) pipeline.Decision {
	there := mountedIn(pods)
	note := remark{Why: StepDestinationVolumesMounted}
	for _, claim := range claims {
		if !there[claim] {
			note.Say = fmt.Sprintf("mounting %s on the destination", english.Plural(len(claims), "claim", ""))
			return pipeline.Decision{Verdict: pipeline.Act, Note: note}
		}
	}
	var waiting []string
	for _, p := range pods {
		if !podReady(&p) {
			waiting = append(waiting, fmt.Sprintf("%s/%s: %s", p.Namespace, p.Name, podTrouble(&p)))
		}
	}
	if len(waiting) > 0 {
		note.list = list{Say: "waiting for pods that mount the volumes on the destination: ", Names: waiting, Between: "; "}
		return pipeline.Decision{Verdict: pipeline.Wait, Note: note}
	}
	note.Say = fmt.Sprintf("%s mounted on the destination", english.Plural(len(claims), "claim", ""))
	return pipeline.Decision{Verdict: pipeline.Done, Note: note}
}

func (s destinationMounted) Act(ctx context.Context) error {
	agent, err := nodeAgent(ctx, s.r.Destination.Cluster)
	if err != nil {
		return err
	}
	pods, err := podsIn(ctx, s.r.Source, s.r.copiedNamespaces())
	if err != nil {
		return err
	}
	made, err := listStagePods(ctx, s.r.Destination, s.r.Owner)
	if err != nil {
		return err
	}
	there := mountedIn(made)
	var errs []error
	for _, g := range together(s.r.Plan.Copied(), pods) {
		if slices.ContainsFunc(g.volumes, func(v plan.Volume) bool { return there[v.Claim] }) {
			continue
		}
		err := s.r.Destination.Create(ctx, velero.MountPod(s.r.Owner, s.r.Plan, agent, g.where, g.volumes...))
		if err != nil && !apierrors.IsAlreadyExists(err) {
			errs = append(errs, fmt.Errorf("pod that mounts %s on the destination: %w", few(claimsOf(g.volumes)), err))
		}
	}
	return errors.Join(errs...)
}

// companions are claims that pods of the application mount together, and where
// these may run.
type companions struct {
	volumes []plan.Volume
	where   velero.Placement
}

// together parts volumes into those that pods mount together, directly or by way
// of another pod. One that no pod mounts is alone, and so is one that pods of
// many nodes may mount.
func together(volumes []plan.Volume, pods []corev1.Pod) []companions {
	of := map[string]int{} // claim → index of its group
	groups := make([]companions, len(volumes))
	for i, v := range volumes {
		groups[i].volumes = []plan.Volume{v}
		if !slices.Contains(v.AccessModes, string(corev1.ReadWriteMany)) {
			of[v.Claim] = i
		}
	}
	for i := range pods {
		p := &pods[i]
		if p.Labels[naming.LabelCreatedBy] == naming.CreatedBy || quiesce.Finished(p) {
			continue
		}
		first := -1
		for _, claim := range mountedBy(p) {
			at, ok := of[claim]
			switch {
			case !ok || at == first:
			case first < 0:
				first = at
				if groups[at].where.NodeSelector == nil && groups[at].where.NodeAffinity == nil {
					groups[at].where = placementOf(p)
				}
			default:
				groups[first].volumes = append(groups[first].volumes, groups[at].volumes...)
				for _, v := range groups[at].volumes {
					of[v.Claim] = first
				}
				groups[at].volumes = nil
			}
		}
	}
	return slices.DeleteFunc(groups, func(g companions) bool { return len(g.volumes) == 0 })
}

func placementOf(p *corev1.Pod) velero.Placement {
	where := velero.Placement{NodeSelector: p.Spec.NodeSelector, Tolerations: p.Spec.Tolerations}
	if p.Spec.Affinity != nil {
		where.NodeAffinity = p.Spec.Affinity.NodeAffinity
	}
	return where
}

// mountedBy are the claims, namespace/name, that a pod mounts.
func mountedBy(p *corev1.Pod) []string {
	var out []string
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			out = append(out, p.Namespace+"/"+v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			out = append(out, p.Namespace+"/"+p.Name+"-"+v.Name)
		}
	}
	return out
}
