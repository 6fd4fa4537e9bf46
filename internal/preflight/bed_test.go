//go:build e2e

package preflight

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/apitest"
	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/plan"
)

// pair is the two API servers that the tests of this package share.
var pair *apitest.Pair

func TestMain(m *testing.M) {
	cluster.SilenceClients()
	dir, err := os.MkdirTemp("", "preflight")
	if err == nil {
		pair, err = apitest.Start(dir, apitest.Options{})
	}
	code := 1
	if err == nil {
		code = m.Run()
		err = pair.Stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// beds counts them, so that each has names of its own.
var beds atomic.Int32

// bed is an application with one volume on the source, a destination that is
// ready for it, and Velero on both: all in namespaces of this bed alone. Tests
// break one thing of it.
type bed struct {
	t    *testing.T
	ns   string // of the application
	src  cluster.Source
	dst  cluster.Destination
	plan plan.Plan
}

const (
	node     = "node-1"
	provider = "csi.example.com"
)

func newBed(t *testing.T) *bed {
	t.Helper()
	n := beds.Add(1)
	b := &bed{t: t, ns: fmt.Sprintf("app-%d", n)}
	velero := fmt.Sprintf("velero-%d", n)
	b.src = cluster.Source{Cluster: b.connect(labtest.SourceContext, velero)}
	b.dst = cluster.Destination{Cluster: b.connect(labtest.DestinationContext, velero)}
	b.velero(b.src.Cluster)
	b.velero(b.dst.Cluster)
	b.application()
	b.create(b.dst, b.class("to", nil))
	b.plan = plan.Plan{APIVersion: plan.APIVersion, Kind: plan.Kind, Metadata: plan.Metadata{Name: b.ns, UID: "uid-of-" + b.ns}, Spec: plan.Spec{
		Source:      plan.Cluster{Context: labtest.SourceContext, VeleroNamespace: velero},
		Destination: plan.Cluster{Context: labtest.DestinationContext, VeleroNamespace: velero},
		Storage:     plan.Storage{Location: "default"}, Namespaces: []plan.Namespace{{Name: b.ns}},
		Volumes:        []plan.Volume{{Claim: b.ns + "/data", StorageClass: b.ns + "-from", Used: "100Mi", Action: plan.Copy}},
		StorageClasses: map[string]string{b.ns + "-from": b.ns + "-to"},
	}}
	return b
}

func (b *bed) connect(context, velero string) *cluster.Cluster {
	b.t.Helper()
	c, err := cluster.Connect(cluster.Access{Kubeconfig: pair.Kubeconfig, Context: context}, velero)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// create makes objects; what has a status keeps it.
func (b *bed) create(c client.Client, objects ...client.Object) {
	b.t.Helper()
	for _, o := range objects {
		wanted := o.DeepCopyObject().(client.Object)
		if err := c.Create(b.t.Context(), o); err != nil {
			b.t.Fatalf("%T %s: %v", o, o.GetName(), err)
		}
		wanted.SetResourceVersion(o.GetResourceVersion())
		wanted.SetUID(o.GetUID())
		if err := c.Status().Update(b.t.Context(), wanted); client.IgnoreNotFound(err) != nil {
			b.t.Fatalf("status of %T %s: %v", o, o.GetName(), err)
		}
	}
}

// change changes an object of the cluster, its status too.
func change[T client.Object](b *bed, c client.Client, o T, with func(T)) {
	b.t.Helper()
	if err := c.Get(b.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		b.t.Fatal(err)
	}
	with(o)
	status := o.DeepCopyObject().(client.Object)
	if err := c.Update(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
	status.SetResourceVersion(o.GetResourceVersion())
	if err := c.Status().Update(b.t.Context(), status); client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) remove(c client.Client, o client.Object) {
	b.t.Helper()
	if err := c.Delete(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
}

func in(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func namespaced(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}}
}

func (b *bed) class(what string, with func(*storagev1.StorageClass)) *storagev1.StorageClass {
	sc := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: b.ns + "-" + what}, Provisioner: provider}
	if with != nil {
		with(sc)
	}
	return sc
}

// velero is a Velero as its installer makes it, which works.
func (b *bed) velero(c *cluster.Cluster) {
	b.t.Helper()
	ns := c.VeleroNamespace
	labels := map[string]string{"component": "velero"}
	agent := map[string]string{"name": "node-agent"}
	b.create(c, namespaced(ns),
		&corev1.Secret{ObjectMeta: in(ns, "cloud-credentials"), StringData: map[string]string{"cloud": "[default]\naws_access_key_id=a\naws_secret_access_key=very-secret\n"}},
		&corev1.Secret{ObjectMeta: in(ns, "velero-repo-credentials"), StringData: map[string]string{"repository-password": "very-secret"}},
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "velero", Labels: labels},
			Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					InitContainers: []corev1.Container{{Name: "aws", Image: "velero/velero-plugin-for-aws:v1.13.0"}},
					Containers:     []corev1.Container{{Name: "velero", Image: "velero/velero:v1.18.3", Command: []string{"/velero"}, Args: []string{"server", "--uploader-type=kopia"}}},
					Volumes:        []corev1.Volume{{Name: "c", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "cloud-credentials"}}}},
				},
			}},
			Status: appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1},
		},
		&velerov1.BackupStorageLocation{
			ObjectMeta: in(ns, "default"),
			Spec: velerov1.BackupStorageLocationSpec{
				Provider: "aws", Default: true, Config: map[string]string{"region": "r"},
				StorageType: velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{Bucket: "b", Prefix: "p"}},
			},
			Status: velerov1.BackupStorageLocationStatus{Phase: velerov1.BackupStorageLocationPhaseAvailable, LastValidationTime: &metav1.Time{Time: time.Now()}},
		})
	ds := &appsv1.DaemonSet{
		ObjectMeta: in(ns, "node-agent"),
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: agent}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: agent},
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "node-agent", Image: "velero/velero:v1.18.3", VolumeMounts: []corev1.VolumeMount{{Name: "host-pods", MountPath: "/host_pods"}}}},
				Volumes:    []corev1.Volume{{Name: "host-pods", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/kubelet/pods"}}}},
			},
		}},
		Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 1, NumberReady: 1},
	}
	b.create(c, ds)
	pod := b.pod(ns, "node-agent-x", node, metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet")))
	b.create(c, pod)
}

