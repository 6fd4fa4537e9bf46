//go:build e2e && cases

package cases

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
)

// The lab's storage classes.
const (
	srcWaits = "src-standard" // the default; waits for a pod
	srcFast  = "src-fast"
	srcSized = "src-sized" // volumes that can be full
	dstWaits = "dst-gold"  // the default; waits for a pod
	dstFast  = "dst-silver"
	dstSized = "dst-sized"
)

// runLimit is how long a whole run may take on a busy machine.
const runLimit = 10 * time.Minute

// labPlace is a place on the lab with a plan and namespaces that no other case
// has, empty now and again at the end.
func labPlace(t *testing.T, s scenario, planName string, namespaces ...string) *place {
	t.Helper()
	p := open(t, s)
	clear := func(ctx context.Context) error {
		for _, c := range p.lab.Both() {
			if err := labtest.RemoveNamespaces(ctx, c, namespaces...); err != nil {
				return err
			}
		}
		return p.lab.ForgetPlan(ctx, planName)
	}
	p.must(clear(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), runLimit)
		defer cancel()
		if err := clear(ctx); err != nil {
			t.Errorf("clearing up: %v", err)
		}
	})
	return p
}

// filled puts files of every odd kind into a claim's volume.
func (p *place) filled(namespace string, claims ...string) {
	p.t.Helper()
	for _, claim := range claims {
		dir, err := labtest.VolumeDir(p.t.Context(), p.src(), namespace, claim)
		p.must(err)
		p.must(labtest.WriteOddFiles(dir))
		p.must(labtest.WriteNoise(filepath.Join(dir, "noise"), 1<<20))
	}
}

// arrived wants every file of every claim to be on the destination.
func (p *place) arrived(from, to string) {
	p.t.Helper()
	count, err := p.lab.Arrived(p.t.Context(), from, to, labtest.Writing{})
	if err != nil || count == 0 {
		p.t.Errorf("%d files arrived: %v", count, err)
	}
}

func (p *place) get(c *cluster.Cluster, o client.Object) {
	p.t.Helper()
	p.must(c.Get(p.t.Context(), client.ObjectKeyFromObject(o), o))
}

// classIs wants a claim of the destination to be bound in a class.
func (p *place) classIs(namespace, claim, class string) {
	p.t.Helper()
	p.must(labtest.Until(p.t.Context(), patience, "claim "+claim+" is bound", func(ctx context.Context) (labtest.NotYet, error) {
		got, err := labtest.ClassOf(ctx, p.dst(), namespace, claim)
		if err != nil {
			return "", err
		}
		if got != class {
			return labtest.NotYet("its class is " + got), nil
		}
		_, err = labtest.VolumeDir(ctx, p.dst(), namespace, claim)
		return "", err
	}))
}

// noHelpers wants no pod of mig's own to be left in a namespace.
func (p *place) noHelpers(namespace string) {
	p.t.Helper()
	for _, c := range p.lab.Both() {
		var pods corev1.PodList
		p.must(c.List(p.t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{naming.LabelCreatedBy: naming.CreatedBy}))
		if len(pods.Items) > 0 {
			p.t.Errorf("pods of mig's are left on %s: %s", c.Access.Context, pods.Items[0].Name)
		}
	}
}

func (p *place) planUID(name string) string {
	p.t.Helper()
	var uid string
	p.editPlan(name, func(p *plan.Plan) { uid = p.Metadata.UID })
	return uid
}

func TestAnUnusedClaimArrivesInAClassThatWaitsForAPod(t *testing.T) {
	p := labPlace(t, scenario{"B03", "storage-class", velero}, "cloakroom", "cloakroom")
	p.given(p.src(), namespace("cloakroom"), claim("cloakroom", "trunk", srcFast), deployment("cloakroom", "porter"))
	p.filled("cloakroom", "trunk")
	p.planned("cloakroom")
	p.exits(done, "migrate")
	p.classIs("cloakroom", "trunk", dstWaits)
	p.arrived("cloakroom", "cloakroom")
	p.noHelpers("cloakroom")
}

