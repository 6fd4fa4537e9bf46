package discover

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/plan"
)

// template is a pod with one volume that one container mounts.
func template(image, mount string, readOnly bool, v corev1.VolumeSource) corev1.PodSpec {
	return corev1.PodSpec{
		Containers: []corev1.Container{{Image: image, VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: mount, ReadOnly: readOnly}}}},
		Volumes:    []corev1.Volume{{Name: "v", VolumeSource: v}},
	}
}

func TestWhatIsNotInClaimsIsToldFromWhatNobodyMisses(t *testing.T) {
	hostPath := func(path string) corev1.VolumeSource {
		return corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}
	}
	socket := hostPath("/srv/agent.sock")
	socket.HostPath.Type = ptr.To(corev1.HostPathSocket)
	emptyDir := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	inMemory := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}
	ephemeral := corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}
	for name, c := range map[string]struct {
		pod     corev1.PodSpec
		class   OutsideClass
		verdict string
	}{
		"a directory of the node":                {template("app", "/data", false, hostPath("/srv/data")), OutsideData, "not copied: hostPath"},
		"a directory that is only read":          {template("app", "/data", true, hostPath("/srv/data")), OutsideData, "not copied: hostPath"},
		"the node's time zone":                   {template("app", "/tz", false, hostPath("/etc/localtime")), OutsideSystem, "not copied: the node's own, as on every node"},
		"a path that goes back up":               {template("app", "/data", false, hostPath("/etc/ssl/../../srv/data")), OutsideData, "not copied: hostPath"},
		"a path that only begins alike":          {template("app", "/data", false, hostPath("/devices/data")), OutsideData, "not copied: hostPath"},
		"the node's logs, read":                  {template("agent", "/logs", true, hostPath("/var/log/pods")), OutsideSystem, "not copied: the node's own, as on every node"},
		"logs that the application writes":       {template("app", "/logs", false, hostPath("/var/log/app")), OutsideData, "not copied: hostPath"},
		"the whole node, read":                   {template("agent", "/host", true, hostPath("/")), OutsideSystem, "not copied: the node's own, as on every node"},
		"a socket":                               {template("agent", "/s", false, socket), OutsideSystem, "not copied: the node's own, as on every node"},
		"a database's own directory":             {template("example.com/mine:1", "/var/lib/mysql", false, emptyDir), OutsideData, "not copied: emptyDir, of a database"},
		"a database's image":                     {template("registry:5000/db/mongo:7@sha256:aa", "/store", false, emptyDir), OutsideData, "not copied: emptyDir, of a database"},
		"a database's scratch space":             {template("postgres:17", "/tmp", false, emptyDir), OutsideScratch, "not copied: emptyDir, lost with its pod anyway"},
		"an emptyDir of anything else":           {template("nginx", "/work", false, emptyDir), OutsideScratch, "not copied: emptyDir, lost with its pod anyway"},
		"a volume that its pod makes for itself": {template("app", "/scratch", false, ephemeral), OutsideScratch, "not copied: temporary, the pod makes its own"},
	} {
		got := outsideOf("Deployment/shop/web", &c.pod)
		if len(got) != 1 || got[0].Class != c.class || got[0].Verdict != c.verdict {
			t.Errorf("%s: got %+v, want %s, %q", name, got, c.class, c.verdict)
		}
	}
	config := template("app", "/c", true, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}})
	memory := template("redis", "/data", false, inMemory)
	if got := append(outsideOf("w", &config), outsideOf("w", &memory)...); len(got) > 0 {
		t.Errorf("objects and memory hold no data of their own: %+v", got)
	}
}

func TestDataOutsideOfClaimsIsSeenWithoutPodsAndToldOnce(t *testing.T) {
	spec := template("app", "/hosted", false, corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv/studio"}})
	down := &appsv1.Deployment{ObjectMeta: named("shop", "paint"), Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(0)), Template: corev1.PodTemplateSpec{Spec: spec}}}
	up := &appsv1.DaemonSet{ObjectMeta: named("shop", "each"), Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: spec}}}
	its := ownedBy(pod("shop", "each-x", "node-1", corev1.PodRunning), "DaemonSet", "each", "ds-each")
	its.Spec.Volumes, its.Spec.Containers = spec.Volumes, spec.Containers
	odd := ownedBy(pod("shop", "odd-x", "node-1", corev1.PodRunning), "Sandbox", "odd", "sb")
	odd.Spec.Volumes, odd.Spec.Containers = spec.Volumes, spec.Containers
	src, dst := twoClusters(t, down, up, its, odd)
	got, err := Propose(t.Context(), src, dst, Wish{Namespaces: []plan.Namespace{{Name: "shop"}}})
	if err != nil {
		t.Fatal(err)
	}
	var owners []string
	for _, o := range got.Outside {
		if o.Class == OutsideData {
			owners = append(owners, o.Workload)
		}
	}
	if want := []string{"DaemonSet/shop/each", "Deployment/shop/paint", "Pod/shop/odd-x"}; !slices.Equal(owners, want) {
		t.Errorf("got %v, want %v", owners, want)
	}
	if want := "Deployment/shop/paint keeps data outside of claims (hostPath /srv/studio at /hosted): not copied: hostPath"; !slices.Contains(got.Notes, want) {
		t.Errorf("notes: %q, want among them %q", got.Notes, want)
	}
}

