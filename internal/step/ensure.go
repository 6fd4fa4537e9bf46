package step

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
)

// ensure is a step that makes objects which nobody else makes: done when all
// are there. Their names are the run's own, so an object that exists already
// was made by an earlier try of the same step.
type ensure struct {
	name string
	on   client.Client
	// objects builds what must be there. It may look into the clusters.
	objects func(context.Context) ([]client.Object, error)
	note    progress.Note
}

func (s *ensure) Name() string { return s.name }

func (s *ensure) Next(ctx context.Context) (pipeline.Decision, error) {
	missing, err := s.missing(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	if len(missing) > 0 {
		return pipeline.Decision{Verdict: pipeline.Act, Note: s.note}, nil
	}
	return pipeline.Decision{Verdict: pipeline.Done, Note: s.note}, nil
}

func (s *ensure) Act(ctx context.Context) error {
	missing, err := s.missing(ctx)
	if err != nil {
		return err
	}
	for _, o := range missing {
		if err := s.on.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

func (s *ensure) missing(ctx context.Context) ([]client.Object, error) {
	objects, err := s.objects(ctx)
	if err != nil {
		return nil, err
	}
	var out []client.Object
	for _, o := range objects {
		there := o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
		err := s.on.Get(ctx, client.ObjectKeyFromObject(o), there)
		if apierrors.IsNotFound(err) {
			out = append(out, o)
		} else if err != nil {
			return nil, err
		}
	}
	return out, nil
}
