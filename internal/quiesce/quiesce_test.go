package quiesce

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mig-cli/mig/internal/naming"
)

var (
	firstRun  = naming.Owner{PlanName: "shop", PlanUID: "plan-1", RunUID: "run-1"}
	secondRun = naming.Owner{PlanName: "shop", PlanUID: "plan-1", RunUID: "run-2"}
	otherPlan = naming.Owner{PlanName: "shop", PlanUID: "plan-2", RunUID: "run-1"}
)

// workload reads an object; the namespace is shop, the resource version 1.
func workload(t *testing.T, text string) Workload {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	u.SetNamespace("shop")
	u.SetResourceVersion("1")
	return Workload{u}
}

// after is the workload as the cluster has it after the patch.
func after(t *testing.T, w Workload, c Change, err error) Workload {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := w.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	merged, err := jsonpatch.MergePatch(raw, c.Patch)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(merged); err != nil {
		t.Fatal(err)
	}
	if u.GetAnnotations() != nil && len(u.GetAnnotations()) == 0 {
		u.SetAnnotations(nil) // as the API drops an empty map
	}
	return Workload{u}
}

func stopped(t *testing.T, w Workload, o naming.Owner) Workload {
	t.Helper()
	for range 3 {
		if s := StateOf(w, o); s != Running && s != Protected {
			break
		}
		c, err := Stop(w, o)
		w = after(t, w, c, err)
	}
	if got := StateOf(w, o); got != Stopped {
		t.Fatalf("%s is in state %d after stopping it, want Stopped:\n%s", w, got, text(t, w))
	}
	return w
}

func started(t *testing.T, w Workload) Workload {
	t.Helper()
	c, err := Start(w)
	w = after(t, w, c, err)
	if Starting(w, firstRun) {
		c, err = Settle(w)
		w = after(t, w, c, err)
	}
	return w
}

