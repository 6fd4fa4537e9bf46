package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
)

// copyOn is the record of a run on one cluster.
type copyOn struct {
	c     *cluster.Cluster
	owner naming.Owner
	has   map[string]bool // parts that are there
}

func newCopy(c *cluster.Cluster, owner naming.Owner) *copyOn {
	return &copyOn{c: c, owner: owner, has: map[string]bool{}}
}

// create writes a record that is not there yet.
func (j *Journal) create(ctx context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	h, err := j.packer.pack(j.run)
	if err != nil {
		return err
	}
	next, err := j.source.begin(ctx, h, j.packer)
	if err != nil {
		return err
	}
	switch err := j.source.c.Create(ctx, next); {
	case apierrors.IsAlreadyExists(err): // ours, if the answer to an earlier try was lost; saveSource finds out
		if err := j.saveSource(ctx, h); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("run record %s: %w", nameOf(next), err)
	default:
		j.now = next
	}
	return errors.Join(j.saveReplica(ctx, h), j.writePlan(ctx))
}

// takeOver makes a record that another process wrote this process's own.
func (j *Journal) takeOver(ctx context.Context, found *corev1.ConfigMap) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.run.restart()
	h, err := j.packer.pack(j.run)
	if err != nil {
		return err
	}
	next, err := j.source.begin(ctx, h, j.packer)
	if err != nil {
		return err
	}
	next = over(found, next)
	// A conflict is told as it is: someone else was at it at the same time.
	if err := j.source.c.Update(ctx, next); err != nil {
		return fmt.Errorf("run record %s: %w", nameOf(next), err)
	}
	j.now = next
	return errors.Join(j.saveReplica(ctx, h), j.writePlan(ctx))
}

// save writes the run on the source, then on the destination.
func (j *Journal) save(ctx context.Context) error {
	h, err := j.packer.pack(j.run)
	if err != nil {
		return err
	}
	if err := j.saveSource(ctx, h); err != nil {
		return err
	}
	return j.saveReplica(ctx, h)
}

// begin writes parts before the head that names them, so that a head is never
// without its parts, and returns the head that is to be written.
func (k *copyOn) begin(ctx context.Context, h head, p *packer) (*corev1.ConfigMap, error) {
	if err := k.writeParts(ctx, p); err != nil {
		return nil, err
	}
	return buildHead(k.owner, k.c.VeleroNamespace, h)
}

// saveSource writes the authority. Between two processes the head decides.
func (j *Journal) saveSource(ctx context.Context, h head) error {
	next, err := j.source.begin(ctx, h, j.packer)
	if err != nil {
		return err
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error { return j.updateSource(ctx, next) })
	if err != nil {
		return err
	}
	j.source.dropParts(ctx, j.packer)
	return nil
}

func (j *Journal) updateSource(ctx context.Context, next *corev1.ConfigMap) error {
	if j.now == nil {
		if err := j.look(ctx, next); err != nil {
			return err
		}
	}
	written := over(j.now, next)
	if err := j.source.c.Update(ctx, written); err != nil {
		j.now = nil // whatever it was: look before the next try
		if apierrors.IsConflict(err) {
			return err
		}
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("run record %s: %w", nameOf(next), errGone)
		}
		return fmt.Errorf("run record %s: %w", nameOf(next), err)
	}
	j.now = written
	return nil
}

// look reads the head and makes sure that it is still this process's own.
func (j *Journal) look(ctx context.Context, next *corev1.ConfigMap) error {
	var found corev1.ConfigMap
	err := j.source.c.Get(ctx, client.ObjectKeyFromObject(next), &found)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("run record %s: %w", nameOf(next), errGone)
	}
	if err != nil {
		return fmt.Errorf("run record %s: %w", nameOf(next), err)
	}
	h, err := decodeHead(&found)
	if err != nil {
		return err
	}
	if h.Process != j.run.Process {
		return &EndedError{Name: nameOf(next), State: h.State, Host: h.Host}
	}
	j.now = &found
	return nil
}

