package step

import (
	"context"
	"fmt"
	"slices"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
)

// askAgain is a step that waits for a backup or a restore, and asks Velero for
// it again where Velero has refused it only because it had not seen yet what was
// made just before: its server reads the ConfigMaps and the Backup that a
// request names from a cache that runs behind (velero
// pkg/controller/restore_controller.go, internal/resourcepolicies). What was
// refused has done nothing.
type askAgain struct {
	pipeline.Step

	look  func(context.Context) (refusal, error)
	tries int // of this process
}

// refusal is a request and what Velero has against it.
type refusal struct {
	on      client.Client
	request client.Object
	phase   string
	errors  []string
}

// patience with Velero's cache, which is usually some milliseconds behind.
const mostTries = 20

// unseen are the beginnings of what Velero says of things that it does not see.
var unseen = []string{"failed to get resource modifiers configmap", "Error retrieving backup", "invalid resource policies: fail to get ResourcePolicies"} //nolint:gochecknoglobals // a constant list

// isUnseen says whether all that Velero has against the request is that.
func (r refusal) isUnseen() bool {
	return r.phase == string(velerov1.RestorePhaseFailedValidation) && len(r.errors) > 0 && !slices.ContainsFunc(r.errors, func(e string) bool {
		return !slices.ContainsFunc(unseen, func(begins string) bool { return strings.HasPrefix(e, begins) })
	})
}

func (s *askAgain) Next(ctx context.Context) (pipeline.Decision, error) {
	r, err := s.look(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	if !r.isUnseen() || s.tries >= mostTries {
		return s.Step.Next(ctx)
	}
	note := progress.Remark{Why: s.Name(), Say: fmt.Sprintf("Velero has not seen yet what %s names, and is asked again: %s", r.request.GetName(), strings.Join(r.errors, "; "))}
	return pipeline.Decision{Verdict: pipeline.Act, Note: note}, nil
}

func (s *askAgain) Act(ctx context.Context) error {
	r, err := s.look(ctx)
	if err != nil {
		return err
	}
	if !r.isUnseen() {
		return s.Step.Act(ctx)
	}
	s.tries++
	patch := client.RawPatch(mergePatch, []byte(`{"status":{"phase":"New","validationErrors":null}}`))
	return r.on.Patch(ctx, r.request, patch, client.FieldOwner(naming.CreatedBy))
}

// refusedBackup looks at one of the run's backups on the source.
func (r Run) refusedBackup(name string) func(context.Context) (refusal, error) {
	return func(ctx context.Context) (refusal, error) {
		b, err := r.backup(ctx, name)
		return refusal{r.Source, b, string(b.Status.Phase), b.Status.ValidationErrors}, err
	}
}

// refusedRestore looks at one of the run's restores on the destination.
func (r Run) refusedRestore(name string) func(context.Context) (refusal, error) {
	return func(ctx context.Context) (refusal, error) {
		o, err := r.restore(ctx, name)
		return refusal{r.Destination, o, string(o.Status.Phase), o.Status.ValidationErrors}, err
	}
}
