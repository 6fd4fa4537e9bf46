//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/naming"
)

const betweenYAML = `
apiVersion: v1
kind: Secret
metadata: {name: revoked}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: yearly}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: "registry.test/toolbox:1", command: ["true"]}]}}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: watcher}
spec:
  selector: {matchLabels: {app: watcher}}
  template:
    metadata: {labels: {app: watcher}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: a, image: "registry.test/toolbox:1", command: [sleep, infinity]}]
`

// While volumes are copied, which may take hours, people and operators go on.
func TestWhatIsChangedWhileVolumesAreCopiedArrivesChanged(t *testing.T) {
	t.Parallel()
	s := newScenario(t, "e2e-drift")
	ctx := t.Context()
	s.deployNotes(5)
	s.must(s.lab.Apply(ctx, s.src(), s.name, labtest.FrontYAML))
	s.must(s.lab.Apply(ctx, s.src(), s.name, betweenYAML))
	s.must(s.lab.WorkloadsReady(ctx, s.src(), s.name, patience))
	s.makePlan(nil)
	met := s.meanwhile(ctx, changeObjects)

	r := s.run("migrate")

	s.must(<-met)
	s.ended(r, done)
	s.says(r, "ConfigMap e2e-drift/page was changed", "Secret e2e-drift/revoked was deleted", "Secret e2e-drift/fresh is new")
	s.must(s.lab.WorkloadsReady(ctx, s.dst(), s.dest, patience))
	if got := get(t, s.dst(), s.dest, "page", &corev1.ConfigMap{}).Data["index.html"]; got != "closed" {
		t.Errorf("the changed ConfigMap says %q on the destination, want closed", got)
	}
	get(t, s.dst(), s.dest, "fresh", &corev1.Secret{})
	if err := s.dst().Get(ctx, client.ObjectKey{Namespace: s.dest, Name: "revoked"}, &corev1.Secret{}); err == nil {
		t.Error("a Secret that was deleted on the source is back on the destination")
	}
	t.Run("workloads run as they did, without a mark of having been stopped", func(t *testing.T) {
		front := get(t, s.dst(), s.dest, "front", &appsv1.Deployment{})
		if front.Spec.Replicas == nil || *front.Spec.Replicas != 2 || front.Spec.Template.Labels["release"] != "second" {
			t.Errorf("Deployment front has replicas %v and labels %v, want 2 and those of the changed template", front.Spec.Replicas, front.Spec.Template.Labels)
		}
		yearly := get(t, s.dst(), s.dest, "yearly", &batchv1.CronJob{})
		if yearly.Spec.Suspend != nil && *yearly.Spec.Suspend {
			t.Error("CronJob yearly is suspended on the destination")
		}
		watcher := get(t, s.dst(), s.dest, "watcher", &appsv1.DaemonSet{})
		if len(watcher.Spec.Template.Spec.NodeSelector) > 0 {
			t.Errorf("DaemonSet watcher has node selector %v", watcher.Spec.Template.Spec.NodeSelector)
		}
		sets := &appsv1.ReplicaSetList{}
		if err := s.dst().List(t.Context(), sets, client.InNamespace(s.dest)); err != nil {
			t.Fatal(err)
		}
		objects := []client.Object{front, yearly, watcher}
		for i := range sets.Items {
			objects = append(objects, &sets.Items[i])
		}
		for _, o := range objects {
			for key := range o.GetAnnotations() {
				if strings.HasPrefix(key, naming.Prefix+"quiesce") || strings.Contains(key, "preQuiesce") {
					t.Errorf("%T %s bears %s on the destination", o, o.GetName(), key)
				}
			}
		}
	})
}

// meanwhile does something while mig runs, as soon as it can be done.
func (s *scenario) meanwhile(ctx context.Context, do func(context.Context, *scenario) (labtest.NotYet, error)) <-chan error {
	met := make(chan error, 1)
	go func() {
		met <- labtest.Until(ctx, patience, "something to meddle with", func(ctx context.Context) (labtest.NotYet, error) { return do(ctx, s) })
	}()
	return met
}

// changeObjects waits for a stage pod: the source is stopped, and its objects
// are backed up.
func changeObjects(ctx context.Context, s *scenario) (labtest.NotYet, error) {
	if pods, err := s.stagePods(ctx); err != nil || len(pods) == 0 {
		return "no stage pod yet", err
	}
	for _, args := range [][]string{
		{"patch", "configmap", "page", "--type=merge", "-p", `{"data":{"index.html":"closed"}}`},
		{"patch", "deployment", "front", "--type=merge", "-p", `{"spec":{"template":{"metadata":{"labels":{"release":"second"}}}}}`},
		{"delete", "secret", "revoked"},
		{"create", "secret", "generic", "fresh"},
	} {
		if _, err := s.lab.Kubectl(ctx, s.src(), "", append([]string{"-n", s.name}, args...)...); err != nil {
			return "", err
		}
	}
	return "", nil
}

func get[T client.Object](t *testing.T, c *cluster.Cluster, namespace, name string, o T) T {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
		t.Fatal(err)
	}
	return o
}