// saveReplica writes the destination's copy. Only who just wrote the source's
// comes here, so it is written over without looking.
func (j *Journal) saveReplica(ctx context.Context, h head) error {
	if j.replica == nil || time.Now().Before(j.again) {
		return nil
	}
	err := j.replicate(ctx, h)
	j.trouble = err
	if err != nil && j.store.DestinationMayBeAway {
		j.again = time.Now().Add(replicaPause)
		return nil
	}
	return err
}

func (j *Journal) replicate(ctx context.Context, h head) error {
	next, err := j.replica.begin(ctx, h, j.packer)
	if err != nil {
		return err
	}
	if err := j.replica.put(ctx, next); err != nil {
		return fmt.Errorf("replica of run record %s on the destination: %w", nameOf(next), err)
	}
	j.replica.dropParts(ctx, j.packer)
	return nil
}

// put writes an object over what is there.
func (k *copyOn) put(ctx context.Context, next *corev1.ConfigMap) error {
	err := k.c.Update(ctx, next.DeepCopy())
	if !apierrors.IsNotFound(err) {
		return err
	}
	err = k.c.Create(ctx, next.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		return k.c.Update(ctx, next.DeepCopy())
	}
	return err
}

func (k *copyOn) writeParts(ctx context.Context, p *packer) error {
	for _, part := range p.parts {
		if k.has[part.Name] {
			continue
		}
		cm := buildPart(k.owner, k.c.VeleroNamespace, part, p.data[part.Name])
		if err := k.c.Create(ctx, cm); err != nil {
			if !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("part %s of a run record: %w", nameOf(cm), err)
			}
			if err := k.checkPart(ctx, cm); err != nil {
				return err
			}
		}
		k.has[part.Name] = true
	}
	return nil
}

// checkPart makes sure that a part that was there holds what its name says.
func (k *copyOn) checkPart(ctx context.Context, want *corev1.ConfigMap) error {
	var found corev1.ConfigMap
	if err := k.c.Get(ctx, client.ObjectKeyFromObject(want), &found); err != nil {
		return fmt.Errorf("part %s of a run record: %w", nameOf(want), err)
	}
	if !bytes.Equal(found.BinaryData[keyPart], want.BinaryData[keyPart]) {
		return &BrokenError{Name: nameOf(want), Err: errors.New("its content is not what its name says")}
	}
	return nil
}

// dropParts removes the parts that the head no longer names. What stays for
// any reason is swept at the end of the run.
func (k *copyOn) dropParts(ctx context.Context, p *packer) {
	for name := range k.has {
		if !p.names(name) && k.remove(ctx, name) == nil {
			delete(k.has, name)
		}
	}
}

func (k *copyOn) remove(ctx context.Context, name string) error {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.c.VeleroNamespace, Name: name}}
	return client.IgnoreNotFound(k.c.Delete(ctx, cm))
}

// sweep removes what dead processes of this run left behind. It is tidiness:
// nobody reads a part that no head names, so its trouble is nobody's.
func (j *Journal) sweep(ctx context.Context) {
	for _, k := range []*copyOn{j.source, j.replica} {
		if k == nil || k == j.replica && j.trouble != nil {
			continue
		}
		found := metav1.PartialObjectMetadataList{}
		found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		selector := client.MatchingLabelsSelector{Selector: k.owner.Records(naming.RecordPart)}
		if err := k.c.List(ctx, &found, client.InNamespace(k.c.VeleroNamespace), selector); err != nil {
			continue
		}
		for _, cm := range found.Items {
			if !j.packer.names(cm.Name) {
				_ = k.remove(ctx, cm.Name)
			}
		}
	}
}

func (p *packer) names(name string) bool {
	for _, part := range p.parts {
		if part.Name == name {
			return true
		}
	}
	return false
}

// over is the object that was found with our keys written over its own; what
// others put on it stays.
func over(found, next *corev1.ConfigMap) *corev1.ConfigMap {
	o := found.DeepCopy()
	if o.Labels == nil {
		o.Labels = map[string]string{}
	}
	if o.Annotations == nil {
		o.Annotations = map[string]string{}
	}
	maps.Copy(o.Labels, next.Labels)
	maps.Copy(o.Annotations, next.Annotations)
	o.Data, o.BinaryData = next.Data, next.BinaryData
	return o
}
