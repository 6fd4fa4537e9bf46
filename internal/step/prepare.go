package step

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
)

// Findings are what a check of the plan against both clusters found.
type Findings struct {
	Blocking []string        // a person must decide, each in a line
	Warnings []progress.Note // for a person to look at; they do not block
}

// Prepare checks the plan against the clusters as they are now, and makes the
// namespaces on the destination.
func Prepare(r Run, check func(context.Context) (Findings, error)) pipeline.Step {
	return &prepare{r: r, check: check}
}

// StepPrepare is the name of the first step of a run.
const StepPrepare = "Prepare"

// NotReady says what keeps a plan from running.
func NotReady(f Findings) progress.Note {
	return remark{Why: StepPrepare, list: list{Say: "the plan is not ready: ", Names: f.Blocking, Between: "; "}}
}

type prepare struct {
	r        Run
	check    func(context.Context) (Findings, error)
	findings *Findings // of this process; the check is dear, and one look decides
}

func (s *prepare) Name() string { return StepPrepare }

func (s *prepare) Next(ctx context.Context) (pipeline.Decision, error) {
	if s.findings == nil {
		f, err := s.check(ctx)
		if err != nil {
			return pipeline.Decision{}, err
		}
		s.findings = &f
	}
	if len(s.findings.Blocking) > 0 {
		return pipeline.Decision{Verdict: pipeline.Blocked, Note: NotReady(*s.findings), Warnings: s.findings.Warnings}, nil
	}
	missing, err := s.missing(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	return decidePrepare(missing, s.findings.Warnings), nil
}

func decidePrepare(missing []*corev1.Namespace, warnings []progress.Note) pipeline.Decision {
	if len(missing) == 0 {
		note := progress.Remark{Why: "Prepare", Say: "the plan is ready and its namespaces are on the destination"}
		return pipeline.Decision{Verdict: pipeline.Done, Note: note, Warnings: warnings}
	}
	names := make([]string, 0, len(missing))
	for _, ns := range missing {
		names = append(names, ns.Name)
	}
	note := remark{Why: "Prepare", list: list{Say: "making namespaces on the destination: ", Names: names}}
	return pipeline.Decision{Verdict: pipeline.Act, Note: note, Warnings: warnings}
}

func (s *prepare) Act(ctx context.Context) error {
	missing, err := s.missing(ctx)
	if err != nil {
		return err
	}
	for _, ns := range missing {
		if err := s.r.Destination.Create(ctx, ns); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("namespace %s on the destination: %w", ns.Name, err)
		}
	}
	return nil
}

// missing are the namespaces to be made on the destination.
func (s *prepare) missing(ctx context.Context) ([]*corev1.Namespace, error) {
	var out []*corev1.Namespace
	for _, name := range s.r.Plan.SourceNamespaces() {
		var src, dst corev1.Namespace
		to := s.r.Plan.DestinationNamespace(name)
		err := s.r.Destination.Get(ctx, client.ObjectKey{Name: to}, &dst)
		if err == nil {
			continue
		}
		if !apierrors.IsNotFound(err) {
			return nil, err
		}
		if err := s.r.Source.Get(ctx, client.ObjectKey{Name: name}, &src); err != nil {
			return nil, err
		}
		out = append(out, s.namespace(&src, to))
	}
	return out, nil
}

// namespace is the source's namespace under its name on the destination, with
// its labels and annotations (Pod Security levels among them) and ours, by
// which a rollback knows that it may go.
func (s *prepare) namespace(src *corev1.Namespace, name string) *corev1.Namespace {
	labels := maps.Clone(src.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	delete(labels, corev1.LabelMetadataName)
	maps.Copy(labels, s.r.Owner.Labels(s.Name()))
	annotations := maps.Clone(src.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	maps.Copy(annotations, s.r.Owner.Annotations())
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations}}
}
