//go:build e2e

package cases

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/plan"
)

// place is where one case happens: a directory with its plan, and what it
// gives to the clusters, which is taken away at its end.
type place struct {
	t   *testing.T
	lab *labtest.Lab
	mig string
	dir string

	emptied map[string]bool // namespaces that go with all that is in them
}

// open makes a place on the bed that a case needs.
func open(t *testing.T, s scenario) *place {
	t.Helper()
	s.told(t)
	beds := map[string]func() (*labtest.Lab, error){
		cli: func() (*labtest.Lab, error) { return bare("none") }, api: theAPI, velero: theLab, node: theLab,
	}
	lab, err := beds[s.needs]()
	if err != nil {
		t.Fatal(err)
	}
	mig, err := theMig()
	if err != nil {
		t.Fatal(err)
	}
	return &place{t: t, lab: lab, mig: mig, dir: t.TempDir(), emptied: map[string]bool{}}
}

func (p *place) src() *cluster.Cluster { return p.lab.Source.Cluster }
func (p *place) dst() *cluster.Cluster { return p.lab.Destination.Cluster }

func (p *place) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// given makes objects on a cluster, in their order, and waits until the
// namespaces among them have settled.
func (p *place) given(c *cluster.Cluster, objects ...client.Object) {
	p.t.Helper()
	for _, o := range objects {
		if err := c.Create(p.t.Context(), o); err != nil {
			p.t.Fatalf("%s: %T %s/%s: %v", c.Access.Context, o, o.GetNamespace(), o.GetName(), err)
		}
		p.cleared(c, o)
	}
	for _, o := range objects {
		if ns, ok := o.(*corev1.Namespace); ok {
			p.must(settled(p.t.Context(), c, ns.Name))
		}
	}
}

// cleared sees to it that an object is taken away at the end, be it with its
// namespace.
func (p *place) cleared(c *cluster.Cluster, o client.Object) {
	if isNamespace(o) {
		p.emptied[c.Access.Context+"/"+o.GetName()] = true
	}
	if len(o.GetFinalizers()) > 0 || !p.emptied[c.Access.Context+"/"+o.GetNamespace()] {
		p.t.Cleanup(func() { p.takeAway(c, o) })
	}
}

func isNamespace(o client.Object) bool {
	_, typed := o.(*corev1.Namespace)
	return typed || o.GetObjectKind().GroupVersionKind().Kind == "Namespace"
}

// takeAway deletes an object, with whatever finalizers it has.
func (p *place) takeAway(c *cluster.Cluster, o client.Object) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.t.Context()), patience)
	defer cancel()
	err := client.IgnoreNotFound(c.Delete(ctx, o, client.PropagationPolicy("Background")))
	if len(o.GetFinalizers()) > 0 {
		err = errors.Join(err, client.IgnoreNotFound(c.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))))
	}
	if err != nil && !apierrors.IsConflict(err) {
		p.t.Errorf("clearing up %s/%s on %s: %v", o.GetNamespace(), o.GetName(), c.Access.Context, err)
	}
}

// deleted deletes an object and does not wait.
func (p *place) deleted(c *cluster.Cluster, o client.Object) {
	p.t.Helper()
	p.must(c.Delete(p.t.Context(), o))
}

// gone waits until a namespace is gone.
func (p *place) gone(c *cluster.Cluster, namespace string) {
	p.t.Helper()
	p.must(labtest.Until(p.t.Context(), patience, "namespace "+namespace+" is gone", func(ctx context.Context) (labtest.NotYet, error) {
		there, err := labtest.Exists(ctx, c, namespace)
		if there {
			return "it is there", err
		}
		return "", err
	}))
}

// file is a file of the place.
func (p *place) file(name string) string { return filepath.Join(p.dir, name) }

func (p *place) write(name, content string, mode os.FileMode) string {
	p.t.Helper()
	path := p.file(name)
	p.must(os.MkdirAll(filepath.Dir(path), 0o755))
	p.must(os.WriteFile(path, []byte(content), mode))
	return path
}

func (p *place) editPlan(name string, change func(*plan.Plan)) {
	p.t.Helper()
	p.must(labtest.EditPlan(p.file(name+".yaml"), change))
}

