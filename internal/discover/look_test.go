package discover

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
)

// api serves what the fake client cannot: the version and the list of APIs.
func api(t *testing.T) *httptest.Server {
	t.Helper()
	resources := func(gv string, names ...string) *metav1.APIResourceList {
		l := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv}
		for _, n := range names {
			name, kind, _ := strings.Cut(n, "=")
			l.APIResources = append(l.APIResources, metav1.APIResource{Name: name, Kind: kind, Namespaced: true, Verbs: []string{"list", "get"}})
		}
		return l
	}
	group := func(name, version string) metav1.APIGroup {
		v := metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + version, Version: version}
		return metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
	}
	velero := make([]string, 0, len(veleroAPIs()))
	for _, name := range veleroAPIs() {
		velero = append(velero, name+"="+name)
	}
	answers := map[string]any{
		"/version":           map[string]string{"gitVersion": "v1.34.4"},
		"/api":               metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}},
		"/apis":              metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{group("apps", "v1"), group("velero.io", "v1")}},
		"/api/v1":            resources("v1", "configmaps=ConfigMap", "services=Service", "events=Event", "pods=Pod", "pods/log=Pod"),
		"/apis/apps/v1":      resources("apps/v1", "deployments=Deployment"),
		"/apis/velero.io/v1": resources("velero.io/v1", velero...),
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(s.Close)
	return s
}

// newCluster is a cluster that holds the objects, and whose answers the funcs
// may spoil.
func newCluster(t *testing.T, name string, funcs interceptor.Funcs, objects ...client.Object) *cluster.Cluster {
	t.Helper()
	c, err := cluster.New(&rest.Config{Host: api(t).URL}, cluster.Access{Context: name}, "velero")
	if err != nil {
		t.Fatal(err)
	}
	if funcs.Create == nil {
		funcs.Create = allow(func(authorizationv1.ResourceAttributes) bool { return true })
	}
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: types.UID("uid-of-" + name)}})
	c.Client = fake.NewClientBuilder().WithScheme(cluster.Scheme()).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	return c
}

// allow answers what we may do.
func allow(may func(authorizationv1.ResourceAttributes) bool) func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
	return func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
		review, ok := o.(*authorizationv1.SelfSubjectAccessReview)
		if !ok {
			return nil // a dry run that is admitted
		}
		review.Status.Allowed = may(*review.Spec.ResourceAttributes)
		return nil
	}
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}}
}

func claim(namespace, name, class, volume string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: named(namespace, name),
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, VolumeName: volume, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}},
	}
}

func pod(namespace, name, node string, phase corev1.PodPhase, claims ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: named(namespace, name), Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
	for _, c := range claims {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: c, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c},
		}})
	}
	return p
}

func ownedBy(p *corev1.Pod, kind, name, uid string) *corev1.Pod {
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, UID: types.UID(uid), Controller: &yes, APIVersion: "apps/v1"}}
	return p
}

func class(name, provisioner string, isDefault bool) *storagev1.StorageClass {
	sc := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner}
	if isDefault {
		sc.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	}
	return sc
}

// velero is a Velero that runs on a node.
func veleroOn(node string) []client.Object {
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers:  []corev1.Container{{Image: "registry/velero:v1.18.3"}},
		Tolerations: []corev1.Toleration{{Key: "dedicated", Value: "db", Effect: "NoSchedule"}},
	}}
	agent := ownedBy(pod("velero", "node-agent-x", node, corev1.PodRunning), "DaemonSet", "node-agent", "ds")
	agent.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return []client.Object{
		namespace("velero"), agent,
		&appsv1.Deployment{ObjectMeta: named("velero", "velero"), Spec: appsv1.DeploymentSpec{Template: template}, Status: appsv1.DeploymentStatus{ReadyReplicas: 1}},
		&appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "velero", Name: "node-agent", UID: "ds"}, Spec: appsv1.DaemonSetSpec{Template: template},
			Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 1, NumberReady: 1},
		},
		&corev1.Secret{ObjectMeta: named("velero", "velero-repo-credentials"), Data: map[string][]byte{"repository-password": []byte("very secret")}},
		&velerov1.BackupStorageLocation{
			ObjectMeta: named("velero", "default"),
			Spec: velerov1.BackupStorageLocationSpec{
				Provider: "aws", Default: true, Config: map[string]string{"region": "r"},
				StorageType: velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{Bucket: "b", Prefix: "p"}},
			},
			Status: velerov1.BackupStorageLocationStatus{Phase: velerov1.BackupStorageLocationPhaseAvailable},
		},
	}
}

