package discover

import (
	"cmp"
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/naming"
)

// backupVolumes is the annotation with which a user asks Velero to copy
// volumes of a pod.
const backupVolumes = "backup.velero.io/backup-volumes"

// apps is what was listed of the applications; assemble joins it.
type apps struct {
	claims    []Claim
	volumes   map[string]volume
	pods      []mountingPod
	sets      []statefulSet
	workloads [][]Workload // by kind, so that each kind fills a place of its own
}

// volume is what is kept of a PersistentVolume.
type volume struct{ backend, provisioner, reclaim string }

// mountingPod is a pod with the claims that it mounts.
type mountingPod struct {
	Pod
	claims map[string]bool // name -> mounted read-only
}

// statefulSet is what tells which claims come of its templates.
type statefulSet struct {
	Workload
	templates []string
}

// applications lists claims, volumes, pods and workloads of the namespaces.
func (l *look) applications(namespaces []string) *apps {
	a := &apps{workloads: make([][]Workload, 7)}
	c := l.c.Client
	l.part(PartClaims, func(ctx context.Context) (err error) {
		a.claims, err = listClaims(ctx, c, namespaces)
		return err
	})
	l.part(PartVolumes, func(ctx context.Context) (err error) { a.volumes, err = listVolumes(ctx, c); return err })
	l.part(PartPods, func(ctx context.Context) (err error) { a.pods, err = listPods(ctx, c, namespaces); return err })
	l.part(PartWorkloads, func(ctx context.Context) (err error) {
		a.sets, err = listStatefulSets(ctx, c, namespaces)
		return err
	})
	for i, list := range workloadLists(c) {
		l.part(PartWorkloads, func(ctx context.Context) (err error) {
			a.workloads[i], err = inNamespaces(ctx, namespaces, func(w Workload) string { return w.Namespace }, list)
			return err
		})
	}
	return a
}

// assemble joins what was listed: claims with their volumes, pods and sets.
func (a *apps) assemble() ([]Claim, []Pod, []Workload) {
	mounters := map[string][]Mounter{}
	var pods []Pod
	for _, p := range a.pods {
		pods = append(pods, p.Pod)
		for claim, readOnly := range p.claims {
			key := p.Namespace + "/" + claim
			mounters[key] = append(mounters[key], Mounter{Pod: p.Name, Phase: p.Phase, Node: p.Node, ReadOnly: readOnly})
		}
	}
	for i := range a.claims {
		c := &a.claims[i]
		v := a.volumes[c.Volume]
		c.Backend, c.Provisioner, c.ReclaimPolicy = v.backend, v.provisioner, v.reclaim
		c.MountedBy = mounters[c.Key()]
		slices.SortFunc(c.MountedBy, func(x, y Mounter) int { return cmp.Compare(x.Pod, y.Pod) })
		c.StatefulSet = setOf(*c, a.sets)
	}
	return a.claims, pods, a.allWorkloads()
}

func (a *apps) allWorkloads() []Workload {
	var out []Workload
	for _, s := range a.sets {
		out = append(out, s.Workload)
	}
	for _, ofKind := range a.workloads {
		out = append(out, ofKind...)
	}
	slices.SortFunc(out, func(x, y Workload) int { return cmp.Compare(x.Key(), y.Key()) })
	return out
}

// setOf is the StatefulSet one of whose templates made a claim: the claim is
// named TEMPLATE-SET-ORDINAL.
func setOf(c Claim, sets []statefulSet) string {
	for _, s := range sets {
		if s.Namespace != c.Namespace {
			continue
		}
		for _, t := range s.templates {
			ordinal, ok := strings.CutPrefix(c.Name, t+"-"+s.Name+"-")
			if ok && ordinal != "" && strings.Trim(ordinal, "0123456789") == "" {
				return s.Name
			}
		}
	}
	return ""
}

func listClaims(ctx context.Context, c client.Client, namespaces []string) ([]Claim, error) {
	out, err := inNamespaces(ctx, namespaces, func(c Claim) string { return c.Namespace },
		func(ctx context.Context, opts ...client.ListOption) ([]Claim, string, error) {
			var list corev1.PersistentVolumeClaimList
			err := c.List(ctx, &list, opts...)
			return each(list.Items, claimOf), list.Continue, err
		})
	return out, err
}