// run runs mig to its end.
func (p *place) run(args ...string) labtest.Result {
	p.t.Helper()
	return p.runIn(nil, args...)
}

// runIn runs mig with more in its environment.
func (p *place) runIn(env []string, args ...string) labtest.Result {
	p.t.Helper()
	r, err := p.lab.Run(p.t.Context(), p.dir, slices.Concat([]string{"env"}, env, []string{p.mig}, args)...)
	p.must(err)
	p.t.Log(r)
	return r
}

// exits runs mig and wants an exit code.
func (p *place) exits(code int, args ...string) labtest.Result {
	p.t.Helper()
	r := p.run(args...)
	if r.Code != code {
		p.t.Errorf("want exit %d:\n%s", code, r)
	}
	return r
}

// planned makes a plan called as its case.
func (p *place) planned(namespaces string) {
	p.t.Helper()
	p.exits(done, "plan", "create", "--src", "src", "--dst", "dst", "--namespaces", namespaces)
	if p.t.Failed() {
		p.t.FailNow()
	}
}

// settled waits until the workloads of a namespace have their pods, and the
// claims that can have a volume have one.
func settled(ctx context.Context, c *cluster.Cluster, namespace string) error {
	return labtest.Until(ctx, patience, "namespace "+namespace+" on "+c.Access.Context+" has settled", func(ctx context.Context) (labtest.NotYet, error) {
		for _, look := range []func(context.Context, *cluster.Cluster, string) (labtest.NotYet, error){claimsSettled, podsSettled, workloadsSettled} {
			if why, err := look(ctx, c, namespace); why != "" || err != nil {
				return why, err
			}
		}
		return "", nil
	})
}

func claimsSettled(ctx context.Context, c *cluster.Cluster, namespace string) (labtest.NotYet, error) {
	var list corev1.PersistentVolumeClaimList
	if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return "", err
	}
	for i := range list.Items {
		claim := &list.Items[i]
		if claim.Status.Phase != corev1.ClaimPending {
			continue
		}
		class, err := dueClass(ctx, c, claim)
		if err != nil || class != nil || claim.Spec.VolumeName != "" {
			return labtest.NotYet("claim " + claim.Name + " is not bound"), err
		}
	}
	return "", nil
}

func podsSettled(ctx context.Context, c *cluster.Cluster, namespace string) (labtest.NotYet, error) {
	var list corev1.PodList
	if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return "", err
	}
	for _, pod := range list.Items {
		if pod.Status.Phase == corev1.PodPending && pod.Annotations[phaseAnnotation] == "" {
			return labtest.NotYet("pod " + pod.Name + " is Pending"), nil
		}
	}
	return "", nil
}

func workloadsSettled(ctx context.Context, c *cluster.Cluster, namespace string) (labtest.NotYet, error) {
	var deployments appsv1.DeploymentList
	var sets appsv1.StatefulSetList
	var jobs batchv1.JobList
	for _, list := range []client.ObjectList{&deployments, &sets, &jobs} {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return "", err
		}
	}
	for _, d := range deployments.Items {
		if d.Status.ObservedGeneration < d.Generation || d.Status.Replicas < *d.Spec.Replicas {
			return labtest.NotYet(fmt.Sprintf("Deployment %s has %d pods", d.Name, d.Status.Replicas)), nil
		}
	}
	for _, s := range sets.Items {
		if s.Status.ObservedGeneration < s.Generation || s.Status.Replicas < *s.Spec.Replicas {
			return labtest.NotYet(fmt.Sprintf("StatefulSet %s has %d pods", s.Name, s.Status.Replicas)), nil
		}
	}
	for _, j := range jobs.Items {
		if j.Spec.Template.Annotations[phaseAnnotation] == string(corev1.PodSucceeded) && j.Status.Succeeded == 0 {
			return labtest.NotYet("Job " + j.Name + " has not finished"), nil
		}
		if j.Status.Active+j.Status.Succeeded+j.Status.Failed == 0 && !isSuspended(&j) {
			return labtest.NotYet("Job " + j.Name + " has no pod"), nil
		}
	}
	return "", nil
}

func isSuspended(j *batchv1.Job) bool { return j.Spec.Suspend != nil && *j.Spec.Suspend }
