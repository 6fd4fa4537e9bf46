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
	workloads [][]templated // by kind, so that each kind fills a place of its own
}

// volume is what is kept of a PersistentVolume.
type volume struct {
	backend, provisioner, reclaim string
	where, zone                   string
	tiedTo                        []string
	static                        bool
}

// mountingPod is a pod with the claims that it mounts, and what it keeps
// outside of claims.
type mountingPod struct {
	Pod
	claims   map[string]bool // name -> mounted read-only
	workload string          // Kind/name of what keeps it running
	outside  []Outside
	needs    *PodNeeds
}

// templated is a workload with what its pods keep outside of claims, whether
// there are any pods or not.
type templated struct {
	Workload
	outside []Outside
	needs   *PodNeeds
}

// statefulSet is what tells which claims come of its templates.
type statefulSet struct {
	templated
	templates []string
}

// applications lists claims, volumes, pods and workloads of the namespaces.
func (l *look) applications(namespaces []string) *apps {
	a := l.mounters(namespaces)
	l.part(PartClaims, func(ctx context.Context) error { return l.claims(ctx, a, namespaces) })
	return a
}

// claims lists the claims, and has their volumes looked at. Those of few
// namespaces are asked for by their names, for the cluster's other volumes are
// not theirs to wait for; else all are listed beside the claims. The error is
// of the claims alone.
func (l *look) claims(ctx context.Context, a *apps, namespaces []string) (err error) {
	few := len(namespaces) <= fewNamespaces
	if !few {
		l.part(PartVolumes, func(ctx context.Context) (err error) { a.volumes, err = listVolumes(ctx, l.c.Client); return err })
	}
	a.claims, err = listClaims(ctx, l.c.Client, namespaces)
	if few {
		l.part(PartVolumes, func(ctx context.Context) (err error) {
			a.volumes, err = getVolumes(ctx, l.c.Client, a.claims)
			return err
		})
	}
	return err
}

// mounters lists all of the applications but the claims and their volumes.
func (l *look) mounters(namespaces []string) *apps {
	a := &apps{workloads: make([][]templated, 7)}
	c := l.c.Client
	l.part(PartPods, func(ctx context.Context) (err error) { a.pods, err = listPods(ctx, c, namespaces); return err })
	l.part(PartWorkloads, func(ctx context.Context) (err error) {
		a.sets, err = listStatefulSets(ctx, c, namespaces)
		return err
	})
	for i, list := range workloadLists(c) {
		l.part(PartWorkloads, func(ctx context.Context) (err error) {
			a.workloads[i], err = inNamespaces(ctx, namespaces, func(w templated) string { return w.Namespace }, list)
			return err
		})
	}
	return a
}

// into joins what was listed, claims with their volumes, pods and sets, and
// puts it into the facts.
func (a *apps) into(s *SourceFacts) {
	mounters := map[string][]Mounter{}
	for _, p := range a.pods {
		s.Pods = append(s.Pods, p.Pod)
		for claim, readOnly := range p.claims {
			key := p.Namespace + "/" + claim
			mounters[key] = append(mounters[key], Mounter{Pod: p.Name, Phase: p.Phase, Node: p.Node, ReadOnly: readOnly, Workload: p.workload})
		}
	}
	for i := range a.claims {
		c := &a.claims[i]
		c.describe(a.volumes[c.Volume])
		c.MountedBy = mounters[c.Key()]
		slices.SortFunc(c.MountedBy, func(x, y Mounter) int { return cmp.Compare(x.Pod, y.Pod) })
		c.StatefulSet = setOf(*c, a.sets)
	}
	s.Claims, s.Workloads, s.Outside, s.PodNeeds = a.claims, a.allWorkloads(), a.allOutside(), a.allNeeds()
}

func (c *Claim) describe(v volume) {
	c.Backend, c.Provisioner, c.ReclaimPolicy = v.backend, v.provisioner, v.reclaim
	c.Where, c.Zone, c.TiedTo, c.Static = v.where, v.zone, v.tiedTo, v.static
}

func (a *apps) allTemplated() []templated {
	var out []templated
	for _, s := range a.sets {
		out = append(out, s.templated)
	}
	return append(out, slices.Concat(a.workloads...)...)
}

