package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
)

var (
	_ pipeline.Journal = (*Journal)(nil)
	_ progress.Sink    = (*Journal)(nil)
)

var owner = naming.Owner{PlanName: "shop", PlanUID: "5f0c8a52-6f1e-4c40-9a38-0b6a7f0e9a11", RunUID: "aaaaaaaaaa"}

// server is a cluster whose API can be made to fail, and that refuses a
// ConfigMap over 1 MiB as a real one does.
type server struct {
	*cluster.Cluster
	fail   func(verb string, o client.Object) error
	after  func(verb string, o client.Object) error // done, but the answer is lost
	writes int
}

// errAnswered is a request that the test has answered itself.
var errAnswered = errors.New("answered")

func ignore(err, harmless error) error {
	if errors.Is(err, harmless) {
		return nil
	}
	return err
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	try := func(verb string, o client.Object, do func() error) error {
		if s.fail != nil {
			if err := s.fail(verb, o); err != nil {
				return ignore(err, errAnswered)
			}
		}
		if cm, ok := o.(*corev1.ConfigMap); ok && verb != "get" && verb != "delete" {
			if size := sizeOf(cm); size > corev1.MaxSecretSize {
				return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("%s: %d bytes", cm.Name, size))
			}
			s.writes++
		}
		if err := do(); err != nil || s.after == nil {
			return err
		}
		return s.after(verb, o)
	}
	scheme := runtime.NewScheme() // as small as can be: the fake client goes through all of it at every write
	utilruntime.Must(errors.Join(corev1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme)))
	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return try("get", o, func() error { return c.Get(ctx, key, o, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return try("create", o, func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return try("update", o, func() error { return c.Update(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return try("delete", o, func() error { return c.Delete(ctx, o, opts...) })
		},
	}).Build()
	s.Cluster = &cluster.Cluster{Client: c, VeleroNamespace: "velero"}
	return s
}

func sizeOf(cm *corev1.ConfigMap) int {
	size := 0
	for _, v := range cm.Data {
		size += len(v)
	}
	for _, v := range cm.BinaryData {
		size += len(v)
	}
	return size
}

func newStores(t *testing.T) (*Store, *server, *server) {
	t.Helper()
	src, dst := newServer(t), newServer(t)
	return New(cluster.Source{Cluster: src.Cluster}, cluster.Destination{Cluster: dst.Cluster}, owner), src, dst
}

func newRun() Run {
	p := FrozenPlan("shop", owner.PlanUID, "kind: MigrationPlan\nmetadata: {name: shop}\n")
	p.Namespaces = []Namespace{{Source: "shop", Destination: "shop-prod"}}
	return Run{
		UID: owner.RunUID, Kind: "migrate", Plan: p, Who: "jane", Host: "laptop-1", Version: "v0.1.0",
		Started: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
		Steps:   []Step{{Number: 1, Name: "Prepare"}, {Number: 2, Name: "QuiesceApplications"}, {Number: 3, Name: "Completed"}},
		Conditions: []Condition{
			{Type: "SourceReachable", Category: "Required", Status: "True", Reason: "Answered", Message: "Kubernetes v1.34.4"},
		},
		Accepted: []Accepted{{Type: "BarePod", Object: "shop/debug", Why: "thrown away anyway"}},
	}
}

func begin(t *testing.T, s *Store) *Journal {
	t.Helper()
	j, err := s.Create(t.Context(), newRun())
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func update(step string, number int, state progress.State, text string) progress.Update {
	return progress.Update{
		Time: time.Date(2026, 11, 30, 12, 0, number, 0, time.UTC), Run: "migrate", Step: step, Number: number, Of: 3, State: state,
		Note: progress.Remark{Why: step, Say: text}, Elapsed: time.Second,
	}
}

func keep(t *testing.T, j *Journal, u progress.Update) {
	t.Helper()
	if err := j.Keep(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

func latest(t *testing.T, s *Store) *Run {
	t.Helper()
	r, err := s.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func headOn(t *testing.T, c *cluster.Cluster) *corev1.ConfigMap {
	t.Helper()
	var cm corev1.ConfigMap
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "velero", Name: owner.RunRecord()}, &cm); err != nil {
		t.Fatal(err)
	}
	return &cm
}

func TestWhatIsKeptIsReadBackOnBothClusters(t *testing.T) {
	s, src, dst := newStores(t)
	j := begin(t, s)
	keep(t, j, update("Prepare", 1, progress.Done, "all is well"))
	if err := j.Changed(t.Context(), Change{Object: progress.Ref{Side: progress.OnSource, Kind: "Deployment", Namespace: "shop", Name: "web"}, Field: "spec.replicas", Before: "3", After: "0"}); err != nil {
		t.Fatal(err)
	}
	if err := j.Update(t.Context(), func(r *Run) { r.SourceDown = true }); err != nil {
		t.Fatal(err)
	}
	for side, c := range map[string]*cluster.Cluster{"source": src.Cluster, "destination": dst.Cluster} {
		r, err := Read(t.Context(), c, owner)
		if err != nil {
			t.Fatalf("%s: %v", side, err)
		}
		if !r.IsDone("Prepare") || r.IsDone("QuiesceApplications") || !r.SourceDown || r.Who != "jane" || r.State != Running {
			t.Errorf("%s: got %+v", side, r)
		}
		if len(r.Changes) != 1 || r.Changes[0].Before != "3" || r.Changes[0].At.IsZero() {
			t.Errorf("%s: changes %+v", side, r.Changes)
		}
		if r.Plan.YAML != newRun().Plan.YAML {
			t.Errorf("%s: frozen plan %q", side, r.Plan.YAML)
		}
	}
}

func TestTheHeadTellsItsStoryToAPerson(t *testing.T) {
	s, src, _ := newStores(t)
	j := begin(t, s)
	keep(t, j, update("Prepare", 1, progress.Done, "all is well"))
	keep(t, j, update("QuiesceApplications", 2, progress.Stalled, "pod shop/db-0 is still there"))
	data := headOn(t, src.Cluster).Data
	for key, want := range map[string][]string{
		"status":     {"Plan:        shop", "State:       Running", "By:          jane", "shop → shop-prod", "2 of 3, QuiesceApplications: Running", "BarePod on shop/debug: thrown away anyway"},
		"steps":      {" 1 Prepare", "Done", "all is well", "Running", " 3 Completed"},
		"conditions": {"SourceReachable", "Required", "True", "Kubernetes v1.34.4"},
		"events":     {"2026-11-30T12:00:02Z Warning QuiesceApplications", "[QuiesceApplications stalled]", "pod shop/db-0 is still there"},
		"plan.yaml":  {"kind: MigrationPlan"},
	} {
		for _, w := range want {
			if !strings.Contains(data[key], w) {
				t.Errorf("%s lacks %q:\n%s", key, w, data[key])
			}
		}
	}
}

func TestAResumedRunGoesOnFromTheRecord(t *testing.T) {
	s, _, _ := newStores(t)
	j := begin(t, s)
	keep(t, j, update("Prepare", 1, progress.Done, "all is well"))
	keep(t, j, update("QuiesceApplications", 2, progress.Happened, "web is stopped"))

	again, err := s.Resume(t.Context(), *latest(t, s))
	if err != nil {
		t.Fatal(err)
	}
	keep(t, again, update("", 0, progress.RunStart, "resumed"))
	keep(t, again, update("QuiesceApplications", 2, progress.Happened, "web is stopped")) // a new process sees it again
	keep(t, again, update("QuiesceApplications", 2, progress.Done, "all is stopped"))
	r := latest(t, s)
	step, _ := r.Step("QuiesceApplications")
	if !again.IsDone("Prepare") || step.State != StepDone || step.Attempts != 2 || r.Attempts != 2 {
		t.Errorf("got step %+v of attempt %d", step, r.Attempts)
	}
	if len(r.Events) != 4 {
		t.Errorf("the fact was written down again: %+v", r.Events)
	}
}

func TestWhoDroveARunBeforeCannotWriteOnceItIsTakenOver(t *testing.T) {
	s, _, _ := newStores(t)
	j := begin(t, s)
	by := *latest(t, s)
	by.Host = "other-7"
	if _, err := s.Resume(t.Context(), by); err != nil {
		t.Fatal(err)
	}
	err := j.Keep(t.Context(), update("Prepare", 1, progress.Done, "late"))
	var ended *EndedError
	if !errors.As(err, &ended) || ended.Host != "other-7" || !strings.Contains(err.Error(), "taken this run over") {
		t.Errorf("got %v", err)
	}
	if r := latest(t, s); r.IsDone("Prepare") {
		t.Error("the old process wrote over the new one's record")
	}
}

func TestARunThatAnotherEndedStopsAtItsNextStep(t *testing.T) {
	s, _, _ := newStores(t)
	j := begin(t, s)
	if err := s.End(t.Context(), owner.RunUID, RolledBack, "by run bbbbbbbbbb", Run{Who: "joe", Host: "ci-3"}); err != nil {
		t.Fatal(err)
	}
	var ended *EndedError
	if err := j.Keep(t.Context(), update("Prepare", 1, progress.Done, "late")); !errors.As(err, &ended) || ended.State != RolledBack {
		t.Errorf("got %v", err)
	}
	if r := latest(t, s); r.State != RolledBack || r.Message == "" || r.Ended.IsZero() {
		t.Errorf("got %s %q ended %s", r.State, r.Message, r.Ended)
	}
}

func TestASecondRunOfTheSameUIDIsRefused(t *testing.T) {
	s, _, _ := newStores(t)
	begin(t, s)
	var ended *EndedError
	if _, err := s.Create(t.Context(), newRun()); !errors.As(err, &ended) {
		t.Errorf("got %v", err)
	}
}

func TestALabelThatSomeoneElseAddedSurvivesAndDisturbsNothing(t *testing.T) {
	s, src, _ := newStores(t)
	j := begin(t, s)
	cm := headOn(t, src.Cluster)
	cm.Labels["team"] = "blue"
	if err := src.Update(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	keep(t, j, update("Prepare", 1, progress.Done, "all is well"))
	if !latest(t, s).IsDone("Prepare") || headOn(t, src.Cluster).Labels["team"] != "blue" {
		t.Error("the step or the label is lost")
	}
}

func TestALostAnswerIsNotAStranger(t *testing.T) {
	s, src, _ := newStores(t)
	lost := apierrors.NewTimeoutError("the answer", 1)
	lose := func(verb string, _ client.Object) error {
		if verb == "create" || verb == "update" {
			src.after = nil
			return lost
		}
		return nil
	}
	j := begin(t, s)
	src.after = lose
	u := update("Prepare", 1, progress.Done, "all is well")
	if err := j.Keep(t.Context(), u); !apierrors.IsTimeout(err) {
		t.Fatalf("got %v, want the time-out to ride out", err)
	}
	keep(t, j, u) // as the engine does
	if r := latest(t, s); len(r.Events) != 1 || !r.IsDone("Prepare") {
		t.Errorf("got %+v", r.Events)
	}
}

func TestATransitionThatTheEngineKeepsAgainIsWrittenDownOnce(t *testing.T) {
	s, src, _ := newStores(t)
	j := begin(t, s)
	u := update("Prepare", 1, progress.Stalled, "node-agent is not ready")
	src.fail = func(string, client.Object) error { return apierrors.NewServiceUnavailable("restarting") }
	if err := j.Keep(t.Context(), u); !apierrors.IsServiceUnavailable(err) {
		t.Fatalf("got %v", err)
	}
	src.fail = nil
	u.Time, u.Elapsed = u.Time.Add(time.Second), u.Elapsed+time.Second
	keep(t, j, u)
	if r := latest(t, s); len(r.Events) != 1 {
		t.Errorf("got %+v", r.Events)
	}
}

func TestWhatHappensWhileAClusterIsAwayIsWrittenDownWhenItIsBack(t *testing.T) {
	s, src, _ := newStores(t)
	j := begin(t, s)
	src.fail = func(string, client.Object) error { return apierrors.NewServiceUnavailable("restarting") }
	for i, text := range []string{"the source does not answer", "the source answers again", "the source does not answer"} {
		u := update("Prepare", 1, progress.Warning, text)
		u.Recurs, u.Time = true, u.Time.Add(time.Duration(i)*time.Minute)
		j.KeepBeside(u)
	}
	j.beside.Wait()
	src.fail = nil
	if r := latest(t, s); len(r.Events) != 0 {
		t.Fatalf("it was not away: %+v", r.Events)
	}
	keep(t, j, update("Prepare", 1, progress.Done, "all is well"))
	r := latest(t, s)
	if len(r.Events) != 4 || r.Events[0].Text != r.Events[2].Text || !r.Events[2].Recurs || !r.Told()[2].Recurs {
		t.Errorf("got %+v", r.Events)
	}
}

func TestEveryResumeIsWrittenDown(t *testing.T) {
	s, _, _ := newStores(t)
	begin(t, s)
	for i := range 3 { // killed at once, again and again
		j, err := s.Resume(t.Context(), *latest(t, s))
		if err != nil {
			t.Fatal(err)
		}
		u := update("", 0, progress.RunStart, "taken up again")
		u.Time = u.Time.Add(time.Duration(i) * time.Minute)
		keep(t, j, u)
	}
	if r := latest(t, s); len(r.Events) != 3 || r.Attempts != 4 {
		t.Errorf("got %d, attempt %d", len(r.Events), r.Attempts)
	}
}

func TestADestinationThatIsAwayStopsARunUnlessItMayBeAway(t *testing.T) {
	s, _, dst := newStores(t)
	j := begin(t, s)
	away := apierrors.NewServiceUnavailable("away")
	dst.fail = func(string, client.Object) error { return away }
	if err := j.Keep(t.Context(), update("Prepare", 1, progress.Done, "all is well")); !errors.Is(err, away) || !strings.Contains(err.Error(), "destination") {
		t.Errorf("got %v, want the destination's trouble", err)
	}

	s.DestinationMayBeAway = true
	if err := j.Keep(t.Context(), update("QuiesceApplications", 2, progress.Done, "stopped")); err != nil {
		t.Errorf("got %v", err)
	}
	if err := j.ReplicaTrouble(); !errors.Is(err, away) {
		t.Errorf("trouble %v is not kept for a warning", err)
	}
	dst.fail = nil
	if err := j.Finish(t.Context(), Completed, ""); err != nil || j.ReplicaTrouble() != nil {
		t.Errorf("got %v, %v", err, j.ReplicaTrouble())
	}
	if r, err := Read(t.Context(), dst.Cluster, owner); err != nil || !r.IsDone("QuiesceApplications") || r.State != Completed {
		t.Errorf("the replica did not catch up: %+v, %v", r, err)
	}
}

func TestARecordThatWasDeletedStopsTheRun(t *testing.T) {
	s, src, _ := newStores(t)
	j := begin(t, s)
	if err := src.Delete(t.Context(), headOn(t, src.Cluster)); err != nil {
		t.Fatal(err)
	}
	err := j.Keep(t.Context(), update("Prepare", 1, progress.Done, "all is well"))
	if err == nil || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("got %v", err)
	}
}

func TestARecordOfANewerMigIsRefusedByName(t *testing.T) {
	s, src, _ := newStores(t)
	begin(t, s)
	cm := headOn(t, src.Cluster)
	cm.Data[keyRun] = strings.Replace(cm.Data[keyRun], `"schema":1`, `"schema":7,"steps":"other"`, 1)
	cm.Data[keyRun] = strings.Replace(cm.Data[keyRun], `"version":"v0.1.0"`, `"version":"v9.0.0"`, 1)
	if err := src.Update(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	_, err := s.Latest(t.Context())
	var newer *NewerError
	if !errors.As(err, &newer) || newer.Schema != 7 || newer.Version != "v9.0.0" || newer.Name != "velero/"+owner.RunRecord() {
		t.Errorf("got %v", err)
	}
}

func TestADamagedRecordIsSaidNotGuessedAt(t *testing.T) {
	for what, damage := range map[string]func(*corev1.ConfigMap){
		"no JSON":      func(cm *corev1.ConfigMap) { cm.Data[keyRun] = "{" },
		"another plan": func(cm *corev1.ConfigMap) { cm.Data[keyPlan] += "# edited\n" },
		"lost part": func(cm *corev1.ConfigMap) {
			cm.Data[keyRun] = strings.Replace(cm.Data[keyRun], `"sourceDown"`, `"parts":[{"section":"events","name":"x"}],"sourceDown"`, 1)
		},
	} {
		s, src, _ := newStores(t)
		begin(t, s)
		cm := headOn(t, src.Cluster)
		damage(cm)
		if err := src.Update(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
		var broken *BrokenError
		if _, err := s.Latest(t.Context()); !errors.As(err, &broken) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

func TestAForgottenStepIsDoneAgainInAnotherRound(t *testing.T) {
	s, _, _ := newStores(t)
	j := begin(t, s)
	stopped := update("QuiesceApplications", 2, progress.Happened, "web is stopped")
	keep(t, j, stopped)
	keep(t, j, update("QuiesceApplications", 2, progress.Done, "all is stopped"))
	if err := j.Forget(t.Context(), "QuiesceApplications", "NoSuchStep"); err != nil {
		t.Fatal(err)
	}
	if j.IsDone("QuiesceApplications") || j.Round("QuiesceApplications") != 1 {
		t.Errorf("done %t, round %d", j.IsDone("QuiesceApplications"), j.Round("QuiesceApplications"))
	}
	if told := latest(t, s).Told(); len(told) != 0 {
		t.Errorf("what was taken back is still told: %+v", told)
	}
	keep(t, j, stopped)
	if r := latest(t, s); len(r.Events) != 3 || len(r.Told()) != 1 {
		t.Errorf("the second stop is not written down: %+v", r.Events)
	}
}

func TestTheLatestRunIsTheOneThatStartedLast(t *testing.T) {
	s, src, dst := newStores(t)
	if _, err := s.Latest(t.Context()); !errors.Is(err, ErrNoRun) {
		t.Errorf("got %v", err)
	}
	first := begin(t, s)
	newer := owner
	newer.RunUID = "bbbbbbbbbb"
	r := newRun()
	r.UID, r.Kind, r.Started = newer.RunUID, "rollback", r.Started.Add(time.Hour)
	if _, err := New(s.src, s.dst, newer).Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	other := naming.Owner{PlanName: "other", PlanUID: "other", RunUID: "cccccccccc"}
	r.UID, r.Started = other.RunUID, r.Started.Add(time.Hour)
	if _, err := New(s.src, s.dst, other).Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if got := latest(t, s).UID; got != newer.RunUID {
		t.Errorf("latest is %s", got)
	}
	if runs, err := s.List(t.Context()); err != nil || len(runs) != 2 || runs[1].UID != owner.RunUID {
		t.Errorf("got %d runs, %v", len(runs), err)
	}
	if runs, err := List(t.Context(), dst.Cluster, naming.Owner{}); err != nil || len(runs) != 3 {
		t.Errorf("got %d runs of all plans on the destination, %v", len(runs), err)
	}

	// The end of an older run does not make it the plan's last one.
	if err := first.Finish(t.Context(), RolledBack, ""); err != nil {
		t.Fatal(err)
	}
	p, err := LoadPlan(t.Context(), src.Cluster, owner)
	if err != nil || p.LastRun.UID != newer.RunUID || p.Name != "shop" || len(p.Namespaces) != 1 {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestNoSecretGetsIn(t *testing.T) {
	s, src, dst := newStores(t)
	j := begin(t, s)
	const secret = "wJalrXUtnFEMI-K7MDENG"
	keep(t, j, update("Prepare", 1, progress.Failed, `location: aws_secret_access_key=`+secret+` is wrong`))
	if err := j.Changed(t.Context(), Change{Field: "x", Before: "token: " + secret}); err != nil {
		t.Fatal(err)
	}
	err := j.Update(t.Context(), func(r *Run) {
		r.Conditions = []Condition{{Type: "StorageAvailable", Message: "credentials: secret_key=" + secret}}
		r.Accepted = []Accepted{{Type: "BarePod", Why: "its token=" + secret + " is old"}}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Finish(t.Context(), Failed, "password="+secret); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*cluster.Cluster{src.Cluster, dst.Cluster} {
		var all corev1.ConfigMapList
		if err := c.List(t.Context(), &all); err != nil || len(all.Items) != 2 {
			t.Fatalf("got %d, %v", len(all.Items), err)
		}
		if strings.Contains(fmt.Sprint(all.Items), secret) {
			t.Error("the secret is in a record")
		}
	}
}

func TestASecretThatAnOlderMigLetInIsHiddenWhereItIsRead(t *testing.T) {
	s, src, _ := newStores(t)
	const secret = "password=wJalrXUtnFEMI-K7MDENG"
	r := newRun()
	r.Steps[0].Note, r.Message = secret, secret
	r.Events, r.Changes = []Event{{Text: secret}}, []Change{{Before: secret, After: secret}}
	if _, err := s.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	heads, _, err := Heads(t.Context(), src.Cluster, owner)
	if err != nil {
		t.Fatal(err)
	}
	for how, got := range map[string]Run{"whole": *latest(t, s), "a head": heads[0]} {
		if told := fmt.Sprintf("%+v", got); strings.Contains(told, "wJalr") || strings.Count(told, progress.Hidden) != 5 {
			t.Errorf("%s: %s", how, told)
		}
	}
}

// keepBigRun records a run of five thousand volumes and gives back its plan's text.
func keepBigRun(t *testing.T, s *Store) string {
	t.Helper()
	r := newRun()
	r.UID, r.Plan.UID = s.owner.RunUID, s.owner.PlanUID
	var text strings.Builder
	for i := range 5000 {
		claim := fmt.Sprintf("namespace-with-a-rather-long-name-%04d/data-postgresql-ha-%04d", i/10, i)
		fmt.Fprintf(&text, "  - claim: %s\n    volume: pvc-%08x-1c9d-4a71-8f3e-%012x\n    capacity: 10Gi\n    storageClass: gp2\n    accessModes: [ReadWriteOnce]\n    action: copy\n    destination: {storageClass: fast-rwo}\n    # %x\n", claim, i*7919, i*104729, digest([]byte(claim)))
		r.Conditions = append(r.Conditions, Condition{Type: "VolumeSelected", Category: "Advisory", Status: "True", Reason: "Copy", Message: claim})
	}
	plan := r.Plan
	r.Plan = FrozenPlan(plan.Name, plan.UID, text.String())
	j, err := s.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var amounts []progress.Amount
	var facts []progress.Update
	for i := range 5000 {
		claim := fmt.Sprintf("claim-%04d", i)
		u := update("StageBackupCreated", 2, progress.Happened, claim+" backed up, 1.2 GB in 12s "+digest([]byte(claim)))
		u.Note = progress.Remark{Why: "VolumeBackedUp", Say: u.Note.Text(), On: progress.Ref{Side: progress.OnSource, APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: claim}}
		facts = append(facts, u)
		amounts = append(amounts, progress.Amount{Item: claim, Done: int64(i)})
	}
	for some := range slices.Chunk(facts, 25) { // one by one takes the fake cluster too long
		err := j.change(t.Context(), func(*Run) {
			for _, u := range some {
				j.apply(u)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	end := update("StageBackupCreated", 2, progress.Done, "5000 volumes")
	end.Amounts = amounts
	keep(t, j, end)
	return text.String()
}

// countParts makes sure that there are no parts but those that the head names.
func countParts(t *testing.T, c *cluster.Cluster) int {
	t.Helper()
	h, err := decodeHead(headOn(t, c))
	if err != nil {
		t.Fatal(err)
	}
	var all corev1.ConfigMapList
	if err := c.List(t.Context(), &all); err != nil || len(all.Items) != len(h.Parts)+2 {
		t.Errorf("%d ConfigMaps for a plan, a head and %d parts: %v", len(all.Items), len(h.Parts), err)
	}
	return len(h.Parts)
}

func TestFiveThousandVolumesFitAndNothingIsLost(t *testing.T) {
	s, src, dst := newStores(t)
	text := keepBigRun(t, s)
	again, err := s.Resume(t.Context(), *latest(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Copied(t.Context(), Volume{Claim: "claim-0000", Bytes: 7, Files: 3}); err != nil {
		t.Fatal(err)
	}
	countParts(t, src.Cluster) // also before the end
	if err := again.Finish(t.Context(), Completed, ""); err != nil {
		t.Fatal(err)
	}
	want := again.Run()
	for side, c := range map[string]*cluster.Cluster{"source": src.Cluster, "destination": dst.Cluster} {
		got, err := Read(t.Context(), c, owner)
		if err != nil {
			t.Fatalf("%s: %v", side, err)
		}
		if len(got.Events) != 5001 || len(got.Volumes) != 5000 || got.Plan.YAML != text {
			t.Fatalf("%s: %d events, %d volumes, %d bytes of plan", side, len(got.Events), len(got.Volumes), len(got.Plan.YAML))
		}
		if !slices.Equal(got.Events, want.Events) || !slices.Equal(got.Volumes, want.Volumes) || !slices.Equal(got.Conditions, want.Conditions) {
			t.Errorf("%s: what was read differs from what was written", side)
		}
		if text := headOn(t, c).Data["events"]; !strings.Contains(text, "earlier") || !strings.Contains(text, "5000 volumes") {
			t.Errorf("%s: the head is not readable: %.300s", side, text)
		}
		parts := countParts(t, c)
		t.Logf("%s: %d parts, head of %d bytes, %d writes", side, parts, sizeOf(headOn(t, c)), src.writes)
	}
}

func TestPartsThatADeadProcessLeftAreSweptAtTheEnd(t *testing.T) {
	s, src, _ := newStores(t)
	j := begin(t, s)
	orphan := buildPart(owner, "velero", part{Section: sectionEvents, Name: owner.RunRecordPart(sectionEvents, "x")}, []byte("x"))
	if err := src.Create(t.Context(), orphan); err != nil {
		t.Fatal(err)
	}
	if err := j.Finish(t.Context(), Completed, ""); err != nil {
		t.Fatal(err)
	}
	if err := src.Get(t.Context(), client.ObjectKeyFromObject(orphan), orphan); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}

func TestAStepThatHasBegunIsSeenByWhoReadsTheRecord(t *testing.T) {
	s, _, _ := newStores(t)
	j := begin(t, s)
	j.Emit(update("Prepare", 1, progress.Started, "looking"))
	j.Emit(update("Prepare", 1, progress.Waiting, "waiting"))
	j.beside.Wait()
	r := latest(t, s)
	if step, ok := r.Current(); !ok || step.Name != "Prepare" || step.State != StepRunning || step.Attempts != 1 || len(r.Events) != 0 {
		t.Errorf("got %+v, events %+v", step, r.Events)
	}
}

func TestTheUserIsWhoTheClusterSaysAndUnknownWhereItCannot(t *testing.T) {
	src := newServer(t)
	src.fail = func(_ string, o client.Object) error {
		if review, ok := o.(*authenticationv1.SelfSubjectReview); ok {
			review.Status.UserInfo.Username = "jane"
		}
		return errAnswered
	}
	if who, err := Who(t.Context(), src.Cluster); err != nil || who != "jane" {
		t.Errorf("got %q, %v", who, err)
	}
	src.fail = func(string, client.Object) error {
		return apierrors.NewNotFound(schema.GroupResource{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}, "")
	}
	if who, err := Who(t.Context(), src.Cluster); err != nil || who != "unknown" {
		t.Errorf("got %q, %v", who, err)
	}
}
