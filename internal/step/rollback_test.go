package step

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/pipeline"
)

const (
	ourLabels = `mig-cli.github.io/created-by: mig, mig-cli.github.io/plan-uid: 5f0c3d9e-27b1, mig-cli.github.io/run-uid: run1`
	ofRestore = `velero.io/restore-name: mig-shop-run1-final`
)

const ourRestore = `
{apiVersion: velero.io/v1, kind: Restore, metadata: {namespace: velero, name: mig-shop-run1-final, creationTimestamp: "2026-01-01T10:00:00Z", labels: {` + ourLabels + `}}, spec: {backupName: b}, status: {phase: Completed}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: velero, name: mig-shop-run1-final-modifiers, labels: {` + ourLabels + `}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: velero, name: mig-shop-run1-run, labels: {mig-cli.github.io/record: run, ` + ourLabels + `}}}
---
{apiVersion: velero.io/v1, kind: Backup, metadata: {namespace: velero, name: mig-shop-run1-stage, labels: {` + ourLabels + `}}, status: {phase: Completed}}
---
{apiVersion: velero.io/v1, kind: Restore, metadata: {namespace: velero, name: nightly}, spec: {backupName: b}, status: {phase: InProgress}}
`

// madeByUs is a namespace that mig made, as a restore and the cluster filled it.
const madeByUs = `
{apiVersion: v1, kind: Namespace, metadata: {name: shop-prod, uid: ns, labels: {` + ourLabels + `}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop-prod, name: web, uid: web, labels: {` + ofRestore + `}}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {namespace: shop-prod, name: web-1, uid: web-1, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: web}]}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: shop-prod, name: data, uid: data, labels: {` + ofRestore + `}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop-prod, name: kube-root-ca.crt, uid: ca}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: shop-prod, name: default, uid: sa}}
`

func titles(items []item) []string {
	var out []string
	for _, it := range items {
		out = append(out, it.String())
	}
	slices.Sort(out)
	return out
}

func warned(d pipeline.Decision, reason string) []string {
	var out []string
	for _, n := range d.Warnings {
		if n.Reason() == reason {
			out = append(out, n.Text())
		}
	}
	return out
}

func TestOnlyWhatTheRunsMadeIsDeleted(t *testing.T) {
	others := `
{apiVersion: v1, kind: Namespace, metadata: {name: shop-prod, uid: ns}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop-prod, name: web, uid: web, labels: {` + ofRestore + `}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop-prod, name: theirs, uid: theirs}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop-prod, name: other-restore, uid: o, labels: {velero.io/restore-name: nightly}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop-prod, name: other-plan, uid: p, labels: {mig-cli.github.io/created-by: mig, mig-cli.github.io/plan-uid: another-plan}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop-prod, name: of-a-mig-controller, uid: m, labels: {migration.openshift.io/migrated-by-migplan: 5f0c3d9e-27b1}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: elsewhere, name: web, uid: e, labels: {` + ofRestore + `}}}
`
	r := bed(t, "", ourRestore+"\n---\n"+others)
	check(t, "cleaned", settle(t, DestinationCleaned(r)), pipeline.Done, "nothing of the application runs")
	check(t, "gone", settle(t, DestinationGone(r)), pipeline.Done, "is gone")
	if exists(t, r.Destination, "apps/v1", "Deployment", "shop-prod", "web") {
		t.Error("our Deployment is still there")
	}
	for kind, list := range map[string][]string{"apps/v1 Deployment": {"shop-prod/theirs", "elsewhere/web"}, "v1 ConfigMap": {"shop-prod/other-restore", "shop-prod/other-plan", "shop-prod/of-a-mig-controller"}, "v1 Namespace": {"/shop-prod"}} {
		for _, name := range list {
			gv, k, _ := strings.Cut(kind, " ")
			ns, n, _ := strings.Cut(name, "/")
			if !exists(t, r.Destination, gv, k, ns, n) {
				t.Errorf("%s %s is gone, and it was not ours", k, name)
			}
		}
	}
}

