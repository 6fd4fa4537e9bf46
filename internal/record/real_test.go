//go:build e2e

package record

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/naming"
)

func TestARealClusterTakesFiveThousandVolumes(t *testing.T) {
	lab, err := labtest.Find()
	if err != nil {
		t.Fatal(err)
	}
	o := naming.Owner{PlanName: strings.Repeat("p", 253), PlanUID: "record-test-" + strings.ToLower(rand.Text()), RunUID: naming.NewRunUID(rand.Text())}
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		for _, c := range lab.Both() {
			_ = c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(c.VeleroNamespace), client.MatchingLabelsSelector{Selector: o.OfPlan()})
		}
	})
	s := New(lab.Source, lab.Destination, o)
	text := keepBigRun(t, s)
	want := latest(t, s)
	if len(want.Events) != 5001 || len(want.Volumes) != 5000 || want.Plan.YAML != text {
		t.Fatalf("%d events, %d volumes, %d bytes of plan", len(want.Events), len(want.Volumes), len(want.Plan.YAML))
	}
	got, err := Read(t.Context(), lab.Destination.Cluster, o)
	if err != nil || !slices.Equal(got.Events, want.Events) || !slices.Equal(got.Volumes, want.Volumes) || got.Plan.YAML != text {
		t.Errorf("the replica differs: %v", err)
	}
	if _, err := s.Resume(t.Context(), *want); err != nil {
		t.Error(err)
	}
	if who, err := Who(t.Context(), lab.Source.Cluster); err != nil || who == "" || who == "unknown" {
		t.Errorf("got %q, %v", who, err)
	}
}