// shop is an application with most of what a namespace may hold.
func shop() []client.Object {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-db"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com"}},
	}}
	bare := pod("shop", "toolbox", "node-1", corev1.PodRunning)
	bare.Annotations = map[string]string{"backup.velero.io/backup-volumes": "a,b"}
	bare.Spec.Volumes = []corev1.Volume{
		{Name: "logs", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/log"}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "ram", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
	}
	three := int32(3)
	return []client.Object{
		namespace("shop"), volume, claim("shop", "data-db-0", "gp2", "pv-db"), claim("shop", "uploads", "", "pv-lost"),
		claim("elsewhere", "data", "gp2", "pv-x"),
		ownedBy(pod("shop", "db-0", "node-1", corev1.PodRunning, "data-db-0"), "StatefulSet", "db", "sts"),
		ownedBy(pod("shop", "loader-x", "node-1", corev1.PodSucceeded, "uploads"), "Job", "loader", "job"), bare,
		&appsv1.StatefulSet{ObjectMeta: named("shop", "db"), Spec: appsv1.StatefulSetSpec{
			VolumeClaimTemplates:                 []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}},
			PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenScaled: "Delete"},
		}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"argocd.argoproj.io/instance": "shop"}}, Spec: appsv1.DeploymentSpec{Replicas: &three, Paused: true}},
		&batchv1.Job{ObjectMeta: named("shop", "loader"), Status: batchv1.JobStatus{Active: 1}},
		&autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: named("shop", "web"), Spec: autoscalingv1.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{Kind: "Deployment", Name: "web"}}},
		class("gp2", "ebs.csi.aws.com", true),
	}
}

func shopPlan(t *testing.T) plan.Valid {
	t.Helper()
	p := &plan.Plan{APIVersion: plan.APIVersion, Kind: plan.Kind, Metadata: plan.Metadata{Name: "shop", UID: "5f0c3d9e"}, Spec: plan.Spec{
		Source: plan.Cluster{Context: "src"}, Destination: plan.Cluster{Context: "dst"}, Storage: plan.Storage{Location: "default"},
		Namespaces: []plan.Namespace{{Name: "shop", Destination: "shop-prod"}},
	}}
	v, problems := p.Validate()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return v
}

func TestLookSourceSeesTheApplication(t *testing.T) {
	src := cluster.Source{Cluster: newCluster(t, "src", interceptor.Funcs{}, slices.Concat(shop(), veleroOn("node-1"))...)}
	got, err := LookSource(t.Context(), src, shopPlan(t))
	if err != nil || got.Reach != Reached || len(got.Gaps) > 0 {
		t.Fatalf("%v, %s, %+v", err, got.Error, got.Gaps)
	}
	if got.Version != "v1.34.4" || got.UID != "uid-of-src" || len(got.Namespaces) != 1 || !reflect.DeepEqual(got.StorageClasses[0], StorageClass{Name: "gp2", Provisioner: "ebs.csi.aws.com", Default: true, BindingMode: "Immediate"}) {
		t.Errorf("the cluster: %+v", got.Facts)
	}
	want := []Claim{
		{
			Namespace: "shop", Name: "data-db-0", Phase: "Bound", Volume: "pv-db", Capacity: "10Gi", Requested: "10Gi", StorageClass: "gp2", AccessModes: []string{"ReadWriteOnce"},
			VolumeMode: "Filesystem", Backend: "csi", Provisioner: "ebs.csi.aws.com", ReclaimPolicy: "Delete", StatefulSet: "db", Static: true,
			MountedBy: []Mounter{{Pod: "db-0", Phase: "Running", Node: "node-1", Workload: "StatefulSet/db"}},
		},
		{
			Namespace: "shop", Name: "uploads", Phase: "Bound", Volume: "pv-lost", Capacity: "10Gi", Requested: "10Gi", AccessModes: []string{"ReadWriteOnce"}, NoClass: true,
			VolumeMode: "Filesystem", MountedBy: []Mounter{{Pod: "loader-x", Phase: "Succeeded", Node: "node-1", Workload: "Job/loader"}},
		},
	}
	if !reflect.DeepEqual(got.Claims, want) {
		t.Errorf("claims:\ngot  %+v\nwant %+v", got.Claims, want)
	}
	bare := Pod{Namespace: "shop", Name: "toolbox", Phase: "Running", Node: "node-1", BackupVolumes: []string{"a", "b"}}
	if !slices.ContainsFunc(got.Pods, func(p Pod) bool { return reflect.DeepEqual(p, bare) }) {
		t.Errorf("pods: got %+v, want %+v among them", got.Pods, bare)
	}
	workloads := []Workload{
		{Kind: "Deployment", Namespace: "shop", Name: "web", Replicas: 3, Paused: true, GitOps: "Argo CD"},
		{Kind: "HorizontalPodAutoscaler", Namespace: "shop", Name: "web", Scales: "Deployment/web"},
		{Kind: "Job", Namespace: "shop", Name: "loader", Active: 1},
		{Kind: "StatefulSet", Namespace: "shop", Name: "db", Replicas: 1, ScaleDeletesClaims: true},
	}
	if !reflect.DeepEqual(got.Workloads, workloads) {
		t.Errorf("workloads:\ngot  %+v\nwant %+v", got.Workloads, workloads)
	}
	outside := []Outside{
		{Workload: "Pod/shop/toolbox", Volume: "logs", Kind: "hostPath", Path: "/var/log", ReadOnly: true, Used: "unknown", Class: OutsideSystem, Verdict: "not copied: the node's own, as on every node"},
		{Workload: "Pod/shop/toolbox", Volume: "scratch", Kind: "emptyDir", ReadOnly: true, Used: "unknown", Class: OutsideScratch, Verdict: "not copied: emptyDir, lost with its pod anyway"},
	}
	if !reflect.DeepEqual(got.Outside, outside) {
		t.Errorf("outside of claims:\ngot  %+v\nwant %+v", got.Outside, outside)
	}
}

