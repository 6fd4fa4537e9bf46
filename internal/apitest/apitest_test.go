//go:build e2e

package apitest

import (
	"testing"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/labtest"
)

func TestAPairIsTwoClustersWithVelerosKindsWhoseControllersWork(t *testing.T) {
	p := For(t, Options{Controllers: true})
	source, err := p.Source.UID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	destination, err := p.Destination.UID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if source == destination {
		t.Error("both are one cluster")
	}
	for _, c := range []*cluster.Cluster{p.Source.Cluster, p.Destination.Cluster} {
		if err := c.List(t.Context(), &velerov1.BackupList{}); err != nil {
			t.Errorf("Velero's kinds on %s: %v", c.Access.Context, err)
		}
	}
	ns := &corev1.Namespace{}
	ns.Name = "emptied"
	if err := p.Source.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	if err := labtest.RemoveNamespaces(t.Context(), p.Source.Cluster, "emptied"); err != nil {
		t.Errorf("a controller-manager empties a deleted namespace: %v", err)
	}
}
