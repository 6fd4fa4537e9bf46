package step

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize/english"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/quiesce"
)

// QuiesceApplications stops every workload of the plan's namespaces on the
// source, stateless ones too: the application must never run on both sides.
// How each was before is written on it in the patch that stops it.
func QuiesceApplications(r Run) pipeline.Step { return quiesceApplications{r} }

type quiesceApplications struct{ r Run }

func (s quiesceApplications) Name() string { return "QuiesceApplications" }

func (s quiesceApplications) Next(ctx context.Context) (pipeline.Decision, error) {
	if !quiesces(s.r.Plan) {
		return pipeline.Decision{Verdict: pipeline.Done, Note: progress.Remark{Why: s.Name(), Say: "the plan leaves the application running"}}, nil
	}
	ws, err := workloads(ctx, s.r.Source, s.r.Plan.SourceNamespaces())
	if err != nil {
		return pipeline.Decision{}, err
	}
	hpas, err := autoscalersIn(ctx, s.r.Source, s.r.Plan.SourceNamespaces())
	if err != nil {
		return pipeline.Decision{}, err
	}
	return decideQuiesce(ws, hpas, s.r.Owner, s.r.scope()), nil
}

func (s quiesceApplications) Act(ctx context.Context) error { return s.r.stop(ctx) }

// stop patches what must be stopped and can be at once.
func (r Run) stop(ctx context.Context) error {
	ws, err := workloads(ctx, r.Source, r.Plan.SourceNamespaces())
	if err != nil {
		return err
	}
	m := muster(ws, r.Owner, r.scope())
	return patchAll(ctx, r.Source, m.toStop, func(now quiesce.Workload) (quiesce.Change, bool, error) {
		if !mayStop(now, r.Owner) {
			return quiesce.Change{}, false, nil
		}
		c, err := quiesce.Stop(now, r.Owner)
		return c, true, err
	})
}

// mayStop: a set whose claims are protected is scaled only when its controller
// has seen the protection.
func mayStop(w quiesce.Workload, o naming.Owner) bool {
	switch quiesce.StateOf(w, o) {
	case quiesce.Running:
		return true
	case quiesce.Protected:
		return w.Observed()
	default:
		return false
	}
}

// mustered are the workloads by what there is to do about them.
type mustered struct {
	toStop  []quiesce.Workload
	waiting []quiesce.Workload // until their claims are known to be protected
	stopped []quiesce.Workload
	risen   []quiesce.Workload
}

func muster(ws []quiesce.Workload, o naming.Owner, s quiesce.Scope) mustered {
	var m mustered
	for _, w := range ws {
		if s.Except[w.ID()] {
			continue
		}
		switch quiesce.StateOf(w, o) {
		case quiesce.Running:
			m.toStop = append(m.toStop, w)
		case quiesce.Protected:
			if w.Observed() {
				m.toStop = append(m.toStop, w)
			} else {
				m.waiting = append(m.waiting, w)
			}
		case quiesce.Stopped:
			m.stopped = append(m.stopped, w)
		case quiesce.Risen:
			m.risen = append(m.risen, w)
		case quiesce.Idle, quiesce.Ending, quiesce.Dependent:
		}
	}
	return m
}

func decideQuiesce(ws []quiesce.Workload, hpas []autoscalingv2.HorizontalPodAutoscaler, o naming.Owner, s quiesce.Scope) pipeline.Decision {
	m := muster(ws, o, s)
	d := pipeline.Decision{Note: progress.Remark{Why: "QuiesceApplications"}}
	scalers := scaled(hpas)
	for _, w := range m.stopped {
		d.Facts = append(d.Facts, workloadNote{Why: "Quiescing", On: workloadRef(progress.OnSource, w), Say: stoppedText(w, scalers)})
	}
	switch {
	case len(m.risen) > 0:
		d.Verdict, d.Note = pipeline.Failed, risenNote(m.risen[0])
	case len(m.toStop) > 0:
		d.Verdict, d.Note = pipeline.Act, progress.Remark{Why: "QuiesceApplications", Say: fmt.Sprintf("stopping %s", names(m.toStop))}
	case len(m.waiting) > 0:
		d.Verdict, d.Note = pipeline.Wait, progress.Remark{
			Why: "QuiesceApplications", On: workloadRef(progress.OnSource, m.waiting[0]),
			Say: fmt.Sprintf("waiting until the cluster has seen that the claims of %s are to be kept", names(m.waiting)),
		}
	default:
		d.Verdict, d.Note = pipeline.Done, progress.Remark{Why: "QuiesceApplications", Say: "stopped: " + english.Plural(len(m.stopped), "workload", "")}
	}
	return d
}