func TestAStatefulSetThatGrowsAfterTheMoveGetsItsNextClaimToo(t *testing.T) {
	p := labPlace(t, scenario{"B04", "storage-class", velero}, "orchestra", "orchestra")
	set := band("orchestra", srcWaits)
	set.Spec.Replicas, set.Spec.PodManagementPolicy = ptr.To(int32(2)), appsv1.ParallelPodManagement
	set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 4}
	set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType, WhenScaled: appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
	}
	p.given(p.src(), namespace("orchestra"), set)
	p.filled("orchestra", "notes-horns-4", "notes-horns-5")
	p.planned("orchestra")
	p.editPlan("orchestra", func(p *plan.Plan) { p.Spec.StorageClasses = map[string]string{srcWaits: dstFast} })
	p.exits(done, "migrate")

	there := &appsv1.StatefulSet{ObjectMeta: in("orchestra", "horns")}
	p.get(p.dst(), there)
	if got := *there.Spec.VolumeClaimTemplates[0].Spec.StorageClassName; got != dstFast {
		t.Errorf("the template's class is %s", got)
	}
	if there.Spec.PodManagementPolicy != set.Spec.PodManagementPolicy || there.Spec.Ordinals == nil || there.Spec.Ordinals.Start != 4 ||
		there.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted != appsv1.RetainPersistentVolumeClaimRetentionPolicyType {
		t.Errorf("the set was changed: %+v", there.Spec)
	}
	there.Spec.Replicas = ptr.To(int32(3))
	p.must(p.dst().Update(t.Context(), there))
	for _, claim := range []string{"notes-horns-4", "notes-horns-5", "notes-horns-6"} {
		p.classIs("orchestra", claim, dstFast)
	}
}

func TestAFullVolumeIsNamedAndArrivesInALargerOne(t *testing.T) {
	p := labPlace(t, scenario{"B09", "storage-class", node}, "granary", "granary")
	fill := deployment("granary", "miller", mountsClaim("wheat"))
	fill.Spec.Template.Spec.Containers[0].Command = []string{"sh", "-c", "dd if=/dev/zero of=/wheat/sack bs=1M || true; touch /tmp/full; sleep infinity"}
	fill.Spec.Template.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
		Exec: &corev1.ExecAction{Command: []string{"test", "-e", "/tmp/full"}},
	}}
	p.given(p.src(), namespace("granary"), claim("granary", "wheat", srcSized), fill)
	p.must(p.lab.WorkloadsReady(t.Context(), p.src(), "granary", patience))
	p.planned("granary")
	p.editPlan("granary", func(p *plan.Plan) { p.Spec.StorageClasses = map[string]string{srcSized: dstSized} })
	// The kubelet measures volumes about once a minute.
	p.must(labtest.Until(t.Context(), 2*patience, "that it is full is told", func(context.Context) (labtest.NotYet, error) {
		if found := p.validated().of("VolumeFull"); len(found) == 0 || !found[0].names("granary/wheat") {
			return "VolumeFull does not name it", nil
		}
		return "", nil
	}))
	p.editPlan("granary", func(p *plan.Plan) { p.Spec.Volumes[0].Destination.Size = "128Mi" })
	p.wantReady(p.validated())
	p.exits(done, "migrate")
	size := &corev1.PersistentVolumeClaim{ObjectMeta: in("granary", "wheat")}
	p.get(p.dst(), size)
	if got := size.Spec.Resources.Requests[corev1.ResourceStorage]; got.Cmp(resource.MustParse("128Mi")) != 0 {
		t.Errorf("its size is %s", got.String())
	}
}

