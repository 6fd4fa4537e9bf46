package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/record"
)

// remember makes the clusters of a bench, by context, remember runs; one that
// is not among them does not answer.
func (b *bench) remember(clusters map[string][]record.Run) {
	away := &url.Error{Op: "Get", URL: "https://10.0.0.1:6443/api", Err: syscall.ECONNREFUSED}
	b.Runs = func(_ context.Context, c *cluster.Cluster, o naming.Owner) ([]record.Run, []error, error) {
		all, ok := clusters[c.Access.Context]
		if !ok {
			return nil, nil, away
		}
		var out []record.Run
		for _, r := range all {
			if o.PlanUID == "" || o.PlanUID == r.Plan.UID {
				r.Changes, r.Plan.YAML = nil, "" // a head need not hold them
				out = append(out, r)
			}
		}
		return out, nil, nil
	}
	b.Story = func(_ context.Context, c *cluster.Cluster, o naming.Owner) (*record.Run, error) {
		all, ok := clusters[c.Access.Context]
		if !ok {
			return nil, away
		}
		for _, r := range all {
			if r.UID == o.RunUID && r.Plan.UID == o.PlanUID {
				return &r, nil
			}
		}
		return nil, record.ErrNoRun
	}
}

// pastRuns are a migration of the plan of the bench, its rollback, and a run of
// a plan whose file is lost.
func pastRuns() (migrated, back, lost record.Run) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	migrated = record.Run{
		UID: "aaaa2bcdef", Kind: "migrate", State: record.RolledBack, Message: "taken back by rollback aabb2cdefg", Who: "jane", Host: "laptop, process 7", Version: "v1.2.3",
		Started: began, Ended: began.Add(133 * time.Second), Attempts: 2,
		Plan:       record.Plan{Name: "shop", UID: "0123456789abcdef", Digest: "sha256:00", YAML: shopPlan, Namespaces: []record.Namespace{{Source: "shop", Destination: "shop-prod"}}},
		Steps:      []record.Step{{Number: 1, Name: "QuiesceApplications", State: record.StepDone, Started: began, Ended: began.Add(9e9), Took: 9e9, Attempts: 1, Note: "1 workload stopped"}, {Number: 2, Name: "Restore"}},
		Volumes:    []record.Volume{{Claim: "shop/data", Bytes: 5 << 20, Files: 12, Step: "StageBackupCreated"}},
		Changes:    []record.Change{{Object: progress.Ref{Side: progress.OnSource, Kind: "Deployment", Namespace: "shop", Name: "web"}, Field: "spec.replicas", Before: "3", After: "0", At: began}},
		Conditions: []record.Condition{{Type: "BarePods", Category: "Warn", Status: "True", Reason: "BarePod", Message: "a pod without an owner"}},
		Accepted:   []record.Accepted{{Type: "BarePods", Object: "shop/toolbox", Why: "a shell"}},
		Events: []record.Event{{
			Time: began.Add(3 * time.Second), Step: "QuiesceApplications", Number: 1, Of: 2, State: progress.Warning, Reason: "JobRuns", Text: "Job shop/import runs",
			Object: progress.Ref{Side: progress.OnSource, APIVersion: "batch/v1", Kind: "Job", Namespace: "shop", Name: "import"},
		}},
	}
	back = record.Run{UID: "aabb2cdefg", Kind: "rollback", State: record.RolledBack, Started: began.Add(time.Hour), Attempts: 1, Plan: migrated.Plan}
	lost = record.Run{UID: "llll2lllll", Kind: "stage", State: record.Running, Started: began.Add(-time.Hour), Attempts: 1, Plan: record.Plan{Name: "lost", UID: "fedcba9876543210", YAML: "kind: MigrationPlan\n"}}
	return migrated, back, lost
}

func TestHistoryListsTheRunsOfAllPlansOfBothClustersOnce(t *testing.T) {
	b := newBench(t)
	writePlan(t, "shop.yaml", shopPlan)
	migrated, back, lost := pastRuns()
	b.remember(map[string][]record.Run{"src": {migrated, lost}, "dst": {back, migrated}})
	code := b.mig("history")
	want := `PLAN   RUN          KIND       STATE        STARTED                TOOK    BY     ON        MESSAGE
shop   aabb2cdefg   rollback   RolledBack   2026-01-02T04:04:05Z   -       -      dst       -
shop   aaaa2bcdef   migrate    RolledBack   2026-01-02T03:04:05Z   2m13s   jane   src,dst   taken back by rollback aabb2cdefg
lost   llll2lllll   stage      Running      2026-01-02T02:04:05Z   -       -      src       -
`
	if code != 0 || b.out.String() != want || b.err.Len() > 0 {
		t.Errorf("exit %d, %s, got\n%s\nwant\n%s", code, b.err.String(), b.out.String(), want)
	}
	code = b.mig("history", "shop", "-o", "json")
	var got history
	if err := json.Unmarshal(b.out.Bytes(), &got); err != nil || code != 0 || len(got.Runs) != 2 || got.Runs[1].Seconds != 133 {
		t.Errorf("exit %d, %v, %+v", code, err, got)
	}
}

