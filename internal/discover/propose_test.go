package discover

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/plan"
)

func TestSuggestClassSaysWhy(t *testing.T) {
	source := []StorageClass{
		{Name: "same", Provisioner: "a"},
		{Name: "gp2", Provisioner: "kubernetes.io/aws-ebs"},
		{Name: "rook", Provisioner: "ceph"},
		{Name: "hand", Provisioner: noProvisioner},
		{Name: "odd", Provisioner: "odd"},
	}
	destination := []StorageClass{
		{Name: "same", Provisioner: "b"},
		{Name: "ebs", Provisioner: "ebs.csi.aws.com"},
		{Name: "ceph-slow", Provisioner: "ceph"},
		{Name: "ceph", Provisioner: "ceph", Default: true},
		{Name: "by-hand", Provisioner: noProvisioner},
	}
	noDefault := slices.DeleteFunc(slices.Clone(destination), func(c StorageClass) bool { return c.Default })
	for _, c := range []struct {
		class string
		there []StorageClass
		want  ClassChoice
	}{
		{"same", destination, ClassChoice{"same", "same", "same name on the destination"}},
		{"rook", destination, ClassChoice{"rook", "ceph", "same provisioner ceph"}},
		{"gp2", destination, ClassChoice{"gp2", "ebs", "ebs.csi.aws.com took over from kubernetes.io/aws-ebs"}},
		{"hand", destination, ClassChoice{"hand", "ceph", "the destination's default class"}},
		{"odd", destination, ClassChoice{"odd", "ceph", "the destination's default class"}},
		{"deleted", destination, ClassChoice{"deleted", "ceph", "the destination's default class"}},
		{"", destination, ClassChoice{"", "ceph", "the destination's default class"}},
		{"odd", noDefault, ClassChoice{"odd", "", "no class of this name or provisioner on the destination, and no default: choose one"}},
		{"odd", nil, ClassChoice{"odd", "", "no class of this name or provisioner on the destination, and no default: choose one"}},
	} {
		if got := SuggestClass(c.class, source, c.there); got != c.want {
			t.Errorf("%q: got %+v, want %+v", c.class, got, c.want)
		}
	}
}

func TestSuggestActionCopiesWhatVeleroCanReadAndLeavesTheRestToAPerson(t *testing.T) {
	mounted := func(phase string) []Mounter { return []Mounter{{Pod: "p", Phase: phase, Node: "n"}} }
	for name, c := range map[string]struct {
		claim Claim
		want  plan.Action
		why   string
	}{
		"mounted":                 {Claim{Phase: "Bound", MountedBy: mounted("Running")}, plan.Copy, "mounted by p"},
		"mounted by a done pod":   {Claim{Phase: "Bound", MountedBy: mounted("Succeeded")}, plan.Copy, "used only by finished pods (p): copied through a helper pod"},
		"mounted by no pod":       {Claim{Phase: "Bound"}, plan.Copy, "mounted by no pod: copied through a helper pod"},
		"never bound":             {Claim{Phase: "Pending"}, "", "not bound to a volume (Pending): there is no data to copy"},
		"lost":                    {Claim{Phase: "Lost"}, "", "its volume is lost: there is no data to copy"},
		"a block volume":          {Claim{Phase: "Bound", VolumeMode: "Block"}, "", "a block volume: Velero's file-system backup cannot read it"},
		"a hostPath volume":       {Claim{Phase: "Bound", Backend: "hostPath"}, "", "a hostPath volume: Velero's file-system backup refuses it"},
		"an NFS volume is a file": {Claim{Phase: "Bound", Backend: "nfs", MountedBy: mounted("Running")}, plan.Copy, "mounted by p"},
	} {
		got := SuggestAction(c.claim)
		if got.Action != c.want || got.Why != c.why || slices.Contains(got.Supported, plan.Copy) != (c.want == plan.Copy) {
			t.Errorf("%s: got %+v, want %q because %q", name, got, c.want, c.why)
		}
	}
}