// pod is a pod that runs and is ready.
func (b *bed) pod(namespace, name, node string, owner *metav1.OwnerReference, claims ...string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: in(namespace, name),
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "example.com/app:1"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	if owner != nil {
		p.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	for _, c := range claims {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: c, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c},
		}})
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: c, MountPath: "/" + c})
	}
	return p
}

// volume is a bound volume of a claim; with may change both before they are made.
func (b *bed) volume(name string, with func(*corev1.PersistentVolume, *corev1.PersistentVolumeClaim)) {
	b.t.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	class := b.ns + "-from"
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: b.ns + "-" + name, Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": provider}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes, StorageClassName: class, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: provider, VolumeHandle: name}},
			ClaimRef:               &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: b.ns, Name: name, UID: "1"},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
	pvc := &corev1.PersistentVolumeClaim{
		ObjectMeta: in(b.ns, name),
		Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: modes, StorageClassName: &class, VolumeName: pv.Name, Resources: corev1.VolumeResourceRequirements{Requests: size}},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: size},
	}
	if with != nil {
		with(pv, pvc)
	}
	b.create(b.src, pv, pvc)
}

func (b *bed) application() {
	b.t.Helper()
	labels := map[string]string{"app": "db"}
	set := &appsv1.StatefulSet{ObjectMeta: in(b.ns, "db"), Spec: appsv1.StatefulSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, ServiceName: "db", Replicas: ptr.To(int32(1)),
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/app:1"}}}},
	}}
	b.create(b.src, b.class("from", nil), namespaced(b.ns), set)
	b.volume("data", nil)
	b.create(b.src, b.pod(b.ns, "db-0", node, metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet")), "data"))
}

// check is what mig plan validate says.
func (b *bed) check() []Condition {
	b.t.Helper()
	v, problems := b.plan.Validate()
	if len(problems) > 0 {
		b.t.Fatal(problems)
	}
	s, d, err := discover.Look(b.t.Context(), b.src, b.dst, v)
	if err != nil {
		b.t.Fatal(err)
	}
	conditions := Check(v, s, d)
	for _, c := range conditions {
		if strings.Contains(c.Message+c.Hint, "very-secret") || strings.Contains(c.Message+c.Hint, "%!") {
			b.t.Errorf("%s: message %q, hint %q", c.Type, c.Message, c.Hint)
		}
	}
	return conditions
}

// policy has the destination refuse namespaces for which an expression is not
// true, and waits until it does.
func (b *bed) policy(expression string) {
	b.t.Helper()
	rule := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: b.ns + ".example.com"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"namespaces"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: expression, Message: "the label team is missing"}},
		},
	}
	b.create(b.dst, rule, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: rule.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: rule.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	})
	err := wait.PollUntilContextTimeout(b.t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		return b.dst.Create(ctx, namespaced(b.ns), client.DryRunAll) != nil, nil
	})
	if err != nil {
		b.t.Fatal("the policy does not come into force")
	}
}