func (a *apps) allWorkloads() []Workload {
	var out []Workload
	for _, t := range a.allTemplated() {
		out = append(out, t.Workload)
	}
	slices.SortFunc(out, func(x, y Workload) int { return cmp.Compare(x.Key(), y.Key()) })
	return out
}

// allOutside is what workloads keep outside of claims, and pods that none of
// the workloads has made.
func (a *apps) allOutside() []Outside {
	var out []Outside
	for _, t := range a.allTemplated() {
		if !strings.HasPrefix(t.Controller, "CronJob/") { // told by its CronJob
			out = append(out, t.outside...)
		}
	}
	for _, p := range a.pods {
		if !p.Finished() && !p.Static && p.OfPlan == "" && !hasTemplate(p.Controller) {
			out = append(out, p.outside...)
		}
	}
	slices.SortStableFunc(out, func(x, y Outside) int {
		return cmp.Or(cmp.Compare(x.Workload, y.Workload), cmp.Compare(x.Volume, y.Volume))
	})
	return out
}

// hasTemplate says whether a pod's controller is of a kind whose templates are
// listed.
func hasTemplate(controller string) bool {
	kind, _, _ := strings.Cut(controller, "/")
	return slices.Contains([]string{"StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job"}, kind)
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
		func(ctx context.Context, opts ...client.ListOption) ([]Claim, metav1.ListMeta, error) {
			var list corev1.PersistentVolumeClaimList
			err := c.List(ctx, &list, opts...)
			return each(list.Items, claimOf), list.ListMeta, err
		})
	return out, err
}

func claimOf(pvc *corev1.PersistentVolumeClaim) Claim {
	out := Claim{
		Namespace: pvc.Namespace, Name: pvc.Name, UID: string(pvc.UID), Phase: string(pvc.Status.Phase), Volume: pvc.Spec.VolumeName,
		Requested: pvc.Spec.Resources.Requests.Storage().String(), Labels: pvc.Labels, Terminating: pvc.DeletionTimestamp != nil,
		VolumeMode: string(corev1.PersistentVolumeFilesystem),
		NoClass:    pvc.Spec.StorageClassName != nil && *pvc.Spec.StorageClassName == "",
	}
	if owner := metav1.GetControllerOf(pvc); owner != nil && owner.Kind == "Pod" {
		out.EphemeralOf = owner.Name
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

// mostByName is how many volumes are asked for by their names: more take longer
// than the pages of most clusters.
const mostByName = 10 * pageCost

// getVolumes gets the volumes of the claims.
func getVolumes(ctx context.Context, c client.Client, claims []Claim) (map[string]volume, error) {
	names := each(claims, func(c *Claim) string { return c.Volume })
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	if len(names) > mostByName {
		return listVolumes(ctx, c)
	}
	found, err := getEach(ctx, c, names, func() *corev1.PersistentVolume { return &corev1.PersistentVolume{} })
	out := make(map[string]volume, len(found))
	for _, pv := range found {
		out[pv.Name] = volumeOf(pv)
	}
	return out, err
}

// listVolumes lists all volumes of the cluster: they have no namespace to ask for.
func listVolumes(ctx context.Context, c client.Client) (map[string]volume, error) {
	out := map[string]volume{}
	_, err := all(ctx, func(ctx context.Context, opts ...client.ListOption) ([]struct{}, metav1.ListMeta, error) {
		var list corev1.PersistentVolumeList
		err := c.List(ctx, &list, opts...)
		for i := range list.Items {
			out[list.Items[i].Name] = volumeOf(&list.Items[i])
		}
		return nil, list.ListMeta, err
	})
	return out, err
}

// Marks that provisioners leave on a volume, by which one that was made by
// hand is told apart.
const (
	provisionedBy = "pv.kubernetes.io/provisioned-by"
	legacyZone    = "failure-domain.beta.kubernetes.io/zone"
)

func volumeOf(pv *corev1.PersistentVolume) volume {
	v := volume{
		backend: backendOf(pv.Spec.PersistentVolumeSource), reclaim: string(pv.Spec.PersistentVolumeReclaimPolicy),
		where: whereIs(pv.Spec.PersistentVolumeSource), static: pv.Annotations[provisionedBy] == "",
	}
	v.provisioner = pv.Annotations[provisionedBy]
	if pv.Spec.CSI != nil {
		v.provisioner = pv.Spec.CSI.Driver
	}
	v.zone, v.tiedTo = tied(pv)
	return v
}

// whereIs is the place that a volume is, for those that are a place and not a
// disk of some cloud.
func whereIs(s corev1.PersistentVolumeSource) string {
	switch {
	case s.NFS != nil:
		return "nfs " + s.NFS.Server + ":" + s.NFS.Path
	case s.HostPath != nil:
		return "hostPath " + s.HostPath.Path
	case s.Local != nil:
		return "local " + s.Local.Path
	default:
		return ""
	}
}

// tied reads from a volume's node affinity, or from the label that came before
// it, which zone and which nodes it can be used in.
func tied(pv *corev1.PersistentVolume) (zone string, nodes []string) {
	zones := []string{}
	for _, key := range []string{corev1.LabelTopologyZone, legacyZone} {
		if z := pv.Labels[key]; z != "" {
			zones = append(zones, strings.Split(z, "__")...)
		}
	}
	if pv.Spec.NodeAffinity != nil && pv.Spec.NodeAffinity.Required != nil {
		for _, term := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
			for _, e := range term.MatchExpressions {
				switch {
				case e.Operator != corev1.NodeSelectorOpIn:
				case e.Key == corev1.LabelHostname:
					nodes = append(nodes, e.Values...)
				case strings.HasSuffix(e.Key, "/zone"):
					zones = append(zones, e.Values...)
				}
			}
		}
	}
	slices.Sort(zones)
	slices.Sort(nodes)
	return strings.Join(slices.Compact(zones), ","), slices.Compact(nodes)
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
		func(ctx context.Context, opts ...client.ListOption) ([]mountingPod, metav1.ListMeta, error) {
			var list corev1.PodList
			err := c.List(ctx, &list, opts...)
			return each(list.Items, podOf), list.ListMeta, err
		})
}

