package main

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// size is how much a cluster holds. What a namespace holds depends on its
// number alone, so that it is the same in a cluster with others and in one
// without.
type size struct {
	Namespaces int // of those that there are, the first ones
	Of         int // how many there are in the large cluster, over which the objects are spread
	Pods       int // in each namespace
	Claims     int // in each namespace, bound, each mounted by a pod
	Kinds      int // custom ones
	Objects    int // of those kinds, in all namespaces of the large cluster together
}

// large is what a cluster of many teams holds, at a scale of 1.
func large(scale float64) size {
	n := max(10, int(1000*scale))
	return size{Namespaces: n, Of: n, Pods: 20, Claims: 5, Kinds: max(10, int(300*scale)), Objects: int(60_000 * scale)}
}

// first is a cluster that holds the first n namespaces of another, and nothing else.
func (s size) first(n int) size { s.Namespaces = n; return s }

func (s size) String() string {
	return fmt.Sprintf("%d namespaces, %d pods, %d claims, %d kinds with %d objects",
		s.Namespaces, s.Namespaces*s.Pods, s.Namespaces*s.Claims, s.Kinds, s.Objects*s.Namespaces/s.Of)
}

const class = "fast"

func namespaceName(i int) string { return fmt.Sprintf("team-%04d", i) }

func namespaceOf(i int) *corev1.Namespace {
	name := namespaceName(i)
	labels := map[string]string{"team": fmt.Sprint(i % 50), "pod-security.kubernetes.io/warn": "baseline", corev1.LabelMetadataName: name}
	return &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
		Status:     corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
	}
}

func storageClass() *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: class, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner: "csi.example.com",
	}
}

func meta(namespace, name, app string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
		"app.kubernetes.io/name": app, "app.kubernetes.io/instance": app + "-production", "app.kubernetes.io/managed-by": "Helm",
	}}
}

func template(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: meta("", "", app), Spec: podSpec(app)}
}

// podSpec is as long as they are in life.
func podSpec(app string) corev1.PodSpec {
	limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("512Mi")}
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}, PeriodSeconds: 10}
	container := func(name string) corev1.Container {
		c := corev1.Container{
			Name: name, Image: "registry.example.com/" + app + "/" + name + "@sha256:" + strings.Repeat("0123456789abcdef", 4),
			Args:          []string{"--config=/etc/" + app + "/config.yaml", "--log-format=json", "--listen=:8080"},
			Ports:         []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
			Resources:     corev1.ResourceRequirements{Limits: limits, Requests: limits},
			LivenessProbe: probe, ReadinessProbe: probe,
		}
		for _, v := range []string{"HOST", "PORT", "USER", "NAME", "REGION", "LEVEL", "CACHE", "QUEUE"} {
			c.Env = append(c.Env, corev1.EnvVar{Name: "APP_" + v, Value: app + "." + strings.ToLower(v) + ".svc.example.com"})
		}
		return c
	}
	return corev1.PodSpec{
		Containers: []corev1.Container{container("server"), container("proxy")}, NodeName: "", ServiceAccountName: "default",
		AutomountServiceAccountToken: ptr.To(false),
		Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: app},
		}}}},
	}
}

func selector(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": app}}
}

func database(namespace string, claims int) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: meta(namespace, "db", "db"), Spec: appsv1.StatefulSetSpec{
		Replicas: ptr.To(int32(claims)), Selector: selector("db"), Template: template("db"), ServiceName: "db",
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*claim(namespace, 0)},
	}}
}

func web(namespace string, pods int) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: meta(namespace, "web", "web"), Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To(int32(pods)), Selector: selector("web"), Template: template("web"),
	}}
}

func webReplicas(of *appsv1.Deployment) *appsv1.ReplicaSet {
	out := &appsv1.ReplicaSet{ObjectMeta: meta(of.Namespace, "web-7d4b9c", "web"), Spec: appsv1.ReplicaSetSpec{
		Replicas: of.Spec.Replicas, Selector: of.Spec.Selector, Template: of.Spec.Template,
	}}
	out.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(of, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	return out
}

func config(namespace, app string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: meta(namespace, app, app), Data: map[string]string{"config.yaml": strings.Repeat("key: value\n", 50)}}
}