func text(t *testing.T, w Workload) string {
	t.Helper()
	b, err := yaml.Marshal(w.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func set(t *testing.T, w Workload, v any, path ...string) Workload {
	t.Helper()
	w = Workload{w.DeepCopy()}
	if err := unstructured.SetNestedField(w.Object, v, path...); err != nil {
		t.Fatal(err)
	}
	return w
}

const statefulSetThatDeletesClaims = `
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, generation: 4}, spec: {replicas: 3, persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Delete}}, status: {readyReplicas: 3, observedGeneration: 4}}`

func TestEveryWorkloadComesBackExactlyAsItWas(t *testing.T) {
	for name, object := range map[string]string{
		"a deployment":                              `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {team: a}}, spec: {replicas: 3}, status: {readyReplicas: 2}}`,
		"a paused deployment stays paused":          `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2, paused: true}, status: {readyReplicas: 2}}`,
		"a stateful set":                            `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 1}, status: {readyReplicas: 1}}`,
		"one whose claims would die with its pods":  statefulSetThatDeletesClaims,
		"a replica set of its own":                  `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: rs}, spec: {replicas: 2}}`,
		"a replication controller":                  `{apiVersion: v1, kind: ReplicationController, metadata: {name: rc}, spec: {replicas: 2}, status: {readyReplicas: 2}}`,
		"a daemon set without a node selector":      `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: ds}, spec: {template: {spec: {containers: []}}}, status: {numberReady: 2, desiredNumberScheduled: 2}}`,
		"a daemon set with a node selector":         `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: ds}, spec: {template: {spec: {nodeSelector: {zone: a}}}}, status: {numberReady: 1, desiredNumberScheduled: 1}}`,
		"a cron job":                                `{apiVersion: batch/v1, kind: CronJob, metadata: {name: tick}, spec: {suspend: false}}`,
		"what a mig-controller had written is kept": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {migration.openshift.io/preQuiesceReplicas: "9"}}, spec: {replicas: 3}, status: {readyReplicas: 3}}`,
		"and kept through the protection of claims": strings.Replace(statefulSetThatDeletesClaims, "name: db", `name: db, annotations: {migration.openshift.io/preQuiesceReplicas: "9"}`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			w := workload(t, object)
			down := stopped(t, w, firstRun)
			if down.asks() {
				t.Errorf("still asks for pods:\n%s", text(t, down))
			}
			up := started(t, down)
			if !equality.Semantic.DeepEqual(up.Object, w.Object) {
				t.Errorf("got:\n%swant:\n%s", text(t, up), text(t, w))
			}
		})
	}
}

func TestTheOldSizeIsWrittenInThePatchThatScales(t *testing.T) {
	w := workload(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3}, status: {readyReplicas: 2}}`)
	c, err := Stop(w, firstRun)
	if err != nil {
		t.Fatal(err)
	}
	var patch struct {
		Metadata struct {
			ResourceVersion string
			Annotations     map[string]string
		}
		Spec map[string]any
	}
	if err := json.Unmarshal(c.Patch, &patch); err != nil {
		t.Fatal(err)
	}
	if patch.Metadata.Annotations[naming.RefPreQuiesceReplicas] != "3" || patch.Spec["replicas"] != 0.0 {
		t.Errorf("one patch must hold the old size and the scaling, got %s", c.Patch)
	}
	if patch.Metadata.ResourceVersion != "1" {
		t.Errorf("the patch must be refused when the object has changed, got %s", c.Patch)
	}
	if got := patch.Metadata.Annotations[naming.AnnQuiesceReady]; got != "2/3" {
		t.Errorf("how ready it was: got %q, want 2/3", got)
	}
	if got, want := c.String(), "replicas 3 → 0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNoNumberOfReplicasMeansOne(t *testing.T) {
	w := workload(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {}}`)
	up := started(t, stopped(t, w, firstRun))
	if got := up.replicas(); got != 1 {
		t.Errorf("came back with %d replicas, want 1", got)
	}
}

func TestClaimsAreProtectedBeforeTheSetIsScaled(t *testing.T) {
	w := workload(t, statefulSetThatDeletesClaims)
	c, err := Stop(w, firstRun)
	first := after(t, w, c, err)
	if first.replicas() != 3 || first.whenScaled() != retain {
		t.Fatalf("the first patch must keep the claims and scale nothing, got:\n%s", text(t, first))
	}
	if got := StateOf(first, firstRun); got != Protected {
		t.Errorf("state %d, want Protected", got)
	}
	if newer := set(t, first, int64(5), "metadata", "generation"); newer.Observed() {
		t.Error("taken for observed before its controller has seen it")
	}
	if again := started(t, first); again.replicas() != 3 || again.whenScaled() != dispose {
		t.Errorf("killed in between and rolled back, got:\n%s", text(t, again))
	}
	undone := set(t, first, dispose, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled")
	if got := StateOf(undone, firstRun); got != Running {
		t.Errorf("somebody set Delete again: state %d, want Running, so that it is protected again", got)
	}
}

func TestStatesOfAWorkload(t *testing.T) {
	deployment := workload(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3}, status: {readyReplicas: 3}}`)
	cron := workload(t, `{apiVersion: batch/v1, kind: CronJob, metadata: {name: tick}, spec: {suspend: false}}`)
	down := stopped(t, deployment, firstRun)
	risen := set(t, down, int64(2), "spec", "replicas")
	up := started(t, down)
	for name, tc := range map[string]struct {
		w    Workload
		o    naming.Owner
		want State
	}{
		"running":                               {deployment, firstRun, Running},
		"at zero by its user":                   {set(t, deployment, int64(0), "spec", "replicas"), firstRun, Idle},
		"stopped":                               {down, firstRun, Stopped},
		"stopped by an earlier run of the plan": {down, secondRun, Stopped},
		"stopped by another plan is at zero by others": {down, otherPlan, Idle},
		"scaled up against the run":                    {risen, firstRun, Risen},
		"scaled up by a person after an earlier run":   {risen, secondRun, Running},
		"brought back":                                  {up, firstRun, Running},
		"a cron job that its user had suspended":        {set(t, cron, true, "spec", "suspend"), firstRun, Idle},
		"a job":                                         {workload(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: j}}`), firstRun, Ending},
		"a job that is complete":                        {workload(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, status: {conditions: [{type: Complete, status: "True"}]}}`), firstRun, Idle},
		"a replica set of a deployment":                 {workload(t, `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: rs, ownerReferences: [{controller: true, kind: Deployment, name: web}]}}`), firstRun, Dependent},
		"a deployment of an operator is stopped anyway": {workload(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, ownerReferences: [{controller: true, kind: Shop, name: s}]}}`), firstRun, Running},
	} {
		t.Run(name, func(t *testing.T) {
			if got := StateOf(tc.w, tc.o); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestStoppingTwiceKeepsTheFirstNumber(t *testing.T) {
	w := workload(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3}, status: {readyReplicas: 3}}`)
	down := set(t, stopped(t, w, firstRun), int64(0), "status", "readyReplicas")
	c, err := Start(down)
	up := after(t, down, c, err) // not one pod is ready yet
	again := stopped(t, up, secondRun)
	if got := again.Before(secondRun); got != (Readiness{Ready: 3, Wanted: 3}) {
		t.Errorf("how ready it was before: got %s, want 3/3", got)
	}
}

