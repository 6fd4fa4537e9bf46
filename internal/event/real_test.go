//go:build e2e

package event

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/progress"
)

// longest is an owner, and names, as long as Kubernetes allows them.
var longest = struct {
	namespace, name, node, step, reason, text string
}{
	namespace: "mig-event-test-" + strings.Repeat("n", 48), name: strings.Repeat("c", 253), node: strings.Repeat("a", 253),
	step: strings.Repeat("S", 63), reason: strings.Repeat("R", 128), text: strings.Repeat("long and wide ü€🙂 ", 500),
}

// every is one update of every kind that is told, in the order told.
func every(start time.Time) []progress.Update {
	claim := progress.Ref{Side: progress.OnSource, APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: longest.namespace, Name: longest.name}
	there := claim
	there.Side = progress.OnDestination // whose namespace is not there
	node := progress.Ref{Side: progress.OnDestination, APIVersion: "v1", Kind: "Node", Name: longest.node}
	backup := progress.Ref{Side: progress.OnSource, APIVersion: "velero.io/v1", Kind: "Backup", Namespace: "velero", Name: longest.name}
	var out []progress.Update
	for _, x := range []struct {
		state progress.State
		step  string
		why   string
		on    progress.Ref
	}{
		{progress.RunStart, "", "Started", progress.Ref{}},
		{progress.Happened, longest.step, longest.reason, claim},
		{progress.Happened, longest.step, longest.reason, there},
		{progress.Happened, longest.step, "NothingInParticular", progress.Ref{}},
		{progress.Warning, longest.step, longest.reason, node},
		{progress.Stalled, longest.step, longest.reason, claim},
		{progress.Blocked, longest.step, longest.reason, claim},
		{progress.Failed, longest.step, longest.reason, backup},
		{progress.Done, longest.step, longest.reason, backup},
		{progress.RunFinish, "", "MigrationFailed", progress.Ref{}},
		{progress.RunStart, "", "Resumed", progress.Ref{}},
		{progress.RunFinish, "", "Completed", progress.Ref{}},
	} {
		out = append(out, progress.Update{
			Time: start, Run: "migrate", Step: x.step, Number: 7, Of: 21, State: x.state, Elapsed: 3 * time.Hour,
			Note: progress.Remark{Why: x.why, Say: longest.text, On: x.on},
		})
	}
	return out
}

func TestARealClusterTakesOneOfEveryKindOnceAndInOrder(t *testing.T) {
	lab, err := labtest.Find()
	if err != nil {
		t.Fatal(err)
	}
	o := naming.Owner{PlanName: strings.Repeat("p", 253), PlanUID: "event-test-" + strings.ToLower(rand.Text()), RunUID: naming.NewRunUID(rand.Text())}
	prepare(t, lab, o)
	all := every(time.Now())
	for range 2 { // the second is a resumed run's
		s := New(t.Context(), Config{
			Owner: o, Source: lab.Source, Destination: lab.Destination, Instance: strings.Repeat("h", 300),
			Trouble: func(side progress.Side, err error) { t.Errorf("%s: %v", side, err) },
		})
		for _, u := range all {
			s.Emit(u)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	var onSource, onDestination []string
	for _, u := range all {
		m := messageOf(u)
		if !m.about || m.object.Side == progress.OnSource {
			onSource = append(onSource, m.reason)
		}
		if !m.about || m.object.Side == progress.OnDestination {
			onDestination = append(onDestination, m.reason)
		}
	}
	if got := told(t, lab.Source.Cluster, o); !slices.Equal(got, onSource) {
		t.Errorf("source: got %v\nwant %v", got, onSource)
	}
	if got := told(t, lab.Destination.Cluster, o); !slices.Equal(got, onDestination) {
		t.Errorf("destination: got %v\nwant %v", got, onDestination)
	}
	describes(t, lab.Source.Cluster, o, len(onSource)-1)
}

// prepare makes the run's record, as kubectl describe shows its Events, and the
// namespace of the source's claim.
func prepare(t *testing.T, lab *labtest.Lab, o naming.Owner) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: longest.namespace}}
	create(t, lab.Source.Cluster, ns)
	for _, c := range lab.Both() {
		record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.VeleroNamespace, Name: o.RunRecord()}}
		create(t, c, record)
		ctx := context.WithoutCancel(t.Context())
		t.Cleanup(func() {
			for _, ns := range []string{c.VeleroNamespace, "default"} {
				_ = c.DeleteAllOf(ctx, &eventsv1.Event{}, client.InNamespace(ns), client.MatchingLabelsSelector{Selector: o.OfPlan()})
			}
		})
	}
}

func create(t *testing.T, c *cluster.Cluster, o client.Object) {
	t.Helper()
	if err := client.IgnoreAlreadyExists(c.Create(t.Context(), o)); err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { _ = c.Delete(ctx, o) })
}

// told are the reasons of the run's Events in order of their times.
func told(t *testing.T, c *cluster.Cluster, o naming.Owner) []string {
	t.Helper()
	var all eventsv1.EventList
	if err := c.List(t.Context(), &all, client.MatchingLabelsSelector{Selector: o.OfRun()}); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	var out []string
	for _, e := range all.Items {
		out = append(out, e.Reason)
	}
	return out
}

// describes makes sure that kubectl describe on the run's record shows Events:
// it asks for them by the record's uid.
func describes(t *testing.T, c *cluster.Cluster, o naming.Owner, want int) {
	t.Helper()
	var record corev1.ConfigMap
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: c.VeleroNamespace, Name: o.RunRecord()}, &record); err != nil {
		t.Fatal(err)
	}
	var shown corev1.EventList
	err := c.List(t.Context(), &shown, client.InNamespace(c.VeleroNamespace), client.MatchingFields{
		"involvedObject.uid": string(record.UID), "involvedObject.name": record.Name, "involvedObject.kind": "ConfigMap",
	})
	if err != nil || len(shown.Items) != want {
		t.Error(fmt.Errorf("%d of %d Events are shown: %w", len(shown.Items), want, err))
	}
}