func claimOf(pvc *corev1.PersistentVolumeClaim) Claim {
	out := Claim{
		Namespace: pvc.Namespace, Name: pvc.Name, UID: string(pvc.UID), Phase: string(pvc.Status.Phase), Volume: pvc.Spec.VolumeName,
		Requested: pvc.Spec.Resources.Requests.Storage().String(), Labels: pvc.Labels, Terminating: pvc.DeletionTimestamp != nil,
		VolumeMode: string(corev1.PersistentVolumeFilesystem),
	}
	if size, ok := pvc.Status.Capacity[corev1.ResourceStorage]; ok {
		out.Capacity = size.String()
	}
	if pvc.Spec.StorageClassName != nil {
		out.StorageClass = *pvc.Spec.StorageClassName
	} else {
		out.StorageClass = pvc.Annotations[corev1.BetaStorageClassAnnotation]
	}
	if pvc.Spec.VolumeMode != nil {
		out.VolumeMode = string(*pvc.Spec.VolumeMode)
	}
	for _, m := range pvc.Spec.AccessModes {
		out.AccessModes = append(out.AccessModes, string(m))
	}
	return out
}

// listVolumes lists all volumes of the cluster: they have no namespace to ask for.
func listVolumes(ctx context.Context, c client.Client) (map[string]volume, error) {
	out := map[string]volume{}
	_, err := all(ctx, func(ctx context.Context, opts ...client.ListOption) ([]struct{}, string, error) {
		var list corev1.PersistentVolumeList
		err := c.List(ctx, &list, opts...)
		for i := range list.Items {
			out[list.Items[i].Name] = volumeOf(&list.Items[i])
		}
		return nil, list.Continue, err
	})
	return out, err
}

func volumeOf(pv *corev1.PersistentVolume) volume {
	v := volume{backend: backendOf(pv.Spec.PersistentVolumeSource), reclaim: string(pv.Spec.PersistentVolumeReclaimPolicy)}
	v.provisioner = pv.Annotations["pv.kubernetes.io/provisioned-by"]
	if pv.Spec.CSI != nil {
		v.provisioner = pv.Spec.CSI.Driver
	}
	return v
}

// backendOf is the name of the one field of a volume's source that is set.
func backendOf(s corev1.PersistentVolumeSource) string {
	switch {
	case s.CSI != nil:
		return "csi"
	case s.HostPath != nil:
		return "hostPath"
	case s.Local != nil:
		return "local"
	case s.NFS != nil:
		return "nfs"
	case s.ISCSI != nil:
		return "iscsi"
	case s.RBD != nil:
		return "rbd"
	case s.CephFS != nil:
		return "cephfs"
	case s.FC != nil:
		return "fc"
	case s.AWSElasticBlockStore != nil:
		return "awsElasticBlockStore"
	case s.GCEPersistentDisk != nil:
		return "gcePersistentDisk"
	case s.AzureDisk != nil:
		return "azureDisk"
	case s.AzureFile != nil:
		return "azureFile"
	case s.Cinder != nil:
		return "cinder"
	case s.VsphereVolume != nil:
		return "vsphereVolume"
	default:
		return "other"
	}
}

func listPods(ctx context.Context, c client.Client, namespaces []string) ([]mountingPod, error) {
	return inNamespaces(ctx, namespaces, func(p mountingPod) string { return p.Namespace },
		func(ctx context.Context, opts ...client.ListOption) ([]mountingPod, string, error) {
			var list corev1.PodList
			err := c.List(ctx, &list, opts...)
			return each(list.Items, podOf), list.Continue, err
		})
}

func podOf(p *corev1.Pod) mountingPod {
	_, static := p.Annotations[corev1.MirrorPodAnnotationKey]
	out := mountingPod{
		Pod: Pod{
			Namespace: p.Namespace, Name: p.Name, Phase: string(p.Status.Phase), Node: p.Spec.NodeName,
			Controller: controllerOf(p), Static: static, OfPlan: naming.OfPlanUID(p.Labels),
		},
		claims: map[string]bool{},
	}
	if asked := p.Annotations[backupVolumes]; asked != "" {
		out.BackupVolumes = strings.Split(asked, ",")
	}
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			out.claims[v.PersistentVolumeClaim.ClaimName] = v.PersistentVolumeClaim.ReadOnly
		case v.Ephemeral != nil:
			out.claims[p.Name+"-"+v.Name] = false
		case v.HostPath != nil:
			out.HostPaths = append(out.HostPaths, v.HostPath.Path)
		case v.EmptyDir != nil && v.EmptyDir.Medium != corev1.StorageMediumMemory:
			out.EmptyDirs = append(out.EmptyDirs, v.Name)
		}
	}
	return out
}

func controllerOf(o metav1.Object) string {
	if owner := metav1.GetControllerOf(o); owner != nil {
		return owner.Kind + "/" + owner.Name
	}
	return ""
}

// gitOpsOf says who applies an object again and again, by the marks that such
// tools leave on what they own.
func gitOpsOf(o metav1.Object) string {
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	switch {
	case annotations["argocd.argoproj.io/tracking-id"] != "", labels["argocd.argoproj.io/instance"] != "":
		return "Argo CD"
	case labels["kustomize.toolkit.fluxcd.io/name"] != "", labels["helm.toolkit.fluxcd.io/name"] != "":
		return "Flux"
	default:
		return ""
	}
}

