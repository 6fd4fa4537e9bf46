package labtest

import (
	"context"
	"errors"
	"fmt"
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

// cancelVolumes ends the volumes that Velero still works on for the plan. A
// restore whose pod is gone would wait for hours, and all others behind it.
func (l *Lab) cancelVolumes(ctx context.Context, uid string) error {
	ofPlan := client.MatchingLabels{naming.LabelPlan: uid}
	cancel := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cancel":true}}`))
	var errs []error
	for _, c := range l.Both() {
		for list, volumes := range map[client.ObjectList]func() (client.ObjectList, string){
			&velerov1.BackupList{}:  func() (client.ObjectList, string) { return &velerov1.PodVolumeBackupList{}, naming.VeleroBackupName },
			&velerov1.RestoreList{}: func() (client.ObjectList, string) { return &velerov1.PodVolumeRestoreList{}, naming.VeleroRestoreName },
		} {
			errs = append(errs, each(ctx, c, list, ofPlan, func(o client.Object) error {
				of, label := volumes()
				return each(ctx, c, of, client.MatchingLabels{label: o.GetName()}, func(v client.Object) error {
					return client.IgnoreNotFound(c.Patch(ctx, v, cancel))
				})
			}))
		}
	}
	return errors.Join(errs...)
}

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