func TestLookSeesVeleroAndNeverItsPassword(t *testing.T) {
	src := cluster.Source{Cluster: newCluster(t, "src", interceptor.Funcs{}, slices.Concat(shop(), veleroOn("node-1"))...)}
	got, err := LookSource(t.Context(), src, shopPlan(t))
	if err != nil {
		t.Fatal(err)
	}
	v := got.Velero
	if !v.Exists || !reflect.DeepEqual(v.Server, Deployment{Found: true, Image: "registry/velero:v1.18.3", Version: "v1.18.3", Wanted: 1, Ready: 1}) || len(v.MissingAPIs) > 0 {
		t.Errorf("server: %+v, missing %v", v.Server, v.MissingAPIs)
	}
	if !v.NodeAgent.ReadyOn("node-1") || v.NodeAgent.ReadyOn("node-2") || v.NodeAgent.Tolerations[0] != "dedicated=db:NoSchedule" {
		t.Errorf("node-agent: %+v", v.NodeAgent)
	}
	if l, ok := v.Location("default"); !ok || l.Phase != "Available" || l.Bucket != "b" || l.Prefix != "p" || l.Config["region"] != "r" {
		t.Errorf("locations: %+v", v.Locations)
	}
	if v.RepoCredentials == "" || strings.Contains(v.RepoCredentials, "secret") {
		t.Errorf("digest of the password: %q", v.RepoCredentials)
	}
	if printed, _ := json.Marshal(got); strings.Contains(string(printed), v.RepoCredentials) {
		t.Error("the digest of the password is printed")
	}
}

func TestAPartThatFailsIsNamedAndTheRestIsSeen(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
	funcs := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		switch list.(type) {
		case *corev1.PodList:
			return forbidden
		case *storagev1.StorageClassList:
			return errors.New("connection lost")
		}
		return c.List(ctx, list, opts...)
	}}
	src := cluster.Source{Cluster: newCluster(t, "src", funcs, slices.Concat(shop(), veleroOn("node-1"))...)}
	got, err := LookSource(t.Context(), src, shopPlan(t))
	if err != nil {
		t.Fatal(err)
	}
	var gaps []string
	for _, g := range got.Gaps {
		gaps = append(gaps, g.Part)
		if g.Denied != (g.Part != PartStorageClasses) {
			t.Errorf("%+v: denied is wrong", g)
		}
	}
	if want := []string{PartNodeAgent, PartPods, PartStorageClasses}; !slices.Equal(gaps, want) {
		t.Errorf("gaps: got %v, want %v", gaps, want)
	}
	if len(got.Claims) != 2 || !got.HasGap(PartPods) || len(got.Workloads) == 0 {
		t.Errorf("the rest was not seen: %+v", got)
	}
}

