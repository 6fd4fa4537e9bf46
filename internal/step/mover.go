package step

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/mover"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/quiesce"
	"github.com/mig-cli/mig/internal/velero"
)

// MoverReady sees that mig-mover can do its work on the destination: its image
// runs on the nodes where the volumes are, and the storage location is one that
// it reads. Where it cannot, and the plan leaves it open who restores, the
// claims that were just made for it are removed: Velero makes its own. It comes
// before the application stops. From then on the claims on the destination say
// who restores.
func MoverReady(r Run) pipeline.Step { return moverReady{r} }

type moverReady struct{ r Run }

func (s moverReady) Name() string { return mover.StepProbe }

// moverState is all that the step looks at.
type moverState struct {
	claims   []*corev1.PersistentVolumeClaim // made for the mover
	filled   bool                            // an earlier run has filled some
	required bool                            // the plan leaves no choice
	unread   string                          // why the mover cannot read the store; empty: it can
	unprobed []string                        // nodes where nobody has looked yet
	probes   []corev1.Pod
	mounting []corev1.Pod
}

func (s moverReady) Next(ctx context.Context) (pipeline.Decision, error) {
	st, err := s.look(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	return decideMover(st), nil
}

func decideMover(st moverState) pipeline.Decision {
	note := progress.Remark{Why: mover.StepProbe}
	say := func(v pipeline.Verdict, format string, args ...any) pipeline.Decision {
		note.Say = fmt.Sprintf(format, args...)
		return pipeline.Decision{Verdict: v, Note: note}
	}
	if len(st.claims) == 0 {
		return say(pipeline.Done, "Velero restores the volumes, as a whole and into fresh claims")
	}
	trouble, waiting := st.trouble()
	switch {
	case st.leaving() && st.filled:
		return say(pipeline.Failed, "somebody deletes claims that an earlier stage has filled: %s", few(leavingTexts(st.claims)))
	case st.leaving() && (len(st.mounting) > 0 || len(st.standing()) > 0):
		return say(pipeline.Act, "Velero is to restore the volumes: removing the claims made for mig-mover")
	case st.leaving():
		return say(pipeline.Wait, "waiting for %s made for mig-mover to be gone", english.Plural(len(st.claims), "claim", ""))
	case trouble != "" && st.required:
		return say(pipeline.Failed, "mig-mover cannot be used: %s", trouble)
	case trouble != "" && st.filled:
		return say(pipeline.Failed, "mig-mover cannot be used, and an earlier stage has filled volumes with it: %s; set spec.mover: velero to have all of it restored anew by Velero", trouble)
	case trouble != "":
		d := say(pipeline.Act, "Velero is to restore the volumes: removing the claims made for mig-mover")
		d.Warnings = []progress.Note{progress.Remark{Why: ReasonMoverUnusable, Say: "mig-mover cannot be used, Velero restores the volumes as a whole at the cutover: " + trouble}}
		return d
	case len(st.unprobed) > 0:
		return say(pipeline.Act, "looking whether mig-mover runs on %s", few(st.unprobed))
	case waiting != "":
		return say(pipeline.Wait, "waiting for %s", waiting)
	default:
		return say(pipeline.Done, "mig-mover runs next to the volumes of the destination, on %s", english.Plural(len(st.probes), "node", ""))
	}
}

// leaving says whether it was decided already that Velero restores.
func (st moverState) leaving() bool { return len(st.standing()) < len(st.claims) }

func leavingTexts(claims []*corev1.PersistentVolumeClaim) []string {
	var out []string
	for _, c := range claims {
		if c.DeletionTimestamp != nil {
			out = append(out, heldText("claim", c))
		}
	}
	return out
}

// standing are the claims that nobody has deleted.
func (st moverState) standing() []*corev1.PersistentVolumeClaim {
	return slices.DeleteFunc(slices.Clone(st.claims), func(c *corev1.PersistentVolumeClaim) bool { return c.DeletionTimestamp != nil })
}

// ReasonMoverUnusable is the reason of the warning that Velero restores in the
// mover's place.
const ReasonMoverUnusable = "MoverUnusable"

// trouble is why the mover cannot be used, and who it is that must still say.
func (st moverState) trouble() (trouble, waiting string) {
	if st.unread != "" {
		return st.unread, ""
	}
	for i := range st.probes {
		p := &st.probes[i]
		switch {
		case mover.Trouble(p) != "":
			return fmt.Sprintf("image %s on node %s: %s", p.Spec.Containers[0].Image, p.Spec.NodeName, progress.Cut(mover.Trouble(p), reasonBytes)), ""
		case !quiesce.Finished(p):
			waiting = fmt.Sprintf("pod %s/%s: %s", p.Namespace, p.Name, podTrouble(p))
		case mover.Probed(p) != nil:
			return fmt.Sprintf("image %s on node %s: %v", p.Spec.Containers[0].Image, p.Spec.NodeName, mover.Probed(p)), ""
		}
	}
	return "", waiting
}

func (s moverReady) look(ctx context.Context) (moverState, error) {
	st := moverState{required: s.r.Plan.NeedsMover()}
	strict, err := s.r.isRestricted(ctx)
	if err != nil {
		return st, err
	}
	st.required = st.required || strict // Velero's own restore would be refused there
	if st.claims, err = s.r.staged(ctx); err != nil || len(st.claims) == 0 {
		return st, err
	}
	for _, c := range st.claims {
		st.filled = st.filled || c.Annotations[naming.AnnFilledBy] != ""
	}
	agent, err := nodeAgent(ctx, s.r.Destination.Cluster)
	if err != nil {
		return st, err
	}
	if agent.HostPods == "" {
		st.unread = "node-agent of the destination has no volume host-pods: it does not see the volumes of its node's pods"
	} else if _, err := s.r.repository(ctx, agent, ""); err != nil {
		st.unread = err.Error()
	}
	if st.probes, err = s.r.moverPods(ctx, mover.StepProbe); err != nil {
		return st, err
	}
	if st.mounting, err = listStagePods(ctx, s.r.Destination, s.r.Owner); err != nil {
		return st, err
	}
	for _, p := range st.mounting {
		probed := slices.ContainsFunc(st.probes, func(probe corev1.Pod) bool { return probe.Spec.NodeName == p.Spec.NodeName })
		if !probed && p.Spec.NodeName != "" && !slices.Contains(st.unprobed, p.Spec.NodeName) {
			st.unprobed = append(st.unprobed, p.Spec.NodeName)
		}
	}
	slices.Sort(st.unprobed)
	return st, nil
}

// isRestricted says whether a namespace of the destination admits only pods
// that Velero's restore of a volume cannot do with.
func (r Run) isRestricted(ctx context.Context) (bool, error) {
	for _, ns := range r.copiedNamespaces() {
		var there corev1.Namespace
		if err := r.Destination.Get(ctx, client.ObjectKey{Name: r.Plan.DestinationNamespace(ns)}, &there); client.IgnoreNotFound(err) != nil {
			return false, err
		}
		if there.Labels[naming.PodSecurity] == naming.PodSecurityRestricted {
			return true, nil
		}
	}
	return false, nil
}

// Act makes the probes, or clears the way for Velero.
func (s moverReady) Act(ctx context.Context) error {
	st, err := s.look(ctx)
	if err != nil {
		return err
	}
	if trouble, _ := st.trouble(); trouble != "" || st.leaving() {
		return s.r.giveWay(ctx, st)
	}
	agent, err := nodeAgent(ctx, s.r.Destination.Cluster)
	if err != nil {
		return err
	}
	for _, node := range st.unprobed {
		pod := mover.ProbePod(s.r.Owner, s.r.Destination.VeleroNamespace, s.r.Plan.Plan().Spec.HelperImage, node, agent)
		if err := s.r.Destination.Create(ctx, pod); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// giveWay removes what was made for the mover. The probes stay until the run's
// pods go: they say why.
func (r Run) giveWay(ctx context.Context, st moverState) error {
	var errs []error
	for _, p := range st.mounting {
		errs = append(errs, client.IgnoreNotFound(r.Destination.Delete(ctx, &p)))
	}
	for _, c := range st.claims {
		errs = append(errs, r.deleteStaged(ctx, c))
	}
	return errors.Join(errs...)
}

// moverPods are the run's pods of one sort on the destination.
func (r Run) moverPods(ctx context.Context, step string) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := r.Destination.List(ctx, &list, client.InNamespace(r.Destination.VeleroNamespace), client.MatchingLabels(r.Owner.Labels(step)))
	return list.Items, err
}

// repository is where the copies of a namespace's volumes are, as the
// destination reaches them. Errors: the cluster's own, or it is not one that the
// mover reads.
func (r Run) repository(ctx context.Context, agent velero.NodeAgent, namespace string) (velero.Repository, error) {
	var l velerov1.BackupStorageLocation
	key := client.ObjectKey{Namespace: r.Destination.VeleroNamespace, Name: r.Plan.Plan().Spec.Storage.Location}
	if err := r.Destination.Get(ctx, key, &l); err != nil {
		return velero.Repository{}, err
	}
	return velero.RepositoryOf(&l, agent, namespace)
}

// either is a step in two forms. The claims on the destination say which: those
// that were made for mig-mover are filled by it.
type either struct {
	r             Run
	mover, velero pipeline.Step
}

func (s either) Name() string { return s.velero.Name() }

func (s either) Next(ctx context.Context) (pipeline.Decision, error) {
	which, err := s.which(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	return which.Next(ctx)
}

func (s either) Act(ctx context.Context) error {
	which, err := s.which(ctx)
	if err != nil {
		return err
	}
	return which.Act(ctx)
}

func (s either) which(ctx context.Context) (pipeline.Step, error) {
	claims, err := s.r.staged(ctx)
	if len(claims) > 0 {
		return s.mover, err
	}
	return s.velero, err
}

// nothingToRestore is the restore of a stage with Velero alone: its restore
// writes everything anew, and would do so again at the cutover.
type nothingToRestore struct{ name string }

func (s nothingToRestore) Name() string              { return s.name }
func (s nothingToRestore) Act(context.Context) error { return nil }

func (s nothingToRestore) Next(context.Context) (pipeline.Decision, error) {
	note := progress.Remark{Why: s.name, Say: "nothing: Velero restores the volumes as a whole at the cutover"}
	return pipeline.Decision{Verdict: pipeline.Done, Note: note}, nil
}

// EnsureStageRestoreByMover asks for the restore of the volumes at the cutover:
// by mig-mover, or by Velero where it had to give way.
func EnsureStageRestoreByMover(r Run) pipeline.Step {
	return either{r, moverRestore{r: r, name: velero.StepStageRestore, begin: true}, EnsureStageRestore(r)}
}

// StageRestoreByMoverCreated waits for it, and proves every volume restored.
func StageRestoreByMoverCreated(r Run) pipeline.Step {
	return either{r, moverRestore{r: r, name: "StageRestoreCreated"}, StageRestoreCreated(r)}
}

// EnsureLiveRestore asks mig-mover to fill the destination's volumes during a stage.
func EnsureLiveRestore(r Run) pipeline.Step {
	return either{r, moverRestore{r: r, name: velero.StepStageRestore, begin: true}, nothingToRestore{velero.StepStageRestore}}
}

// LiveRestoreCreated waits for it.
func LiveRestoreCreated(r Run) pipeline.Step {
	return either{r, moverRestore{r: r, name: "StageRestoreCreated"}, nothingToRestore{"StageRestoreCreated"}}
}

// moverRestore restores each volume in place, in a pod of its own, so many at
// once. It is two steps: the first ends when the first pods are there.
type moverRestore struct {
	r     Run
	name  string
	begin bool
}

func (s moverRestore) Name() string { return s.name }

// filling is one volume's way onto the destination.
type filling struct {
	velero.Capture

	on       progress.Ref // the claim on the destination
	pod      *corev1.Pod  // nil: not begun
	done     int64        // bytes written or read to be checked, as the pod last said
	total    int64
	attempts int
}

// fillAttempts is how often a volume's restore is begun before the run gives up.
const fillAttempts = 4

// state of a filling.
const (
	fillWaits  = iota // for its turn
	fillAgain         // it was cut off, and is begun anew
	fillRuns          // the mover is at it
	fillDone          // restored
	fillFailed        // for good
)

func (f filling) state() (state int, why string) {
	switch {
	case f.pod == nil:
		return fillWaits, ""
	case mover.Trouble(f.pod) != "":
		return fillFailed, mover.Trouble(f.pod)
	case !quiesce.Finished(f.pod):
		return fillRuns, ""
	}
	if _, err := mover.Restored(f.pod); err != nil {
		if f.attempts >= fillAttempts {
			return fillFailed, fmt.Sprintf("%v, %d times", err, f.attempts)
		}
		return fillAgain, err.Error()
	}
	return fillDone, ""
}

func (s moverRestore) Next(ctx context.Context) (pipeline.Decision, error) {
	fillings, err := s.look(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	if s.begin {
		return decideFillingBegun(fillings), nil
	}
	return decideFilling(fillings, s.r.parallelism()), nil
}

// decideFillingBegun is done as soon as one pod is there.
func decideFillingBegun(fillings []filling) pipeline.Decision {
	note := remark{Why: velero.StepStageRestore}
	note.Say = fmt.Sprintf("restore of %s by mig-mover asked for", english.Plural(len(fillings), "volume", ""))
	for _, f := range fillings {
		if f.pod != nil {
			return pipeline.Decision{Verdict: pipeline.Done, Note: note}
		}
	}
	return pipeline.Decision{Verdict: pipeline.Act, Note: note}
}

func decideFilling(fillings []filling, parallel int) pipeline.Decision {
	note := remark{Why: "StageRestoreCreated"}
	d := pipeline.Decision{}
	var failed, running, again []string
	for _, f := range fillings {
		state, why := f.state()
		d.Amounts = append(d.Amounts, f.amount(state))
		switch state {
		case fillFailed:
			failed = append(failed, fmt.Sprintf("volume of %s: %s", f.Claim, why))
			d.Warnings = append(d.Warnings, volumeFailed{Why: "VolumeRestoreFailed", On: f.on, Say: progress.Cut(why, reasonBytes)})
		case fillAgain:
			again = append(again, fmt.Sprintf("%s: %s", f.Claim, why))
		case fillRuns:
			running = append(running, f.Claim)
			d.Facts = append(d.Facts, volumeBegun{Why: "VolumeRestoreStarted", On: f.on, Who: "mig-mover", Node: f.pod.Spec.NodeName})
		case fillDone:
			fact, lost := f.told()
			d.Facts = append(d.Facts, fact)
			d.Warnings = append(d.Warnings, lost...)
		}
	}
	switch {
	case len(failed) > 0:
		d.Verdict, note.list = pipeline.Failed, list{Names: failed, Between: "; "}
	case len(toBegin(fillings, parallel)) > 0:
		d.Verdict, note.Say = pipeline.Act, "mig-mover: beginning with the next volumes"
		if len(again) > 0 {
			note.list = list{Say: "mig-mover was cut off and begins again: ", Names: again, Between: "; "}
		}
	case len(running) > 0:
		d.Verdict, note.list = pipeline.Wait, list{Say: "mig-mover restores ", Names: running}
	default:
		d.Verdict, note.Say = pipeline.Done, filledText(fillings)
	}
	d.Note = note
	return d
}

// toBegin are the volumes to begin with now: those that were cut off, and as
// many others as may be at once.
func toBegin(fillings []filling, parallel int) []filling {
	var out []filling
	busy := 0
	for _, f := range fillings {
		if state, _ := f.state(); state == fillRuns {
			busy++
		}
	}
	for _, f := range fillings {
		if state, _ := f.state(); (state == fillWaits || state == fillAgain) && busy < parallel {
			out = append(out, f)
			busy++
		}
	}
	return out
}

func (f filling) amount(state int) progress.Amount {
	done, total := f.done, f.total
	if state == fillDone {
		if s, err := mover.Restored(f.pod); err == nil {
			total = s.BytesWritten
			done = total
		}
	}
	return progress.Amount{Item: f.Claim, Done: done, Total: total}
}

// told is what there is to tell of a volume that is restored.
func (f filling) told() (progress.Note, []progress.Note) {
	s, _ := mover.Restored(f.pod)
	var took time.Duration
	for _, c := range f.pod.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil {
			took = t.FinishedAt.Sub(t.StartedAt.Time)
		}
	}
	fact := filledNote{On: f.on, Bytes: s.Bytes, Written: s.BytesWritten, Files: s.FilesWritten, Kept: s.FilesKept, Removed: s.Removed, Took: took}
	if s.Disagreements == 0 {
		return fact, nil
	}
	names := mover.Lacks(s)
	return fact, []progress.Note{LeftOut{What: fmt.Sprintf("of %s, what Velero's copier does not carry: %s", f.Claim, names), On: claimRef(progress.OnSource, f.Claim)}}
}

func filledText(fillings []filling) string {
	var all, written int64
	for _, f := range fillings {
		if s, err := mover.Restored(f.pod); err == nil {
			all += s.Bytes
			written += s.BytesWritten
		}
	}
	return fmt.Sprintf("equal to the backup, by mig-mover: %s, %s, %s of it written now", english.Plural(len(fillings), "volume", ""), humanize.IBytes(uint64(max(all, 0))), humanize.IBytes(uint64(max(written, 0))))
}

func (s moverRestore) look(ctx context.Context) ([]filling, error) {
	captures, err := s.r.captures(ctx, false)
	if err != nil {
		return nil, err
	}
	pods, err := s.r.moverPods(ctx, mover.StepRestore)
	if err != nil {
		return nil, err
	}
	out := make([]filling, 0, len(captures))
	for _, c := range captures {
		if !c.Captured() {
			return nil, fmt.Errorf("the data of %s is not in backup %s", c.Claim, s.r.Owner.StageBackup())
		}
		ns, name, _ := strings.Cut(c.Claim, "/")
		f := filling{Capture: c, on: claimRef(progress.OnDestination, s.r.Plan.DestinationNamespace(ns)+"/"+name)}
		if i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return naming.ClaimOf(&p) == c.Claim }); i >= 0 {
			f.pod, f.attempts = &pods[i], mover.Attempt(&pods[i])
			f.done, f.total = s.progress(ctx, f.pod)
		}
		out = append(out, f)
	}
	return out, nil
}

// progress asks a running pod how far it is. One that does not say yet, or whose
// kubelet does not answer, is no reason to stop.
func (s moverRestore) progress(ctx context.Context, p *corev1.Pod) (done, total int64) {
	if s.begin || p.Status.Phase != corev1.PodRunning {
		return 0, 0
	}
	log, err := s.r.Destination.Tail(ctx, p.Namespace, p.Name, 1)
	if err != nil {
		return 0, 0
	}
	defer log.Close()
	last, _ := mover.Progress(log)
	return last.Bytes, last.TotalBytes
}

// Act begins with the next volumes. What was cut off is removed first, so that
// no two are ever at one volume.
func (s moverRestore) Act(ctx context.Context) error {
	fillings, err := s.look(ctx)
	if err != nil {
		return err
	}
	agent, err := nodeAgent(ctx, s.r.Destination.Cluster)
	if err != nil {
		return err
	}
	mounting, err := listStagePods(ctx, s.r.Destination, s.r.Owner)
	if err != nil {
		return err
	}
	volumes := s.r.Plan.Copied()
	for _, f := range toBegin(fillings, s.r.parallelism()) {
		if f.pod != nil {
			if err := client.IgnoreNotFound(s.r.Destination.Delete(ctx, f.pod)); err != nil {
				return err
			}
		}
		v := volumes[slices.IndexFunc(volumes, func(v plan.Volume) bool { return v.Claim == f.Claim })]
		at, err := volumeAt(ctx, s.r.Destination.Cluster, v, mounting)
		if err != nil {
			return err
		}
		wish := mover.Wish{Snapshot: f.Backup.Status.SnapshotID}
		if wish.Repository, err = s.r.repository(ctx, agent, v.Namespace()); err != nil {
			return err
		}
		if err := s.markFilled(ctx, v); err != nil {
			return err
		}
		pod := mover.RestorePod(s.r.Owner, s.r.Destination.VeleroNamespace, s.r.Plan.Plan().Spec.HelperImage, at, agent, wish, f.attempts+1)
		if err := s.r.Destination.Create(ctx, pod); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// markFilled writes on the claim that there is something in its volume from now
// on: it is not to be thrown away lightly.
func (s moverRestore) markFilled(ctx context.Context, v plan.Volume) error {
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name = s.r.Plan.DestinationNamespace(v.Namespace()), v.Name()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, naming.AnnFilledBy, s.r.Owner.RunUID)
	return s.r.Destination.Patch(ctx, claim, client.RawPatch(mergePatch, patch), client.FieldOwner(naming.CreatedBy))
}

// defaultParallelism is how many volumes are restored at once where the plan
// says nothing.
const defaultParallelism = 4

func (r Run) parallelism() int {
	if n := r.Plan.Parallelism(); n > 0 {
		return n
	}
	return defaultParallelism
}

// filledNote is a volume that mig-mover has made equal to the backup.
type filledNote struct {
	On             progress.Ref
	Bytes, Written int64 // in all; of it what was fetched now
	Files, Kept    int64 // written; found as they should be
	Removed        int64 // what the source has no longer
	Took           time.Duration
}

func (n filledNote) Reason() string          { return "VolumeRestored" }
func (n filledNote) Regarding() progress.Ref { return n.On }

func (n filledNote) Text() string {
	text := fmt.Sprintf("%s/%s: %s, %s of it written, %s, %d kept", n.On.Namespace, n.On.Name,
		humanize.IBytes(uint64(max(n.Bytes, 0))), humanize.IBytes(uint64(max(n.Written, 0))), english.Plural(int(n.Files), "file", ""), n.Kept)
	if n.Removed > 0 {
		text += fmt.Sprintf(", %d removed", n.Removed)
	}
	if n.Took > 0 {
		text += " in " + n.Took.String()
	}
	return text
}
