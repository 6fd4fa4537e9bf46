package event

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/progress"
)

var (
	owner = naming.Owner{PlanName: "shop", PlanUID: "5f0c8a52-6f1e-4c40-9a38-0b6a7f0e9a11", RunUID: "aaaaaaaaaa"}
	noon  = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
)

// server is a cluster that keeps Events in the order in which they come.
type server struct {
	*cluster.Cluster
	got  []*eventsv1.Event
	fail func(*eventsv1.Event) error

	mayNotCount bool
}

func newServer() *server {
	s := &server{}
	scheme := runtime.NewScheme()
	utilruntime.Must(errors.Join(corev1.AddToScheme(scheme), eventsv1.AddToScheme(scheme)))
	create := func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		e, isEvent := o.(*eventsv1.Event)
		if isEvent && s.fail != nil {
			if err := s.fail(e); err != nil {
				return err
			}
		}
		err := c.Create(ctx, o, opts...)
		if isEvent && err == nil {
			s.got = append(s.got, e)
		}
		return err
	}
	patch := func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		if s.mayNotCount {
			return apierrors.NewForbidden(schema.GroupResource{Group: "events.k8s.io", Resource: "events"}, o.GetName(), errors.New("no"))
		}
		return c.Patch(ctx, o, p, opts...)
	}
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "velero", Name: owner.RunRecord(), UID: "uid-of-record"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(record).WithInterceptorFuncs(interceptor.Funcs{Create: create, Patch: patch}).Build()
	s.Cluster = &cluster.Cluster{Client: c, VeleroNamespace: "velero"}
	return s
}

func (s *server) reasons() []string {
	var out []string
	for _, e := range s.got {
		out = append(out, e.Reason)
	}
	return out
}

func newSink(t *testing.T, src, dst *server, change ...func(*Config)) *Sink {
	t.Helper()
	cfg := Config{Owner: owner, Source: cluster.Source{Cluster: src.Cluster}, Destination: cluster.Destination{Cluster: dst.Cluster}, Instance: "laptop-7"}
	for _, c := range change {
		c(&cfg)
	}
	return New(t.Context(), cfg)
}

