package step

import (
	"context"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize/english"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
)

const mergePatch = types.MergePatchType

// StepDestinationCleaned is the name of the step DestinationCleaned.
const StepDestinationCleaned = "DestinationCleaned"

// DestinationCleaned deletes on the destination what the plan's runs made, and
// nothing else, and ends when no pod of it is left: from then on the source may
// start. What was there before, what others made since, CustomResourceDefinitions
// and the data of moved volumes stay.
func DestinationCleaned(r Run) pipeline.Step { return &destinationCleaned{newLook(r)} }

// DestinationCleanedButForStaged leaves the volumes that mig-mover has filled:
// what is in them need not be copied again by the next run.
func DestinationCleanedButForStaged(r Run) pipeline.Step {
	return &destinationCleaned{newLook(r).butForStaged()}
}

type destinationCleaned struct{ look }

func (s *destinationCleaned) Name() string { return StepDestinationCleaned }

func (s *destinationCleaned) Next(ctx context.Context) (pipeline.Decision, error) {
	v, err := s.survey(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	return decideCleaned(v), nil
}

func decideCleaned(v survey) pipeline.Decision {
	d := pipeline.Decision{Warnings: append(v.changed(), v.staying()...)}
	remark := func(verdict pipeline.Verdict, say string) pipeline.Decision {
		d.Verdict, d.Note = verdict, progress.Remark{Why: StepDestinationCleaned, Say: say}
		return d
	}
	if todo := v.toDelete(); len(todo) > 0 {
		return remark(pipeline.Act, fmt.Sprintf("deleting %s that the plan's runs made on the destination", english.Plural(len(todo), "object", "")))
	}
	if pods := v.pods(); len(pods) > 0 {
		return remark(pipeline.Wait, fmt.Sprintf("waiting for %s on the destination to end: %s", english.Plural(len(pods), "pod", ""), few(heldTexts(pods))))
	}
	return remark(pipeline.Done, "nothing of the application runs on the destination")
}

// Act deletes; look's is shared with DestinationGone, for objects that a
// restore made after they were looked for.
func (s *look) Act(ctx context.Context) error {
	v, err := s.survey(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, it := range v.toDelete() {
		o := it.meta.DeepCopy()
		uid := o.UID
		err := s.r.Destination.Delete(ctx, o,
			client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid})
		if alreadyGone(err) != nil {
			errs = append(errs, fmt.Errorf("%s: %w", it, err))
		}
	}
	return errors.Join(errs...)
}

// DestinationGone waits until what DestinationCleaned deleted is gone, and says
// what holds it. A finalizer is never taken away: whoever put it there has
// something to clean up.
func DestinationGone(r Run) pipeline.Step { return &destinationGone{look: newLook(r)} }

// DestinationGoneButForStaged does not wait for the volumes that stay.
func DestinationGoneButForStaged(r Run) pipeline.Step {
	return &destinationGone{look: newLook(r).butForStaged()}
}

type destinationGone struct{ look }

func (s *destinationGone) Name() string { return "DestinationGone" }

func (s *destinationGone) Next(ctx context.Context) (pipeline.Decision, error) {
	v, err := s.survey(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	return decideGone(v), nil
}

func decideGone(v survey) pipeline.Decision {
	d := pipeline.Decision{Warnings: append(v.changed(), v.staying()...)}
	remark := func(verdict pipeline.Verdict, say string) pipeline.Decision {
		d.Verdict, d.Note = verdict, progress.Remark{Why: "DestinationGone", Say: say}
		return d
	}
	if todo := v.toDelete(); len(todo) > 0 {
		return remark(pipeline.Act, fmt.Sprintf("deleting %s that came since", english.Plural(len(todo), "object", "")))
	}
	if left := v.left(); len(left) > 0 {
		return remark(pipeline.Wait, fmt.Sprintf("waiting for %s on the destination to be gone: %s", english.Plural(len(left), "object", ""), few(left)))
	}
	return remark(pipeline.Done, "what the plan's runs made on the destination is gone")
}