// stoppedText tells the size from before, and the autoscaler: it does nothing
// at zero, and scales again when there is something to scale.
func stoppedText(w quiesce.Workload, scalers map[string]autoscalingv2.HorizontalPodAutoscaler) string {
	text := quiesce.Done(w)
	h, ok := scalers[w.ID()]
	if !ok {
		return text
	}
	low := int32(1)
	if h.Spec.MinReplicas != nil {
		low = *h.Spec.MinReplicas
	}
	if low == 0 {
		return fmt.Sprintf("%s; HorizontalPodAutoscaler %s may scale it up from 0 (minReplicas 0)", text, h.Name)
	}
	return fmt.Sprintf("%s; HorizontalPodAutoscaler %s (%d to %d) does nothing at 0", text, h.Name, low, h.Spec.MaxReplicas)
}

func names(ws []quiesce.Workload) string {
	out := make([]string, 0, len(ws))
	for _, w := range ws {
		out = append(out, w.String())
	}
	return few(out)
}

// SourceScaledUp is a workload that came up again while its data was copied:
// the gate is broken, and what was copied is not taken for good.
type SourceScaledUp struct {
	On    progress.Ref
	Size  string // what it asks for now
	Owner string // who owns it; empty where nobody does
	By    string // the client that set the size, as it named itself; empty where the cluster does not know
}

// Reason is SourceScaledUp.
func (n SourceScaledUp) Reason() string { return "SourceScaledUp" }

// Text names who did it.
func (n SourceScaledUp) Text() string {
	text := fmt.Sprintf("%s %s/%s on the source came up again (%s) after it was stopped", n.On.Kind, n.On.Namespace, n.On.Name, n.Size)
	if n.By != "" {
		text += ", changed by " + n.By
	}
	if n.Owner != "" {
		return text + "; it is owned by " + n.Owner + ": pause that operator or scale its object, then run the same command again"
	}
	return text + "; what was copied since then does not count: find out who needs it, then run the same command again"
}

// Fit shortens the names of who did it.
func (n SourceScaledUp) Fit(int) string {
	n.By, n.Owner = progress.Cut(n.By, nameBytes), progress.Cut(n.Owner, nameBytes)
	return n.Text()
}

// Regarding is the workload.
func (n SourceScaledUp) Regarding() progress.Ref { return n.On }

func risenNote(w quiesce.Workload) progress.Note {
	n := SourceScaledUp{On: workloadRef(progress.OnSource, w), Size: quiesce.Asks(w), By: w.Raiser()}
	if ref := metav1.GetControllerOf(w); ref != nil {
		n.Owner = ref.Kind + " " + w.GetNamespace() + "/" + ref.Name
	}
	return n
}

// EnsureQuiesced is the gate: it opens when no pod is left on the source that
// could write to what is copied, as seen on the cluster and not as asked for.
func EnsureQuiesced(r Run) pipeline.Step { return ensureQuiesced{r} }

type ensureQuiesced struct{ r Run }

func (s ensureQuiesced) Name() string { return "EnsureQuiesced" }

