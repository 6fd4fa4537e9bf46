//go:build e2e

package e2e

import (
	"context"
	"path/filepath"
	"testing"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/naming"
)

const idleYAML = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: idle}
spec:
  storageClassName: src-fast
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 100Mi}}
`

// notesMegabytes is what the notes' volume holds beside its lines.
const notesMegabytes = 40

func TestFailedAtCutoverThenRolledBackThenStagedThenMigrated(t *testing.T) {
	t.Parallel()
	s := newScenario(t, "e2e-stage")
	ctx := t.Context()
	s.deployNotes(notesMegabytes)
	s.must(s.lab.Apply(ctx, s.src(), s.name, idleYAML))
	beside := s.neighbours()
	before, err := labtest.ObjectsOf(ctx, s.src(), s.name)
	s.must(err)
	pod := s.notesPod()
	s.makePlan(nil)

	s.succeeds("stage")
	s.untouched(pod, before)
	s.copied(s.stageBackup(), "notes", notesMegabytes<<20, notesMegabytes<<20)

	dir, err := labtest.VolumeDir(ctx, s.src(), s.name, labtest.NotesClaim)
	s.must(err)
	s.must(labtest.WriteNoise(filepath.Join(dir, "later"), 1<<20))
	s.succeeds("stage")
	s.untouched(pod, before)
	t.Run("a second stage copies only what is new", func(t *testing.T) {
		s.on(t).copied(s.on(t).stageBackup(), "notes", 1<<20, notesMegabytes<<20/2)
	})

	s.migrateMeddled(cancelPodVolumeRestores, labtest.NotesClaim)
	s.sourceIsUp(before)
	s.succeeds("rollback", "--yes")
	s.must(s.lab.GoneFromDestination(ctx, s.planUID, s.dest))

	s.succeeds("stage")
	s.succeeds("migrate")
	t.Run("the data is there, up to the last line before the quiesce", func(t *testing.T) {
		if _, err := s.lab.Arrived(t.Context(), s.name, s.dest, labtest.NotesWriting); err != nil {
			t.Error(err)
		}
	})
	t.Run("the cutover has found what was staged, and copied only the rest", func(t *testing.T) {
		s.on(t).copied(s.on(t).stageBackup(), "notes", 0, notesMegabytes<<20/2)
	})
	s.succeeds("rollback", "--yes")
	t.Run("a closed plan leaves no copy behind and runs no more", func(t *testing.T) { s.on(t).closes() })
	t.Run("nothing of others was touched", func(t *testing.T) { beside(t) })
}

// closes closes the plan: of its copies nothing is left, its records stay.
func (s *scenario) closes() {
	s.t.Helper()
	ctx := s.t.Context()
	s.succeeds("plan", "close", s.name, "--yes")
	for _, c := range s.lab.Both() {
		for _, list := range []client.ObjectList{&velerov1.BackupList{}, &velerov1.RestoreList{}, &velerov1.PodVolumeBackupList{}} {
			s.must(c.List(ctx, list, client.MatchingLabels{naming.LabelPlan: s.planUID}))
			if n := meta.LenList(list); n > 0 {
				s.t.Errorf("%s: %d left in %T", c.Access.Context, n, list)
			}
		}
		var records corev1.ConfigMapList
		s.must(c.List(ctx, &records, client.InNamespace(labtest.VeleroNamespace), client.MatchingLabels{naming.LabelPlan: s.planUID, naming.LabelRecord: "run"}))
		if len(records.Items) == 0 {
			s.t.Errorf("%s: the records are gone with the copies", c.Access.Context)
		}
	}
	for _, command := range [][]string{{"stage"}, {"migrate"}, {"rollback", "--yes"}} {
		r := s.run(command...)
		s.ended(r, blocked)
		s.says(r, "closed")
	}
}

// notesPod is the uid of the one pod of the application.
func (s *scenario) notesPod() string {
	s.t.Helper()
	var list corev1.PodList
	s.must(s.src().List(s.t.Context(), &list, client.InNamespace(s.name), client.MatchingLabels{"app": "notes"}))
	if len(list.Items) != 1 {
		s.t.Fatalf("%d pods of notes, want one", len(list.Items))
	}
	return string(list.Items[0].UID)
}

// untouched wants the application's pod and objects as they were, and nothing
// of a stage left.
func (s *scenario) untouched(pod string, before labtest.Objects) {
	s.t.Helper()
	if now := s.notesPod(); now != pod {
		s.t.Errorf("the application's pod is another one: %s, was %s", now, pod)
	}
	s.must(s.lab.SourceAsBefore(s.t.Context(), before, s.name))
	var pods corev1.PodList
	s.must(s.src().List(s.t.Context(), &pods, client.MatchingLabels{naming.LabelPlan: s.planUID}))
	if len(pods.Items) > 0 {
		s.t.Errorf("%d helper pods are left on the source", len(pods.Items))
	}
}

// stageBackup is the plan's newest backup of volumes.
func (s *scenario) stageBackup() velerov1.Backup {
	s.t.Helper()
	var list velerov1.BackupList
	s.must(s.src().List(s.t.Context(), &list, client.MatchingLabels{naming.LabelPlan: s.planUID}, client.HasLabels{naming.RefStageBackup}))
	var newest velerov1.Backup
	for _, b := range list.Items {
		if newest.CreationTimestamp.Before(&b.CreationTimestamp) {
			newest = b
		}
	}
	return newest
}

// copied wants every claim of the namespace in a backup, and of one volume
// that between least and most bytes were uploaded anew.
func (s *scenario) copied(b velerov1.Backup, claim string, least, most int64) {
	s.t.Helper()
	var list velerov1.PodVolumeBackupList
	s.must(s.src().List(s.t.Context(), &list, client.MatchingLabels{naming.VeleroBackupName: b.Name}))
	got := map[string]velerov1.PodVolumeBackup{}
	for _, v := range list.Items {
		got[v.Spec.Tags["pvc-uid"]] = v
		if v.Status.Phase != velerov1.PodVolumeBackupPhaseCompleted {
			s.t.Errorf("the volume of pod %s is %s in backup %s", v.Spec.Pod.Name, v.Status.Phase, b.Name)
		}
	}
	if len(got) != 2 {
		s.t.Errorf("backup %s holds %d volumes, want those of notes and idle", b.Name, len(got))
	}
	uid := string(get(s.t, s.src(), s.name, claim, &corev1.PersistentVolumeClaim{}).UID)
	// The running application adds a few lines.
	if n := got[uid].Status.IncrementalBytes; n < least || n > most+1<<20 {
		s.t.Errorf("%d bytes of %s were uploaded, want %d to %d", n, claim, least, most)
	}
}

const neighboursYAML = `
apiVersion: velero.io/v1
kind: Schedule
metadata: {name: e2e-nightly, namespace: velero}
spec: {schedule: "0 3 * * *", paused: true, template: {includedNamespaces: [kube-public]}}
---
apiVersion: velero.io/v1
kind: VolumeSnapshotLocation
metadata: {name: e2e-snapshots, namespace: velero}
spec: {provider: aws, config: {region: minio}}
---
apiVersion: v1
kind: Secret
metadata: {name: e2e-cloud-credentials, namespace: velero}
stringData: {cloud: "[default]"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: e2e-class-map, namespace: velero, labels: {velero.io/plugin-config: "", velero.io/change-storage-class: RestoreItemAction}}
data: {e2e-none: e2e-none}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: e2e-of-a-controller
  namespace: velero
  labels: {app.kubernetes.io/part-of: openshift-migration, migration.openshift.io/migrated-by-migplan: "1234", migration-stage-backup: "1234"}
`

// neighbours are others' objects beside Velero, on both clusters; the function
// wants them, and Velero's own, as they were.
func (s *scenario) neighbours() func(*testing.T) {
	s.t.Helper()
	ctx := s.t.Context()
	was := map[string]labtest.Objects{}
	for _, c := range s.lab.Both() {
		_, err := s.lab.Kubectl(ctx, c, neighboursYAML, "apply", "-f", "-")
		s.must(err)
		s.t.Cleanup(func() {
			_, _ = s.lab.Kubectl(context.WithoutCancel(ctx), c, neighboursYAML, "delete", "--ignore-not-found", "-f", "-")
		})
		o, err := labtest.ObjectsOf(ctx, c, labtest.VeleroNamespace)
		s.must(err)
		was[c.Access.Context] = o.OfOthers()
	}
	return func(t *testing.T) {
		t.Helper()
		for _, c := range s.lab.Both() {
			now, err := labtest.ObjectsOf(t.Context(), c, labtest.VeleroNamespace)
			if err != nil {
				t.Fatal(err)
			}
			if err := was[c.Access.Context].SameAs(now.OfOthers()); err != nil {
				t.Errorf("%s: %v", c.Access.Context, err)
			}
		}
	}
}