func TestOneClusterSufficesForTheWholeStoryWithTheOtherGoneAndThePlanFileLost(t *testing.T) {
	migrated, back, lost := pastRuns()
	for _, here := range []string{"src", "dst"} {
		b := newBench(t)
		b.remember(map[string][]record.Run{here: {migrated, back, lost}})
		code := b.mig("history", "shop", "last", "--src", "src", "--dst", "dst")
		b.wants(t, code, 0, "rollback of plan shop: RolledBack\n", "may be missing here: ")
		for _, flag := range []string{"--src", "--dst"} {
			code = b.mig("history", "shop", "aaaa", flag, here)
			for _, told := range []string{
				"migrate of plan shop: RolledBack", "laptop, process 7", "shop → shop-prod",
				"1   QuiesceApplications   Done      2026-01-02T03:04:05Z   9s     1          1 workload stopped",
				"shop/data   5.0 MiB   12      StageBackupCreated", "source   Deployment shop/web   spec.replicas   3 → 0",
				"BarePods    shop/toolbox   a shell", "Warning   JobRuns   QuiesceApplications   Job shop/import   Job shop/import runs",
			} {
				b.wants(t, code, 0, told, "")
			}
			code = b.mig("history", "lost", "llll2lllll", flag, here, "-o", "json")
			b.wants(t, code, 0, `"planFile": "kind: MigrationPlan\n"`, "")
		}
	}
}

func TestTheCopyThatTellsMostIsTold(t *testing.T) {
	b := newBench(t)
	migrated, _, _ := pastRuns()
	behind := migrated
	behind.State, behind.Ended, behind.Message, behind.Events = record.Running, time.Time{}, "", nil
	for _, copies := range []map[string][]record.Run{{"src": {behind}, "dst": {migrated}}, {"src": {migrated}, "dst": {behind}}} {
		b.remember(copies)
		b.wants(t, b.mig("history", "--src", "src", "--dst", "dst"), 0, "taken back by", "")
		b.wants(t, b.mig("history", "shop", "last", "--src", "src", "--dst", "dst"), 0, "JobRuns", "")
	}
}

func TestHistorySaysWhatItLacks(t *testing.T) {
	migrated, back, _ := pastRuns()
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"nothing names a cluster", nil, 2, "mig: hint: name a cluster: mig history --src CONTEXT\n"},
		{"the plan file is lost", []string{"shop"}, 2, "mig: hint: where the plan file is lost, name a cluster: mig history shop --src CONTEXT\n"},
		{"no such run", []string{"shop", "zzzz", "--src", "src"}, 1, "there is no record of a run zzzz of plan shop on src\nmig: hint: see which there are with: mig history shop --src src\n"},
		{"no run of such a plan", []string{"shpo", "last", "--src", "src"}, 1, "there is no record of a run of plan shpo on src\nmig: hint: see the runs of all plans with: mig history --src src\n"},
		{"two such runs", []string{"shop", "aa", "--src", "src"}, 2, "2 runs begin with \"aa\"\nmig: hint: write more of it\n"},
		{"no cluster answers", []string{"--src", "away", "--dst", "gone"}, 1, "source cluster (context away): https://10.0.0.1:6443 cannot be reached: connection refused\n"},
		{"a kubeconfig alone", []string{"--src-kubeconfig", "x.conf"}, 2, "name the context with --src or --dst"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.remember(map[string][]record.Run{"src": {migrated, back}})
			b.wants(t, b.mig(append([]string{"history"}, c.args...)...), c.code, "", c.says)
		})
	}
}

func TestARecordThatCannotBeReadHidesNoOther(t *testing.T) {
	b := newBench(t)
	migrated, _, _ := pastRuns()
	b.Runs = func(context.Context, *cluster.Cluster, naming.Owner) ([]record.Run, []error, error) {
		return []record.Run{migrated}, []error{&record.BrokenError{Name: "velero/mig-x-run", Err: errors.New("no JSON")}}, nil
	}
	b.wants(t, b.mig("history", "--src", "src"), 0, "aaaa2bcdef", "mig: warning: what context src has may be missing here: run record velero/mig-x-run is damaged: no JSON\n")
}

func TestAStoryAsMarkdownIsNoMarkupOfTheClusters(t *testing.T) {
	b := newBench(t)
	migrated, _, _ := pastRuns()
	migrated.Message = "a | b <script> [link](http://x) `code` *bold*"
	b.remember(map[string][]record.Run{"src": {migrated}})
	code := b.mig("history", "shop", "last", "--src", "src", "-o", "markdown")
	b.wants(t, code, 0, "| Message | a \\| b &lt;script&gt; \\[link\\](http://x) \\`code\\` \\*bold\\* |\n", "")
	b.wants(t, code, 0, "### Steps\n\n|  | STEP | STATE | STARTED | TOOK | ATTEMPTS | WHAT |\n| --- |", "")
}

func TestAPlanWhoseKubeconfigLostAContextIsReadFromTheOther(t *testing.T) {
	b := newBench(t)
	writePlan(t, "shop.yaml", shopPlan)
	migrated, _, _ := pastRuns()
	b.remember(map[string][]record.Run{"dst": {migrated}})
	connect := b.Connect
	b.Connect = func(a cluster.Access, velero string) (*cluster.Cluster, error) {
		if a.Context == "src" {
			return nil, &cluster.KubeconfigError{Access: a, Err: os.ErrNotExist}
		}
		return connect(a, velero)
	}
	code := b.mig("history", "shop", "last")
	b.wants(t, code, 0, "QuiesceApplications", "mig: warning: what context src has may be missing here: ")
	if strings.Contains(b.err.String(), "error") {
		t.Error(b.err.String())
	}
}
