//go:build e2e

package cases

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
)

// phaseAnnotation on a pod says how the hands leave it, where it does not run.
const phaseAnnotation = "cases.example/phase"

// hands do on a cluster without nodes what a scheduler, kubelets and a
// provisioner would: pods are put on nodes and said to run, claims get volumes.
// Nothing runs and nothing is stored.
type hands struct {
	c     *cluster.Cluster
	nodes []string
	next  int // the node of the next pod
	beat  time.Time
}

func (h *hands) makeNodes(ctx context.Context) error {
	for _, name := range h.nodes {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"}}}
		if err := h.c.Create(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// start works until the function that it gives is called.
func (h *hands) start() func() error {
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		tick := time.NewTicker(150 * time.Millisecond)
		defer tick.Stop()
		for {
			// What fails, for another wrote first or the server is busy, is done in the next round.
			_ = errors.Join(h.heartbeat(ctx), h.pods(ctx), h.claims(ctx))
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return func() error {
		cancel()
		work.Wait()
		return nil
	}
}

// heartbeat keeps the nodes from being taken for dead, and Velero's storage
// location from being taken for forgotten.
func (h *hands) heartbeat(ctx context.Context) error {
	if time.Since(h.beat) < 10*time.Second {
		return nil
	}
	h.beat = time.Now()
	for _, name := range h.nodes {
		n := &corev1.Node{}
		if err := h.c.Get(ctx, client.ObjectKey{Name: name}, n); err != nil {
			return err
		}
		n.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(),
		}}
		if err := h.c.Status().Update(ctx, n); err != nil {
			return err
		}
	}
	return client.IgnoreNotFound(locationAvailable(ctx, h.c))
}

func (h *hands) pods(ctx context.Context) error {
	var list corev1.PodList
	if err := h.c.List(ctx, &list); err != nil {
		return err
	}
	var errs []error
	for i := range list.Items {
		errs = append(errs, h.pod(ctx, &list.Items[i]))
	}
	return errors.Join(errs...)
}

func (h *hands) pod(ctx context.Context, p *corev1.Pod) error {
	switch {
	case p.DeletionTimestamp != nil:
		return client.IgnoreNotFound(h.c.Delete(ctx, p, client.GracePeriodSeconds(0)))
	case p.Annotations[phaseAnnotation] == string(corev1.PodPending), p.Status.Phase != corev1.PodPending:
		return nil
	case p.Spec.NodeName == "":
		target := corev1.ObjectReference{Kind: "Node", Name: h.nodeFor(p)}
		return h.c.SubResource("binding").Create(ctx, p, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Target: target})
	}
	sayRunning(p)
	return h.c.Status().Update(ctx, p)
}

// nodeFor is the node that a DaemonSet asks for by name, else each in turn.
func (h *hands) nodeFor(p *corev1.Pod) string {
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, f := range term.MatchFields {
				return f.Values[0]
			}
		}
	}
	h.next++
	return h.nodes[h.next%len(h.nodes)]
}

func sayRunning(p *corev1.Pod) {
	now := metav1.Now()
	p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &now
	ready := corev1.ConditionTrue
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	if phase := corev1.PodPhase(p.Annotations[phaseAnnotation]); phase == corev1.PodSucceeded || phase == corev1.PodFailed {
		p.Status.Phase, ready = phase, corev1.ConditionFalse
		state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: now}}
	}
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: corev1.PodReady, Status: ready, LastTransitionTime: now},
	}
	p.Status.ContainerStatuses = nil
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: state.Running != nil, State: state,
		})
	}
}

// claims gives pending claims of dynamic classes a volume.
func (h *hands) claims(ctx context.Context) error {
	var list corev1.PersistentVolumeClaimList
	if err := h.c.List(ctx, &list); err != nil {
		return err
	}
	var errs []error
	for i := range list.Items {
		if c := &list.Items[i]; c.Status.Phase == corev1.ClaimPending && c.Spec.VolumeName == "" && c.Spec.StorageClassName != nil && c.DeletionTimestamp == nil {
			errs = append(errs, h.provision(ctx, c))
		}
	}
	return errors.Join(errs...)
}

func (h *hands) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	class, err := dueClass(ctx, h.c, claim)
	if class == nil || err != nil {
		return err
	}
	err = h.c.Create(ctx, volumeFor(claim, corev1.PersistentVolumeSource{
		CSI: &corev1.CSIPersistentVolumeSource{Driver: strings.ReplaceAll(class.Provisioner, "/", "."), VolumeHandle: string(claim.UID)},
	}))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// dueClass is the class whose provisioner has to make a claim's volume now, if
// there is one.
func dueClass(ctx context.Context, c *cluster.Cluster, claim *corev1.PersistentVolumeClaim) (*storagev1.StorageClass, error) {
	if claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName == "" {
		return nil, nil
	}
	class := &storagev1.StorageClass{}
	err := c.Get(ctx, client.ObjectKey{Name: *claim.Spec.StorageClassName}, class)
	if err != nil || strings.HasPrefix(class.Provisioner, "kubernetes.io/") {
		return nil, client.IgnoreNotFound(err)
	}
	if mode := class.VolumeBindingMode; mode != nil && *mode == storagev1.VolumeBindingWaitForFirstConsumer {
		if used, err := isUsed(ctx, c, claim); !used || err != nil {
			return nil, err
		}
	}
	return class, nil
}

func isUsed(ctx context.Context, c *cluster.Cluster, claim *corev1.PersistentVolumeClaim) (bool, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(claim.Namespace)); err != nil {
		return false, err
	}
	for _, p := range pods.Items {
		for _, v := range p.Spec.Volumes {
			if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name {
				return true, nil
			}
		}
	}
	return false, nil
}

// volumeFor is a volume reserved for a claim, to which the claim will be bound.
func volumeFor(claim *corev1.PersistentVolumeClaim, source corev1.PersistentVolumeSource) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + claim.Namespace + "-" + claim.Name}}
	if claim.UID != "" {
		v.Name = "pvc-" + string(claim.UID)
	}
	v.Spec = corev1.PersistentVolumeSpec{
		Capacity:    corev1.ResourceList{corev1.ResourceStorage: *claim.Spec.Resources.Requests.Storage()},
		AccessModes: claim.Spec.AccessModes, VolumeMode: claim.Spec.VolumeMode,
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, PersistentVolumeSource: source,
		ClaimRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
	}
	if claim.Spec.StorageClassName != nil {
		v.Spec.StorageClassName = *claim.Spec.StorageClassName
	}
	return v
}