func workload(kind string, o metav1.Object) Workload {
	return Workload{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), Controller: controllerOf(o), GitOps: gitOpsOf(o)}
}

func wanted(replicas *int32) int32 {
	if replicas == nil {
		return 1 // the API's default
	}
	return *replicas
}

func listStatefulSets(ctx context.Context, c client.Client, namespaces []string) ([]statefulSet, error) {
	return inNamespaces(ctx, namespaces, func(s statefulSet) string { return s.Namespace },
		func(ctx context.Context, opts ...client.ListOption) ([]statefulSet, string, error) {
			var list appsv1.StatefulSetList
			err := c.List(ctx, &list, opts...)
			return each(list.Items, statefulSetOf), list.Continue, err
		})
}

func statefulSetOf(o *appsv1.StatefulSet) statefulSet {
	s := statefulSet{Workload: workload("StatefulSet", o)}
	s.Replicas = wanted(o.Spec.Replicas)
	if policy := o.Spec.PersistentVolumeClaimRetentionPolicy; policy != nil {
		s.ScaleDeletesClaims = policy.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	}
	for _, t := range o.Spec.VolumeClaimTemplates {
		s.templates = append(s.templates, t.Name)
	}
	return s
}

// workloadLists lists the other kinds, one function a kind.
func workloadLists(c client.Client) []page[Workload] {
	return []page[Workload]{
		func(ctx context.Context, opts ...client.ListOption) ([]Workload, string, error) {
			var list appsv1.DeploymentList
			err := c.List(ctx, &list, opts...)
			return each(list.Items, func(o *appsv1.Deployment) Workload {
				w := workload("Deployment", o)
				w.Replicas, w.Paused = wanted(o.Spec.Replicas), o.Spec.Paused
				return w
			}), list.Continue, err
		},
		func(ctx context.Context, opts ...client.ListOption) ([]Workload, string, error) {
			var list appsv1.DaemonSetList
			err := c.List(ctx, &list, opts...)
			return each(list.Items, func(o *appsv1.DaemonSet) Workload { return workload("DaemonSet", o) }), list.Continue, err
		},
		func(ctx context.Context, opts ...client.ListOption) ([]Workload, string, error) {
			var list appsv1.ReplicaSetList
			err := c.List(ctx, &list, opts...)
			sets := each(list.Items, func(o *appsv1.ReplicaSet) Workload {
				w := workload("ReplicaSet", o)
				w.Replicas = wanted(o.Spec.Replicas)
				return w
			})
			// Those of Deployments are told by their Deployment.
			sets = slices.DeleteFunc(sets, func(w Workload) bool { return strings.HasPrefix(w.Controller, "Deployment/") })
			return sets, list.Continue, err
		},
		func(ctx context.Context, opts ...client.ListOption) ([]Workload, string, error) {
			var list corev1.ReplicationControllerList
			err := c.List(ctx, &list, opts...)
			return each(list.Items, func(o *corev1.ReplicationController) Workload {
				w := workload("ReplicationController", o)
				w.Replicas = wanted(o.Spec.Replicas)
				return w
			}), list.Continue, err
		},
		func(ctx context.Context, opts ...client.ListOption) ([]Workload, string, error) {
			var list batchv1.JobList
			err := c.List(ctx, &list, opts...)
			return each(list.Items, func(o *batchv1.Job) Workload {
				w := workload("Job", o)
				w.Active, w.Suspended = o.Status.Active, o.Spec.Suspend != nil && *o.Spec.Suspend
				return w
			}), list.Continue, err
		},
		func(ctx context.Context, opts ...client.ListOption) ([]Workload, string, error) {
			var list batchv1.CronJobList
			err := c.List(ctx, &list, opts...)
			return each(list.Items, func(o *batchv1.CronJob) Workload {
				w := workload("CronJob", o)
				w.Suspended = o.Spec.Suspend != nil && *o.Spec.Suspend
				return w
			}), list.Continue, err
		},
		func(ctx context.Context, opts ...client.ListOption) ([]Workload, string, error) {
			var list autoscalingv1.HorizontalPodAutoscalerList
			err := c.List(ctx, &list, opts...)
			return each(list.Items, func(o *autoscalingv1.HorizontalPodAutoscaler) Workload {
				w := workload("HorizontalPodAutoscaler", o)
				w.Scales = o.Spec.ScaleTargetRef.Kind + "/" + o.Spec.ScaleTargetRef.Name
				return w
			}), list.Continue, err
		},
	}
}
