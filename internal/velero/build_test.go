package velero

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
)

var owner = naming.Owner{PlanName: "shop", PlanUID: "5f0c8a52-6f1e-4c40-9a38-0b6a7f0e9a11", RunUID: "abcdefghij"}

// shop is a plan of two namespaces, one renamed, with a copied and a skipped claim.
func shop(t *testing.T) plan.Valid {
	t.Helper()
	p := &plan.Plan{
		APIVersion: plan.APIVersion, Kind: plan.Kind, Metadata: plan.Metadata{Name: owner.PlanName, UID: owner.PlanUID},
		Spec: plan.Spec{
			Source: plan.Cluster{Context: "src"}, Destination: plan.Cluster{Context: "dst"}, Storage: plan.Storage{Location: "default"},
			Namespaces: []plan.Namespace{{Name: "shop", Destination: "shop-prod"}, {Name: "tools"}},
			Volumes: []plan.Volume{
				{Claim: "shop/data-db-0", Action: plan.Copy, Destination: plan.VolumeDestination{StorageClass: "gold", Size: "2Gi"}},
				{Claim: "shop/cache.x", Action: plan.Skip},
				{Claim: "shop/logs", StorageClass: "std", Action: plan.Copy},
			},
			StorageClasses: map[string]string{"std": "silver"},
		},
	}
	v, problems := p.Validate()
	if len(problems) > 0 {
		t.Fatalf("the test's plan is not valid: %v", problems)
	}
	return v
}

func TestTheInitialBackupHoldsObjectsAndNoVolumeWhateverThePodsAskFor(t *testing.T) {
	b := InitialBackup(owner, shop(t), 0)
	if got := b.Spec.IncludedNamespaces; strings.Join(got, ",") != "shop,tools" {
		t.Errorf("included namespaces %v, want the plan's, by their names on the source", got)
	}
	if b.Spec.DefaultVolumesToFsBackup == nil || *b.Spec.DefaultVolumesToFsBackup || b.Spec.SnapshotVolumes == nil || *b.Spec.SnapshotVolumes {
		t.Error("volumes are not switched off")
	}
	policy := SkipVolumes(owner, "velero")
	if b.Spec.ResourcePolicy == nil || b.Spec.ResourcePolicy.Name != policy.Name {
		t.Error("the backup does not name its volume policy")
	}
	var parsed struct {
		VolumePolicies []struct{ Action struct{ Type string } }
	}
	if err := yaml.Unmarshal([]byte(policy.Data["policy"]), &parsed); err != nil || len(parsed.VolumePolicies) != 1 || parsed.VolumePolicies[0].Action.Type != "skip" {
		t.Errorf("policy %q does not skip: %v", policy.Data["policy"], err)
	}
}

func TestTheStageBackupSeesTheRunsStagePodsAndNothingElse(t *testing.T) {
	v := shop(t)
	b := StageBackup(owner, v)
	if got := b.Spec.IncludedNamespaces; strings.Join(got, ",") != "shop" {
		t.Errorf("namespaces %v, want only those with a volume to copy", got)
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.LabelSelector)
	if err != nil {
		t.Fatal(err)
	}
	pod := StagePod(owner, "db-0", NodeAgent{Image: "velero:1"}, v.Copied()[0])
	if !selector.Matches(set(pod.Labels)) {
		t.Error("a stage pod of the run is not selected")
	}
	other := owner
	other.RunUID = "other"
	if selector.Matches(set(StagePod(other, "db-0", NodeAgent{}, v.Copied()[0]).Labels)) {
		t.Error("a stage pod of another run is selected")
	}
}

func TestAStagePodIsAdmittedEverywhereAndTouchesNothing(t *testing.T) {
	pod := StagePod(owner, "db-0", NodeAgent{Image: "velero:1", Tolerations: []corev1.Toleration{{Key: "storage"}}}, shop(t).Copied()[0])
	if sc := pod.Spec.SecurityContext; sc.FSGroup != nil || sc.RunAsUser != nil {
		t.Error("a pod-level group or user would chown the volume under the application")
	}
	c := pod.Spec.Containers[0].SecurityContext
	if c.RunAsNonRoot == nil || !*c.RunAsNonRoot || *c.AllowPrivilegeEscalation || len(c.Capabilities.Drop) != 1 {
		t.Error("the restricted Pod Security level would refuse the pod")
	}
	if *pod.Spec.AutomountServiceAccountToken {
		t.Error("the pod gets a token that it does not need")
	}
	if len(pod.Spec.Tolerations) != 1 {
		t.Error("the pod cannot go where the node-agent goes")
	}
}

