package step

import (
	"testing"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/pipeline"
)

const closeBackups = `
apiVersion: velero.io/v1
kind: Backup
metadata: {name: mig-shop-run0-stage, namespace: velero, labels: {mig-cli.github.io/created-by: mig, mig-cli.github.io/plan-uid: 5f0c3d9e-27b1}}
---
apiVersion: velero.io/v1
kind: PodVolumeBackup
metadata: {name: volume, namespace: velero, labels: {mig-cli.github.io/created-by: mig, mig-cli.github.io/plan-uid: 5f0c3d9e-27b1}}
---
apiVersion: velero.io/v1
kind: Backup
metadata: {name: nightly, namespace: velero}
`

// veleroDeletes plays the source's Velero at the requests to delete: it
// fulfils them, or cannot and says why.
func veleroDeletes(t *testing.T, r Run, why ...string) int {
	t.Helper()
	var requests velerov1.DeleteBackupRequestList
	if err := r.Source.List(t.Context(), &requests); err != nil {
		t.Fatal(err)
	}
	for i := range requests.Items {
		request := &requests.Items[i]
		if len(why) > 0 {
			request.Status.Phase, request.Status.Errors = velerov1.DeleteBackupRequestPhaseProcessed, why
			if err := r.Source.Update(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			continue
		}
		backup := &velerov1.Backup{}
		backup.Namespace, backup.Name = request.Namespace, request.Spec.BackupName
		for _, o := range []client.Object{backup, request} {
			if err := r.Source.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	return len(requests.Items)
}

func TestVeleroIsAskedToDeleteThePlansBackupsAndThenTheCopiesGo(t *testing.T) {
	r := bed(t, closeBackups, closeBackups)
	s := BackupsPurged(r)
	check(t, "asked", settle(t, s), pipeline.Wait, "waiting for the source's Velero to delete mig-shop-run0-stage")
	if !exists(t, r.Destination, "velero.io/v1", "Backup", "velero", "mig-shop-run0-stage") {
		t.Error("the destination's copy went before the data: its Velero would bring it back")
	}
	if n := veleroDeletes(t, r); n != 1 {
		t.Fatalf("%d requests, want one for the plan's backup and none for others", n)
	}
	check(t, "purged", settle(t, s), pipeline.Done, "the plan's backups and their data are gone")
	for _, on := range []client.Client{r.Source, r.Destination} {
		if !exists(t, on, "velero.io/v1", "Backup", "velero", "nightly") {
			t.Error("another's backup was deleted")
		}
	}
	if exists(t, r.Destination, "velero.io/v1", "Backup", "velero", "mig-shop-run0-stage") || exists(t, r.Destination, "velero.io/v1", "PodVolumeBackup", "velero", "volume") {
		t.Error("what the destination knew of it is still there")
	}
	check(t, "again", settle(t, BackupsPurged(r)), pipeline.Done, "gone")
}

func TestABackupThatVeleroCannotDeleteIsNamedAndAskedForAgainNextTime(t *testing.T) {
	r := bed(t, closeBackups, closeBackups)
	s := BackupsPurged(r)
	settle(t, s)
	veleroDeletes(t, r, "bucket is read-only")
	check(t, "refused", settle(t, s), pipeline.Blocked, "could not delete mig-shop-run0-stage (bucket is read-only)")
	next := BackupsPurged(r)
	check(t, "asked again", settle(t, next), pipeline.Wait, "waiting for the source's Velero to delete mig-shop-run0-stage")
	veleroDeletes(t, r)
	check(t, "purged", settle(t, next), pipeline.Done, "gone")
}