func TestTheClaimOfAnEphemeralVolumeIsShownAndInNoPlan(t *testing.T) {
	scratch := claim("shop", "web-x-scratch", "gp2", "pv-s")
	scratch.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "web-x", UID: "u", Controller: ptr.To(true), APIVersion: "v1"}}
	src, dst := twoClusters(t, scratch)
	got, err := Propose(t.Context(), src, dst, Wish{Namespaces: []plan.Namespace{{Name: "shop"}}})
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(got.Plan.Spec.Volumes, func(v plan.Volume) bool { return v.Claim == "shop/web-x-scratch" }) {
		t.Error("it is in the plan")
	}
	shown := func(p *Proposal) bool {
		return slices.ContainsFunc(p.Claims, func(r Row) bool {
			return r.Claim == "shop/web-x-scratch" && r.State == Temporary && strings.HasPrefix(r.Why, "temporary, not copied")
		})
	}
	if !shown(got) {
		t.Errorf("it is not shown: %+v", got.Claims)
	}
	again, err := Refresh(t.Context(), src, dst, got.Plan)
	if err != nil || !shown(again) || len(again.Plan.Spec.Volumes) != len(got.Plan.Spec.Volumes) {
		t.Errorf("after a refresh: %v, %+v", err, again)
	}
}

func TestAClassThatCannotShareIsPassedOverForASharedClaim(t *testing.T) {
	there := []StorageClass{
		{Name: "disk", Provisioner: "ebs.csi.aws.com", Default: true},
		{Name: "hand", Provisioner: noProvisioner},
		{Name: "files", Provisioner: "efs.csi.aws.com"},
	}
	shared := Claim{StorageClass: "gp2", AccessModes: []string{"ReadWriteMany"}}
	if got := SuggestClassFor(shared, nil, there); got.Destination != "files" || got.Why != "disk makes volumes for one node, and this one is shared; efs.csi.aws.com may do" {
		t.Errorf("got %+v", got)
	}
	if got := SuggestClassFor(shared, nil, there[:2]); got.Destination != "" || !strings.Contains(got.Why, "choose one") {
		t.Errorf("without any that fits: got %+v", got)
	}
	alone := Claim{StorageClass: "gp2", AccessModes: []string{"ReadWriteOnce"}}
	if got := SuggestClassFor(alone, nil, there); got.Destination != "disk" {
		t.Errorf("one that is not shared: got %+v", got)
	}
}

func TestASharedClaimDoesNotChangeTheMappingOfItsClass(t *testing.T) {
	shared := claim("shop", "shared", "gp2", "pv-shared")
	shared.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	src, dst := twoClusters(t, shared)
	got, err := Propose(t.Context(), src, dst, Wish{Namespaces: []plan.Namespace{{Name: "shop"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range got.Plan.Spec.Volumes {
		want := map[string]string{"shop/shared": "slow", "shop/uploads": "slow"}[v.Claim]
		if v.Destination.StorageClass != want {
			t.Errorf("%s: class %q of its own, want %q", v.Claim, v.Destination.StorageClass, want)
		}
	}
	if got.Plan.Spec.StorageClasses["gp2"] != "fast" {
		t.Errorf("mapping: %v", got.Plan.Spec.StorageClasses)
	}
}

func TestUsedBytesAreBelievedWhereTheFileSystemIsTheVolumesOwn(t *testing.T) {
	const gi = 1 << 30
	for name, c := range map[string]struct {
		u    usage
		want int64
	}{
		"its own":                   {usage{used: 3 * gi, size: 10 * gi}, 3 * gi},
		"its own, a little smaller": {usage{used: 3 * gi, size: 9 * gi}, 3 * gi},
		"the disk below":            {usage{used: 300 * gi, size: 500 * gi}, 0},
		"not told":                  {usage{}, 0},
	} {
		claim := Claim{Capacity: "10Gi"}
		claim.setUsage(c.u)
		if claim.UsedBytes != c.want {
			t.Errorf("%s: got %d, want %d", name, claim.UsedBytes, c.want)
		}
	}
}

func TestKubeletsTellHowFullVolumesAre(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path != "/api/v1/nodes/node-1/proxy/stats/summary" {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		_, _ = w.Write([]byte(`{"pods":[{"podRef":{"name":"db-0","namespace":"shop"},"volume":[
			{"name":"tmp","usedBytes":1,"capacityBytes":2},
			{"name":"data","pvcRef":{"name":"data-db-0","namespace":"shop"},"usedBytes":5242881,"capacityBytes":10737418240}]}]}`))
	}))
	defer s.Close()
	c := newCluster(t, "src", interceptor.Funcs{})
	real, err := cluster.New(&rest.Config{Host: s.URL}, cluster.Access{}, "velero")
	if err != nil {
		t.Fatal(err)
	}
	c.Discovery = real.Discovery
	on := func(name, node string) Claim {
		return Claim{Namespace: "shop", Name: name, Capacity: "10Gi", MountedBy: []Mounter{{Pod: "p", Phase: "Running", Node: node}}}
	}
	facts := SourceFacts{Claims: []Claim{on("data-db-0", "node-1"), on("other", "node-2")}}
	if err := lookAtUsage(t.Context(), c, &facts); err == nil {
		t.Error("that a kubelet did not answer is not told")
	}
	if facts.Claims[0].UsedBytes != 5242881 || facts.Claims[1].UsedBytes != 0 || asked != 2 {
		t.Errorf("got %+v after %d questions", facts.Claims, asked)
	}
	if got := wholeMi(facts.Claims[0].UsedBytes); got != "6Mi" {
		t.Errorf("in the plan it is %s, want 6Mi", got)
	}
}
