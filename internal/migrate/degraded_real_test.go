//go:build e2e

package migrate

import (
	"context"
	"slices"
	"strings"
	"testing"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/apitest"
	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/record"
	"github.com/mig-cli/mig/internal/step"
)

// standsBy waits on both clusters, as steps that replicate do, until it is told
// to end.
type standsBy struct {
	on   []*cluster.Cluster
	over chan struct{}
}

func (standsBy) Name() string              { return "EnsureStageBackupReplicated" }
func (standsBy) Act(context.Context) error { return nil }

func (s standsBy) Next(ctx context.Context) (pipeline.Decision, error) {
	for _, c := range s.on {
		if err := c.Get(ctx, client.ObjectKey{Name: labtest.VeleroNamespace}, &corev1.Namespace{}); err != nil {
			return pipeline.Decision{}, err
		}
	}
	select {
	case <-s.over:
		return pipeline.Decision{Verdict: pipeline.Done, Note: progress.Remark{Why: s.Name(), Say: "both answer"}}, nil
	default:
		return pipeline.Decision{Verdict: pipeline.Wait, Note: progress.Remark{Why: s.Name(), Say: "waits"}}, nil
	}
}

// heard are the reasons that a run tells, as it tells them.
type heard chan string

func (h heard) Emit(u progress.Update) {
	if u.State == progress.Warning || u.State == progress.Happened {
		h <- u.Note.Reason()
	}
}

func (h heard) wait(t *testing.T, reason string) {
	t.Helper()
	select {
	case got := <-h:
		if got != reason {
			t.Fatalf("%s is told, want %s", got, reason)
		}
	case <-t.Context().Done():
		t.Fatal(reason + " is never told")
	}
}

func TestARunTellsThatARealClusterWentAwayAndCameBackOnceEach(t *testing.T) {
	p := apitest.For(t, apitest.Options{})
	for _, c := range []*cluster.Cluster{p.Source.Cluster, p.Destination.Cluster} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: labtest.VeleroNamespace}}
		location := &velerov1.BackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "default"}}
		location.Spec.Provider, location.Spec.ObjectStorage = "aws", &velerov1.ObjectStorageLocation{Bucket: "b"}
		for _, o := range []client.Object{namespace, location} {
			if err := c.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct{ context, lost, back string }{
		{labtest.SourceContext, step.ReasonSourceUnreachable, step.ReasonSourceBack},
		{labtest.DestinationContext, step.ReasonDestinationUnreachable, step.ReasonDestinationBack},
	} {
		t.Run(c.context, func(t *testing.T) {
			t.Parallel()
			src, srcWay := p.Through(t, labtest.SourceContext)
			dst, dstWay := p.Through(t, labtest.DestinationContext)
			way := map[string]*apitest.Way{labtest.SourceContext: srcWay, labtest.DestinationContext: dstWay}[c.context]
			s := standsBy{on: []*cluster.Cluster{src, dst}, over: make(chan struct{})}
			saw := make(heard, 100)
			d := driverOf(t, src, dst, saw)
			asked := make(chan struct{})
			ask := d.watch.clusters
			d.watch.clusters = func(ctx context.Context) []step.Need {
				defer func() { asked <- struct{}{} }()
				return ask(ctx)
			}
			ended := make(chan error, 1)
			go func() { ended <- d.pipeline(t.Context(), string(Stage), []pipeline.Step{s}, nil).Run(t.Context()) }()

			way.Cut()
			<-asked
			saw.wait(t, c.lost)
			<-asked // again in vain
			way.Mend()
			<-asked
			saw.wait(t, c.back)
			close(s.over)
			if err := <-ended; err != nil {
				t.Fatalf("the run did not ride it out: %v", err)
			}
			if err := d.journal.Finish(t.Context(), record.Completed, "done"); err != nil {
				t.Fatal(err)
			}
			d.close(t.Context())
			if len(saw) > 0 {
				t.Errorf("%s is told too", <-saw)
			}
			for _, on := range []*cluster.Cluster{p.Source.Cluster, p.Destination.Cluster} {
				isKept(t, on, d.owner, c.lost, c.back)
			}
		})
	}
}

// driverOf is a run that has begun, of a plan of its own.
func driverOf(t *testing.T, src, dst *cluster.Cluster, sink progress.Sink) *driver {
	t.Helper()
	d := &driver{
		o: Options{
			Kind: Stage, Plan: runOf(t).Plan, Source: cluster.Source{Cluster: src}, Destination: cluster.Destination{Cluster: dst}, Sink: sink,
			Say: func(line string) { t.Log(line) },
		},
		owner: naming.Owner{PlanName: "shop", PlanUID: naming.NewRunUID(t.Name()), RunUID: naming.NewRunUID(t.Name() + " again")},
	}
	d.store = d.newStore()
	if err := d.open(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	return d
}

// isKept wants each of the reasons once in the run's record and in its Events.
func isKept(t *testing.T, on *cluster.Cluster, o naming.Owner, reasons ...string) {
	t.Helper()
	run, err := record.Read(t.Context(), on, o)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, e := range run.Events {
		kept = append(kept, e.Reason)
	}
	events, err := labtest.Events(t.Context(), on, o.PlanUID)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join(reasons, " ")
	isOther := func(reason string) bool { return !slices.Contains(reasons, reason) }
	for where, all := range map[string][]string{"record": kept, "Events": labtest.Reasons(events)} {
		if got := strings.Join(slices.DeleteFunc(slices.Clone(all), isOther), " "); got != want {
			t.Errorf("the %s on %s tell %q, want %q; all: %v", where, on.Access.Context, got, want, all)
		}
	}
}