func flush(t *testing.T, s *Sink) {
	t.Helper()
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func at(state progress.State, step string, n progress.Note) progress.Update {
	return progress.Update{Time: noon, Run: "migrate", Step: step, Number: 7, Of: 21, State: state, Note: n, Elapsed: 12 * time.Second}
}

func say(reason, text string) progress.Note { return progress.Remark{Why: reason, Say: text} }

func claim(side progress.Side, name string) progress.Ref {
	return progress.Ref{Side: side, APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: name, UID: "uid-of-" + name}
}

func backedUp(name, text string) progress.Update {
	return at(progress.Happened, "StageBackupCreated", progress.Remark{Why: "VolumeBackedUp", Say: text, On: claim(progress.OnSource, name)})
}

func TestEveryTransitionIsToldByItsReasonTypeAndText(t *testing.T) {
	const step = "StageBackupCreated"
	for _, c := range []struct {
		u                  progress.Update
		reason, kind, note string
	}{
		{at(progress.Done, step, say("BackupCompleted", "2 of 2 volumes")), step, "Normal", "Step 7 of 21 completed in 12s: 2 of 2 volumes"},
		{at(progress.Failed, step, say("BackupFailed", "PartiallyFailed")), step + "Failed", "Warning", "Step 7 of 21 failed after 12s: PartiallyFailed"},
		{at(progress.Stalled, step, say("BackupRunning", "pod is Pending")), step + "TakingTooLong", "Warning", "Step 7 of 21 is taking too long, 12s so far: pod is Pending"},
		{at(progress.Blocked, step, say("x", "a Job runs")), step + "Blocked", "Warning", "Step 7 of 21 is blocked, a person must decide: a Job runs"},
		{at(progress.Happened, step, say("VolumeBackedUp", "38 MB")), "VolumeBackedUp", "Normal", "38 MB"},
		{at(progress.Warning, step, say("NodeAgentMissing", "on node a")), "NodeAgentMissing", "Warning", "on node a"},
		{at(progress.RunStart, "", say("Started", "plan shop")), "Started", "Normal", "plan shop"},
		{at(progress.RunFinish, "", say("Completed", "all is there")), "Completed", "Normal", "all is there"},
		{at(progress.RunFinish, "", say("MigrationFailed", "no")), "MigrationFailed", "Warning", "no"},
		{at(progress.RunFinish, "", say("Interrupted", "no")), "Interrupted", "Warning", "no"},
	} {
		m := messageOf(c.u)
		if m.reason != c.reason || m.kind != c.kind || m.note != c.note {
			t.Errorf("%s: got %s %s %q", c.u.State, m.reason, m.kind, m.note)
		}
	}
}

func TestStepsAndRunsAreToldOnBothClustersAndAnObjectOnItsOwn(t *testing.T) {
	src, dst := newServer(), newServer()
	s := newSink(t, src, dst)
	s.Emit(at(progress.RunStart, "", say("Started", "plan shop")))
	s.Emit(at(progress.Waiting, "StageBackupCreated", say("x", "not a transition")))
	s.Emit(backedUp("data", "38 MB"))
	backup := progress.Ref{Side: progress.OnSource, APIVersion: "velero.io/v1", Kind: "Backup", Namespace: "velero", Name: "mig-stage", UID: "uid-of-backup"}
	s.Emit(at(progress.Done, "StageBackupCreated", progress.Remark{Why: "x", Say: "done", On: backup}))
	flush(t, s)

	if got := src.reasons(); !slices.Equal(got, []string{"Started", "VolumeBackedUp", "StageBackupCreated"}) {
		t.Fatalf("source: %v", got)
	}
	if got := dst.reasons(); !slices.Equal(got, []string{"Started", "StageBackupCreated"}) {
		t.Fatalf("destination: %v", got)
	}
	started, volume, done := src.got[0], src.got[1], src.got[2]
	if started.Regarding.Name != owner.RunRecord() || started.Regarding.UID != "uid-of-record" || started.Related.Name != owner.PlanRecord() || started.Namespace != "velero" || started.Action != "migrate" {
		t.Errorf("start: %+v", started)
	}
	if volume.Regarding.Name != "data" || volume.Namespace != "shop" || volume.Related.Name != owner.RunRecord() || volume.Regarding.UID != "uid-of-data" || volume.Action != "StageBackupCreated" {
		t.Errorf("volume: %+v", volume)
	}
	if done.Regarding.Name != owner.RunRecord() || done.Related.Kind != "Backup" || done.Related.UID != "uid-of-backup" {
		t.Errorf("step: %+v", done)
	}
	if e := dst.got[1]; e.Related != nil {
		t.Errorf("the destination is told of an object of the source: %+v", e.Related)
	}
	if done.ReportingController != "mig" || done.ReportingInstance != "laptop-7" || done.Labels[naming.LabelRun] != owner.RunUID {
		t.Errorf("from: %+v", done)
	}
}

func TestAnObjectWithoutANamespaceIsToldInDefault(t *testing.T) {
	src, dst := newServer(), newServer()
	s := newSink(t, src, dst)
	s.Emit(at(progress.Warning, "Prepare", progress.Remark{Why: "NodeAgentMissing", Say: "x", On: progress.Ref{Side: progress.OnDestination, APIVersion: "v1", Kind: "Node", Name: "node-1"}}))
	flush(t, s)
	if len(src.got) != 0 || len(dst.got) != 1 || dst.got[0].Namespace != "default" || dst.got[0].Regarding.Name != "node-1" {
		t.Errorf("source %v, destination %+v", src.reasons(), dst.got)
	}
}

func TestAResumedRunRepeatsNothing(t *testing.T) {
	src, dst := newServer(), newServer()
	first := newSink(t, src, dst)
	first.Emit(at(progress.RunStart, "", say("Started", "plan shop")))
	first.Emit(backedUp("data", "38 MB in 3s"))
	first.Emit(at(progress.Done, "StageBackupCreated", say("x", "done")))
	flush(t, first)

	again := newSink(t, src, dst)
	again.Emit(at(progress.RunStart, "", say("Resumed", "plan shop")))
	again.Emit(backedUp("data", "38 MB in 4s")) // seen again by another process, which counts otherwise
	again.Emit(at(progress.Done, "StageBackupCreated", say("x", "done")))
	flush(t, again)
	if got := src.reasons(); !slices.Equal(got, []string{"Started", "VolumeBackedUp", "StageBackupCreated", "Resumed"}) {
		t.Errorf("got %v", got)
	}
}

func TestWhatTrulyHappensAgainIsToldAgain(t *testing.T) {
	src, dst := newServer(), newServer()
	round := 0
	s := newSink(t, src, dst, func(c *Config) { c.Round = func(string) int { return round } })
	stop := at(progress.Happened, "EnsureQuiesced", progress.Remark{Why: "Quiesced", Say: "replicas 3 → 0", On: claim(progress.OnSource, "web")})
	s.Emit(stop)
	round = 1 // the step was taken back
	s.Emit(stop)
	stop.Note = progress.Remark{Why: "Quiesced", Say: "replicas 2 → 0", On: claim(progress.OnSource, "web")}
	s.Emit(stop)
	gate := func(text string) progress.Update {
		return at(progress.Warning, "EnsureQuiesced", progress.Remark{Why: "SourceScaledUp", Say: text, On: claim(progress.OnSource, "web")})
	}
	s.Emit(gate("to 1"))
	s.Emit(gate("to 2"))
	s.Emit(gate("to 1"))
	flush(t, s)
	want := []string{"Quiesced", "Quiesced", "Quiesced", "SourceScaledUp", "SourceScaledUp"}
	if got := src.reasons(); !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// away is something that the run needs and that comes and goes.
func away(text string, after time.Duration) progress.Update {
	on := progress.Ref{Side: progress.OnSource, APIVersion: "velero.io/v1", Kind: "BackupStorageLocation", Namespace: "velero", Name: "default", UID: "uid-of-location"}
	u := at(progress.Warning, "StageBackupCreated", progress.Remark{Why: "StorageLocationUnavailable", Say: text, On: on})
	u.Recurs, u.Time = true, noon.Add(after)
	return u
}

func TestWhatComesAndGoesIsOneEventThatCounts(t *testing.T) {
	src, dst := newServer(), newServer()
	s := newSink(t, src, dst)
	s.Emit(away("no such bucket", 0))
	s.Emit(away("access denied", time.Minute)) // another cause
	s.Emit(away("no such bucket", 2*time.Minute))
	s.Emit(away("no such bucket", 3*time.Minute))
	stall := at(progress.Stalled, "StageBackupCreated", say("x", "pod is there"))
	stall.Time = noon.Add(4 * time.Minute)
	s.Emit(stall)
	stall.Time, stall.Elapsed = noon.Add(5*time.Minute), time.Hour // it moved in between
	s.Emit(stall)
	flush(t, s)
	for _, on := range []*server{src, dst} {
		if got := on.counted(t); !slices.Equal(got, []string{
			"StorageLocationUnavailable: no such bucket, 3 times until 12:03:00",
			"StorageLocationUnavailable: access denied",
			"StageBackupCreatedTakingTooLong: Step 7 of 21 is taking too long, 12s so far: pod is there, 2 times until 12:05:00",
		}) {
			t.Errorf("got %q", got)
		}
	}
	if e := src.got[0]; e.Regarding.Name != owner.RunRecord() || e.Related == nil || e.Related.Kind != "BackupStorageLocation" {
		t.Errorf("about %v, related to %v", e.Regarding, e.Related)
	}
}

func TestAResumedRunCountsOnAndTellsNothingTwice(t *testing.T) {
	src, dst := newServer(), newServer()
	first, second := away("no such bucket", 0), away("no such bucket", time.Minute)
	s := newSink(t, src, dst)
	s.Emit(first)
	s.Emit(second)
	flush(t, s)
	s = newSink(t, src, dst, func(c *Config) { c.Earlier = []progress.Update{first, second} })
	s.Emit(away("no such bucket", 2*time.Minute))
	flush(t, s)
	if got := src.counted(t); !slices.Equal(got, []string{"StorageLocationUnavailable: no such bucket, 3 times until 12:02:00"}) {
		t.Errorf("got %q", got)
	}
}

func TestWhereAnEventMayNotBeCountedOrIsForgottenItIsToldAnew(t *testing.T) {
	src, dst := newServer(), newServer()
	src.mayNotCount = true
	s := newSink(t, src, dst)
	s.Emit(away("no such bucket", 0))
	s.Emit(away("no such bucket", time.Minute))
	flush(t, s)
	if got := src.counted(t); len(got) != 2 || len(dst.counted(t)) != 1 {
		t.Errorf("got %q", got)
	}
	for _, e := range dst.got {
		if err := dst.Delete(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	s = newSink(t, src, dst, func(c *Config) {
		c.Earlier = []progress.Update{away("no such bucket", 0), away("no such bucket", time.Minute)}
	})
	s.Emit(away("no such bucket", 2*time.Minute))
	flush(t, s)
	if got := dst.counted(t); !slices.Equal(got, []string{"StorageLocationUnavailable: no such bucket, 3 times until 12:02:00"}) {
		t.Errorf("got %q", got)
	}
}

// counted are the Events as they are on the server, in the order in which they
// were made, each with how often it was seen.
func (s *server) counted(t *testing.T) []string {
	t.Helper()
	var all eventsv1.EventList
	if err := s.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	out := make([]string, 0, len(all.Items))
	for _, e := range all.Items {
		text := e.Reason + ": " + e.Note
		if e.Series != nil {
			text += fmt.Sprintf(", %d times until %s", e.Series.Count, e.Series.LastObservedTime.UTC().Format(time.TimeOnly))
		}
		out = append(out, text)
	}
	return out
}

func TestWhatAKilledProcessDidNotSendIsSentByTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, dst := newServer(), newServer()
		now := time.Now()
		long, before, just := backedUp("long", "1 MB"), backedUp("before", "2 MB"), backedUp("just", "38 MB")
		long.Time, before.Time, just.Time = now.Add(-time.Hour), now.Add(-10*time.Minute), now.Add(-time.Minute)
		flush(t, newSink(t, src, dst, func(c *Config) { c.Earlier = []progress.Update{before, just, long} }))
		if len(src.got) != 1 || src.got[0].Regarding.Name != "just" {
			t.Errorf("got %v", src.got)
		}
		s := newSink(t, src, dst, func(c *Config) { c.Earlier = []progress.Update{before, just, long} })
		s.Emit(just) // the step sees it again
		flush(t, s)
		if len(src.got) != 1 {
			t.Errorf("told twice: %v", src.got)
		}
	})
}

func TestEventsOfARunThatDiedLongAgoAreNotSentAgain(t *testing.T) {
	src, dst := newServer(), newServer()
	old := backedUp("data", "1 MB")
	old.Time = time.Now().Add(-24 * time.Hour)
	flush(t, newSink(t, src, dst, func(c *Config) { c.Earlier = []progress.Update{old} }))
	if len(src.got) != 0 {
		t.Errorf("got %v", src.reasons())
	}
}

func TestTheOrderByTimeIsTheOrderToldAlsoAfterAResumeWithAClockThatIsBehind(t *testing.T) {
	src, dst := newServer(), newServer()
	earlier := at(progress.Done, "Prepare", say("x", "done"))
	earlier.Time = time.Now().Add(time.Hour)
	s := newSink(t, src, dst, func(c *Config) { c.Earlier = []progress.Update{earlier} })
	for i := range 5 {
		s.Emit(backedUp(fmt.Sprint(i), "38 MB"))
	}
	flush(t, s)
	if len(src.got) != 6 || src.got[0].Reason != "Prepare" {
		t.Fatalf("told %v", src.reasons())
	}
	for i, e := range src.got[1:] {
		if before := src.got[i]; !e.EventTime.After(before.EventTime.Time) {
			t.Errorf("%s at %s is not after %s", e.Regarding.Name, e.EventTime, before.EventTime)
		}
	}
}

func TestTheTextFitsByCuttingOnlyWhatTheNoteSays(t *testing.T) {
	m := messageOf(at(progress.Failed, "StageBackupCreated", say("x", strings.Repeat("ü€", 1000))))
	if len(m.note) > 1024 || len(m.note) < 1015 || !utf8.ValidString(m.note) || !strings.HasPrefix(m.note, "Step 7 of 21 failed after 12s: ü€") || !strings.HasSuffix(m.note, "…") {
		t.Errorf("%d bytes: %.60s … %s", len(m.note), m.note, m.note[len(m.note)-12:])
	}
	m = messageOf(at(progress.Done, "StageBackupCreated", list{}))
	if m.note != "Step 7 of 21 completed in 12s: 5000 claims" {
		t.Errorf("a note that can shorten itself was cut: %.80s", m.note)
	}
	m = messageOf(at(progress.Failed, strings.Repeat("S", 200), say("", "token=s3cr3t-value\nis wrong")))
	if len(m.reason) > 128 || len(m.action) > 128 || strings.Contains(m.note, "s3cr3t") || strings.Contains(m.note, "\n") {
		t.Errorf("got %+v", m)
	}
}

// list is a note that can say itself in fewer words.
type list struct{}

func (list) Reason() string          { return "x" }
func (list) Text() string            { return strings.Repeat("a-claim ", 5000) }
func (list) Regarding() progress.Ref { return progress.Ref{} }
func (list) Fit(int) string          { return "5000 claims" }

func TestNamesAreAcceptedAndTheControllerIsQualified(t *testing.T) {
	src, dst := newServer(), newServer()
	s := newSink(t, src, dst, func(c *Config) { c.Instance = strings.Repeat("h", 300) })
	s.Emit(at(progress.Happened, strings.Repeat("Step", 50), say(strings.Repeat("Reason", 50), "x")))
	flush(t, s)
	e := src.got[0]
	if errs := validation.IsDNS1123Subdomain(e.Name); len(errs) > 0 || len(e.ReportingInstance) > 128 {
		t.Errorf("%q: %v", e.Name, errs)
	}
	if errs := validation.IsQualifiedName(Controller); len(errs) > 0 {
		t.Error(errs)
	}
}

func TestAClusterThatDoesNotAnswerIsSaidOnceAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, dst := newServer(), newServer()
		var said []string
		s := newSink(t, src, dst, func(c *Config) {
			c.Trouble = func(side progress.Side, err error) { said = append(said, string(side)+": "+err.Error()) }
		})
		dst.fail = func(*eventsv1.Event) error { return apierrors.NewServiceUnavailable("restarting") }
		for i := range 3 {
			u := at(progress.Done, fmt.Sprintf("Step%d", i), say("x", "done"))
			s.Emit(u)
		}
		time.Sleep(2 * time.Minute)
		dst.fail = nil
		flush(t, s)
		if got := dst.reasons(); !slices.Equal(got, []string{"Step0", "Step1", "Step2"}) {
			t.Errorf("got %v", got)
		}
		if len(said) != 1 || !strings.HasPrefix(said[0], "destination: send Events: ") {
			t.Errorf("said %q", said)
		}
	})
}