func TestWhatAPersonChangedInBetweenStays(t *testing.T) {
	down := stopped(t, workload(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3}}`), firstRun)
	if up := started(t, set(t, down, int64(5), "spec", "replicas")); up.replicas() != 5 || len(up.GetAnnotations()) > 0 {
		t.Errorf("scaled to 5 by a person, came back as:\n%s", text(t, up))
	}
	ds := stopped(t, workload(t, `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: ds}, spec: {template: {spec: {}}}}`), firstRun)
	moved := set(t, ds, "b", "spec", "template", "spec", "nodeSelector", "zone")
	selector, _, _ := unstructured.NestedStringMap(started(t, moved).Object, "spec", "template", "spec", "nodeSelector")
	if len(selector) != 1 || selector["zone"] != "b" {
		t.Errorf("a selector added by a person: got %v, want only zone=b", selector)
	}
}

func TestALostRecordIsNamedNotGuessed(t *testing.T) {
	down := stopped(t, workload(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3}}`), firstRun)
	annotations := down.GetAnnotations()
	delete(annotations, naming.RefPreQuiesceReplicas)
	down.SetAnnotations(annotations)
	if c, err := Start(down); err != nil || c.To != "3" {
		t.Errorf("the size is written twice: got %v %v", c, err)
	}
	delete(annotations, naming.AnnQuiesceReady)
	down.SetAnnotations(annotations)
	if _, err := Start(down); err == nil || !strings.Contains(err.Error(), "Deployment shop/web") {
		t.Errorf("got %v, want an error that names the workload", err)
	}
}

func TestReadyAgainMeansAsReadyAsBefore(t *testing.T) {
	w := workload(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, generation: 2}, spec: {replicas: 3}, status: {readyReplicas: 2, observedGeneration: 2}}`)
	down := stopped(t, w, firstRun)
	c, err := Start(down)
	up := after(t, down, c, err)
	for name, tc := range map[string]struct {
		ready, observed int64
		want            bool
	}{
		"none":                          {0, 2, false},
		"as many as before, not all":    {2, 2, true},
		"a status of another time":      {2, 1, false},
		"more than before":              {3, 2, true},
		"one that was ready is missing": {1, 2, false},
	} {
		now := set(t, set(t, up, tc.ready, "status", "readyReplicas"), tc.observed, "status", "observedGeneration")
		if got := ReadyAgain(now, firstRun); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

func TestMarksThatCameFromADeploymentAreRemovedFromItsReplicaSet(t *testing.T) {
	rs := workload(t, `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: rs, ownerReferences: [{controller: true, kind: Deployment, name: web}]}, spec: {replicas: 3}}`)
	down := stopped(t, workload(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3}, status: {readyReplicas: 3}}`), firstRun)
	c, err := Start(down)
	up := after(t, down, c, err)
	copied := down.GetAnnotations()
	maps.Copy(copied, up.GetAnnotations())
	rs.SetAnnotations(copied)
	if !CopiedMarks(rs, firstRun) {
		t.Fatal("the copied marks are not seen")
	}
	c, err = Settle(rs)
	if clean := after(t, rs, c, err); len(clean.GetAnnotations()) > 0 {
		t.Errorf("left over: %v", clean.GetAnnotations())
	}
}

func TestWhoScaledItUpIsNamed(t *testing.T) {
	w := workload(t, `
{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2}, metadata: {name: press, managedFields: [
  {manager: kubectl-create, operation: Update, time: "2026-01-01T10:00:00Z", fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:template": {}}}},
  {manager: press-operator, operation: Update, time: "2026-01-01T11:00:00Z", fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}}}},
  {manager: mig, operation: Update, time: "2026-01-01T12:00:00Z", fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}}}}]}}`)
	if got := w.Raiser(); got != "press-operator" {
		t.Errorf("got %q, want press-operator", got)
	}
}
