package step

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/manifest"
	"github.com/mig-cli/mig/internal/mover"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/quiesce"
)

// VolumesVerified compares both sides' volumes of the plan that say verify, file
// by file and byte by byte, before the application starts on the destination:
// each is read where it is, and only what was found travels.
func VolumesVerified(r Run) pipeline.Step {
	return &volumesVerified{r: r, named: map[string]string{}}
}

type volumesVerified struct {
	r     Run
	named map[string]string // in what claims differ: their manifests are read once, not at every look
}

func (s *volumesVerified) Name() string { return mover.StepVerify }

// pairOf is a claim with the pods that read its volume; nil: not made yet.
type pairOf struct {
	claim    string
	src, dst *corev1.Pod
}

func (s *volumesVerified) Next(ctx context.Context) (pipeline.Decision, error) {
	pairs, err := s.look(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	return decideVerified(pairs, func(p pairOf, v mover.Verdict) (string, error) { return s.name(ctx, p, v) })
}

func (s *volumesVerified) look(ctx context.Context) ([]pairOf, error) {
	src, err := s.pods(ctx, s.r.Source.Cluster)
	if err != nil {
		return nil, err
	}
	dst, err := s.pods(ctx, s.r.Destination.Cluster)
	if err != nil {
		return nil, err
	}
	var out []pairOf
	for _, v := range s.r.Plan.Verified() {
		out = append(out, pairOf{v.Claim, src[v.Claim], dst[v.Claim]})
	}
	return out, nil
}

// pods are the run's pods that read volumes, by claim.
func (s *volumesVerified) pods(ctx context.Context, c *cluster.Cluster) (map[string]*corev1.Pod, error) {
	var list corev1.PodList
	if err := c.List(ctx, &list, client.InNamespace(c.VeleroNamespace), client.MatchingLabels(s.r.Owner.Labels(s.Name()))); err != nil {
		return nil, err
	}
	out := map[string]*corev1.Pod{}
	for i := range list.Items {
		out[naming.ClaimOf(&list.Items[i])] = &list.Items[i]
	}
	return out, nil
}

// decideVerified judges the pairs; name names the differences of one.
func decideVerified(pairs []pairOf, name func(pairOf, mover.Verdict) (string, error)) (pipeline.Decision, error) {
	note := remark{Why: mover.StepVerify}
	d := pipeline.Decision{}
	var missing, reading, bad []string
	var bytes int64
	for _, p := range pairs {
		if p.src == nil || p.dst == nil {
			missing = append(missing, p.claim)
			continue
		}
		if why := troubleOf(p); why != "" {
			bad = append(bad, p.claim+": "+why)
			continue
		}
		if !quiesce.Finished(p.src) || !quiesce.Finished(p.dst) {
			reading = append(reading, p.claim)
			continue
		}
		v, err := judge(p, name, &d)
		if err != nil {
			return pipeline.Decision{}, err
		}
		bytes += v.bytes
		if v.differs != "" {
			bad = append(bad, v.differs)
		}
	}
	switch {
	case len(bad) > 0:
		d.Verdict, note.list = pipeline.Failed, list{Names: bad, Between: "; "}
	case len(missing) > 0:
		d.Verdict, note.Say = pipeline.Act, fmt.Sprintf("reading %s on both sides", english.Plural(len(pairs), "volume", ""))
	case len(reading) > 0:
		d.Verdict, note.Say = pipeline.Wait, fmt.Sprintf("reading on both sides (%d of %d volumes done): %s", len(pairs)-len(reading), len(pairs), few(reading))
	default:
		d.Verdict = pipeline.Done
		note.Say = fmt.Sprintf("equal on both sides, every file read: %s, %s", english.Plural(len(pairs), "volume", ""), humanize.IBytes(uint64(max(bytes, 0))))
	}
	d.Note = note
	return d, nil
}

type judged struct {
	bytes   int64
	differs string // what, of which claim
}

// judge compares one pair that has ended, and adds to the decision what is to be told.
func judge(p pairOf, name func(pairOf, mover.Verdict) (string, error), d *pipeline.Decision) (judged, error) {
	src, err := mover.Found(p.src)
	if err != nil {
		return judged{differs: fmt.Sprintf("%s could not be read on the source: %v", p.claim, err)}, nil
	}
	dst, err := mover.Found(p.dst)
	if err != nil {
		return judged{differs: fmt.Sprintf("%s could not be read on the destination: %v", p.claim, err)}, nil
	}
	if src.Changed > 0 {
		return judged{differs: fmt.Sprintf("%s was written to on the source while it was read: %s", p.claim, english.Plural(int(src.Changed), "entry", "entries"))}, nil
	}
	v := mover.Judge(src, dst)
	if v == mover.Same {
		d.Facts = append(d.Facts, verifiedNote{On: claimRef(progress.OnDestination, p.claim), Found: dst, Took: readIn(p)})
		return judged{bytes: dst.Bytes}, nil
	}
	names, err := name(p, v)
	if err != nil {
		return judged{}, err
	}
	if v == mover.Lossy {
		d.Facts = append(d.Facts, verifiedNote{On: claimRef(progress.OnDestination, p.claim), Found: dst, Took: readIn(p)})
		d.Warnings = append(d.Warnings, LeftOut{What: fmt.Sprintf("of %s, what Velero's copier does not carry: %s", p.claim, names), On: claimRef(progress.OnSource, p.claim)})
		return judged{bytes: dst.Bytes}, nil
	}
	return judged{differs: fmt.Sprintf("%s differs on the destination: %s", p.claim, names)}, nil
}

// troubleOf says why a pair will not be read to its end; empty: it may be.
func troubleOf(p pairOf) string {
	for _, side := range []struct {
		name string
		pod  *corev1.Pod
	}{{"source", p.src}, {"destination", p.dst}} {
		if why := mover.Trouble(side.pod); why != "" {
			return fmt.Sprintf("the helper image cannot be used on the %s, on node %s: %s", side.name, side.pod.Spec.NodeName, why)
		}
	}
	return ""
}

// readIn is how long the slower side took.
func readIn(p pairOf) time.Duration {
	var out time.Duration
	for _, pod := range []*corev1.Pod{p.src, p.dst} {
		for _, c := range pod.Status.ContainerStatuses {
			if t := c.State.Terminated; t != nil {
				out = max(out, t.FinishedAt.Sub(t.StartedAt.Time))
			}
		}
	}
	return out
}

// name reads both manifests, which only where they differ must travel.
func (s *volumesVerified) name(ctx context.Context, p pairOf, v mover.Verdict) (string, error) {
	if names, known := s.named[p.claim]; known {
		return names, nil
	}
	src, err := s.r.Source.Logs(ctx, p.src.Namespace, p.src.Name)
	if err != nil {
		return "", err
	}
	defer src.Close()
	dst, err := s.r.Destination.Logs(ctx, p.dst.Namespace, p.dst.Name)
	if err != nil {
		return "", err
	}
	defer dst.Close()
	names, err := mover.Name(v, src, dst)
	if err != nil {
		names = fmt.Sprintf("it cannot be said in what: %v", err)
	}
	s.named[p.claim] = names
	return names, nil
}

// Act makes the pods that are not there yet.
func (s *volumesVerified) Act(ctx context.Context) error {
	for _, side := range []*cluster.Cluster{s.r.Source.Cluster, s.r.Destination.Cluster} {
		agent, err := nodeAgent(ctx, side)
		if err != nil {
			return err
		}
		if agent.HostPods == "" {
			return fmt.Errorf("node-agent of context %s has no volume host-pods: it does not see the volumes of its node's pods", side.Access.Context)
		}
		mounting, err := listStagePods(ctx, side, s.r.Owner)
		if err != nil {
			return err
		}
		for _, v := range s.r.Plan.Verified() {
			at, err := volumeAt(ctx, side, v, mounting)
			if err != nil {
				return err
			}
			pod := mover.ManifestPod(s.r.Owner, side.VeleroNamespace, s.r.Plan.Plan().Spec.HelperImage, at, agent)
			if err := client.IgnoreAlreadyExists(side.Create(ctx, pod)); err != nil {
				return err
			}
		}
	}
	return nil
}

// volumeAt finds where a claim's volume is mounted.
func volumeAt(ctx context.Context, c *cluster.Cluster, v plan.Volume, mounting []corev1.Pod) (mover.Volume, error) {
	i := slices.IndexFunc(mounting, func(p corev1.Pod) bool { return slices.Contains(naming.ClaimsOf(&p), v.Claim) })
	if i < 0 {
		return mover.Volume{}, fmt.Errorf("no stage pod mounts claim %s in context %s", v.Claim, c.Access.Context)
	}
	pv, err := boundVolume(ctx, c, mounting[i].Namespace, v.Name())
	return mover.Volume{Claim: v.Claim, Pod: &mounting[i], PV: pv}, err
}

// verifiedNote is a volume that holds on the destination what it holds on the source.
type verifiedNote struct {
	On    progress.Ref
	Found manifest.Summary
	Took  time.Duration
}

func (n verifiedNote) Reason() string          { return "VolumeVerified" }
func (n verifiedNote) Regarding() progress.Ref { return n.On }

func (n verifiedNote) Text() string {
	return fmt.Sprintf("%s/%s: %s, %s, equal to the source's, read in %s", n.On.Namespace, n.On.Name,
		english.Plural(int(n.Found.Entries), "entry", "entries"), humanize.IBytes(uint64(max(n.Found.Bytes, 0))), n.Took)
}