func TestSomebodyElsesClassMapIsLeftAloneAndTheClaimGetsItsClass(t *testing.T) {
	p := labPlace(t, scenario{"B12", "storage-class", velero}, "archive", "archive")
	others := &corev1.ConfigMap{ObjectMeta: in(labtest.VeleroNamespace, "maps-of-others"), Data: map[string]string{"pewter": "tin"}}
	others.Labels = map[string]string{"velero.io/plugin-config": "", "velero.io/change-storage-class": "RestoreItemAction"}
	p.given(p.dst(), others)
	p.given(p.src(), namespace("archive"), claim("archive", "rolls", srcWaits), deployment("archive", "clerk", mountsClaim("rolls")))
	p.filled("archive", "rolls")
	p.planned("archive")
	p.editPlan("archive", func(p *plan.Plan) { p.Spec.StorageClasses = map[string]string{srcWaits: dstFast} })
	p.wantFound(p.validated(), "ClassMapsOfOthers", "maps-of-others")
	p.exits(done, "migrate")
	p.classIs("archive", "rolls", dstFast)
	p.arrived("archive", "archive")

	var maps corev1.ConfigMapList
	p.must(p.dst().List(t.Context(), &maps, client.InNamespace(labtest.VeleroNamespace), client.HasLabels{"velero.io/change-storage-class"}))
	if len(maps.Items) != 1 || maps.Items[0].ResourceVersion != others.ResourceVersion {
		t.Errorf("the map of others was touched, or is not alone: %d maps", len(maps.Items))
	}
}

func TestNamesAtTheLimitGoAllTheWayAndBack(t *testing.T) {
	long := "a-mansion-with-many-rooms-and-a-name-that-will-never-ever-end-0"
	p := labPlace(t, scenario{"L01", "naming", velero}, long, long)
	p.given(p.src(), namespace(long), claim(long, "bed", srcWaits), deployment(long, "guest", mountsClaim("bed")))
	p.filled(long, "bed")
	p.exits(done, "plan", "create", long, "--src", "src", "--dst", "dst", "--namespaces", long)
	p.exits(done, "migrate", long)
	p.arrived(long, long)
	p.exits(done, "rollback", long, "--yes")
	p.must(p.lab.GoneFromDestination(t.Context(), p.planUID(long), long))
}

func TestRoleBindingsFollowTheNamespaceToItsNewName(t *testing.T) {
	p := labPlace(t, scenario{"P01", "mapping", velero}, "abbey", "abbey", "priory")
	subject := func(namespace, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	}
	role := &rbacv1.Role{ObjectMeta: in("abbey", "bell"), Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: in("abbey", "bell"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "bell"},
		Subjects: []rbacv1.Subject{subject("abbey", "monk"), subject("village", "smith"), {APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "choir"}},
	}
	p.given(p.src(), namespace("abbey"), &corev1.ServiceAccount{ObjectMeta: in("abbey", "monk")}, role, binding)
	p.planned("abbey:priory")
	p.exits(done, "migrate")

	there := &rbacv1.RoleBinding{ObjectMeta: in("priory", "bell")}
	p.get(p.dst(), there)
	want := slices.Clone(binding.Subjects)
	want[0].Namespace = "priory"
	if !slices.Equal(there.Subjects, want) {
		t.Errorf("got %+v, want %+v", there.Subjects, want)
	}
}

func TestDataFollowsAMappedAndAnUnmappedNamespaceOfOnePlan(t *testing.T) {
	p := labPlace(t, scenario{"P03", "mapping", velero}, "mill", "mill", "millhouse", "pond")
	p.given(p.src(), namespace("mill"), claim("mill", "flour", srcWaits), deployment("mill", "wheel", mountsClaim("flour")))
	p.given(p.src(), namespace("pond"), claim("pond", "fish", srcWaits), deployment("pond", "heron", mountsClaim("fish")))
	p.filled("mill", "flour")
	p.filled("pond", "fish")
	p.planned("mill:millhouse,pond")
	p.exits(done, "migrate")
	p.arrived("mill", "millhouse")
	p.arrived("pond", "pond")
}

func TestAFinishedJobsDataArrivesAndTheJobIsNotRunAgain(t *testing.T) {
	p := labPlace(t, scenario{"D03", "volume-coverage", velero}, "pottery", "pottery")
	job := finishedJob("pottery", "firing", "pots")
	job.Spec.Template.Annotations = nil
	job.Spec.Template.Spec.Containers[0].Command = []string{"sh", "-c", "date +%s%N > /pots/fired"}
	p.given(p.src(), namespace("pottery"), claim("pottery", "pots", srcWaits), job)
	p.must(labtest.Until(t.Context(), patience, "the Job has finished", func(ctx context.Context) (labtest.NotYet, error) {
		now := &batchv1.Job{ObjectMeta: in("pottery", "firing")}
		if err := p.src().Get(ctx, client.ObjectKeyFromObject(now), now); err != nil || now.Status.Succeeded == 1 {
			return "", err
		}
		return "it has not", nil
	}))
	p.planned("pottery")
	p.exits(done, "migrate")
	p.arrived("pottery", "pottery")
	p.noHelpers("pottery")
}

