package cli

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/migrate"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/preflight"
	"github.com/mig-cli/mig/internal/progress"
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

// TestTheLinesOfARunAreAContract compares one of every kind of line that
// -o json prints, and the line that an error is, with a file.
func TestTheLinesOfARunAreAContract(t *testing.T) {
	golden, err := filepath.Abs(filepath.Join("testdata", "run.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	writePlan(t, "shop.yaml", shopPlan)
	synctest.Test(t, func(t *testing.T) {
		b.Run, b.Stop = everyLine, make(chan struct{}) // one of the bubble
		if code := b.mig("migrate", "-o", "json"); code != exitFailed {
			t.Errorf("exit %d", code)
		}
	})
	got := b.out.String() + b.err.String()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || got != string(want) {
		t.Errorf("%v; got\n%s\nwant\n%s\nif that is as it should be: go test ./internal/cli -run Contract -update", err, got, want)
	}
	for line := range strings.Lines(b.out.String()) {
		if !json.Valid([]byte(line)) || !strings.HasPrefix(line, `{"type":"`) {
			t.Errorf("not an object that begins with its type: %s", line)
		}
	}
	if n := strings.Count(b.err.String(), "\n"); n != 1 || !strings.HasPrefix(b.err.String(), `{"type":"exit_error","code":1,`) {
		t.Errorf("%d lines on standard error: %s", n, b.err.String())
	}
}

// everyLine is a run that tells an update of every state and fails.
func everyLine(_ context.Context, o migrate.Options) (migrate.Result, error) {
	const mib = 1 << 20
	claim := progress.Ref{Side: progress.OnSource, APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data", UID: "u-1"}
	emit := func(number int, step string, s progress.State, why, say string, on progress.Ref, done int64) {
		u := progress.Update{Time: time.Now(), Run: string(o.Kind), Step: step, Number: number, Of: 2, State: s, Note: progress.Remark{Why: why, Say: say, On: on}}
		if step != "" {
			u.Elapsed = 90 * time.Second
		} else {
			u.Of = 0
		}
		if done > 0 {
			u.Amounts = []progress.Amount{{Item: "shop/data", Done: done, Total: 5 * mib}}
		}
		o.Sink.Emit(u)
		time.Sleep(time.Second)
	}
	run, none := "", progress.Ref{}
	emit(0, run, progress.RunStart, "Started", "migrate of plan shop", none, 0)
	emit(1, "Prepare", progress.Skipped, "Prepare", "done before", none, 0)
	emit(2, "StageBackupCreated", progress.Started, "StageBackupCreated", "Velero backup: New", none, 0)
	emit(2, "StageBackupCreated", progress.Waiting, "StageBackupCreated", "Velero backup: InProgress", none, 2*mib)
	emit(2, "StageBackupCreated", progress.Stalled, "StageBackupCreated", "Velero backup: InProgress", none, 0)
	emit(2, "StageBackupCreated", progress.Happened, "VolumeBackedUp", "5 MiB", claim, 0)
	emit(2, "StageBackupCreated", progress.Warning, "VolumeSlow", "token=s3cr3t-value was slow", claim, 0)
	emit(2, "StageBackupCreated", progress.Done, "StageBackupCreated", "1 volume captured", none, 5*mib)
	emit(2, "Restore", progress.Blocked, "Restore", "choose", none, 0)
	emit(2, "Restore", progress.Failed, "Restore", "no space left", none, 0)
	o.Say("interrupt: stopping at the next safe point")
	emit(0, run, progress.RunFinish, "MigrationFailed", "no space left on device; the source is down", none, 0)
	return migrate.Result{
		Run: "k3x7ab2c9d", Record: "velero/mig-shop-k3x7ab2c9d-run", Kind: o.Kind, Message: "no space left on device; the source is down",
		LeftOut: []string{"Secret shop/x was there before and differs"}, Took: 2 * time.Minute, Downtime: 41 * time.Second,
	}, &migrate.StoppedError{Err: errNoSpace, State: "the source is down"}
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
