//go:build e2e

// Package eventtest sends notes as Events to real API servers and reads them
// back. It knows no steps.
package eventtest

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/apitest"
	"github.com/mig-cli/mig/internal/event"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/progress"
)

// ReadBack sends every note in each of the states once, in the longest step
// there is, and fails where one comes back otherwise than it was told, or not.
func ReadBack(t *testing.T, notes []progress.Note, states ...progress.State) {
	t.Helper()
	pair := apitest.For(t, apitest.Options{NoVelero: true})
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pair.Source.VeleroNamespace}}
	for _, c := range []client.Client{pair.Source, pair.Destination} {
		if err := c.Create(t.Context(), ns.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	o := naming.Owner{PlanName: strings.Repeat("p", 253), PlanUID: "5f0c8a52-6f1e-4c40-9a38-0b6a7f0e9a11", RunUID: "aaaaaaaaaa"}
	s := event.New(t.Context(), event.Config{
		Owner: o, Source: pair.Source, Destination: pair.Destination, Instance: strings.Repeat("h", 300),
		Trouble: func(side progress.Side, err error) { t.Errorf("%s: %v", side, err) },
	})
	for _, state := range states {
		for range 2 { // what comes again is counted, or known already
			for _, n := range notes {
				s.Emit(progress.Update{Time: time.Now(), Run: "migrate", Step: strings.Repeat("S", 63), Number: 21, Of: 22, State: state, Note: n, Elapsed: 48 * time.Hour})
			}
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	var all eventsv1.EventList
	for _, c := range []client.Client{pair.Source, pair.Destination} {
		var there eventsv1.EventList
		if err := c.List(t.Context(), &there, client.MatchingLabelsSelector{Selector: o.OfRun()}); err != nil {
			t.Fatal(err)
		}
		all.Items = append(all.Items, there.Items...)
	}
	for _, n := range notes {
		for _, state := range states {
			if !isThere(all.Items, n, state) {
				t.Errorf("%T (%s) did not come back whole", n, state)
			}
		}
	}
}

// isThere looks for the note's text: whole, with the number of its step before it.
func isThere(events []eventsv1.Event, n progress.Note, state progress.State) bool {
	for _, e := range events {
		_, text, found := strings.Cut(e.Note, ": ")
		if state == progress.Happened || state == progress.Warning {
			text, found = e.Note, true
		}
		counted := e.Series != nil && e.Series.Count == 2
		if found && text == progress.Within(n, 1024-len(e.Note)+len(text)) && !strings.HasSuffix(text, "…") && counted == (state == progress.Stalled) {
			return true
		}
	}
	return false
}