func TestANamespaceThatWeMadeGoesOnlyWhenItIsEmptyOfOthers(t *testing.T) {
	r := bed(t, "", ourRestore+"\n---\n"+madeByUs)
	settle(t, DestinationCleaned(r))
	if exists(t, r.Destination, "v1", "Namespace", "", "shop-prod") {
		t.Error("the namespace that mig made, and that holds nothing of others, is still there")
	}

	r = bed(t, "", ourRestore+"\n---\n"+madeByUs+"\n---\n{apiVersion: v1, kind: Secret, metadata: {namespace: shop-prod, name: mine, uid: mine}}")
	d := settle(t, DestinationCleaned(r))
	if !exists(t, r.Destination, "v1", "Namespace", "", "shop-prod") || !exists(t, r.Destination, "v1", "Secret", "shop-prod", "mine") {
		t.Error("a Secret of somebody else, or its namespace, is gone")
	}
	if exists(t, r.Destination, "apps/v1", "Deployment", "shop-prod", "web") {
		t.Error("our Deployment is still there")
	}
	want := "namespace shop-prod stays on the destination: not of this plan's runs: Secret shop-prod/mine"
	if got := warned(d, "LeftInPlace"); len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestThingsBelowOursAreNotOthers(t *testing.T) {
	r := bed(t, "", ourRestore+"\n---\n"+madeByUs+`
---
{apiVersion: v1, kind: Pod, metadata: {namespace: shop-prod, name: web-1-a, uid: pod, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: web-1}]}}
---
{apiVersion: v1, kind: Pod, metadata: {namespace: shop-prod, name: orphan, uid: orphan, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: gone, uid: gone}]}}
---
{apiVersion: v1, kind: Pod, metadata: {namespace: shop-prod, name: tenant, uid: tenant, ownerReferences: [{apiVersion: x/v1, kind: Tenant, name: t, uid: t}]}}
`)
	l := newLook(r)
	v, err := l.survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := titles(v.below), []string{"Pod shop-prod/orphan", "Pod shop-prod/web-1-a", "ReplicaSet shop-prod/web-1"}; !slices.Equal(got, want) {
		t.Errorf("below ours: got %v, want %v", got, want)
	}
	if got, want := titles(v.foreign["shop-prod"]), []string{"Pod shop-prod/tenant"}; !slices.Equal(got, want) {
		t.Errorf("others': got %v, want %v", got, want)
	}
	check(t, "pods first", decideCleaned(survey{ours: v.ours[:0], below: v.below}), pipeline.Wait, "waiting for 2 pods on the destination to end")
}

func TestClusterScopedObjectsGoOnlyWhenNobodyElseUsesThem(t *testing.T) {
	named := func(apiVersion, kind, name, rest string) string {
		return fmt.Sprintf("\n---\n{apiVersion: %s, kind: %s, metadata: {name: %s, uid: %s, labels: {%s}}%s}", apiVersion, kind, name, kind+name, ofRestore, rest)
	}
	const rbac = "rbac.authorization.k8s.io/v1"
	r := bed(t, "", ourRestore+
		named(rbac, "ClusterRole", "mine", "")+named(rbac, "ClusterRole", "shared", "")+
		named(rbac, "ClusterRoleBinding", "mine", `, roleRef: {kind: ClusterRole, name: mine}, subjects: [{kind: ServiceAccount, namespace: shop-prod, name: web}]`)+
		named(rbac, "ClusterRoleBinding", "wide", `, roleRef: {kind: ClusterRole, name: mine}, subjects: [{kind: ServiceAccount, namespace: other, name: x}]`)+
		"\n---\n{apiVersion: "+rbac+", kind: ClusterRoleBinding, metadata: {name: theirs, uid: t}, roleRef: {kind: ClusterRole, name: shared}}"+
		named("storage.k8s.io/v1", "StorageClass", "fast", ", provisioner: p")+
		named("v1", "PersistentVolume", "kept", ", spec: {persistentVolumeReclaimPolicy: Retain}")+
		named("v1", "PersistentVolume", "deleted", ", spec: {persistentVolumeReclaimPolicy: Delete}"))
	d := settle(t, DestinationCleaned(r))
	want := []string{
		"ClusterRole shared stays on the destination: ClusterRoleBinding theirs uses it",
		"ClusterRoleBinding wide stays on the destination: it grants rights to ServiceAccount x outside the plan",
		"PersistentVolume deleted stays on the destination: it goes with its claim",
		"StorageClass fast stays on the destination: others may use it by now",
	}
	got := warned(d, "LeftInPlace")
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for kind, name := range map[string]string{"ClusterRole": "mine", "ClusterRoleBinding": "mine"} {
		if exists(t, r.Destination, rbac, kind, "", name) {
			t.Errorf("%s %s is still there", kind, name)
		}
	}
	if exists(t, r.Destination, "v1", "PersistentVolume", "", "kept") {
		t.Error("the object of a volume that keeps its data may go, and is there")
	}
}

func TestAFinalizerIsExplainedAndNotRemoved(t *testing.T) {
	held := strings.Replace(madeByUs, "name: data, uid: data", "name: data, uid: data, finalizers: [trees.test/guard]", 1)
	r := bed(t, "", ourRestore+"\n---\n"+held)
	check(t, "cleaned all the same", settle(t, DestinationCleaned(r)), pipeline.Done, "")
	d := settle(t, DestinationGone(r))
	check(t, "gone", d, pipeline.Done, "") // the namespace went in the pretended cluster, which does not empty it
	v := survey{ours: []item{heldItem(t, r, "data")}}
	check(t, "held", decideGone(v), pipeline.Wait, "PersistentVolumeClaim shop-prod/data (deleted")
	check(t, "held", decideGone(v), pipeline.Wait, "is held by finalizer trees.test/guard")
}

func heldItem(t *testing.T, r Run, name string) item {
	t.Helper()
	claims := servedKind{corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), true}
	items, err := listMetadata(t.Context(), r.Destination, claims, client.InNamespace("shop-prod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range items {
		if it.meta.Name == name {
			return it
		}
	}
	t.Fatalf("no claim %s", name)
	return item{}
}

func TestANamespaceThatWillNotGoIsExplained(t *testing.T) {
	now := corev1.Namespace{}
	now.Name = "shop-prod"
	now.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	now.Status.Conditions = []corev1.NamespaceCondition{{Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue, Message: "trees.test/guard in 1 resource instances"}}
	check(t, "namespace", decideGone(survey{made: []corev1.Namespace{now}}), pipeline.Wait, "trees.test/guard in 1 resource instances")
}

func TestObjectsThatSomebodyWorkedOnAreNamedFirst(t *testing.T) {
	edited := `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop-prod, name: settings, uid: s, creationTimestamp: "2026-01-01T09:59:00Z", labels: {` + ofRestore + `}, managedFields: [
  {manager: velero-server, operation: Update, time: "2026-01-01T10:00:00Z", apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {}},
  {manager: kubectl-edit, operation: Update, time: "2026-01-01T11:00:00Z", apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {}},
  {manager: kube-controller-manager, operation: Update, time: "2026-01-01T12:00:00Z", apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {}}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop-prod, name: untouched, uid: u, creationTimestamp: "2026-01-01T09:59:00Z", labels: {` + ofRestore + `}, managedFields: [
  {manager: kubectl-client-side-apply, operation: Update, time: "2025-12-01T10:00:00Z", apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {}}]}}`
	r := bed(t, "", ourRestore+"\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: shop-prod, uid: ns}}\n---\n"+edited)
	d, err := DestinationCleaned(r).Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := "ConfigMap shop-prod/settings was changed by kubectl-edit at 2026-01-01 11:00:00, after it was restored; it is deleted all the same"
	if got := warned(d, "ChangedSinceRestore"); d.Verdict != pipeline.Act || len(got) != 1 || got[0] != want {
		t.Errorf("got %d %q, want %q before anything is deleted", d.Verdict, got, want)
	}
}

func TestTheDataOfOurClaimsIsWaitedFor(t *testing.T) {
	volume := func(name, policy, created string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: PersistentVolume, metadata: {name: %s, uid: %s, creationTimestamp: %q}, spec: {persistentVolumeReclaimPolicy: %s, claimRef: {namespace: shop-prod, name: %s, uid: gone-%s}}, status: {phase: Released, message: "%s"}}`, name, name, created, policy, name, name, "disk busy")
	}
	r := bed(t, "", ourRestore+"\n---\n"+volume("ours", "Delete", "2026-01-01T10:05:00Z")+"\n---\n"+volume("old", "Delete", "2025-01-01T10:00:00Z")+"\n---\n"+volume("kept", "Retain", "2026-01-01T10:05:00Z"))
	d := settle(t, DestinationGone(r))
	check(t, "waits", d, pipeline.Wait, "waiting for 1 object on the destination to be gone: PersistentVolume ours is Released and waits for its provisioner to delete it: disk busy")
	if got := warned(d, "LeftInPlace"); len(got) != 1 || !strings.Contains(got[0], "PersistentVolume kept") {
		t.Errorf("the volume that keeps its data is not named: %q", got)
	}
}

func TestRestoresGoAndBackupsAndRecordsStay(t *testing.T) {
	r := bed(t, "", ourRestore)
	check(t, "deleted", settle(t, RestoresDeleted(r)), pipeline.Done, "restores are gone")
	for _, c := range []struct {
		apiVersion, kind, name string
		want                   bool
	}{
		{"velero.io/v1", "Restore", "mig-shop-run1-final", false},
		{"v1", "ConfigMap", "mig-shop-run1-final-modifiers", false},
		{"v1", "ConfigMap", "mig-shop-run1-run", true},
		{"velero.io/v1", "Backup", "mig-shop-run1-stage", true},
		{"velero.io/v1", "Restore", "nightly", true},
	} {
		if got := exists(t, r.Destination, c.apiVersion, c.kind, "velero", c.name); got != c.want {
			t.Errorf("%s %s is there: %v, want %v", c.kind, c.name, got, c.want)
		}
	}
}

func TestVelerosWorkIsCancelled(t *testing.T) {
	src := `{apiVersion: velero.io/v1, kind: Backup, metadata: {namespace: velero, name: mig-shop-run1-stage, labels: {` + ourLabels + `}}, status: {phase: InProgress}}
---
{apiVersion: velero.io/v1, kind: PodVolumeBackup, metadata: {namespace: velero, name: pvb, labels: {velero.io/backup-name: mig-shop-run1-stage}}, spec: {node: node-1, pod: {}, volume: v, backupStorageLocation: l, repoIdentifier: r}, status: {phase: InProgress}}
---
{apiVersion: velero.io/v1, kind: PodVolumeBackup, metadata: {namespace: velero, name: theirs, labels: {velero.io/backup-name: nightly}}, spec: {node: node-1, pod: {}, volume: v, backupStorageLocation: l, repoIdentifier: r}, status: {phase: InProgress}}
---
{apiVersion: velero.io/v1, kind: Backup, metadata: {namespace: velero, name: mig-shop-run2-initial, labels: {` + ourLabels + `}}, status: {phase: Queued}}`
	synctest.Test(t, func(t *testing.T) {
		r := bed(t, src, ourRestore)
		s := VeleroWorkStopped(r)
		check(t, "cancelled", settle(t, s), pipeline.Wait, "backup mig-shop-run1-stage on the source (InProgress)")
		if exists(t, r.Source, "velero.io/v1", "Backup", "velero", "mig-shop-run2-initial") {
			t.Error("a backup that Velero has not begun is still there")
		}
		for name, want := range map[string]bool{"pvb": true, "theirs": false} {
			var pvb velerov1.PodVolumeBackup
			if err := r.Source.Get(t.Context(), client.ObjectKey{Namespace: "velero", Name: name}, &pvb); err != nil {
				t.Fatal(err)
			}
			if pvb.Spec.Cancel != want {
				t.Errorf("PodVolumeBackup %s: cancel %v, want %v", name, pvb.Spec.Cancel, want)
			}
		}
		time.Sleep(stopGrace)
		d := settle(t, s)
		check(t, "a Velero that is down", d, pipeline.Done, "left to itself")
		if got := warned(d, "VeleroWorkLeft"); len(got) != 1 || !strings.Contains(got[0], "mig-shop-run1-stage") {
			t.Errorf("what did not end is not named: %q", got)
		}
	})
}

func TestARollbackWorksAtAnyPointAndTwice(t *testing.T) {
	const writes = 12
	for n := range writes {
		t.Run(fmt.Sprintf("killed after %d writes on each cluster", n), func(t *testing.T) {
			r := bed(t, shopWorkloads, ourRestore+"\n---\n"+madeByUs)
			before := snapshot(t, r.Source, "shop")
			settle(t, QuiesceApplications(r))
			dying := r
			dying.Source.Cluster, dying.Destination.Cluster = killedAfter(t, r.Source.Cluster, n), killedAfter(t, r.Destination.Cluster, n)
			for _, s := range RollbackSteps(dying) {
				_ = s.Act(t.Context())
			}
			for range 2 {
				for _, s := range RollbackSteps(r) {
					check(t, s.Name(), settle(t, s), pipeline.Done, "")
				}
			}
			sameWorkloads(t, snapshot(t, r.Source, "shop"), before)
			if exists(t, r.Destination, "v1", "Namespace", "", "shop-prod") {
				t.Error("the namespace that mig made is still there")
			}
		})
	}
}

func TestTheSourceStartsAfterTheDestinationsPodsAndBeforeItsFinalizers(t *testing.T) {
	var order []string
	for _, s := range RollbackSteps(Run{}) {
		order = append(order, s.Name())
	}
	at := func(name string) int { return slices.Index(order, name) }
	if at("DestinationCleaned") > at("UnquiesceApplications") || at("UnquiesceApplications") > at("DestinationGone") || at("StagePodsDeleted") > at("UnquiesceApplications") {
		t.Errorf("got %v", order)
	}
	if at("RestoresDeleted") < at("DestinationGone") {
		t.Errorf("the restores' names are needed until all is gone: %v", order)
	}
}