func TestUnusedClaimsArriveAndWhatSleepsGoesOnSleeping(t *testing.T) {
	p := labPlace(t, scenario{"D05", "volume-coverage", velero}, "lighthouse", "lighthouse")
	asleep := deployment("lighthouse", "keeper", mountsClaim("oil"))
	asleep.Spec.Replicas = ptr.To(int32(0))
	p.given(p.src(), namespace("lighthouse"), claim("lighthouse", "rope", srcFast), claim("lighthouse", "oil", srcFast), asleep)
	p.filled("lighthouse", "rope", "oil")
	p.planned("lighthouse")
	p.exits(done, "migrate")
	p.arrived("lighthouse", "lighthouse")
	p.get(p.dst(), asleep)
	if *asleep.Spec.Replicas != 0 {
		t.Errorf("it was woken: %d replicas", *asleep.Spec.Replicas)
	}
}

func TestASharedVolumeIsCopiedOnceAndNothingIsLeftToVelerosDefaults(t *testing.T) {
	p := labPlace(t, scenario{"D08", "volume-coverage", velero}, "library", "library")
	(scenario{"D14", "volume-coverage", velero}).told(t)
	books := claim("library", "books", srcWaits)
	books.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	readers := deployment("library", "readers", mountsClaim("books"))
	readers.Spec.Replicas = ptr.To(int32(3))
	p.given(p.src(), namespace("library"), books, readers, deployment("library", "writer", mountsClaim("books")))
	p.filled("library", "books")
	p.planned("library")
	p.exits(done, "migrate")
	p.arrived("library", "library")

	uid := p.planUID("library")
	var copies velerov1.PodVolumeBackupList
	p.must(p.src().List(t.Context(), &copies, client.InNamespace(labtest.VeleroNamespace)))
	ours := slices.DeleteFunc(copies.Items, func(c velerov1.PodVolumeBackup) bool {
		return c.Spec.Pod.Namespace != "library"
	})
	if len(ours) != 1 {
		t.Errorf("the volume was copied %d times", len(ours))
	}
	var backups velerov1.BackupList
	p.must(p.src().List(t.Context(), &backups, client.InNamespace(labtest.VeleroNamespace), client.MatchingLabels{naming.LabelPlan: uid}))
	for _, b := range backups.Items {
		if b.Spec.DefaultVolumesToFsBackup == nil || b.Spec.SnapshotVolumes == nil || b.Spec.SnapshotMoveData == nil {
			t.Errorf("Backup %s leaves something to the server's defaults: %+v", b.Name, b.Spec)
		}
	}
	if len(backups.Items) == 0 {
		t.Error("there is no backup of the plan")
	}
}

func TestOfAPodsVolumesOnlyTheClaimIsCopied(t *testing.T) {
	p := labPlace(t, scenario{"D11", "volume-coverage", velero}, "atelier", "atelier")
	projected := mounting{volume: corev1.Volume{Name: "all", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "colours"}}}},
	}}}}
	p.given(p.src(), namespace("atelier"), configMap("atelier", "colours"), claim("atelier", "canvas", srcWaits),
		deployment("atelier", "easel", mountsClaim("canvas"), scratch("palette", srcWaits), empty("rags"), projected))
	p.filled("atelier", "canvas")
	p.planned("atelier")
	p.exits(done, "migrate")
	var claims corev1.PersistentVolumeClaimList
	p.must(p.dst().List(t.Context(), &claims, client.InNamespace("atelier")))
	for _, c := range claims.Items {
		if strings.HasSuffix(c.Name, "-palette") && metav1.GetControllerOf(&c) == nil {
			t.Errorf("claim %s was made by somebody else than its pod", c.Name)
		}
	}
	p.exits(done, "rollback", "--yes")
}
