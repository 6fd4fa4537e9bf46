package step

import (
	"slices"
	"strings"
	"testing"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mig-cli/mig/internal/pipeline"
)

const driftSource = `
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: settings, uid: settings}, data: {colour: red}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: kube-root-ca.crt, uid: root-ca}, data: {ca: old}}
---
{apiVersion: v1, kind: Secret, metadata: {namespace: shop, name: key, uid: key}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web, uid: web, generation: 1}, spec: {replicas: 3, template: {spec: {containers: [{name: a, image: one}]}}}}
---
{apiVersion: batch/v1, kind: CronJob, metadata: {namespace: shop, name: nightly, uid: nightly}, spec: {schedule: "0 2 * * *", suspend: false}}
`

// backedUp is a source whose initial backup is asked for and Completed.
func backedUp(t *testing.T, r Run, drift *Drift) {
	t.Helper()
	settle(t, EnsureInitialBackup(r, drift))
	complete(t, r, r.Owner.InitialBackup())
}

func complete(t *testing.T, r Run, backup string) {
	t.Helper()
	b, err := r.backup(t.Context(), backup)
	if err != nil {
		t.Fatal(err)
	}
	b.Status.Phase = velerov1.BackupPhaseCompleted
	if err := r.Source.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// backups are the names of the source's backups, without their common part.
func backups(t *testing.T, r Run) []string {
	t.Helper()
	var list velerov1.BackupList
	if err := r.Source.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, b := range list.Items {
		out = append(out, strings.TrimPrefix(b.Name, "mig-shop-run1-"))
	}
	slices.Sort(out)
	return out
}

func TestStoppingTheApplicationIsNoChangeOfItsObjects(t *testing.T) {
	r := bed(t, driftSource, "")
	drift := WatchDrift(r)
	backedUp(t, r, drift)
	settle(t, QuiesceApplications(r))
	check(t, "nothing changed", settle(t, EnsureInitialBackupCurrent(r, drift)), pipeline.Done, "as they are in Velero backup mig-shop-run1-initial")
	if got := backups(t, r); !slices.Equal(got, []string{"initial"}) {
		t.Errorf("backups %v, want the initial one alone", got)
	}
}

func TestWhatChangesWhileVolumesAreCopiedIsBackedUpAgain(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*testing.T, Run)
		says   string
	}{
		"a changed ConfigMap": {
			func(t *testing.T, r Run) {
				t.Helper()
				edit(t, r.Source, "v1", "ConfigMap", "shop", "settings", "blue", "data", "colour")
			},
			"ConfigMap shop/settings was changed",
		},
		"a new Secret": {
			func(t *testing.T, r Run) {
				t.Helper()
				s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "token"}}
				if err := r.Source.Create(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			},
			"Secret shop/token is new",
		},
		"a deleted Secret": {
			func(t *testing.T, r Run) {
				t.Helper()
				s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "key"}}
				if err := r.Source.Delete(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			},
			"Secret shop/key was deleted",
		},
		"another image in a stopped Deployment": {
			func(t *testing.T, r Run) {
				t.Helper()
				edit(t, r.Source, "apps/v1", "Deployment", "shop", "web", []any{map[string]any{"name": "a", "image": "two"}}, "spec", "template", "spec", "containers")
			},
			"Deployment shop/web was changed",
		},
		"another schedule of a suspended CronJob": {
			func(t *testing.T, r Run) {
				t.Helper()
				edit(t, r.Source, "batch/v1", "CronJob", "shop", "nightly", "0 3 * * *", "spec", "schedule")
			},
			"CronJob shop/nightly was changed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := bed(t, driftSource, "")
			drift := WatchDrift(r)
			backedUp(t, r, drift)
			settle(t, QuiesceApplications(r))
			c.change(t, r)
			s := EnsureInitialBackupCurrent(r, drift)
			d, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			check(t, "changed", d, pipeline.Act, "backing all objects up again: "+c.says)
			check(t, "asked for", settle(t, s), pipeline.Wait, "mig-shop-run1-initial-1")
			complete(t, r, r.Owner.InitialBackupAgain(1))
			check(t, "backed up again", settle(t, s), pipeline.Done, "as they are in Velero backup mig-shop-run1-initial-1")
			if got := backups(t, r); !slices.Equal(got, []string{"initial", "initial-1"}) {
				t.Errorf("backups %v, want the initial one and one more", got)
			}
		})
	}
}

