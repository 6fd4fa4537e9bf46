package labtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
)

// WorkloadsReady waits until every workload of a namespace has all its pods.
func (l *Lab) WorkloadsReady(ctx context.Context, c *cluster.Cluster, namespace string, limit time.Duration) error {
	return Until(ctx, limit, "the workloads of "+namespace+" on "+c.Access.Context+" are ready", func(ctx context.Context) (NotYet, error) {
		return workloadsReady(ctx, c, namespace)
	})
}

func workloadsReady(ctx context.Context, c *cluster.Cluster, namespace string) (NotYet, error) {
	var deployments appsv1.DeploymentList
	var sets appsv1.StatefulSetList
	if err := c.List(ctx, &deployments, client.InNamespace(namespace)); err != nil {
		return "", err
	}
	if err := c.List(ctx, &sets, client.InNamespace(namespace)); err != nil {
		return "", err
	}
	if len(deployments.Items)+len(sets.Items) == 0 {
		return "there are none", nil
	}
	for _, d := range deployments.Items {
		if want := *d.Spec.Replicas; d.Status.ObservedGeneration < d.Generation || d.Status.ReadyReplicas != want || d.Status.Replicas != want || d.Status.UpdatedReplicas != want {
			return describePods(ctx, c, namespace, fmt.Sprintf("Deployment %s has %d of %d pods ready", d.Name, d.Status.ReadyReplicas, want))
		}
	}
	for _, s := range sets.Items {
		if want := *s.Spec.Replicas; s.Status.ObservedGeneration < s.Generation || s.Status.ReadyReplicas != want || s.Status.Replicas != want || s.Status.UpdatedReplicas != want {
			return describePods(ctx, c, namespace, fmt.Sprintf("StatefulSet %s has %d of %d pods ready", s.Name, s.Status.ReadyReplicas, want))
		}
	}
	return "", nil
}

func describePods(ctx context.Context, c *cluster.Cluster, namespace, what string) (NotYet, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return "", err
	}
	for _, p := range pods.Items {
		what += "; " + p.Name + " is " + describePod(p)
	}
	return NotYet(what), nil
}

// describePod is the phase and the first reason that a condition or a container gives.
func describePod(p corev1.Pod) string {
	for _, s := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
		if w := s.State.Waiting; w != nil && w.Reason != "" {
			return fmt.Sprintf("%s (%s: %s)", p.Status.Phase, w.Reason, w.Message)
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Status == corev1.ConditionFalse && c.Message != "" {
			return fmt.Sprintf("%s (%s)", p.Status.Phase, c.Message)
		}
	}
	return string(p.Status.Phase)
}

// Quiesced says what of the source is not at rest, or was lost in stopping
// it; nil: every workload is at zero and remembers what it was, every CronJob
// is suspended, no pod runs, every claim is Bound. What was at zero before has
// nothing to remember: idle are the names of those.
func Quiesced(ctx context.Context, c *cluster.Cluster, namespace string, idle ...string) error {
	var findings []string
	for _, look := range []func(context.Context, *cluster.Cluster, string) ([]string, error){
		runningWorkloads, runningCronJobs, runningPods, lostClaims,
	} {
		found, err := look(ctx, c, namespace)
		if err != nil {
			return err
		}
		findings = append(findings, found...)
	}
	findings = slices.DeleteFunc(findings, func(f string) bool {
		name, _ := strings.CutSuffix(f, doesNotRemember)
		return slices.Contains(idle, name)
	})
	return listed(namespace+" on "+c.Access.Context+" is not at rest", findings)
}

const doesNotRemember = " does not remember its replicas"

func runningWorkloads(ctx context.Context, c *cluster.Cluster, namespace string) ([]string, error) {
	var deployments appsv1.DeploymentList
	var sets appsv1.StatefulSetList
	if err := c.List(ctx, &deployments, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	if err := c.List(ctx, &sets, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var out []string
	check := func(o client.Object, replicas *int32) {
		if replicas == nil || *replicas != 0 {
			out = append(out, o.GetName()+" is not scaled to zero")
		}
		if o.GetAnnotations()[naming.RefPreQuiesceReplicas] == "" {
			out = append(out, o.GetName()+doesNotRemember)
		}
	}
	for i := range deployments.Items {
		check(&deployments.Items[i], deployments.Items[i].Spec.Replicas)
	}
	for i := range sets.Items {
		check(&sets.Items[i], sets.Items[i].Spec.Replicas)
	}
	return out, nil
}

func runningCronJobs(ctx context.Context, c *cluster.Cluster, namespace string) ([]string, error) {
	var jobs batchv1.CronJobList
	if err := c.List(ctx, &jobs, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var out []string
	for _, j := range jobs.Items {
		if j.Spec.Suspend == nil || !*j.Spec.Suspend {
			out = append(out, "CronJob "+j.Name+" is not suspended")
		}
	}
	return out, nil
}

func runningPods(ctx context.Context, c *cluster.Cluster, namespace string) ([]string, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var out []string
	for _, p := range pods.Items {
		out = append(out, "pod "+p.Name+" is there: "+describePod(p))
	}
	return out, nil
}

func lostClaims(ctx context.Context, c *cluster.Cluster, namespace string) ([]string, error) {
	var claims corev1.PersistentVolumeClaimList
	if err := c.List(ctx, &claims, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var out []string
	for _, p := range claims.Items {
		if p.Status.Phase != corev1.ClaimBound || p.DeletionTimestamp != nil {
			out = append(out, "claim "+p.Name+" is "+string(p.Status.Phase))
		}
	}
	return out, nil
}

// ClassOf is the storage class of a claim.
func ClassOf(ctx context.Context, c *cluster.Cluster, namespace, claim string) (string, error) {
	var pvc corev1.PersistentVolumeClaim
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: claim}, &pvc); err != nil || pvc.Spec.StorageClassName == nil {
		return "", err
	}
	return *pvc.Spec.StorageClassName, nil
}
