package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"testing"
	"time"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/migrate"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
)

// TestMain makes the test binary also a mig whose runs are played, to look at
// in a terminal without any cluster:
//
//	go test -c -o /tmp/played ./internal/cli && MIG_PLAYED=1 /tmp/played migrate PLAN --watch
//
// MIG_PLAYED is the speed; MIG_PLAYED_END is how the run ends: blocked or
// failed, else well.
func TestMain(m *testing.M) {
	speed, err := strconv.ParseFloat(os.Getenv("MIG_PLAYED"), 64)
	if err != nil || speed <= 0 {
		os.Exit(m.Run())
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := make(chan struct{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	go func() {
		<-signals
		close(stop)
		<-signals
		cancel(ErrInterrupted)
	}()
	f := NewFactory(os.Stdin, os.Stdout, os.Stderr, stop)
	f.Connect = func(cluster.Access, string) (*cluster.Cluster, error) { return &cluster.Cluster{}, nil }
	f.Preview = func(context.Context, migrate.Options) ([]migrate.Planned, error) {
		var out []migrate.Planned
		for i, name := range playedSteps() {
			out = append(out, migrate.Planned{Number: i + 1, Step: name, Does: "does what it is called"})
		}
		return out, nil
	}
	f.Run = playedRun(speed, os.Getenv("MIG_PLAYED_END"))
	os.Exit(Run(ctx, f, os.Args[1:]))
}

// playedRun plays a run through the real engine.
func playedRun(speed float64, end string) func(context.Context, migrate.Options) (migrate.Result, error) {
	return func(ctx context.Context, r migrate.Options) (migrate.Result, error) {
		p := pipeline.Pipeline{
			Name: string(r.Kind), Sink: r.Sink, Stop: r.Stop, Journal: noJournal{}, Poll: 200 * time.Millisecond,
			Passing: func(error) bool { return false },
			Limits:  func(string) pipeline.Limits { return pipeline.Limits{Stall: 5 * time.Second} },
		}
		for i, name := range playedSteps() {
			s := &playedStep{name: name, takes: time.Duration(float64((i*37)%9+1) * float64(time.Second) / speed)}
			switch {
			case name == "StageBackupCreated", name == "StageRestoreCreated":
				s.claims = []string{"shop/data-db-0", "shop/data-db-1", "shop/uploads", "shop/a-claim-with-a-name-that-is-much-longer-than-any-terminal-is-ready-to-show-in-full"}
				s.takes = time.Duration(20 * float64(time.Second) / speed)
			case name == "EnsureQuiesced" && end != "":
				s.end = end
			}
			p.Steps = append(p.Steps, s)
		}
		r.Sink.Emit(progress.Update{Time: time.Now(), Run: string(r.Kind), State: progress.RunStart, Note: progress.Remark{Why: "Started", Say: "run k3x7ab2c9d of plan " + r.Plan.Name() + " started"}})
		result := migrate.Result{Run: "k3x7ab2c9d", Kind: r.Kind, Downtime: 41 * time.Second}
		if err := p.Run(ctx); err != nil {
			return result, &migrate.StoppedError{Err: err, State: "the source is down"}
		}
		return result, nil
	}
}

func playedSteps() []string {
	return []string{
		"Prepare", "StorageEnsured", "AnnotateResources", "EnsureInitialBackup", "InitialBackupCreated", "QuiesceApplications", "EnsureQuiesced",
		"EnsureStagePods", "StagePodsCreated", "EnsureStageBackup", "StageBackupCreated", "EnsureStageBackupReplicated",
		"EnsureStageRestore", "StageRestoreCreated", "EnsureStagePodsDeleted", "EnsureInitialBackupReplicated",
		"EnsureFinalRestore", "FinalRestoreCreated", "WorkloadsReady", "EnsureAnnotationsDeleted", "Completed",
	}
}

type noJournal struct{}

func (noJournal) IsDone(string) bool                          { return false }
func (noJournal) Keep(context.Context, progress.Update) error { return nil }

// playedStep acts once, waits for as long as it takes, and is done.
type playedStep struct {
	name   string
	takes  time.Duration
	claims []string
	end    string
	acted  time.Time
}

func (s *playedStep) Name() string { return s.name }

func (s *playedStep) Act(context.Context) error {
	s.acted = time.Now()
	return nil
}

func (s *playedStep) Next(context.Context) (pipeline.Decision, error) {
	say := func(v pipeline.Verdict, text string) pipeline.Decision {
		return pipeline.Decision{Verdict: v, Note: progress.Remark{Why: s.name, Say: text}, Amounts: s.amounts()}
	}
	switch waited := time.Since(s.acted); {
	case s.end == "blocked":
		return say(pipeline.Blocked, "Deployment shop/web is scaled by HorizontalPodAutoscaler shop/web: pause it"), nil
	case s.end == "failed":
		return say(pipeline.Failed, "pod shop/web-0 did not end: its node n2 does not answer"), nil
	case s.acted.IsZero():
		return say(pipeline.Act, "asking Velero for it"), nil
	case waited < s.takes:
		return say(pipeline.Wait, "Velero backup mig-shop-k3x7ab2c9d-stage: InProgress"), nil
	default:
		d := say(pipeline.Done, fmt.Sprintf("all is as %s wants it", s.name))
		if s.name == "QuiesceApplications" {
			d.Facts = []progress.Note{progress.Remark{Why: "Quiesced", Say: "Deployment shop/web: replicas 3 → 0", On: progress.Ref{Side: progress.OnSource}}}
			d.Warnings = []progress.Note{progress.Remark{Why: "JobRuns", Say: "Job shop/import was running and is started again on the destination", On: progress.Ref{Side: progress.OnSource}}}
		}
		return d, nil
	}
}

func (s *playedStep) amounts() []progress.Amount {
	var out []progress.Amount
	for i, c := range s.claims {
		total := int64(i+1) * 700 << 20
		part := min(float64(time.Since(s.acted))/float64(s.takes)*float64(8-i)/4, 1)
		a := progress.Amount{Item: c}
		if !s.acted.IsZero() && part > 0 {
			a.Total, a.Done = total, int64(part*float64(total))
		}
		out = append(out, a)
	}
	return out
}