func service(namespace, app string) *corev1.Service {
	return &corev1.Service{ObjectMeta: meta(namespace, app, app), Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, Selector: selector(app).MatchLabels, Ports: []corev1.ServicePort{{Port: 8080}},
	}}
}

func claimName(i int) string { return fmt.Sprintf("data-db-%d", i) }

func volumeName(namespace string, i int) string { return fmt.Sprintf("pvc-%s-%d", namespace, i) }

func capacity() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
}

func claim(namespace string, i int) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: meta(namespace, claimName(i), "db"), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To(class),
		VolumeName: volumeName(namespace, i), Resources: corev1.VolumeResourceRequirements{Requests: capacity()},
	}}
}

func volume(of *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: of.Spec.VolumeName}, Spec: corev1.PersistentVolumeSpec{
		Capacity: capacity(), AccessModes: of.Spec.AccessModes, StorageClassName: class, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		ClaimRef:               &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: of.Namespace, Name: of.Name, UID: of.UID},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: of.Spec.VolumeName}},
	}}
}

// pod is one of a namespace: those of the database mount a claim, the others
// are of the web's.
func pod(namespace string, i, claims int, db *appsv1.StatefulSet, replicas *appsv1.ReplicaSet) *corev1.Pod {
	app, name := "web", fmt.Sprintf("web-7d4b9c-%04x", i*7919)
	owner := metav1.NewControllerRef(replicas, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	if i < claims {
		app, name = "db", fmt.Sprintf("db-%d", i)
		owner = metav1.NewControllerRef(db, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	}
	p := &corev1.Pod{ObjectMeta: meta(namespace, name, app), Spec: podSpec(app)}
	p.OwnerReferences = []metav1.OwnerReference{*owner}
	if i < claims {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(i)},
		}})
	}
	return p
}

// running is the status of a pod that no kubelet runs.
func running(p *corev1.Pod) {
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.1.2.3", HostIP: "10.0.0.1"}
	for _, c := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue})
	}
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Ready: true, Image: c.Image, ImageID: c.Image, ContainerID: "containerd://" + strings.Repeat("0123456789abcdef", 4),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
}

// kindsInGroup is how many kinds an API group has; clusters of many operators
// have about so many.
const kindsInGroup = 10

func groupOf(kind int) string { return fmt.Sprintf("g%02d.bench.example.com", kind/kindsInGroup) }

func kindOf(kind int) string { return fmt.Sprintf("Thing%03d", kind) }

func pluralOf(kind int) string { return fmt.Sprintf("thing%03ds", kind) }

func definition(kind int) *apiextensionsv1.CustomResourceDefinition {
	name := kindOf(kind)
	names := apiextensionsv1.CustomResourceDefinitionNames{Plural: pluralOf(kind), Singular: strings.ToLower(name), Kind: name, ListKind: name + "List"}
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: pluralOf(kind) + "." + groupOf(kind)},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: groupOf(kind), Scope: apiextensionsv1.NamespaceScoped,
			Names:      names,
			Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{
			AcceptedNames: names, StoredVersions: []string{"v1"},
			Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
				{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue, Reason: "NoConflicts"},
				{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue, Reason: "InitialNamesAccepted"},
			},
		},
	}
}

// thing is one object of a custom kind.
func thing(namespace string, kind, n int) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"of": namespace, "text": strings.Repeat("a few words ", 60),
	}}}
	o.SetAPIVersion(groupOf(kind) + "/v1")
	o.SetKind(kindOf(kind))
	o.SetNamespace(namespace)
	o.SetName(fmt.Sprintf("thing-%d", n))
	o.SetLabels(map[string]string{"app.kubernetes.io/name": "web"})
	return o
}

// managed is as long as what an API server remembers of who set which field.
var managed = `{"f:metadata":{"f:labels":{".":{}` + strings.Repeat(`,"f:app.kubernetes.io/name":{}`, 10) + `}},"f:spec":{".":{}` +
	strings.Repeat(`,"f:terminationGracePeriodSeconds":{}`, 15) + `}}`
