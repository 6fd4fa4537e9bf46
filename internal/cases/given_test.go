//go:build e2e

package cases

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// image is one that the lab has.
const image = "registry.test/toolbox:1"

func namespace(name string, labels ...string) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for i := 0; i+1 < len(labels); i += 2 {
		ns.Labels[labels[i]] = labels[i+1]
	}
	return ns
}

func in(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: in(namespace, name), Data: map[string]string{"tea": "oolong"}}
}

// storageClass is one whose volumes a provisioner makes at once.
func storageClass(name, provisioner string) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner,
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingImmediate),
	}
}

// patient is a class whose volumes are made when a pod mounts them.
func patient(name, provisioner string) *storagev1.StorageClass {
	c := storageClass(name, provisioner)
	c.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	return c
}

func asDefault(c *storagev1.StorageClass) *storagev1.StorageClass {
	c.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	return c
}

func claim(namespace, name, class string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: in(namespace, name)}
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("64Mi")}
	c.Spec.StorageClassName = ptr.To(class)
	return c
}

// mounting gives a pod a volume that its container sees at /NAME.
type mounting struct {
	volume   corev1.Volume
	readOnly bool
	device   bool
}

func mountsClaim(name string) mounting {
	return mounting{volume: corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}}}
}

func mountsDevice(claim string) mounting {
	m := mountsClaim(claim)
	m.device = true
	return m
}

func mountsHostPath(name, path string) mounting {
	return mounting{volume: corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}}}
}

func readOnly(m mounting) mounting { m.readOnly = true; return m }

func podSpec(mounts ...mounting) corev1.PodSpec {
	c := corev1.Container{Name: "main", Image: image, Command: []string{"sh", "-c", "sleep infinity"}}
	spec := corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(1))}
	for _, m := range mounts {
		spec.Volumes = append(spec.Volumes, m.volume)
		if m.device {
			c.VolumeDevices = append(c.VolumeDevices, corev1.VolumeDevice{Name: m.volume.Name, DevicePath: "/dev/" + m.volume.Name})
			continue
		}
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: m.volume.Name, MountPath: "/" + m.volume.Name, ReadOnly: m.readOnly})
	}
	spec.Containers = []corev1.Container{c}
	return spec
}

// deployment is one pod with what it mounts.
func deployment(namespace, name string, mounts ...mounting) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: in(namespace, name)}
	d.Spec = appsv1.DeploymentSpec{
		Replicas: ptr.To(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(mounts...)},
	}
	return d
}
