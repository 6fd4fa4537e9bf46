package step

import (
	"strings"
	"testing"

	"github.com/mig-cli/mig/internal/pipeline"
)

const web = `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: NS, name: web, uid: web}, spec: {replicas: 3, selector: {matchLabels: {app: web}}, template: {}}, status: {readyReplicas: READY}}`

func deploymentWeb(ns, ready string) string {
	return strings.NewReplacer("NS", ns, "READY", ready).Replace(web)
}

func TestTheDestinationIsReadyWhenItIsAsReadyAsTheSourceWas(t *testing.T) {
	const idle = "\n---\n" + `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: idle}, spec: {replicas: 2, selector: {}, template: {}}}`
	const sensors = `{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: NS, name: sensor}, spec: {selector: {}, template: {}}, status: {numberReady: N, desiredNumberScheduled: N, currentNumberScheduled: 1, numberMisscheduled: 0}}`
	daemons := func(ns, n string) string {
		return "\n---\n" + strings.NewReplacer("NS", ns, "N", n).Replace(strings.ReplaceAll(sensors, "NS", ns))
	}
	const hpa = "\n---\n" + `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {namespace: shop-prod, name: web}, spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`
	small := strings.Replace(deploymentWeb("shop-prod", "1"), "replicas: 3", "replicas: 1", 1)
	for name, c := range map[string]struct {
		src, dst string
		verdict  pipeline.Verdict
		says     string
	}{
		"as ready":                     {deploymentWeb("shop", "3"), deploymentWeb("shop-prod", "3"), pipeline.Done, "on the source: 1 workload"},
		"not one is there":             {deploymentWeb("shop", "3"), "", pipeline.Wait, "Deployment shop-prod/web is not there"},
		"fewer":                        {deploymentWeb("shop", "3"), deploymentWeb("shop-prod", "2"), pipeline.Wait, "1 of 1 workloads are not ready: Deployment shop-prod/web 2/3 ready"},
		"one of three was ready there": {deploymentWeb("shop", "1"), deploymentWeb("shop-prod", "1"), pipeline.Done, ""},
		"what was not ready there need not be here":  {deploymentWeb("shop", "3") + idle, deploymentWeb("shop-prod", "3"), pipeline.Done, "on the source: 1 workload"},
		"smaller than it was":                        {deploymentWeb("shop", "3"), small, pipeline.Wait, "asks for 1 pods; on the source 3 were ready"},
		"smaller because its autoscaler wants it so": {deploymentWeb("shop", "3"), small + hpa, pipeline.Done, ""},
		"two nodes there, one here":                  {deploymentWeb("shop", "3") + daemons("shop", "2"), deploymentWeb("shop-prod", "3") + daemons("shop-prod", "1"), pipeline.Done, "2 workloads"},
		"no node here fits the daemon set":           {deploymentWeb("shop", "3") + daemons("shop", "2"), deploymentWeb("shop-prod", "3") + daemons("shop-prod", "0"), pipeline.Wait, "no node fits its node selector"},
	} {
		t.Run(name, func(t *testing.T) {
			r := bed(t, c.src, c.dst)
			settle(t, QuiesceApplications(r)) // what counts is how it was before
			check(t, name, settle(t, WorkloadsReady(r)), c.verdict, c.says)
		})
	}
}

func TestAReadyWorkloadIsTold(t *testing.T) {
	r := bed(t, deploymentWeb("shop", "3"), deploymentWeb("shop-prod", "3"))
	got := facts(settle(t, WorkloadsReady(r)).Facts, "WorkloadReady")
	if want := "Deployment web: 3/3 pods ready; on the source it was 3/3"; len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhyAWorkloadIsNotReady(t *testing.T) {
	pod := func(rest string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {namespace: shop-prod, name: web-a, uid: a, labels: {app: web}}` + rest + `}`
	}
	event := func(kind, name, rest string) string {
		return "\n---\n" + `{apiVersion: v1, kind: Event, metadata: {namespace: shop-prod, name: e-` + name + `}, involvedObject: {kind: ` + kind + `, name: ` + name + `, namespace: shop-prod}, ` + rest + `}`
	}
	for name, c := range map[string]struct{ objects, want string }{
		"an image that cannot be pulled": {
			pod(`, status: {phase: Pending, containerStatuses: [{name: main, state: {waiting: {reason: ImagePullBackOff, message: "pulling registry.test/web:1: no such host"}}}]}`),
			"pod web-a: container main: ImagePullBackOff: pulling registry.test/web:1: no such host",
		},
		"a container that crashes": {
			pod(`, status: {phase: Running, containerStatuses: [{name: main, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff, message: back-off}}, lastState: {terminated: {exitCode: 2, reason: Error, message: "no such table"}}}]}`),
			"pod web-a: container main: CrashLoopBackOff: ended with code 2 (Error), 4 restarts no such table",
		},
		"no node": {
			pod(`, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/1 nodes are available: 1 Insufficient cpu."}]}`),
			"pod web-a: no node for it: 0/1 nodes are available: 1 Insufficient cpu.",
		},
		"a claim that is not bound": {
			pod(`, spec: {containers: [], volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", message: "unbound claims"}]}`) +
				"\n---\n{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: shop-prod, name: data}, status: {phase: Pending}}" +
				event("PersistentVolumeClaim", "data", `type: Warning, reason: ProvisioningFailed, message: "storageclass fast not found"`),
			"no node for it: unbound claims; claim data is not bound: ProvisioningFailed: storageclass fast not found",
		},
		"a volume that cannot be mounted": {
			pod(`, status: {phase: Pending}`) + event("Pod", "web-a", `type: Warning, reason: FailedMount, message: "secret web-tls not found"`),
			"pod web-a: FailedMount: secret web-tls not found",
		},
		"a quota that admits no pod": {
			strings.TrimPrefix(event("ReplicaSet", "web-5d8", `type: Warning, reason: FailedCreate, message: "exceeded quota"`), "\n---\n"),
			"no pod: FailedCreate: exceeded quota",
		},
		"an Event that is no warning": {
			pod(`, status: {phase: Pending}`) + event("Pod", "web-a", `type: Normal, reason: Pulling, message: "pulling"`),
			"pod web-a: pending, not ready yet",
		},
		"a pod of somebody else": {
			strings.Replace(pod(`, status: {phase: Pending}`), "app: web", "app: other", 1),
			"no pod is made yet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := bed(t, deploymentWeb("shop", "3"), deploymentWeb("shop-prod", "0")+"\n---\n"+c.objects)
			check(t, name, settle(t, WorkloadsReady(r)), pipeline.Wait, c.want)
		})
	}
}