func podOf(p *corev1.Pod) mountingPod {
	_, static := p.Annotations[corev1.MirrorPodAnnotationKey]
	out := mountingPod{
		Pod: Pod{
			Namespace: p.Namespace, Name: p.Name, Phase: string(p.Status.Phase), Node: p.Spec.NodeName,
			Controller: controllerOf(p), Static: static, OfPlan: naming.OfPlanUID(p.Labels),
		},
		claims: map[string]bool{}, workload: workloadOf(p),
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
		}
	}
	if !hasTemplate(out.Controller) {
		out.outside = outsideOf("Pod/"+out.Key(), &p.Spec)
		out.needs = needsOf("Pod/"+out.Key(), &p.Spec)
	}
	return out
}

// workloadOf is what keeps a pod running: its controller, or the Deployment
// whose ReplicaSet that is, told by the hash that is in the name of both.
func workloadOf(p *corev1.Pod) string {
	controller := controllerOf(p)
	hash := p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	if name, ok := strings.CutPrefix(controller, "ReplicaSet/"); ok && hash != "" {
		if base, ok := strings.CutSuffix(name, "-"+hash); ok {
			return "Deployment/" + base
		}
	}
	return controller
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

// withTemplate is a workload; pod is nil for one that makes no pods.
func withTemplate(kind string, o metav1.Object, pod *corev1.PodSpec) templated {
	w := Workload{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), Controller: controllerOf(o), GitOps: gitOpsOf(o)}
	return templated{Workload: w, outside: outsideOf(w.Key(), pod), needs: needsOf(w.Key(), pod)}
}

func wanted(replicas *int32) int32 {
	if replicas == nil {
		return 1 // the API's default
	}
	return *replicas
}

func listStatefulSets(ctx context.Context, c client.Client, namespaces []string) ([]statefulSet, error) {
	return inNamespaces(ctx, namespaces, func(s statefulSet) string { return s.Namespace },
		func(ctx context.Context, opts ...client.ListOption) ([]statefulSet, metav1.ListMeta, error) {
			var list appsv1.StatefulSetList
			err := c.List(ctx, &list, opts...)
			return each(list.Items, statefulSetOf), list.ListMeta, err
		})
}

