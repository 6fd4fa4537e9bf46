package labtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
)

// RemoveNamespaces deletes namespaces of a cluster and waits until they are
// gone. A stage pod or a claim in them goes with them.
func RemoveNamespaces(ctx context.Context, c *cluster.Cluster, namespaces ...string) error {
	for _, name := range namespaces {
		ns := &corev1.Namespace{}
		ns.Name = name
		if err := c.Delete(ctx, ns); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	for _, name := range namespaces {
		err := Until(ctx, 3*time.Minute, "namespace "+name+" on "+c.Access.Context+" is gone", func(ctx context.Context) (NotYet, error) {
			there, err := Exists(ctx, c, name)
			if there {
				return "it is still there", err
			}
			return "", err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// CancelPlan ends what Velero still does for runs of plans with this name.
func (l *Lab) CancelPlan(ctx context.Context, planName string) error {
	return l.eachPlan(ctx, planName, l.cancelVolumes)
}

// ForgetPlan removes from both clusters, and from the object store, all that
// runs of plans with this name have left: Velero's objects, records, leases.
func (l *Lab) ForgetPlan(ctx context.Context, planName string) error {
	return l.eachPlan(ctx, planName, l.forget)
}

func (l *Lab) eachPlan(ctx context.Context, planName string, do func(context.Context, string) error) error {
	uids := map[string]bool{}
	for _, c := range l.Both() {
		if err := findPlans(ctx, c, planName, uids); err != nil {
			return err
		}
	}
	for uid := range uids {
		if err := do(ctx, uid); err != nil {
			return fmt.Errorf("plan %s (%s): %w", planName, uid, err)
		}
	}
	return nil
}

// findPlans adds the uids of the plans of this name.
func findPlans(ctx context.Context, c *cluster.Cluster, planName string, uids map[string]bool) error {
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &velerov1.BackupList{}, &velerov1.RestoreList{}} {
		err := each(ctx, c, list, client.MatchingLabels{naming.LabelCreatedBy: naming.CreatedBy}, func(o client.Object) error {
			if o.GetAnnotations()[naming.AnnPlanName] == planName {
				uids[o.GetLabels()[naming.LabelPlan]] = true
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) forget(ctx context.Context, uid string) error {
	if err := l.deleteBackups(ctx, uid); err != nil {
		return err
	}
	for _, c := range l.Both() {
		if err := forgetOn(ctx, c, uid); err != nil {
			return err
		}
	}
	return nil
}

// cancelVolumes ends the volumes that Velero still works on for the plan, and
// waits until they have ended: a restore whose pod is gone would wait for
// hours, and one that is deleted while it runs keeps its place in the
// node-agent for ever.
func (l *Lab) cancelVolumes(ctx context.Context, uid string) error {
	return Until(ctx, 2*time.Minute, "Velero works on no volume of the plan", func(ctx context.Context) (NotYet, error) {
		left := NotYet("")
		cancel := func(c *cluster.Cluster, o client.Object, ended bool) error {
			if ended {
				return nil
			}
			left = NotYet(o.GetName() + " is under way")
			return client.IgnoreNotFound(c.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cancel":true}}`))))
		}
		for _, c := range l.Both() {
			if err := cancelOn(ctx, c, uid, cancel); err != nil {
				return "", err
			}
		}
		return left, nil
	})
}

func cancelOn(ctx context.Context, c *cluster.Cluster, uid string, cancel func(*cluster.Cluster, client.Object, bool) error) error {
	ofPlan := client.MatchingLabels{naming.LabelPlan: uid}
	err := each(ctx, c, &velerov1.BackupList{}, ofPlan, func(b client.Object) error {
		var list velerov1.PodVolumeBackupList
		return each(ctx, c, &list, client.MatchingLabels{naming.VeleroBackupName: b.GetName()}, func(o client.Object) error {
			v, _ := o.(*velerov1.PodVolumeBackup)
			return cancel(c, o, slices.Contains(endedBackups, v.Status.Phase))
		})
	})
	return errors.Join(err, each(ctx, c, &velerov1.RestoreList{}, ofPlan, func(r client.Object) error {
		var list velerov1.PodVolumeRestoreList
		return each(ctx, c, &list, client.MatchingLabels{naming.VeleroRestoreName: r.GetName()}, func(o client.Object) error {
			v, _ := o.(*velerov1.PodVolumeRestore)
			return cancel(c, o, slices.Contains(endedRestores, v.Status.Phase))
		})
	}))
}

// The phases in which Velero does nothing more.
var (
	endedBackups = []velerov1.PodVolumeBackupPhase{ //nolint:gochecknoglobals // a constant of a slice type
		velerov1.PodVolumeBackupPhaseCompleted, velerov1.PodVolumeBackupPhaseFailed, velerov1.PodVolumeBackupPhaseCanceled,
	}
	endedRestores = []velerov1.PodVolumeRestorePhase{ //nolint:gochecknoglobals // a constant of a slice type
		velerov1.PodVolumeRestorePhaseCompleted, velerov1.PodVolumeRestorePhaseFailed, velerov1.PodVolumeRestorePhaseCanceled,
	}
)

// deleteBackups asks Velero to delete the plan's backups with their data. A
// Backup object deleted by hand comes back from the object store, so the
// destination's copies are deleted only when the source's are gone.
func (l *Lab) deleteBackups(ctx context.Context, uid string) error {
	ofPlan := client.MatchingLabels{naming.LabelPlan: uid}
	c := l.Source.Cluster
	err := each(ctx, c, &velerov1.BackupList{}, ofPlan, func(o client.Object) error {
		return client.IgnoreAlreadyExists(c.Create(ctx, deleteRequest(o)))
	})
	if err != nil {
		return err
	}
	err = Until(ctx, 2*time.Minute, "Velero has deleted the backups", func(ctx context.Context) (NotYet, error) {
		left := NotYet("")
		err := each(ctx, c, &velerov1.BackupList{}, ofPlan, func(o client.Object) error {
			left = NotYet("Backup " + o.GetName() + " is still there")
			return nil
		})
		return left, err
	})
	if err != nil {
		return err
	}
	d := l.Destination.Cluster
	return each(ctx, d, &velerov1.BackupList{}, ofPlan, func(o client.Object) error {
		pvbs := &velerov1.PodVolumeBackupList{}
		err := each(ctx, d, pvbs, client.MatchingLabels{naming.VeleroBackupName: o.GetName()}, func(pvb client.Object) error {
			return client.IgnoreNotFound(d.Delete(ctx, pvb))
		})
		return errors.Join(err, client.IgnoreNotFound(d.Delete(ctx, o)))
	})
}

func deleteRequest(backup client.Object) *velerov1.DeleteBackupRequest {
	r := &velerov1.DeleteBackupRequest{}
	r.Namespace, r.Name = backup.GetNamespace(), backup.GetName()+"-forget"
	r.Labels = map[string]string{naming.VeleroBackupName: backup.GetName(), naming.VeleroBackupUID: string(backup.GetUID())}
	r.Spec.BackupName = backup.GetName()
	return r
}

// forgetOn deletes what else is left on one cluster. Pods are in it because a
// stage pod keeps its claim, and a claim its namespace.
func forgetOn(ctx context.Context, c *cluster.Cluster, uid string) error {
	for _, list := range []client.ObjectList{
		&corev1.PodList{}, &velerov1.RestoreList{}, &corev1.ConfigMapList{}, &coordinationv1.LeaseList{}, &eventsv1.EventList{},
	} {
		err := each(ctx, c, list, client.MatchingLabels{naming.LabelPlan: uid}, func(o client.Object) error {
			return client.IgnoreNotFound(c.Delete(ctx, o))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// each does something to every object that a cluster lists.
func each(ctx context.Context, c *cluster.Cluster, list client.ObjectList, opt client.ListOption, do func(client.Object) error) error {
	if err := c.List(ctx, list, opt); err != nil {
		return err
	}
	return meta.EachListItem(list, func(o runtime.Object) error {
		object, ok := o.(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", o)
		}
		return do(object)
	})
}
