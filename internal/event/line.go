package event

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/progress"
)

// Pauses between two tries to send, while a cluster does not answer.
const (
	firstPause = time.Second
	maxPause   = 15 * time.Second
)

// line is the way to one cluster: one Event after the other, in their order.
type line struct {
	c       *cluster.Cluster
	owner   naming.Owner
	queue   chan *eventsv1.Event
	done    chan struct{} // closed when the queue is closed and empty
	trouble func(error)
	lost    atomic.Int64

	// Only work uses these.
	uids   map[corev1.ObjectReference]types.UID
	told   bool // the trouble
	denied bool // nothing more is tried
}

func newLine(c *cluster.Cluster, o naming.Owner, trouble func(error)) *line {
	return &line{
		c: c, owner: o, trouble: trouble, queue: make(chan *eventsv1.Event, queueLength), done: make(chan struct{}),
		uids: map[corev1.ObjectReference]types.UID{},
	}
}

func (l *line) add(e *eventsv1.Event) {
	select {
	case l.queue <- e:
	default:
		l.lost.Add(1)
	}
}

func (l *line) unsent() int64 { return l.lost.Load() }

func (l *line) work(ctx context.Context) {
	defer close(l.done)
	for e := range l.queue {
		if l.denied {
			continue // said once, and the record holds them
		}
		if ctx.Err() != nil {
			l.lost.Add(1)
			continue
		}
		if err := l.deliver(ctx, e); err != nil {
			if !l.denied {
				l.lost.Add(1)
			}
			l.say(err)
		}
	}
}

// deliver sends one Event, however long the cluster does not answer.
func (l *line) deliver(ctx context.Context, e *eventsv1.Event) error {
	for pause := firstPause; ; {
		err := l.send(ctx, e)
		switch {
		case err == nil, apierrors.IsAlreadyExists(err):
			return nil
		case (homeless(err) || apierrors.IsForbidden(err)) && e.Regarding.Name != l.owner.RunRecord():
			e = l.atRecord(e) // rights may be those of Velero's namespace alone
			continue
		case apierrors.IsForbidden(err):
			l.denied = true
			return err
		case !cluster.IsPassing(err) && !cluster.IsUnreachable(err) && !apierrors.IsUnauthorized(err):
			return err
		default:
			l.say(err)
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, maxPause)
	}
}

// say tells the first trouble.
func (l *line) say(err error) {
	if !l.told && !errors.Is(err, context.Canceled) {
		l.told = true
		l.trouble(fmt.Errorf("send Events: %w", err))
	}
}

// homeless says whether an Event's namespace is not there, or no longer takes
// new objects.
func homeless(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// atRecord is the Event told at the run's record, because the namespace of its
// object cannot have it.
func (l *line) atRecord(e *eventsv1.Event) *eventsv1.Event {
	moved := e.DeepCopy()
	object := e.Regarding
	moved.Regarding, moved.Related = recordRef(l.c, l.owner.RunRecord()), &object
	moved.Namespace = moved.Regarding.Namespace
	return moved
}

func (l *line) send(ctx context.Context, e *eventsv1.Event) error {
	next := e.DeepCopy()
	l.identify(ctx, &next.Regarding)
	if next.Related != nil {
		l.identify(ctx, next.Related)
	}
	if next.Series == nil {
		return l.c.Create(ctx, next)
	}
	return l.count(ctx, next)
}

// count tells that an Event has happened again. Where the cluster has forgotten
// the Event, or we may not change it, it is told as one of its own.
func (l *line) count(ctx context.Context, e *eventsv1.Event) error {
	patch, err := json.Marshal(map[string]any{"series": e.Series})
	if err != nil {
		return err
	}
	there := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}}
	err = l.c.Patch(ctx, there, client.RawPatch(types.MergePatchType, patch))
	switch {
	case apierrors.IsNotFound(err):
		return l.c.Create(ctx, e)
	case apierrors.IsForbidden(err):
		e.Name, e.Series = fmt.Sprintf("%s-%d", e.Name, e.Series.Count), nil
		return l.c.Create(ctx, e)
	default:
		return err
	}
}

// identify looks up an object's uid: kubectl describe finds Events by it. One
// that cannot be had does without.
func (l *line) identify(ctx context.Context, ref *corev1.ObjectReference) {
	if ref.UID != "" || ref.APIVersion == "" || ref.Kind == "" {
		return
	}
	uid, known := l.uids[*ref]
	if !known {
		var o metav1.PartialObjectMetadata
		o.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
		if err := l.c.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &o); err != nil {
			return
		}
		uid = o.UID
		l.uids[*ref] = uid
	}
	ref.UID = uid
}

// build is the Event as one cluster gets it.
func (s *Sink) build(side progress.Side, m message, name string, at time.Time, times int32) *eventsv1.Event {
	c := s.lines[side].c
	regarding, related := s.refs(side, c, m)
	namespace := regarding.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault // what the API asks for where the object has none
	}
	var series *eventsv1.EventSeries
	if times > 1 {
		series = &eventsv1.EventSeries{Count: times, LastObservedTime: metav1.NewMicroTime(at)}
	}
	return &eventsv1.Event{
		Series: series,
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace, Labels: s.cfg.Owner.Labels(m.step), Annotations: s.cfg.Owner.Annotations(),
		},
		EventTime: metav1.NewMicroTime(at), ReportingController: Controller, ReportingInstance: instance(s.cfg.Instance),
		Type: m.kind, Reason: m.reason, Action: m.action, Note: m.note, Regarding: regarding, Related: related,
	}
}

// refs are what the Event is about and what else it has to do with, both on
// the cluster that it is sent to.
func (s *Sink) refs(side progress.Side, c *cluster.Cluster, m message) (corev1.ObjectReference, *corev1.ObjectReference) {
	record := recordRef(c, s.cfg.Owner.RunRecord())
	switch {
	case m.about:
		return objectRef(m.object), &record
	case m.ends:
		plan := recordRef(c, s.cfg.Owner.PlanRecord())
		return record, &plan
	case m.object.Side == side && m.object.Name != "":
		related := objectRef(m.object)
		return record, &related
	default:
		return record, nil
	}
}

func recordRef(c *cluster.Cluster, name string) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: c.VeleroNamespace, Name: name}
}

func objectRef(r progress.Ref) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, UID: types.UID(r.UID)}
}

func instance(name string) string {
	if name == "" {
		name = fmt.Sprintf("mig-%d", os.Getpid())
	}
	return clamp(name, instanceLimit)
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
