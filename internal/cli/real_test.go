//go:build e2e

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mig-cli/mig/internal/apitest"
	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/record"
)

// pair is two API servers with Velero's namespace.
func pair(t *testing.T) *apitest.Pair {
	t.Helper()
	p := apitest.For(t, apitest.Options{})
	for _, c := range []*cluster.Cluster{p.Source.Cluster, p.Destination.Cluster} {
		if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: labtest.VeleroNamespace}}); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func TestTheWholeStoryIsReadFromOneRealClusterWithTheOtherGone(t *testing.T) {
	p := pair(t)
	o := naming.Owner{PlanName: "shop", PlanUID: "0123456789abcdef", RunUID: "aaaa2bcdef"}
	big := manyVolumes(t, p, o)
	without := oneGone(t, p)
	t.Chdir(t.TempDir()) // no plan file
	for gone, kubeconfig := range without {
		var out, errOut bytes.Buffer
		f := NewFactory(os.Stdin, os.Stdout, os.Stderr, nil)
		f.Streams = Streams{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}}
		code := Run(t.Context(), f, []string{
			"history", "shop", "last", "-o", "json", "--kubeconfig", kubeconfig, "--src", labtest.SourceContext, "--dst", labtest.DestinationContext,
		})
		var got pastStory
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("without %s: exit %d, %v: %s", gone, code, err, errOut.String())
		}
		if code != 0 || !strings.Contains(errOut.String(), "what context "+gone+" has may be missing here: ") {
			t.Errorf("without %s: exit %d: %s", gone, code, errOut.String())
		}
		if len(got.Volumes) != len(big.Volumes) || len(got.Changes) != len(big.Changes) || len(got.Events) != len(big.Events) || got.PlanFile != big.Plan.YAML {
			t.Errorf("without %s: %d volumes, %d changes, %d events, plan %q", gone, len(got.Volumes), len(got.Changes), len(got.Events), got.PlanFile)
		}
		if c := got.Changes[4999]; c.Before != "3" || c.After != "0" || got.Steps[0].Ended.IsZero() {
			t.Errorf("without %s: %+v, %+v", gone, c, got.Steps)
		}
	}
}

// manyVolumes keeps a run of 5,000 volumes that changed as many objects.
func manyVolumes(t *testing.T, p *apitest.Pair, o naming.Owner) record.Run {
	t.Helper()
	r := record.Run{UID: o.RunUID, Kind: kindMigrate, Started: time.Now(), Plan: record.FrozenPlan(o.PlanName, o.PlanUID, "kind: MigrationPlan\n")}
	j, err := record.New(p.Source, p.Destination, o).Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	u := progress.Update{Time: time.Now(), Run: r.Kind, Step: "StageBackupCreated", Number: 1, Of: 1, State: progress.Done, Note: progress.Remark{Why: "StageBackupCreated", Say: "all captured"}}
	var changes []record.Change
	for i := range 5000 {
		u.Amounts = append(u.Amounts, progress.Amount{Item: fmt.Sprintf("shop/data-%d", i), Done: 1 << 30, Total: 1 << 30})
		changes = append(changes, record.Change{
			Object: progress.Ref{Side: progress.OnSource, APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: fmt.Sprintf("web-%d", i)},
			Field:  "spec.replicas", Before: "3", After: "0",
		})
	}
	for _, do := range []func() error{
		func() error { return j.Changed(t.Context(), changes...) },
		func() error { return j.Keep(t.Context(), u) },
		func() error { return j.Finish(t.Context(), record.Completed, "done") },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	return j.Run()
}

// oneGone are kubeconfigs by the context that does not answer in them.
func oneGone(t *testing.T, p *apitest.Pair) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, gone := range []string{labtest.SourceContext, labtest.DestinationContext} {
		k, err := clientcmd.LoadFromFile(p.Kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		k.Clusters[k.Contexts[gone].Cluster].Server = "https://127.0.0.1:1"
		out[gone] = filepath.Join(t.TempDir(), "kubeconfig")
		if err := clientcmd.WriteToFile(*k, out[gone]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}
