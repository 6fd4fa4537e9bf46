package step

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/velero"
)

const stageSource = `
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: shop, name: data, uid: data, labels: {app: web}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: shop, name: cache, uid: cache}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: shop, name: others, uid: others, labels: {mig-cli.github.io/staged-by: another-plan}}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: velero, name: node-agent}, spec: {template: {spec: {containers: [{name: node-agent, image: "velero:1"}]}}}}
`

const livePod = `
---
{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: web-1}, spec: {volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}, status: {phase: Running}}
`

func stagedClaims(t *testing.T, c client.Client) []string {
	t.Helper()
	var list corev1.PersistentVolumeClaimList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, claim := range list.Items {
		if by := claim.Labels[naming.LabelStagedBy]; by != "" {
			out = append(out, claim.Name+" by "+by)
		}
	}
	slices.Sort(out)
	return out
}

func TestAStageLabelsTheClaimsToCopyAndTakesItsOwnLabelsAwayAgain(t *testing.T) {
	r := bed(t, stageSource, "")
	settle(t, ClaimsMarked(r))
	if got, want := stagedClaims(t, r.Source), []string{"data by 5f0c3d9e-27b1", "others by another-plan"}; !slices.Equal(got, want) {
		t.Errorf("labelled: %v, want %v", got, want)
	}
	check(t, "unmarked", settle(t, ClaimsUnmarked(r)), pipeline.Done, "no claim bears the label")
	if got, want := stagedClaims(t, r.Source), []string{"others by another-plan"}; !slices.Equal(got, want) {
		t.Errorf("still labelled: %v, want %v", got, want)
	}
	var data corev1.PersistentVolumeClaim
	if err := r.Source.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "data"}, &data); err != nil || data.Labels["app"] != "web" {
		t.Errorf("the claim's own labels are %v, %v", data.Labels, err)
	}
}

func TestAStageMakesPodsOnlyForClaimsThatNoRunningPodMounts(t *testing.T) {
	for name, c := range map[string]struct {
		pod  string
		want int
	}{
		"a running pod":    {livePod, 0},
		"no pod":           {"", 1},
		"a finished pod":   {strings.Replace(livePod, "Running", "Succeeded", 1), 1},
		"a pod that waits": {strings.Replace(livePod, "Running", "Pending", 1), 1},
	} {
		r := bed(t, stageSource+c.pod, "")
		settle(t, EnsureStagePods(r, IdleClaims))
		pods, err := listStagePods(t.Context(), r.Source, r.Owner)
		if err != nil || len(pods) != c.want {
			t.Errorf("%s: %d stage pods, %v, want %d", name, len(pods), err, c.want)
		}
		if c.want == 0 {
			check(t, name, settle(t, StagePodsCreated(r, IdleClaims)), pipeline.Done, "")
		}
	}
}

func TestALiveBackupTakesTheLabelledClaimsAndNoOtherVolumeOfTheirPods(t *testing.T) {
	r := bed(t, stageSource, "")
	policy := velero.StagePolicy(r.Owner, "velero").Data["policy"]
	backup := velero.LiveBackup(r.Owner, r.Plan)
	first, second := strings.Index(policy, "fs-backup"), strings.Index(policy, "skip")
	if !strings.Contains(policy, `mig-cli.github.io/staged-by: "5f0c3d9e-27b1"`) || first < 0 || second < first {
		t.Errorf("policy, of which the first match counts:\n%s", policy)
	}
	if backup.Spec.ResourcePolicy == nil || backup.Spec.ResourcePolicy.Name != r.Owner.StagePolicy() || backup.Spec.LabelSelector != nil {
		t.Errorf("the backup does not go by its policy alone: %+v", backup.Spec)
	}
}

func TestAClaimHasOneStagePodThoughABetterNameBecomesFree(t *testing.T) {
	const staged = `
---
{apiVersion: velero.io/v1, kind: PodVolumeBackup, metadata: {namespace: velero, name: pvb}, spec: {pod: {namespace: shop, name: web-1}, tags: {pvc-uid: data}}, status: {phase: Completed}}
`
	r := bed(t, stageSource+livePod+staged, "")
	settle(t, EnsureStagePods(r, EveryClaim)) // the application's pod is still on its way out
	gone := &corev1.Pod{}
	gone.Namespace, gone.Name = "shop", "web-1"
	if err := r.Source.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	settle(t, EnsureStagePods(r, EveryClaim))
	pods, err := listStagePods(t.Context(), r.Source, r.Owner)
	if err != nil || len(pods) != 1 {
		t.Errorf("%d stage pods, %v, want one: two would be restored, one of them without its volume", len(pods), err)
	}
}
