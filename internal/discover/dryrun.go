package discover

import (
	"context"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
)

// mostDryRuns is how many namespaces are tried; of a thousand that one policy
// refuses, a hundred say enough.
const mostDryRuns = 100

// lookAtRefusals asks the destination whether it would let the plan's
// namespaces be made as a run makes them: with the source's labels and
// annotations. The server knows best what its policies say; it makes nothing.
func lookAtRefusals(ctx context.Context, dst cluster.Destination, s SourceFacts, d *DestinationFacts, v plan.Valid) {
	if d.Reach != Reached || s.Reach != Reached || d.HasGap(PartNamespaces) || !may(d.Rights, "create", "namespaces") {
		return
	}
	var missing []*corev1.Namespace
	for _, name := range v.SourceNamespaces() {
		to := v.DestinationNamespace(name)
		from, here := s.Namespace(name)
		if _, there := d.Namespace(to); here && !there && len(missing) < mostDryRuns {
			missing = append(missing, newNamespace(from, to, naming.Owner{PlanName: v.Name(), PlanUID: v.UID()}))
		}
	}
	l := newLook(ctx, dst.Cluster)
	l.optional(PartRefusals, func(ctx context.Context) (err error) { d.Refused, err = refusals(ctx, dst.Client, missing); return err })
	d.Gaps = append(d.Gaps, l.wait()...)
}

// newNamespace is a namespace as a run makes it.
func newNamespace(from Namespace, to string, o naming.Owner) *corev1.Namespace {
	labels, annotations := maps.Clone(from.Labels), maps.Clone(from.Annotations)
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(labels, corev1.LabelMetadataName)
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	maps.Copy(labels, o.Labels(""))
	maps.Copy(annotations, o.Annotations())
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: to, Labels: labels, Annotations: annotations}}
}

// may says whether a right is known to be there.
func may(rights []Right, verb, resource string) bool {
	return slices.ContainsFunc(rights, func(r Right) bool { return r.Allowed && r.Verb == verb && r.Resource == resource })
}

// refusals tries each, and gives those that the server's rules refused.
func refusals(ctx context.Context, c client.Client, namespaces []*corev1.Namespace) ([]Refused, error) {
	out := make([]Refused, len(namespaces))
	var mu sync.Mutex
	var other error
	var group errgroup.Group
	group.SetLimit(inParallel)
	for i, ns := range namespaces {
		group.Go(func() error {
			err := c.Create(ctx, ns, client.DryRunAll)
			switch {
			case err == nil, apierrors.IsAlreadyExists(err):
			case cluster.IsPassing(err) && !apierrors.IsInternalError(err):
				mu.Lock()
				defer mu.Unlock()
				other = err
			default: // an internal error is how a webhook that does not answer is told
				out[i] = Refused{Object: ns.Name, Why: cluster.Plain(err)}
			}
			return nil
		})
	}
	_ = group.Wait() // errors are gathered, so that the others are tried
	var refused []Refused
	for _, r := range out {
		if r.Object != "" {
			refused = append(refused, r)
		}
	}
	return refused, other
}