func TestParseNamespaces(t *testing.T) {
	got, err := ParseNamespaces("shop:shop-prod, other")
	if want := []plan.Namespace{{Name: "shop", Destination: "shop-prod"}, {Name: "other"}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, arg := range []string{"", ",", "shop:", ":shop", "a,,b", "Shop", "a:b:c", "a b", "a:B"} {
		var argErr *NamespaceArgError
		if got, err := ParseNamespaces(arg); !errors.As(err, &argErr) {
			t.Errorf("%q: got %v, %v, want a NamespaceArgError", arg, got, err)
		}
	}
}

// two clusters: the shop and Velero on the source, Velero on the destination.
func twoClusters(t *testing.T, more ...client.Object) (cluster.Source, cluster.Destination) {
	t.Helper()
	src := newCluster(t, "src", interceptor.Funcs{}, slices.Concat(shop(), veleroOn("node-1"), more)...)
	dst := newCluster(t, "dst", interceptor.Funcs{}, slices.Concat(veleroOn("node-2"), []client.Object{class("fast", "ebs.csi.aws.com", false), class("slow", "x", true)})...)
	return cluster.Source{Cluster: src}, cluster.Destination{Cluster: dst}
}

func TestProposeMakesASoundPlan(t *testing.T) {
	src, dst := twoClusters(t)
	got, err := Propose(t.Context(), src, dst, Wish{Namespaces: []plan.Namespace{{Name: "shop", Destination: "shop-prod"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, problems := got.Plan.Validate(); len(problems) > 0 {
		t.Fatal(problems)
	}
	spec := got.Plan.Spec
	if got.Plan.Metadata.Name != "shop" || len(got.Plan.Metadata.UID) < 8 || spec.Storage.Location != "default" || spec.Source.Context != "src" || spec.Source.VeleroNamespace != "" {
		t.Errorf("the head: %+v", got.Plan)
	}
	want := []plan.Volume{
		{
			Claim: "shop/data-db-0", Volume: "pv-db", Capacity: "10Gi", Used: "unknown", StorageClass: "gp2", AccessModes: []string{"ReadWriteOnce"}, VolumeMode: "Filesystem",
			Supported: []plan.Action{plan.Copy, plan.Skip}, Action: plan.Copy, CopyMethod: plan.CopyFilesystem,
		},
		{
			Claim: "shop/uploads", Volume: "pv-lost", Capacity: "10Gi", Used: "unknown", AccessModes: []string{"ReadWriteOnce"}, VolumeMode: "Filesystem",
			Supported: []plan.Action{plan.Copy, plan.Skip}, Action: plan.Copy, CopyMethod: plan.CopyFilesystem, Destination: plan.VolumeDestination{StorageClass: "slow"},
		},
	}
	if !reflect.DeepEqual(spec.Volumes, want) {
		t.Errorf("volumes:\ngot  %+v\nwant %+v", spec.Volumes, want)
	}
	if !reflect.DeepEqual(spec.StorageClasses, map[string]string{"gp2": "fast"}) {
		t.Errorf("storage classes: %v", spec.StorageClasses)
	}
	row := Row{
		Claim: "shop/data-db-0", Volume: "pv-db", Phase: "Bound", Capacity: "10Gi", Used: "unknown", StorageClass: "gp2", AccessModes: []string{"ReadWriteOnce"}, VolumeMode: "Filesystem",
		Backend: "csi", Owner: "StatefulSet/db", Supported: []string{"copy", "skip"}, Action: "copy", DestinationClass: "fast", Why: "mounted by db-0; class: same provisioner ebs.csi.aws.com",
		MountedBy: []string{"db-0 (running on node-1)"}, State: Planned,
	}
	if !reflect.DeepEqual(got.Claims[0], row) {
		t.Errorf("row:\ngot  %+v\nwant %+v", got.Claims[0], row)
	}
	if len(got.Notes) > 0 {
		t.Errorf("nothing needs a decision, but: %v", got.Notes)
	}
}

func TestProposeIsTheSameButForTheUID(t *testing.T) {
	src, dst := twoClusters(t)
	files := map[string]bool{}
	for range 2 {
		got, err := Propose(t.Context(), src, dst, Wish{UID: "5f0c3d9e"})
		if err != nil {
			t.Fatal(err)
		}
		files[string(plan.Marshal(got.Plan))] = true
	}
	if len(files) != 1 {
		t.Error("the same clusters gave two plans")
	}
}

func TestProposeTakesEveryNamespaceThatIsNotTheSystems(t *testing.T) {
	gone := namespace("gone")
	gone.Status.Phase = corev1.NamespaceTerminating
	src, dst := twoClusters(t, namespace("default"), namespace("kube-public"), namespace("openshift-etcd"), namespace("web"), gone)
	got, err := Propose(t.Context(), src, dst, Wish{Name: "all"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []plan.Namespace{{Name: "shop"}, {Name: "web"}}; !reflect.DeepEqual(got.Plan.Spec.Namespaces, want) {
		t.Errorf("got %v, want %v", got.Plan.Spec.Namespaces, want)
	}
	if !slices.ContainsFunc(got.Notes, func(n string) bool { return strings.Contains(n, "gone is being deleted") }) {
		t.Errorf("that one is being deleted is not told: %v", got.Notes)
	}

	src, dst = twoClusters(t, namespace("default"), &corev1.ConfigMap{ObjectMeta: named("default", "mine")})
	got, err = Propose(t.Context(), src, dst, Wish{})
	if err != nil || !slices.Contains(got.Plan.Spec.Namespaces, plan.Namespace{Name: "default"}) {
		t.Errorf("default holds something and is left out: %v, %v", got, err)
	}
}

func TestProposeTellsWhatNeedsADecision(t *testing.T) {
	pending := claim("shop", "later", "exotic", "")
	pending.Status.Phase = corev1.ClaimPending
	src, dst := twoClusters(t, pending)
	dst.Client = newCluster(t, "dst", interceptor.Funcs{}, class("fast", "ebs.csi.aws.com", false)).Client
	got, err := Propose(t.Context(), src, dst, Wish{Namespaces: []plan.Namespace{{Name: "shop"}}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"the destination (context dst) has no BackupStorageLocation default in namespace velero: Velero must be installed there and share one with the other cluster",
		"choose an action for claim shop/later: not bound to a volume (Pending): there is no data to copy",
	}
	if !slices.Equal(got.Notes, want) {
		t.Errorf("got  %q\nwant %q", got.Notes, want)
	}
}

func TestProposeRefusesWhatCannotBeMigrated(t *testing.T) {
	src, dst := twoClusters(t)
	wish := Wish{Namespaces: []plan.Namespace{{Name: "shop"}, {Name: "lost"}}}
	_, err := Propose(t.Context(), src, dst, wish)
	var noNamespace *NoNamespaceError
	if !errors.As(err, &noNamespace) || err.Error() != "source cluster (context src) has no namespace lost; it has shop" {
		t.Errorf("a namespace that is not there: %v", err)
	}

	same := cluster.Destination(src)
	var sameCluster *SameClusterError
	if _, err = Propose(t.Context(), src, same, Wish{}); !errors.As(err, &sameCluster) {
		t.Errorf("one cluster for both: %v", err)
	}

	closed := newCluster(t, "far", interceptor.Funcs{})
	closed.Discovery, closed.Server = unreachable(t).Discovery, "https://far"
	var reachErr *ReachError
	if _, err = Propose(t.Context(), src, cluster.Destination{Cluster: closed}, Wish{}); !errors.As(err, &reachErr) || reachErr.Reach != Unreachable || reachErr.Side != "destination" {
		t.Errorf("a destination that does not answer: %v", err)
	}
}

// unreachable is a cluster whose API nobody serves.
func unreachable(t *testing.T) *cluster.Cluster {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	c, err := cluster.New(&rest.Config{Host: s.URL}, cluster.Access{Context: "far"}, "velero")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestProposeNeedsTheClaims(t *testing.T) {
	funcs := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*corev1.PersistentVolumeClaimList); ok {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "", errors.New("no"))
		}
		return c.List(ctx, list, opts...)
	}}
	_, dst := twoClusters(t)
	src := cluster.Source{Cluster: newCluster(t, "src", funcs, shop()...)}
	_, err := Propose(t.Context(), src, dst, Wish{Namespaces: []plan.Namespace{{Name: "shop"}}})
	var part *PartError
	if !errors.As(err, &part) || !part.Denied || !apierrors.IsForbidden(err) {
		t.Errorf("a plan without its claims: %v", err)
	}
}

func TestRefreshKeepsWhatTheUserChose(t *testing.T) {
	src, dst := twoClusters(t)
	old := &plan.Plan{APIVersion: plan.APIVersion, Kind: plan.Kind, Metadata: plan.Metadata{Name: "shop", UID: "5f0c3d9e"}, Spec: plan.Spec{
		Source: plan.Cluster{Context: "src"}, Destination: plan.Cluster{Context: "dst"}, Storage: plan.Storage{Location: "default"},
		Namespaces: []plan.Namespace{{Name: "shop"}},
		Volumes: []plan.Volume{
			{Claim: "shop/deleted", Action: plan.Copy, Capacity: "1Gi"},
			{Claim: "shop/data-db-0", Capacity: "5Gi", Action: plan.Skip, Verify: true, Destination: plan.VolumeDestination{StorageClass: "mine", Size: "20Gi"}},
		},
	}}
	before := string(plan.Marshal(old))
	got, err := Refresh(t.Context(), src, dst, old)
	if err != nil {
		t.Fatal(err)
	}
	if string(plan.Marshal(old)) != before {
		t.Error("the plan that was given was changed")
	}
	volumes := got.Plan.Spec.Volumes
	if len(volumes) != 3 || !reflect.DeepEqual(volumes[0], old.Spec.Volumes[0]) {
		t.Fatalf("got %+v", volumes)
	}
	kept := volumes[1]
	if kept.Capacity != "10Gi" || kept.Volume != "pv-db" || kept.Action != plan.Skip || !kept.Verify || kept.Destination.StorageClass != "mine" || kept.Destination.Size != "20Gi" {
		t.Errorf("got %+v, want new facts and old choices", kept)
	}
	var states []string
	for _, r := range got.Claims {
		states = append(states, r.Claim+" "+r.State)
	}
	if want := []string{"shop/deleted vanished", "shop/data-db-0 planned", "shop/uploads new"}; !slices.Equal(states, want) {
		t.Errorf("got %v, want %v", states, want)
	}
	if len(got.Notes) != 2 || !strings.Contains(got.Notes[0], "shop/deleted is in the plan and no longer on the source") || !strings.Contains(got.Notes[1], "shop/uploads is new") {
		t.Errorf("notes: %q", got.Notes)
	}
}