func TestLookFindsWhatARestoreWouldMeet(t *testing.T) {
	dep := func(ns, name string) *appsv1.Deployment { return &appsv1.Deployment{ObjectMeta: named(ns, name)} }
	ours := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-prod", Name: "ours", Labels: map[string]string{naming.LabelCreatedBy: naming.CreatedBy, naming.LabelPlan: "5f0c3d9e"}}}
	src := cluster.Source{Cluster: newCluster(t, "src", interceptor.Funcs{}, slices.Concat(shop(), veleroOn("node-1"))...)}
	dst := cluster.Destination{Cluster: newCluster(t, "dst", interceptor.Funcs{}, append(veleroOn("node-2"),
		namespace("shop-prod"), dep("shop-prod", "web"), ours, dep("other", "web"),
		&corev1.ConfigMap{ObjectMeta: named("shop-prod", "kube-root-ca.crt")})...)}
	s, d, err := Look(t.Context(), src, dst, shopPlan(t))
	if err != nil || len(s.Gaps)+len(d.Gaps) > 0 {
		t.Fatalf("%v, %+v, %+v", err, s.Gaps, d.Gaps)
	}
	want := []Object{
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop-prod", Name: "ours", OfPlan: "5f0c3d9e"},
		{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop-prod", Name: "web"},
	}
	if !reflect.DeepEqual(d.Objects, want) {
		t.Errorf("on the destination: got %+v, want %+v", d.Objects, want)
	}
	if !slices.ContainsFunc(s.Objects, func(o Object) bool { return o.Kind == "Deployment" && o.Namespace == "shop" && o.Name == "web" }) {
		t.Errorf("on the source: got %+v, want the Deployment web among them", s.Objects)
	}
}

func TestAClusterThatCannotBeReachedSaysHow(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>please log in</html>")) }))
	defer page.Close()
	refuse := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer refuse.Close()
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	defer untrusted.Close()
	for name, c := range map[string]struct {
		host string
		want Reach
	}{
		"nobody listens":         {closed.URL, Unreachable},
		"an unknown host":        {"https://mig.invalid:6443", Unreachable},
		"a web page":             {page.URL, NotKubernetes},
		"no API there":           {httptestNotFound(t), NotKubernetes},
		"TLS asked of plain":     {strings.Replace(page.URL, "http://", "https://", 1), NotKubernetes},
		"a foreign certificate":  {untrusted.URL, Untrusted},
		"credentials not wanted": {refuse.URL, Denied},
	} {
		t.Run(name, func(t *testing.T) {
			c1, err := cluster.New(&rest.Config{Host: c.host, Dial: (&net.Dialer{}).DialContext}, cluster.Access{Context: "src"}, "velero")
			if err != nil {
				t.Fatal(err)
			}
			got, err := LookSource(t.Context(), cluster.Source{Cluster: c1}, shopPlan(t))
			if err != nil || got.Reach != c.want || got.Error == "" {
				t.Errorf("got %s (%s), %v, want %s", got.Reach, got.Error, err, c.want)
			}
		})
	}
}

func httptestNotFound(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	return s.URL
}

func TestRightsAreAskedOnceWhereEverythingIsAllowed(t *testing.T) {
	asked := 0
	c := newCluster(t, "src", interceptor.Funcs{Create: allow(func(authorizationv1.ResourceAttributes) bool { asked++; return true })})
	got, err := askRights(t.Context(), c, sourceRights([]string{"a", "b"}, "velero", false))
	if err != nil || asked != 1 {
		t.Fatalf("asked %d times, %v", asked, err)
	}
	for _, r := range got {
		if !r.Allowed {
			t.Errorf("%+v is not allowed", r)
		}
	}
}

func TestWhatIsAllowedEverywhereIsNotAskedForEachNamespace(t *testing.T) {
	asked := 0
	var mu sync.Mutex
	c := newCluster(t, "src", interceptor.Funcs{Create: allow(func(a authorizationv1.ResourceAttributes) bool {
		mu.Lock()
		defer mu.Unlock()
		asked++
		return a.Resource != "*" || a.Verb != "*"
	})})
	wanted := sourceRights([]string{"a", "b", "c"}, "velero", false)
	if _, err := askRights(t.Context(), c, wanted); err != nil {
		t.Fatal(err)
	}
	if most := 1 + len(everywhere(wanted)); asked != most {
		t.Errorf("asked %d times, want %d", asked, most)
	}
}

func TestARunNeedsNoRightToMakeEvents(t *testing.T) {
	told := 0
	for _, r := range append(sourceRights([]string{"shop"}, "velero", false), destinationRights([]string{"shop"}, "velero", false)...) {
		if r.Group != "events.k8s.io" {
			continue
		}
		told++
		if !r.Optional {
			t.Errorf("%s in %s is needed", r.Verb, r.Namespace)
		}
	}
	if told < 4 {
		t.Errorf("%d rights are asked about", told)
	}
}

func TestRightsOfOneNamespaceAreNotThoseOfAnother(t *testing.T) {
	c := newCluster(t, "src", interceptor.Funcs{Create: allow(func(a authorizationv1.ResourceAttributes) bool {
		return a.Namespace == "mine" || a.Namespace == "velero" || a.Resource == "namespaces"
	})})
	got, err := askRights(t.Context(), c, sourceRights([]string{"mine", "theirs"}, "velero", false))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range got {
		want := r.Namespace == "mine" || r.Namespace == "velero" || r.Resource == "namespaces"
		if r.Allowed != want {
			t.Errorf("%s %s in %q: allowed is %t, want %t", r.Verb, r.Resource, r.Namespace, r.Allowed, want)
		}
		if r.Why == "" {
			t.Errorf("%s %s has no reason", r.Verb, r.Resource)
		}
	}
}
