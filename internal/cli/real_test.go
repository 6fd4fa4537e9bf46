//go:build e2e

package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/apitest"
	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/event"
	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/migrate"
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

// TestNoSecretOfRealClustersIsTold plants secrets in both clusters, runs what
// can be run there, and makes a run tell of them in every way that it has.
func TestNoSecretOfRealClustersIsTold(t *testing.T) {
	p := pair(t)
	plantSecrets(t, p)
	t.Chdir(t.TempDir())
	var told strings.Builder
	f := NewFactory(os.Stdin, os.Stdout, os.Stderr, nil)
	f.Streams = Streams{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &told, ErrOut: &told}}
	common := []string{"--kubeconfig", p.Kubeconfig, "-vv", "--log-file", "mig.log"}
	mig := func(args ...string) {
		fmt.Fprintf(&told, "\n$ mig %v, exit code %d\n", args, Run(t.Context(), f, append(args, common...)))
	}
	mig("cluster", "check", labtest.SourceContext, labtest.DestinationContext, "-o", "json")
	mig("plan", "create", "shop", "--src", labtest.SourceContext, "--dst", labtest.DestinationContext, "--namespaces", "shop", "--storage-location", "default")
	mig("plan", "validate", "shop", "-o", "json")
	mig("migrate", "shop") // not ready
	f.Run = tellsAll
	mig("migrate", "shop", "-o", "json")
	mig("status", "shop")
	for _, format := range historyFormats() {
		mig("history", "shop", "last", "-o", format)
	}
	log, err := os.ReadFile("mig.log")
	if err != nil || !strings.Contains(string(log), "verb=create resource=configmaps") {
		t.Errorf("%v: the log tells of no requests:\n%s", err, log)
	}
	if !strings.Contains(told.String(), progress.Hidden) || !strings.Contains(told.String(), "Step10") {
		t.Errorf("nothing was told:\n%s", told.String())
	}
	noneIn(t, "mig", told.String())
	noneIn(t, "the log", string(log))
	kubeconfig, err := clientcmd.LoadFromFile(p.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range kubeconfig.AuthInfos {
		if key := base64.StdEncoding.EncodeToString(user.ClientKeyData); strings.Contains(told.String()+string(log), key[:64]) {
			t.Error("a kubeconfig's key is told")
		}
	}
	for _, c := range []*cluster.Cluster{p.Source.Cluster, p.Destination.Cluster} {
		var events eventsv1.EventList
		var records corev1.ConfigMapList
		if err := errors.Join(c.List(t.Context(), &events), c.List(t.Context(), &records, client.HasLabels{naming.LabelRecord})); err != nil {
			t.Fatal(err)
		}
		if len(events.Items) < len(secretTexts()) || len(records.Items) < 2 {
			t.Errorf("%s has %d Events, %d records", c.Access.Context, len(events.Items), len(records.Items))
		}
		for _, e := range events.Items {
			noneIn(t, "Event "+e.Name, e.Note)
		}
		for _, r := range records.Items {
			noneIn(t, "record "+r.Name, fmt.Sprint(r.Data))
		}
	}
}

// plantSecrets puts secrets where a user's are.
func plantSecrets(t *testing.T, p *apitest.Pair) {
	t.Helper()
	for _, c := range []*cluster.Cluster{p.Source.Cluster, p.Destination.Cluster} {
		web := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{"note": "token=Pl4nted-annotation"}},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web", Env: []corev1.EnvVar{{Name: "DB_PASSWORD", Value: "Pl4nted-env"}}, Args: []string{"--token=Pl4nted-arg"}}}},
				},
			},
		}
		location := &velerov1.BackupStorageLocation{
			ObjectMeta: metav1.ObjectMeta{Namespace: labtest.VeleroNamespace, Name: "default"},
			Spec: velerov1.BackupStorageLocationSpec{
				Provider: "aws", StorageType: velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{Bucket: "b"}},
				Credential: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "cloud"}, Key: "cloud"},
			},
			Status: velerov1.BackupStorageLocationStatus{Phase: velerov1.BackupStorageLocationPhaseUnavailable, Message: "aws_secret_access_key = Pl4nted-status is refused"},
		}
		for _, o := range []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, web, location,
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "velero", Name: "cloud"}, StringData: map[string]string{"cloud": "[default]\naws_access_key_id=Pl4ntedID\naws_secret_access_key=Pl4nted-s3\n"}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "velero", Name: "velero-repo-credentials"}, StringData: map[string]string{"repository-password": "Pl4nted-repo"}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}, StringData: map[string]string{"password": "Pl4nted-app"}},
		} {
			if err := c.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// tellsAll is a run that keeps a real record and sends real Events, all of
// which quote secrets.
func tellsAll(ctx context.Context, o migrate.Options) (migrate.Result, error) {
	owner := naming.Owner{PlanName: o.Plan.Name(), PlanUID: o.Plan.UID(), RunUID: "aaaa2bcdef"}
	r := record.Run{UID: owner.RunUID, Kind: string(o.Kind), Started: time.Now(), Plan: record.FrozenPlan(owner.PlanName, owner.PlanUID, o.Text)}
	for _, text := range secretTexts() {
		r.Conditions = append(r.Conditions, record.Condition{Type: "Odd", Message: text})
	}
	j, err := record.New(o.Source, o.Destination, owner).Create(ctx, r)
	if err != nil {
		return migrate.Result{}, err
	}
	events := event.New(ctx, event.Config{Owner: owner, Source: o.Source, Destination: o.Destination})
	o.Sink = progress.Tee(o.Sink, events, sinkFunc(func(u progress.Update) { err = errors.Join(err, j.Keep(ctx, u)) }))
	result, failed := leaks(o)
	err = errors.Join(err, j.Changed(ctx, record.Change{Field: "env", Before: secretTexts()[9]}), j.Finish(ctx, record.Failed, result.Message), events.Close(ctx))
	return result, errors.Join(failed, err)
}

type sinkFunc func(progress.Update)

func (f sinkFunc) Emit(u progress.Update) { f(u) }
