package cli

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/preflight"
	"github.com/mig-cli/mig/internal/record"
)

var update = flag.Bool("update", false, "write the files that the tests compare with")

// TestWhatScriptsReadIsAContract compares what -o json and -o yaml print with
// files: fields may be added to them, never renamed or removed.
func TestWhatScriptsReadIsAContract(t *testing.T) {
	_, here, _, _ := runtime.Caller(0)
	golden := filepath.Join(filepath.Dir(here), "testdata")
	if !filepath.IsAbs(golden) { // -trimpath
		wd, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		golden = filepath.Join(wd, "testdata")
	}
	for name, args := range map[string]string{
		"plan-show":     "plan show shop",
		"plan-validate": "plan validate shop",
		"plan-list":     "plan list --clusters",
		"plan-create":   "plan create shop --src src --dst dst --force",
		"pv-discover":   "pv discover shop",
		"history":       "history",
		"history-run":   "history shop aaaa",
		"pv-set":        "pv set data --action skip --unset storage-class --dry-run",
	} {
		for _, format := range []string{"json", "yaml"} {
			t.Run(name+"."+format, func(t *testing.T) {
				b := everything(t)
				if code := b.mig(append(strings.Fields(args), "-o", format)...); code != 0 && code != exitBlocked {
					t.Fatalf("exit %d: %s", code, b.err.String())
				}
				file := filepath.Join(golden, name+"."+format)
				if *update {
					if err := os.WriteFile(file, b.out.Bytes(), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				if want, err := os.ReadFile(file); err != nil || b.out.String() != string(want) {
					t.Errorf("%v; got\n%s\nwant\n%s\nif that is as it should be: go test ./internal/cli -run Contract -update", err, b.out.String(), want)
				}
			})
		}
	}
}

// fullPlan has every field that a plan can have today.
const fullPlan = `apiVersion: mig/v1alpha1
kind: MigrationPlan
metadata: {name: shop, uid: 0123456789abcdef}
spec:
  source: {context: src}
  destination: {context: dst, kubeconfig: other.conf, veleroNamespace: backup}
  storage: {location: default}
  namespaces:
  - {name: shop, destination: shop-prod}
  - name: blog
  volumes:
  - claim: shop/data
    volume: pvc-1
    capacity: 10Gi
    used: unknown
    storageClass: gp2
    accessModes: [ReadWriteOnce]
    volumeMode: Filesystem
    supported: [copy, skip]
    action: copy
    copyMethod: filesystem
    destination: {storageClass: fast, accessModes: [ReadWriteMany], size: 20Gi}
  - {claim: blog/cache, action: ""}
  storageClasses: {gp2: fast}
  mover: auto
  quiesce: {enabled: true, except: [Deployment/shop/status]}
  accept: [{type: BarePods, object: shop/toolbox, why: a shell}]
  limits: {maxDowntime: 30m, timeouts: {Prepare: 5m}}
`

// everything is a bench whose clusters answer with every field set.
func everything(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	writePlan(t, "shop.yaml", fullPlan)
	row := discover.Row{
		Claim: "shop/data", Volume: "pvc-1", Phase: "Bound", Capacity: "10Gi", Used: "unknown", StorageClass: "gp2",
		AccessModes: []string{"ReadWriteOnce"}, VolumeMode: "Filesystem", Backend: "csi", Supported: []string{"copy", "skip"}, Action: "copy",
		DestinationClass: "fast", Why: "mounted by db-0; class: same provisioner", MountedBy: []string{"db-0 (running on node-1)"}, State: discover.Planned,
	}
	found := func(p *plan.Plan) *discover.Proposal {
		return &discover.Proposal{Plan: p, Claims: []discover.Row{row}, Notes: []string{"choose an action for claim blog/cache"}}
	}
	b.Refresh = func(_ context.Context, _ cluster.Source, _ cluster.Destination, p *plan.Plan) (*discover.Proposal, error) {
		return found(p), nil
	}
	b.Propose = func(context.Context, cluster.Source, cluster.Destination, discover.Wish) (*discover.Proposal, error) {
		p, err := plan.Parse("shop.yaml", []byte(fullPlan))
		return found(p), err
	}
	b.finds(preflight.Condition{
		Type: "SourceReachable", Category: preflight.Required, Status: preflight.True, Reason: "Answered", Message: "v1.34",
	}, preflight.Condition{
		Type: "StorageClassMissing", Category: preflight.Error, Status: preflight.True, Reason: "NotFound",
		Message: "the destination has no class fast", Objects: []string{"shop/data"}, Hint: "choose another in spec.storageClasses",
	}, preflight.Condition{
		Type: "BarePods", Category: preflight.Warn, Status: preflight.True, Reason: "BarePod", Message: "a pod without an owner",
		Objects: []string{"shop/toolbox"}, Accepted: true,
	})
	migrated, back, _ := pastRuns()
	b.remember(map[string][]record.Run{"src": {migrated, back}, "dst": {migrated}})
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b.Latest = func(context.Context, cluster.Source, cluster.Destination, plan.Valid) (*record.Run, error) {
		return &record.Run{UID: "r1", Kind: "migrate", State: record.Completed, Started: began, Ended: began.Add(time.Minute)}, nil
	}
	return b
}

func TestPlanListTellsOfEveryPlanAndItsMistakes(t *testing.T) {
	b := newBench(t)
	code := b.mig("plan", "list")
	b.wants(t, code, 0, "No plans in the working directory: make one with: mig plan create\n", "")
	writePlan(t, "shop.yaml", fullPlan)
	writePlan(t, "bad.yaml", strings.Replace(fullPlan, "storage:", "sotrage:", 1))
	writePlan(t, "values.yaml", "kind: Deployment\n")
	code = b.mig("plan", "list")
	b.wants(t, code, 0, `PLAN   FILE        SOURCE   DESTINATION   VOLUMES   NAMESPACES
-      bad.yaml    -        -             0         1 mistake: bad.yaml:7:3: spec.sotrage: unknown field; did you mean storage?
shop   shop.yaml   src      dst           2         shop → shop-prod, blog
`, "")
	b.Latest = func(context.Context, cluster.Source, cluster.Destination, plan.Valid) (*record.Run, error) {
		return nil, record.ErrNoRun
	}
	code = b.mig("plan", "list", "--clusters")
	b.wants(t, code, 0, "2         none       shop → shop-prod, blog\n", "")
	b.Latest = func(context.Context, cluster.Source, cluster.Destination, plan.Valid) (*record.Run, error) {
		return nil, &discover.ReachError{Side: "source", Context: "src", Err: os.ErrDeadlineExceeded}
	}
	code = b.mig("plan", "list", "--clusters")
	b.wants(t, code, 0, "2         not known   shop → shop-prod, blog (last run: ", "")
}