func (s ensureQuiesced) Next(ctx context.Context) (pipeline.Decision, error) {
	if !quiesces(s.r.Plan) {
		return pipeline.Decision{Verdict: pipeline.Done, Note: progress.Remark{Why: s.Name(), Say: "the plan leaves the application running"}}, nil
	}
	ws, pods, err := s.r.lookAtSource(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	return decideQuiesced(ws, pods, s.r.Owner, s.r.scope()), nil
}

// Act stops what came up since QuiesceApplications.
func (s ensureQuiesced) Act(ctx context.Context) error { return s.r.stop(ctx) }

// lookAtSource lists workloads first: a pod that is made in between is seen.
func (r Run) lookAtSource(ctx context.Context) ([]quiesce.Workload, []corev1.Pod, error) {
	ws, err := workloads(ctx, r.Source, r.Plan.SourceNamespaces())
	if err != nil {
		return nil, nil, err
	}
	pods, err := podsIn(ctx, r.Source, r.Plan.SourceNamespaces())
	return ws, pods, err
}

func decideQuiesced(ws []quiesce.Workload, pods []corev1.Pod, o naming.Owner, s quiesce.Scope) pipeline.Decision {
	m := muster(ws, o, s)
	writers := byHope(quiesce.Writers(pods, ws, s))
	d := pipeline.Decision{Warnings: harmless(writers[quiesce.Harmless]), Facts: quiesced(m.stopped, writers)}
	remark := func(v pipeline.Verdict, say string) pipeline.Decision {
		d.Verdict, d.Note = v, progress.Remark{Why: "EnsureQuiesced", Say: say}
		return d
	}
	left := append(texts(writers[quiesce.Leaves]), texts(writers[quiesce.Finishes])...)
	unseen := unobserved(ws, m.stopped)
	switch {
	case len(m.risen) > 0:
		d.Verdict, d.Note = pipeline.Failed, risenNote(m.risen[0])
		return d
	case len(writers[quiesce.Stays]) > 0:
		return remark(pipeline.Blocked, "these can still write to what is copied: "+few(texts(writers[quiesce.Stays])))
	case len(m.toStop) > 0:
		return remark(pipeline.Act, "stopping "+names(m.toStop))
	case len(m.waiting) > 0:
		return remark(pipeline.Wait, "waiting until the cluster has seen that the claims of "+names(m.waiting)+" are to be kept")
	case len(left) > 0:
		return remark(pipeline.Wait, fmt.Sprintf("waiting for %s to end: %s", english.Plural(len(left), "pod", ""), few(left)))
	case len(unseen) > 0:
		return remark(pipeline.Wait, "waiting for the controllers of "+names(unseen)+" to see that they are stopped")
	case len(quiesce.Ended(pods)) > 0:
		return remark(pipeline.Wait, "waiting for ended pods to be gone: "+few(quiesce.Ended(pods)))
	default:
		return remark(pipeline.Done, "no writer is left on the source; stopped: "+english.Plural(len(m.stopped), "workload", ""))
	}
}

// unobserved are the stopped workloads, and the ReplicaSets below them, whose
// controllers may still act on what they saw before, and make a pod.
func unobserved(ws, stopped []quiesce.Workload) []quiesce.Workload {
	down := map[string]bool{}
	var out []quiesce.Workload
	for _, w := range stopped {
		down[string(w.GetUID())] = true
		if !w.Observed() {
			out = append(out, w)
		}
	}
	for _, w := range ws {
		if ref := metav1.GetControllerOf(w); ref != nil && down[string(ref.UID)] && w.GetKind() != "Job" && (!w.Observed() || w.Readiness().Wanted != 0) {
			out = append(out, w)
		}
	}
	return out
}

func byHope(ws []quiesce.Writer) map[quiesce.Hope][]quiesce.Writer {
	m := map[quiesce.Hope][]quiesce.Writer{}
	for _, w := range ws {
		m[w.Hope] = append(m[w.Hope], w)
	}
	return m
}

func texts(ws []quiesce.Writer) []string {
	var out []string
	for _, w := range ws {
		out = append(out, w.String())
	}
	return out
}

func harmless(ws []quiesce.Writer) []progress.Note {
	var out []progress.Note
	for _, w := range ws {
		out = append(out, progress.Remark{
			Why: "StillRunning", Say: w.String() + "; it mounts nothing that is copied",
			On: writerRef(w),
		})
	}
	return out
}

func writerRef(w quiesce.Writer) progress.Ref {
	ref := progress.Ref{Side: progress.OnSource, APIVersion: "v1", Kind: "Pod", Namespace: w.Namespace, Name: w.Name}
	if w.Kind == "Job" {
		ref.APIVersion, ref.Kind = "batch/v1", w.Kind
	}
	return ref
}

// quiesced are the stopped workloads of which no pod is left.
func quiesced(stopped []quiesce.Workload, writers map[quiesce.Hope][]quiesce.Writer) []progress.Note {
	busy := map[string]bool{}
	for _, ws := range writers {
		for _, w := range ws {
			busy[w.Top] = true
		}
	}
	var out []progress.Note
	for _, w := range stopped {
		if !busy[w.ID()] && w.Observed() {
			out = append(out, workloadNote{Why: "Quiesced", On: workloadRef(progress.OnSource, w), Say: quiesce.Done(w) + ", no pod is left"})
		}
	}
	return out
}

// GateError is a gate that did not hold: what was copied since is not taken
// for good.
type GateError struct{ Note progress.Note }

func (e *GateError) Error() string { return e.Note.Text() }

// StillQuiesced looks whether the gate that EnsureQuiesced opened still holds:
// while and after volumes are copied, nothing on the source may have come up
// that can write to them. Errors: *GateError where it does not hold, else those
// of the cluster.
func StillQuiesced(ctx context.Context, r Run) error {
	if !quiesces(r.Plan) {
		return nil
	}
	ws, pods, err := r.lookAtSource(ctx)
	if err != nil {
		return err
	}
	return gate(ws, pods, r.Owner, r.scope())
}

func gate(ws []quiesce.Workload, pods []corev1.Pod, o naming.Owner, s quiesce.Scope) error {
	m := muster(ws, o, s)
	if up := append(m.risen, append(m.toStop, m.waiting...)...); len(up) > 0 {
		return &GateError{Note: risenNote(up[0])}
	}
	for _, w := range quiesce.Writers(pods, ws, s) {
		if len(w.Claims) > 0 {
			return &GateError{Note: progress.Remark{
				Why: "SourceScaledUp", Say: "while volumes were copied: " + w.String(),
				On: writerRef(w),
			}}
		}
	}
	return nil
}
