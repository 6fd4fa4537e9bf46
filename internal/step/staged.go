package step

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize/english"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
)

// ClaimsMarked labels the claims to copy, by which the volume policy of a live
// backup knows them. The application's pods are never touched.
func ClaimsMarked(r Run) pipeline.Step {
	return labelled{r: r, name: "AnnotateResources", want: r.Owner.PlanUID, say: "the claims to copy are labelled"}
}

// ClaimsUnmarked takes the labels of ClaimsMarked away.
func ClaimsUnmarked(r Run) pipeline.Step { return unlabelled(r, "EnsureClaimsUnmarked") }

// StageMarksRemoved does the same after a stage that did not come to its end.
func StageMarksRemoved(r Run) pipeline.Step { return unlabelled(r, "StageMarksRemoved") }

func unlabelled(r Run, name string) pipeline.Step {
	return labelled{r: r, name: name, say: "no claim bears the label of a stage"}
}

// labelled is a step that gives all claims of the plan the same value of
// naming.LabelStagedBy; empty takes it away.
type labelled struct {
	r    Run
	name string
	want string
	say  string
}

func (s labelled) Name() string { return s.name }

func (s labelled) Next(ctx context.Context) (pipeline.Decision, error) {
	others, err := s.others(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	if len(others) > 0 {
		say := "labelling " + english.Plural(len(others), "claim", "")
		if s.want == "" {
			say = "taking the label of a stage from " + english.Plural(len(others), "claim", "")
		}
		return pipeline.Decision{Verdict: pipeline.Act, Note: progress.Remark{Why: s.name, Say: say}}, nil
	}
	return pipeline.Decision{Verdict: pipeline.Done, Note: progress.Remark{Why: s.name, Say: s.say}}, nil
}

func (s labelled) Act(ctx context.Context) error {
	others, err := s.others(ctx)
	if err != nil {
		return err
	}
	value := "null"
	if s.want != "" {
		value = fmt.Sprintf("%q", s.want)
	}
	patch := client.RawPatch(mergePatch, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, naming.LabelStagedBy, value))
	for i := range others {
		if err := s.r.Source.Patch(ctx, &others[i], patch, client.FieldOwner(naming.CreatedBy)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// others are the claims whose label is not as wanted. Labels of other plans'
// stages are theirs.
func (s labelled) others(ctx context.Context) ([]corev1.PersistentVolumeClaim, error) {
	copied := map[string]bool{}
	for _, claim := range s.r.copiedClaims() {
		copied[claim] = true
	}
	var out []corev1.PersistentVolumeClaim
	for _, ns := range s.r.Plan.SourceNamespaces() {
		var list corev1.PersistentVolumeClaimList
		if err := s.r.Source.List(ctx, &list, client.InNamespace(ns)); err != nil {
			return nil, err
		}
		for _, c := range list.Items {
			now := c.Labels[naming.LabelStagedBy]
			ours := now == s.r.Owner.PlanUID
			if s.want != "" && copied[ns+"/"+c.Name] && !ours || s.want == "" && ours {
				out = append(out, c)
			}
		}
	}
	return out, nil
}