func TestWhoDoesNotKnowWhatChangedBacksUpAgain(t *testing.T) {
	r := bed(t, driftSource, "")
	backedUp(t, r, WatchDrift(r))
	s := EnsureInitialBackupCurrent(r, WatchDrift(r)) // another process
	d, err := s.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check(t, "not known", d, pipeline.Act, "it is not known whether any has changed")
	settle(t, s)
	complete(t, r, r.Owner.InitialBackupAgain(1))
	check(t, "known again", settle(t, s), pipeline.Done, "")
}

func TestWhatWillNotHoldStillIsNamedInTheEnd(t *testing.T) {
	d := decideCurrent(&velerov1.Backup{}, []string{"ConfigMap shop/leader was changed"}, true, rounds)
	check(t, "given up", d, pipeline.Done, "")
	if len(d.Warnings) != 1 || d.Warnings[0].Reason() != ReasonLeftOut || !strings.Contains(d.Warnings[0].Text(), "ConfigMap shop/leader was changed") {
		t.Errorf("warnings %v, want the change as something left out", d.Warnings)
	}
	check(t, "forbidden kinds", decideCurrent(&velerov1.Backup{}, nil, false, 1), pipeline.Done, "")
}

func TestARepeatedBackupIsRestoredAsTheSourceWasBeforeItWasStopped(t *testing.T) {
	r := bed(t, driftSource, "")
	drift := WatchDrift(r)
	backedUp(t, r, drift)
	settle(t, QuiesceApplications(r))
	if got := modifiersOf(t, r); got != "" {
		t.Errorf("nothing was stopped in the initial backup, and its restore modifies: %s", got)
	}
	edit(t, r.Source, "v1", "ConfigMap", "shop", "settings", "blue", "data", "colour")
	settle(t, EnsureInitialBackupCurrent(r, drift))
	complete(t, r, r.Owner.InitialBackupAgain(1))
	got := modifiersOf(t, r)
	for _, want := range []string{"deployments.apps", `"replicas":3`, "cronjobs.batch", `"suspend":false`, "mig-cli.github.io/quiesce", ":null"} {
		if !strings.Contains(got, want) {
			t.Errorf("modifiers lack %s:\n%s", want, got)
		}
	}
}

// modifiersOf are the modifiers of the final restore that would be made now; it
// checks that the restore is of the newest backup.
func modifiersOf(t *testing.T, r Run) string {
	t.Helper()
	objects, err := r.finalRestore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	newest, err := r.objectsBackup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var modifiers string
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.ConfigMap:
			modifiers = o.Data["modifiers"]
		case *velerov1.Restore:
			if o.Spec.BackupName != newest.Name {
				t.Errorf("restores %s, want the newest, %s", o.Spec.BackupName, newest.Name)
			}
		}
	}
	return modifiers
}

func TestOnlyWhatWasAskedForCountsAsAChange(t *testing.T) {
	entry := func(manager, subresource, what string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:` + what + `":{}}`)}}
	}
	object := func(version string, generation int64, entries ...metav1.ManagedFieldsEntry) *metav1.PartialObjectMetadata {
		m := &metav1.PartialObjectMetadata{}
		m.UID, m.ResourceVersion, m.Generation, m.ManagedFields = "u", version, generation, entries
		return m
	}
	spec, status := entry("kubectl", "", "1"), entry("controller", "status", "1")
	for name, c := range map[string]struct {
		before, now *metav1.PartialObjectMetadata
		same        bool
	}{
		"nothing at all":                        {object("1", 0, spec), object("1", 0, spec), true},
		"status alone":                          {object("1", 0, spec, status), object("2", 0, spec, entry("controller", "status", "2")), true},
		"content, by another hand":              {object("1", 0, spec), object("2", 0, spec, entry("vi", "", "2")), false},
		"content, within the same second":       {object("1", 0, spec), object("2", 0, spec), false},
		"status, of a kind with generations":    {object("1", 4, spec), object("2", 4, spec), true},
		"spec, of a kind with generations":      {object("1", 4, spec), object("2", 5, spec), false},
		"made anew under the same name and all": {object("1", 1, spec), func() *metav1.PartialObjectMetadata { m := object("1", 1, spec); m.UID = "v"; return m }(), false},
	} {
		if got := printOf(c.before).sameAs(printOf(c.now)); got != c.same {
			t.Errorf("%s: same is %t, want %t", name, got, c.same)
		}
	}
}
