package step

import (
	"context"
	"maps"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
)

// EnsureAnnotationsDeleted removes the run's helpers from both clusters and
// leaves, on the namespaces and the copied claims, where they went and whence
// they came.
func EnsureAnnotationsDeleted(r Run) pipeline.Step { return tidied{r: r, moved: true} }

// HelpersDeleted removes the run's helpers from both clusters.
func HelpersDeleted(r Run) pipeline.Step { return tidied{r: r} }

type tidied struct {
	r     Run
	moved bool // the namespaces went somewhere, and are to say so
}

func (s tidied) Name() string { return "EnsureAnnotationsDeleted" }

func (s tidied) Next(ctx context.Context) (pipeline.Decision, error) {
	note := progress.Remark{Why: s.Name(), Say: "nothing of the run's helpers is left"}
	if s.moved {
		note.Say += "; namespaces and claims say where they went"
	}
	marks, err := s.unmarked(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	helpers, err := s.helpers(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	if len(marks) > 0 || len(helpers) > 0 {
		return pipeline.Decision{Verdict: pipeline.Act, Note: note}, nil
	}
	return pipeline.Decision{Verdict: pipeline.Done, Note: note}, nil
}

func (s tidied) Act(ctx context.Context) error {
	marks, err := s.unmarked(ctx)
	if err != nil {
		return err
	}
	for _, m := range marks {
		if err := m.write(ctx); err != nil {
			return err
		}
	}
	helpers, err := s.helpers(ctx)
	if err != nil {
		return err
	}
	for _, h := range helpers {
		if err := h.on.Delete(ctx, h.object); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// placed is an object with the cluster that it is on.
type placed struct {
	on     client.Client
	object client.Object
}

// helpers are the ConfigMaps and requests that the run gave to Velero.
func (s tidied) helpers(ctx context.Context) ([]placed, error) {
	var out []placed
	for _, c := range []*cluster.Cluster{s.r.Source.Cluster, s.r.Destination.Cluster} {
		var maps corev1.ConfigMapList
		if err := c.List(ctx, &maps, client.InNamespace(c.VeleroNamespace), client.MatchingLabelsSelector{Selector: s.r.Owner.OfRun()}); err != nil {
			return nil, err
		}
		for i := range maps.Items {
			if maps.Items[i].Labels[naming.LabelRecord] == "" { // the records stay
				out = append(out, placed{c, &maps.Items[i]})
			}
		}
		var requests velerov1.DownloadRequestList
		if err := c.List(ctx, &requests, client.InNamespace(c.VeleroNamespace), client.MatchingLabelsSelector{Selector: s.r.Owner.OfRun()}); err != nil {
			return nil, err
		}
		for i := range requests.Items {
			out = append(out, placed{c, &requests.Items[i]})
		}
	}
	return out, nil
}

// mark is an object with the annotations that it lacks.
type mark struct {
	placed
	annotations map[string]string
}

func (m mark) write(ctx context.Context) error {
	before := m.object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
	annotations := m.object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, m.annotations)
	m.object.SetAnnotations(annotations)
	return m.on.Patch(ctx, m.object, client.MergeFrom(before))
}

// unmarked are the namespaces and copied claims of both sides that do not say
// yet where they went or whence they came in this run.
func (s tidied) unmarked(ctx context.Context) ([]mark, error) {
	if !s.moved {
		return nil, nil
	}
	at := time.Now().UTC().Format(time.RFC3339)
	var out []mark
	add := func(c *cluster.Cluster, key client.ObjectKey, o client.Object, direction, other string) error {
		if err := c.Get(ctx, key, o); err != nil {
			return client.IgnoreNotFound(err)
		}
		if o.GetAnnotations()[naming.AnnRunUID] == s.r.Owner.RunUID {
			return nil
		}
		out = append(out, mark{placed{c, o}, map[string]string{
			direction: other, naming.AnnRunUID: s.r.Owner.RunUID, naming.AnnPlanUID: s.r.Owner.PlanUID, naming.AnnMigratedAt: at,
		}})
		return nil
	}
	src, dst := s.r.Source.Cluster, s.r.Destination.Cluster
	both := func(ns, name string, make func() client.Object) error {
		to := s.r.Plan.DestinationNamespace(ns)
		here, there := client.ObjectKey{Namespace: ns, Name: name}, client.ObjectKey{Namespace: to, Name: name}
		if name == "" {
			here, there = client.ObjectKey{Name: ns}, client.ObjectKey{Name: to}
		}
		if err := add(src, here, make(), naming.AnnMigratedTo, place(dst, there)); err != nil {
			return err
		}
		return add(dst, there, make(), naming.AnnMigratedFrom, place(src, here))
	}
	for _, ns := range s.r.Plan.SourceNamespaces() {
		if err := both(ns, "", func() client.Object { return &corev1.Namespace{} }); err != nil {
			return nil, err
		}
	}
	for _, v := range s.r.Plan.Copied() {
		if err := both(v.Namespace(), v.Name(), func() client.Object { return &corev1.PersistentVolumeClaim{} }); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// place says where an object is: the cluster's context, the namespace, the name.
func place(c *cluster.Cluster, key client.ObjectKey) string {
	if key.Namespace == "" {
		return c.Access.Context + "/" + key.Name
	}
	return c.Access.Context + "/" + key.Namespace + "/" + key.Name
}

// MarksRemoved takes back, at the end of a rollback, what EnsureAnnotationsDeleted
// has left on the namespaces and claims that are still there: they did not go
// anywhere after all.
func MarksRemoved(r Run) pipeline.Step { return marksRemoved{r} }

type marksRemoved struct{ r Run }

func (s marksRemoved) Name() string { return "EnsureAnnotationsDeleted" }

func (s marksRemoved) Next(ctx context.Context) (pipeline.Decision, error) {
	note := progress.Remark{Why: s.Name(), Say: "no namespace and no claim says any more that it went elsewhere"}
	marked, err := s.marked(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	if len(marked) > 0 {
		return pipeline.Decision{Verdict: pipeline.Act, Note: note}, nil
	}
	return pipeline.Decision{Verdict: pipeline.Done, Note: note}, nil
}

func (s marksRemoved) Act(ctx context.Context) error {
	marked, err := s.marked(ctx)
	if err != nil {
		return err
	}
	for _, m := range marked {
		before := m.object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
		annotations := m.object.GetAnnotations()
		for _, key := range auditMarks {
			delete(annotations, key)
		}
		m.object.SetAnnotations(annotations)
		if err := m.on.Patch(ctx, m.object, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// auditMarks are the annotations that a finished migration leaves behind.
var auditMarks = []string{naming.AnnMigratedTo, naming.AnnMigratedFrom, naming.AnnMigratedAt, naming.AnnRunUID, naming.AnnPlanUID} //nolint:gochecknoglobals // a constant list

// marked are the namespaces of the plan, and their claims, that bear marks of
// its runs; those of another plan's are true still.
func (s marksRemoved) marked(ctx context.Context) ([]placed, error) {
	var out []placed
	for _, ns := range s.r.Plan.SourceNamespaces() {
		for _, at := range []struct {
			c  *cluster.Cluster
			ns string
		}{{s.r.Source.Cluster, ns}, {s.r.Destination.Cluster, s.r.Plan.DestinationNamespace(ns)}} {
			found, err := s.markedIn(ctx, at.c, at.ns)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

func (s marksRemoved) markedIn(ctx context.Context, c *cluster.Cluster, name string) ([]placed, error) {
	var ns corev1.Namespace
	if err := c.Get(ctx, client.ObjectKey{Name: name}, &ns); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	var claims corev1.PersistentVolumeClaimList
	if err := c.List(ctx, &claims, client.InNamespace(name)); err != nil {
		return nil, err
	}
	objects := []client.Object{&ns}
	for i := range claims.Items {
		objects = append(objects, &claims.Items[i])
	}
	var out []placed
	for _, o := range objects {
		if o.GetDeletionTimestamp() == nil && o.GetAnnotations()[naming.AnnPlanUID] == s.r.Owner.PlanUID {
			out = append(out, placed{c, o})
		}
	}
	return out, nil
}