func TestAClusterThatForbidsEventsIsNotAskedAgain(t *testing.T) {
	src, dst := newServer(), newServer()
	said, asked := 0, 0
	s := newSink(t, src, dst, func(c *Config) { c.Trouble = func(progress.Side, error) { said++ } })
	src.fail = func(e *eventsv1.Event) error {
		asked++
		return apierrors.NewForbidden(schema.GroupResource{Group: "events.k8s.io", Resource: "events"}, e.Name, errors.New("no"))
	}
	for i := range 3 {
		s.Emit(at(progress.Done, fmt.Sprintf("Step%d", i), say("x", "done")))
	}
	err := s.Close(t.Context())
	if said != 1 || asked != 1 || len(dst.got) != 3 {
		t.Errorf("said %d times, asked %d times, %d on the other", said, asked, len(dst.got))
	}
	if err != nil {
		t.Errorf("the one warning is followed by another: %v", err)
	}
}

func TestWhereOnlyTheRecordsNamespaceIsOursItsEventsAreToldThere(t *testing.T) {
	src, dst := newServer(), newServer()
	s := newSink(t, src, dst, func(c *Config) { c.Trouble = func(_ progress.Side, err error) { t.Error(err) } })
	src.fail = func(e *eventsv1.Event) error {
		if e.Namespace == "shop" {
			return apierrors.NewForbidden(schema.GroupResource{Group: "events.k8s.io", Resource: "events"}, e.Name, errors.New("no"))
		}
		return nil
	}
	claim := progress.Ref{Side: progress.OnSource, APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data"}
	s.Emit(at(progress.Happened, "StageBackupCreated", progress.Remark{Why: "VolumeBackedUp", Say: "38 MiB", On: claim}))
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if len(src.got) != 1 || src.got[0].Namespace != "velero" || src.got[0].Related.Name != "data" {
		t.Errorf("got %+v", src.got)
	}
}

func TestAnEventThatTheClusterRefusesDoesNotHoldUpTheNext(t *testing.T) {
	src, dst := newServer(), newServer()
	s := newSink(t, src, dst)
	src.fail = func(e *eventsv1.Event) error {
		if e.Reason == "Bad" {
			return apierrors.NewInvalid(schema.GroupKind{Group: "events.k8s.io", Kind: "Event"}, e.Name, nil)
		}
		return nil
	}
	s.Emit(at(progress.Happened, "Prepare", say("Bad", "x")))
	s.Emit(at(progress.Happened, "Prepare", say("Good", "x")))
	if err := s.Close(t.Context()); err == nil || !slices.Equal(src.reasons(), []string{"Good"}) {
		t.Errorf("got %v, %v", src.reasons(), err)
	}
}

func TestAnEventWhoseNamespaceIsGoneIsToldAtTheRecord(t *testing.T) {
	src, dst := newServer(), newServer()
	s := newSink(t, src, dst)
	src.fail = func(e *eventsv1.Event) error {
		if e.Namespace == "shop" {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop")
		}
		return nil
	}
	s.Emit(backedUp("data", "38 MB"))
	flush(t, s)
	if len(src.got) != 1 || src.got[0].Regarding.Name != owner.RunRecord() || src.got[0].Related.Name != "data" {
		t.Errorf("got %+v", src.got)
	}
}

func TestCloseDoesNotWaitLongerThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, dst := newServer(), newServer()
		s := newSink(t, src, dst)
		dst.fail = func(*eventsv1.Event) error { return apierrors.NewServiceUnavailable("away") }
		s.Emit(at(progress.Done, "Prepare", say("x", "done")))
		s.Emit(at(progress.Done, "Quiesce", say("x", "done")))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := s.Close(ctx)
		if err == nil || err.Error() != "2 Events were not sent to the destination" || len(src.got) != 2 {
			t.Errorf("got %v", err)
		}
		s.Emit(at(progress.Done, "Late", say("x", "done"))) // harmless
	})
}

func TestARunWithoutADestinationIsToldOnTheSource(t *testing.T) {
	src := newServer()
	s := New(t.Context(), Config{Owner: owner, Source: cluster.Source{Cluster: src.Cluster}})
	s.Emit(at(progress.Done, "Prepare", say("x", "done")))
	flush(t, s)
	if len(src.got) != 1 {
		t.Errorf("got %v", src.reasons())
	}
}

func TestTheEndOfARunIsAWarningWhereAPersonShouldLook(t *testing.T) {
	for _, r := range Reasons() {
		switch r.Name {
		case "Completed", "RolledBack", "PlanClosed", "Interrupted", "MigrationFailed":
			if got := messageOf(at(progress.RunFinish, "", say(r.Name, "x"))).kind; got != r.Kind {
				t.Errorf("%s is told as %s, the table has %s", r.Name, got, r.Kind)
			}
		}
	}
}
