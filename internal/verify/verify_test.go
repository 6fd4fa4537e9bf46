package verify

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mig-cli/mig/internal/plan"
)

const shop = `
apiVersion: mig/v1alpha1
kind: MigrationPlan
metadata: {name: shop, uid: 5f0c3d9e-27b1}
spec:
  source: {context: src}
  destination: {context: dst}
  storage: {location: default}
  namespaces: [{name: shop, destination: shop-prod}]
  volumes: [{claim: shop/data-db-0, storageClass: gp2, action: copy}, {claim: shop/cache, action: skip}]
  storageClasses: {gp2: fast}
`

const source = `
{apiVersion: v1, kind: Service, metadata: {namespace: shop, name: web, uid: "1"}, spec: {clusterIP: 10.0.0.1, ports: [{port: 80, nodePort: 30001}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: settings}, data: {mode: live}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: kube-root-ca.crt}, data: {ca: here}}
---
{apiVersion: v1, kind: Secret, metadata: {namespace: shop, name: login}, data: {password: b2xk}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: shop, name: data-db-0}, spec: {storageClassName: gp2, volumeName: pv-1, accessModes: [ReadWriteOnce]}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: shop, name: cache}, spec: {storageClassName: gp2}}
---
{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: done}, status: {phase: Succeeded}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: shop, name: db, annotations: {
  migration.openshift.io/preQuiesceReplicas: "3", mig-cli.github.io/quiesce: stopped, mig-cli.github.io/quiesce-plan-uid: 5f0c3d9e-27b1, mig-cli.github.io/quiesce-run-uid: r}},
  spec: {replicas: 0, volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: gp2}}]}}`

const destination = `
{apiVersion: v1, kind: Service, metadata: {namespace: shop-prod, name: web, uid: "2", labels: {velero.io/restore-name: r}}, spec: {clusterIP: 10.9.9.9, ports: [{port: 80, nodePort: 30999}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop-prod, name: settings}, data: {mode: live}}
---
{apiVersion: v1, kind: Secret, metadata: {namespace: shop-prod, name: login}, data: {password: b2xk}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: shop-prod, name: data-db-0}, spec: {storageClassName: fast, volumeName: pv-9, accessModes: [ReadWriteOnce]}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: shop-prod, name: db},
  spec: {replicas: 3, volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: fast}}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop-prod, name: of-others}}`

func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for doc := range strings.SplitSeq(text, "\n---\n") {
		raw, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

func valid(t *testing.T) plan.Valid {
	t.Helper()
	p, err := plan.Parse("shop.yaml", []byte(shop))
	if err != nil {
		t.Fatal(err)
	}
	v, problems := p.Validate()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return v
}

func TestWhatMustDifferIsNoFinding(t *testing.T) {
	r := Compare(valid(t), objects(t, source), objects(t, destination))
	if !r.Equal || r.Objects != 5 || r.Others != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestWhatIsMissingOrChangedIsNamedByField(t *testing.T) {
	for name, c := range map[string]struct{ from, to, problem, object, path, shown string }{
		"a setting":                {"mode: live", "mode: test", Differs, "ConfigMap shop-prod/settings", "data.mode", "test"},
		"a secret, untold":         {"b2xk", "bmV3", Differs, "Secret shop-prod/login", "data.password", ""},
		"a port":                   {"port: 80,", "port: 81,", Differs, "Service shop-prod/web", "spec.ports[0].port", "81"},
		"fewer replicas":           {"replicas: 3", "replicas: 2", Differs, "StatefulSet shop-prod/db", "spec.replicas", "2"},
		"another class":            {"storageClassName: fast, volumeName", "storageClassName: slow, volumeName", Differs, "PersistentVolumeClaim shop-prod/data-db-0", "spec.storageClassName", "slow"},
		"a template's class":       {"storageClassName: fast}}]}}", "storageClassName: gp2}}]}}", Differs, "StatefulSet shop-prod/db", "spec.volumeClaimTemplates[0].spec.storageClassName", "gp2"},
		"an object that is absent": {"name: settings", "name: other-settings", Missing, "ConfigMap shop-prod/settings", "", ""},
	} {
		there := strings.Replace(destination, c.from, c.to, 1)
		if there == destination {
			t.Fatalf("%s: nothing was changed", name)
		}
		r := Compare(valid(t), objects(t, source), objects(t, there))
		if r.Equal || len(r.Findings) != 1 {
			t.Errorf("%s: got %+v", name, r.Findings)
			continue
		}
		f := r.Findings[0]
		if f.Problem != c.problem || f.Object() != c.object {
			t.Errorf("%s: %s %s", name, f.Object(), f.Problem)
		}
		if c.path != "" && (len(f.Differences) != 1 || f.Differences[0].Path != c.path || c.shown != "" && f.Differences[0].Destination != c.shown) {
			t.Errorf("%s: got %+v", name, f.Differences)
		}
		if strings.Contains(told(f), "bmV3") {
			t.Errorf("%s: a secret is told", name)
		}
	}
}

// told is all that is told of a finding.
func told(f Finding) string {
	all := []string{f.Object()}
	for _, d := range f.Differences {
		all = append(all, d.Source, d.Destination)
	}
	return strings.Join(all, " ")
}