func TestOnlyOneRestoreTouchesClaims(t *testing.T) {
	v := shop(t)
	final := FinalRestore(owner, v, "velero", owner.InitialBackup(), false, false)
	for _, kind := range []string{"persistentvolumeclaims", "persistentvolumes", "pods"} {
		if !strings.Contains(strings.Join(final.Spec.ExcludedResources, ","), kind) {
			t.Errorf("the final restore would restore %s over the exact copy", kind)
		}
	}
	for _, kind := range []string{"clusterserviceversions.operators.coreos.com", "installplans.operators.coreos.com"} {
		if !slices.Contains(final.Spec.ExcludedResources, kind) {
			t.Errorf("the final restore would make a dead copy of each of %s", kind)
		}
	}
	if got := FinalRestore(owner, v, "velero", owner.InitialBackup(), true, false).Spec.ExcludedResources; strings.Contains(strings.Join(got, ","), "pods") {
		t.Error("bare pods are lost")
	}
	if got := final.Spec.NamespaceMapping; len(got) != 1 || got["shop"] != "shop-prod" {
		t.Errorf("mapping %v, want shop to shop-prod alone", got)
	}
	if final.Spec.ResourceModifier != nil {
		t.Error("a restore without modifiers names some")
	}
}

func TestTheStageRestoreGivesEveryClaimThePlansClassForItselfAlone(t *testing.T) {
	cm, err := StageModifiers(owner, shop(t), "velero", NodeAgent{Image: "registry.example/velero:2", NodeSelector: map[string]string{"disk": "ssd"}})
	if err != nil {
		t.Fatal(err)
	}
	var m modifiers
	if err := yaml.UnmarshalStrict([]byte(cm.Data["modifiers"]), &m); err != nil {
		t.Fatal(err)
	}
	if len(m.Rules) != 3 || m.Version != "v1" || len(cm.Data) != 1 {
		t.Fatalf("got %d rules, want one for the pods and one for each copied claim", len(m.Rules))
	}
	pod := m.Rules[0].StrategicPatches[0].PatchData
	for _, want := range []string{`"name":"restore-wait"`, `"runAsUser":0`, `"capabilities":null`, "registry.example/velero:2", `"disk":"ssd"`} {
		if !strings.Contains(pod, want) {
			t.Errorf("pod patch %s lacks %s", pod, want)
		}
	}
	claim := m.Rules[1]
	if claim.Conditions.Namespaces[0] != "shop" || claim.Conditions.ResourceNameRegex != "^data-db-0$" {
		t.Errorf("conditions %+v must name the source's namespace and exactly one claim", claim.Conditions)
	}
	var spec struct {
		Spec struct {
			StorageClassName string
			Resources        struct{ Requests map[string]string }
		}
	}
	if err := json.Unmarshal([]byte(claim.MergePatches[0].PatchData), &spec); err != nil || spec.Spec.StorageClassName != "gold" || spec.Spec.Resources.Requests["storage"] != "2Gi" {
		t.Errorf("claim patch %s: %v", claim.MergePatches[0].PatchData, err)
	}
	if got := m.Rules[2].MergePatches[0].PatchData; got != `{"spec":{"storageClassName":"silver"}}` {
		t.Errorf("claim patch %s, want the class that the plan's mapping gives", got)
	}
}

func TestAStatefulSetsTemplatesFollowItsClaims(t *testing.T) {
	sets := []appsv1.StatefulSet{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"},
		Spec: appsv1.StatefulSetSpec{VolumeClaimTemplates: []corev1.PersistentVolumeClaim{
			{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fast")}},
			{ObjectMeta: metav1.ObjectMeta{Name: "wal"}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("std")}},
			{ObjectMeta: metav1.ObjectMeta{Name: "tmp"}},
		}},
	}}
	cm, err := FinalModifiers(owner, shop(t), "velero", sets, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/spec/volumeClaimTemplates/0/spec/storageClassName", "gold", "/spec/volumeClaimTemplates/1/spec/storageClassName", "silver"} {
		if !strings.Contains(cm.Data["modifiers"], want) {
			t.Errorf("modifiers lack %s:\n%s", want, cm.Data["modifiers"])
		}
	}
	if strings.Contains(cm.Data["modifiers"], "volumeClaimTemplates/2") {
		t.Error("a template of the default class is changed")
	}
	if cm, err := FinalModifiers(owner, shop(t), "velero", nil, nil); err != nil || cm != nil {
		t.Errorf("nothing to change gave %v, %v", cm, err)
	}
}

func TestVelerosObjectsCarryOurKeysAndTheReferenceSystems(t *testing.T) {
	v := shop(t)
	for name, labels := range map[string]map[string]string{
		"initial backup": InitialBackup(owner, v, 0).Labels, "stage backup": StageBackup(owner, v).Labels,
		"stage restore": StageRestore(owner, v, "velero").Labels, "final restore": FinalRestore(owner, v, "velero", owner.InitialBackup(), false, true).Labels,
	} {
		if !owner.OfRun().Matches(set(labels)) {
			t.Errorf("%s is not found by the run's own keys", name)
		}
		if labels[naming.RefMigratedByPlan] != owner.PlanUID || labels[naming.RefPartOf] != naming.RefPartOfValue {
			t.Errorf("%s lacks the reference system's keys: %v", name, labels)
		}
	}
}

type set map[string]string

func (m set) Has(k string) bool              { _, ok := m[k]; return ok }
func (m set) Get(k string) string            { return m[k] }
func (m set) Lookup(k string) (string, bool) { v, ok := m[k]; return v, ok }
