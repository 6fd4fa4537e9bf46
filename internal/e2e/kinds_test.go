//go:build e2e

package e2e

import (
	"context"
	"testing"

	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/plan"
)

// kindsYAML is a workload of every kind that is stopped, each in a state that
// is easily lost.
const kindsYAML = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: held-back, annotations: {migration.openshift.io/preQuiesceReplicas: "7"}}
spec:
  replicas: 1
  selector: {matchLabels: {app: held-back}}
  template:
    metadata: {labels: {app: held-back}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: a, image: "registry.test/toolbox:1", command: [sleep, infinity]}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: idle}
spec:
  replicas: 0
  selector: {matchLabels: {app: idle}}
  template:
    metadata: {labels: {app: idle}}
    spec: {containers: [{name: a, image: "registry.test/toolbox:1", command: [sleep, infinity]}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: disposable}
spec:
  serviceName: disposable
  replicas: 1
  persistentVolumeClaimRetentionPolicy: {whenScaled: Delete, whenDeleted: Retain}
  selector: {matchLabels: {app: disposable}}
  template:
    metadata: {labels: {app: disposable}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: a, image: "registry.test/toolbox:1", command: [sh, -c, "echo kept >/data/file; exec sleep infinity"], volumeMounts: [{name: data, mountPath: /data}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 100Mi}}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: bare-set}
spec:
  replicas: 1
  selector: {matchLabels: {app: bare-set}}
  template:
    metadata: {labels: {app: bare-set}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: a, image: "registry.test/toolbox:1", command: [sleep, infinity]}]}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: old-style}
spec:
  replicas: 1
  selector: {app: old-style}
  template:
    metadata: {labels: {app: old-style}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: a, image: "registry.test/toolbox:1", command: [sleep, infinity]}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: on-linux}
spec:
  selector: {matchLabels: {app: on-linux}}
  template:
    metadata: {labels: {app: on-linux}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {kubernetes.io/os: linux}
      containers: [{name: a, image: "registry.test/toolbox:1", command: [sleep, infinity]}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: switched-off}
spec:
  schedule: "0 0 1 1 *"
  suspend: true
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: "registry.test/toolbox:1", command: ["true"]}]}}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: yearly}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: "registry.test/toolbox:1", command: ["true"]}]}}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: bare-set}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: ReplicaSet, name: bare-set}
  minReplicas: 1
  maxReplicas: 2
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
`

func TestEveryKindOfWorkloadComesBackExactlyAsItWas(t *testing.T) {
	t.Parallel()
	s := newScenario(t, "e2e-kinds")
	ctx := t.Context()
	s.must(s.lab.Apply(ctx, s.src(), s.name, kindsYAML))
	s.must(s.lab.WorkloadsReady(ctx, s.src(), s.name, patience))
	_, err := s.lab.Kubectl(ctx, s.src(), "", "-n", s.name, "rollout", "pause", "deployment/held-back")
	s.must(err)
	before, err := labtest.ObjectsOf(ctx, s.src(), s.name)
	s.must(err)
	s.makePlan(nil)

	t.Run("somebody who scales up while volumes are copied is told, and the copy is not taken for good", func(t *testing.T) {
		in := s.on(t)
		in.migrateMeddled(scaleUp, "ReplicaSet e2e-kinds/bare-set")
		in.sourceIsUp(before)
		in.succeeds("rollback", "--yes")
	})

	s.succeeds("migrate")
	s.must(labtest.Quiesced(ctx, s.src(), s.name, "idle"))
	s.must(s.lab.WorkloadsReady(ctx, s.dst(), s.dest, patience))

	t.Run("with the destination away, the source comes up alone", func(t *testing.T) {
		in := s.on(t)
		away := badKubeconfig(t, in)
		in.must(labtest.EditPlan(in.planFile(), func(p *plan.Plan) {
			p.Spec.Destination = plan.Cluster{Context: "unreachable", Kubeconfig: away}
		}))
		r := in.run("rollback", "--yes")
		in.ended(r, failed)
		in.says(r, "--source-only")
		r = in.run("rollback", "--yes", "--source-only")
		in.ended(r, incomplete)
		in.says(r, "mig rollback e2e-kinds")
		in.must(in.lab.WorkloadsReady(t.Context(), in.src(), in.name, patience))
		in.must(labtest.EditPlan(in.planFile(), func(p *plan.Plan) { p.Spec.Destination = plan.Cluster{Context: labtest.DestinationContext} }))
	})

	s.succeeds("rollback", "--yes")
	s.sourceIsUp(before)
	s.must(s.lab.GoneFromDestination(ctx, s.planUID, s.dest))
}

// scaleUp is somebody who does not know that a migration is on.
func scaleUp(ctx context.Context, s *scenario) (labtest.NotYet, error) {
	if pods, err := s.stagePods(ctx); err != nil || len(pods) == 0 {
		return "no stage pod yet", err
	}
	_, err := s.lab.Kubectl(ctx, s.src(), "", "-n", s.name, "scale", "replicaset", "bare-set", "--replicas=1")
	return "", err
}
