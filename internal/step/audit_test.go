package step

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
)

const (
	markedSource = `{apiVersion: v1, kind: Namespace, metadata: {name: shop, annotations: {team: blue}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: shop, name: data}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: shop, name: older, annotations: {mig-cli.github.io/plan-uid: another-plan, mig-cli.github.io/migrated-to: elsewhere/shop/older}}}`
	markedDestination = `{apiVersion: v1, kind: Namespace, metadata: {name: shop-prod}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: shop-prod, name: data}}`
)

func annotationsOf(t *testing.T, c client.Client, o client.Object, namespace, name string) map[string]string {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
		t.Fatal(err)
	}
	return o.GetAnnotations()
}

func TestBothSidesSayWhereEverythingWentUntilItIsTakenBack(t *testing.T) {
	r := bed(t, markedSource, markedDestination)
	r.Source.Access.Context, r.Destination.Access.Context = "src", "dst"
	if d := settle(t, EnsureAnnotationsDeleted(r)); d.Verdict != pipeline.Done {
		t.Fatalf("not done: %s", d.Note.Text())
	}
	claim := annotationsOf(t, r.Source, &corev1.PersistentVolumeClaim{}, "shop", "data")
	if claim[naming.AnnMigratedTo] != "dst/shop-prod/data" || claim[naming.AnnRunUID] != "run1" || claim[naming.AnnMigratedAt] == "" {
		t.Errorf("the source's claim says %v", claim)
	}
	if ns := annotationsOf(t, r.Destination, &corev1.Namespace{}, "", "shop-prod"); ns[naming.AnnMigratedFrom] != "src/shop" {
		t.Errorf("the destination's namespace says %v", ns)
	}

	if d := settle(t, MarksRemoved(r)); d.Verdict != pipeline.Done {
		t.Fatalf("not done: %s", d.Note.Text())
	}
	if ns := annotationsOf(t, r.Source, &corev1.Namespace{}, "", "shop"); len(ns) != 1 || ns["team"] != "blue" {
		t.Errorf("the source's namespace says %v, want what it said before", ns)
	}
	if claim := annotationsOf(t, r.Source, &corev1.PersistentVolumeClaim{}, "shop", "data"); len(claim) != 0 {
		t.Errorf("the source's claim says %v, want nothing", claim)
	}
	if other := annotationsOf(t, r.Source, &corev1.PersistentVolumeClaim{}, "shop", "older"); other[naming.AnnMigratedTo] == "" {
		t.Error("what another plan has moved is no longer marked")
	}
}