func statefulSetOf(o *appsv1.StatefulSet) statefulSet {
	s := statefulSet{templated: withTemplate("StatefulSet", o, &o.Spec.Template.Spec)}
	s.Replicas = wanted(o.Spec.Replicas)
	if policy := o.Spec.PersistentVolumeClaimRetentionPolicy; policy != nil {
		s.ScaleDeletesClaims = policy.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	}
	for _, t := range o.Spec.VolumeClaimTemplates {
		s.templates = append(s.templates, t.Name)
		if class := t.Spec.StorageClassName; class != nil && *class != "" {
			s.TemplateClasses = append(s.TemplateClasses, *class)
		}
	}
	return s
}

// workloadLists lists the other kinds, one function a kind.
func workloadLists(c client.Client) []page[templated] {
	return []page[templated]{
		func(ctx context.Context, opts ...client.ListOption) ([]templated, metav1.ListMeta, error) {
			var list appsv1.DeploymentList
			err := c.List(ctx, &list, opts...)
			return each(list.Items, func(o *appsv1.Deployment) templated {
				w := withTemplate("Deployment", o, &o.Spec.Template.Spec)
				w.Replicas, w.Paused = wanted(o.Spec.Replicas), o.Spec.Paused
				return w
			}), list.ListMeta, err
		},
		func(ctx context.Context, opts ...client.ListOption) ([]templated, metav1.ListMeta, error) {
			var list appsv1.DaemonSetList
			err := c.List(ctx, &list, opts...)
			return each(list.Items, func(o *appsv1.DaemonSet) templated { return withTemplate("DaemonSet", o, &o.Spec.Template.Spec) }), list.ListMeta, err
		},
		func(ctx context.Context, opts ...client.ListOption) ([]templated, metav1.ListMeta, error) {
			var list appsv1.ReplicaSetList
			err := c.List(ctx, &list, opts...)
			sets := each(list.Items, func(o *appsv1.ReplicaSet) templated {
				w := withTemplate("ReplicaSet", o, &o.Spec.Template.Spec)
				w.Replicas = wanted(o.Spec.Replicas)
				return w
			})
			// Those of Deployments are told by their Deployment.
			sets = slices.DeleteFunc(sets, func(w templated) bool { return strings.HasPrefix(w.Controller, "Deployment/") })
			return sets, list.ListMeta, err
		},
		func(ctx context.Context, opts ...client.ListOption) ([]templated, metav1.ListMeta, error) {
			var list corev1.ReplicationControllerList
			err := c.List(ctx, &list, opts...)
			return each(list.Items, func(o *corev1.ReplicationController) templated {
				var pod *corev1.PodSpec
				if o.Spec.Template != nil {
					pod = &o.Spec.Template.Spec
				}
				w := withTemplate("ReplicationController", o, pod)
				w.Replicas = wanted(o.Spec.Replicas)
				return w
			}), list.ListMeta, err
		},
		func(ctx context.Context, opts ...client.ListOption) ([]templated, metav1.ListMeta, error) {
			var list batchv1.JobList
			err := c.List(ctx, &list, opts...)
			return each(list.Items, func(o *batchv1.Job) templated {
				w := withTemplate("Job", o, &o.Spec.Template.Spec)
				if o.Status.CompletionTime != nil {
					w.outside, w.needs = nil, nil // as of its finished pods
				}
				w.Active, w.Suspended = o.Status.Active, o.Spec.Suspend != nil && *o.Spec.Suspend
				return w
			}), list.ListMeta, err
		},
		func(ctx context.Context, opts ...client.ListOption) ([]templated, metav1.ListMeta, error) {
			var list batchv1.CronJobList
			err := c.List(ctx, &list, opts...)
			return each(list.Items, func(o *batchv1.CronJob) templated {
				w := withTemplate("CronJob", o, &o.Spec.JobTemplate.Spec.Template.Spec)
				w.Suspended = o.Spec.Suspend != nil && *o.Spec.Suspend
				return w
			}), list.ListMeta, err
		},
		func(ctx context.Context, opts ...client.ListOption) ([]templated, metav1.ListMeta, error) {
			var list autoscalingv1.HorizontalPodAutoscalerList
			err := c.List(ctx, &list, opts...)
			return each(list.Items, func(o *autoscalingv1.HorizontalPodAutoscaler) templated {
				w := withTemplate("HorizontalPodAutoscaler", o, nil)
				w.Scales = o.Spec.ScaleTargetRef.Kind + "/" + o.Spec.ScaleTargetRef.Name
				return w
			}), list.ListMeta, err
		},
	}
}
