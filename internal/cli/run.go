package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/config"
	"github.com/mig-cli/mig/internal/migrate"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/render"
)

// The kinds of run, which are also the names of their commands.
const (
	kindStage    = string(migrate.Stage)
	kindMigrate  = string(migrate.Cutover)
	kindRollback = string(migrate.Rollback)
	kindClose    = string(migrate.Close)
)

// runOptions are what commands that run have in common.
type runOptions struct {
	streams Streams
	connect func(plan.Plan, config.Config) (cluster.Source, cluster.Destination, error)
	run     func(context.Context, migrate.Options) (migrate.Result, error)
	// why says what keeps a run from beginning, if it can be found; nil: not asked.
	why       func(ctx context.Context, r migrate.Options, path string) error
	preview   func(context.Context, migrate.Options) ([]migrate.Planned, error)
	stop      <-chan struct{}
	canRedraw bool
	colour    func(config.Colour) bool
	log       func() *logs
	settings  config.Config

	kind   string
	plan   string
	watch  bool
	yes    bool
	wait   time.Duration // behind another run's locks
	junit  string        // a file; empty: none
	output string        // empty: for eyes; json, markdown
}

// runFormats are those of commands that run.
func runFormats() []string {
	return []string{string(render.FormatJSON), string(render.FormatMarkdown)}
}

func newRunOptions(f *Factory, kind string) runOptions {
	return runOptions{
		streams: f.Streams, connect: f.both, run: f.Run, preview: f.Preview, stop: f.Stop, canRedraw: f.canRedraw(), colour: f.colour, log: f.log, kind: kind,
	}
}

// addTo adds the flags and the arguments that all runs have.
func (o *runOptions) addTo(cmd *cobra.Command) {
	cmd.Annotations = map[string]string{hasSafePoints: "yes"}
	cmd.Args = maxArgs(1)
	cmd.ValidArgsFunction = completePlan
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "show a live view: steps, a bar for each volume, events (on a terminal)")
	cmd.Flags().DurationVar(&o.wait, "wait", 0, "while another run holds the plan or a namespace, queue behind it, for so long at most; without it, exit 11 at once")
	cmd.Flags().Lookup("wait").NoOptDefVal = "30m"
	cmd.Flags().StringVar(&o.junit, "junit", "", "also write the run's steps as test results into a JUnit `file`")
	cmd.Flags().Duration("heartbeat", config.DefaultHeartbeat, "how often plain lines tell what a step waits for; 0: never")
	cmd.Flags().String("log-groups", "", "fold the lines of a step in a CI's log: github or gitlab")
	complete(cmd, "log-groups", string(render.GroupsGitHub), string(render.GroupsGitLab))
	outputFlag(cmd, runFormats(), "json: one JSON object a line on standard output; markdown: a summary at the end, for the page of a CI job")
}

// complete fills in what the command line and the settings say.
func (o *runOptions) complete(f *Factory, cmd *cobra.Command, args []string) error {
	o.plan = argOf(args)
	var err error
	if o.settings, err = f.config(cmd); err != nil {
		return err
	}
	if o.wait < 0 {
		return &usageError{Err: fmt.Errorf("--wait %s: a time to wait is not below zero", o.wait), Hint: "like --wait=30m"}
	}
	o.output, err = output(cmd, o.settings, runFormats(), "")
	return err
}

// request reads the plan and makes the clients of a run; it also tells the
// plan's file.
func (o *runOptions) request() (migrate.Options, string, error) {
	v, path, err := loadPlan(o.plan)
	if err != nil {
		return migrate.Options{}, "", err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return migrate.Options{}, "", &plan.LoadError{File: path, Err: err}
	}
	src, dst, err := o.connect(v.Plan(), o.settings)
	return migrate.Options{
		Kind: migrate.Kind(o.kind), Plan: v, Text: string(text), Source: src, Destination: dst, Stop: o.stop, Wait: o.wait,
	}, path, err
}

// runToEnd runs a request, shows it, and tells how it ended.
func runToEnd(ctx context.Context, o *runOptions, r migrate.Options, path string) error {
	if err := o.openJUnit(); err != nil {
		return err
	}
	view := o.view(r)
	tally := newTally(time.Now())
	log := o.log()
	r.Sink = progress.Tee(tally, view, log)
	r.Say = func(text string) {
		log.Info("said", "text", text)
		view.Say(progress.Redact(text))
	}
	heard := o.sayInterrupt(ctx, view)
	o.announce(ctx, view, r)
	result, err := o.run(ctx, r)
	err = o.explained(ctx, placed(err, r.Source, r.Destination), r, path)
	heard()
	if err != nil {
		err = &runError{Kind: o.kind, Plan: planArg(path), Record: result.Record, Err: err}
	} else if len(result.LeftOut) > 0 {
		err = &incompleteError{Kind: o.kind, Record: result.Record, Left: result.LeftOut}
	}
	s := tally.summary(r, result, err, time.Now())
	if j, ok := view.(*render.JSON); ok {
		j.Line(s)
	}
	view.Close()
	log.hushed.Store(false)
	o.report(s, err, tally.began, planArg(path))
	return err
}

// report tells the end to whoever reads it.
func (o *runOptions) report(s runSummary, err error, began time.Time, arg string) {
	var f failure
	if err != nil {
		f = explain(err)
	}
	o.writeJUnit(s.tests(f, began))
	switch o.output {
	case "":
		s.tell(o.streams, arg)
	case string(render.FormatMarkdown):
		_, _ = fmt.Fprint(o.streams.Out, s.markdown(f))
	}
}

// explained is the reason behind an error that kept a run from beginning, where
// a look at both clusters finds one; else the error itself.
func (o *runOptions) explained(ctx context.Context, err error, r migrate.Options, path string) error {
	if err == nil || o.why == nil || is[*migrate.StoppedError](err) {
		return err
	}
	if code := explain(err).Code; code != exitFailed && code != exitDenied {
		return err // it says itself what it is
	}
	if why := o.why(ctx, r, path); why != nil {
		return why
	}
	return err
}

// view is how this run is shown.
func (o *runOptions) view(r migrate.Options) render.View {
	switch {
	case o.output == string(render.FormatJSON):
		return render.NewJSON(o.streams.Out)
	case o.watch && o.canRedraw:
		o.log().hushed.Store(true)
		p := r.Plan.Plan()
		return render.NewBars(render.BarsOptions{
			Writer: o.streams.ErrOut, Size: o.streams.Size, Colour: o.colour(o.settings.Colour),
			Title: fmt.Sprintf("mig %s %s: %s → %s", o.kind, r.Plan.Name(), p.Spec.Source.Context, p.Spec.Destination.Context),
		})
	default:
		return render.NewLines(o.streams.ErrOut, render.LinesOptions{
			Heartbeat: o.settings.Heartbeat, Groups: render.Groups(o.settings.LogGroups),
		})
	}
}

// announce tells a live view what steps are to come. That the list cannot be
// had is not worth a word: the run itself is about to say why.
func (o *runOptions) announce(ctx context.Context, view render.View, r migrate.Options) {
	bars, ok := view.(*render.Bars)
	if !ok {
		return
	}
	steps, err := o.preview(ctx, r)
	if err != nil {
		return
	}
	names := make([]string, 0, len(steps))
	for _, s := range steps {
		names = append(names, s.Step)
	}
	bars.Announce(names)
}

// sayInterrupt says that an interrupt was seen, for the next safe point may be
// a while away. The function that it returns ends it.
func (o *runOptions) sayInterrupt(ctx context.Context, view render.View) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-o.stop:
			view.Say("interrupt: stopping at the next safe point (interrupt again to end at once)")
		case <-ctx.Done():
		}
	}()
	return func() { cancel(); <-done }
}

// tally gathers what the summary of a run tells.
type tally struct {
	recorder progress.Recorder
	began    time.Time

	mu      sync.Mutex
	volumes []progress.Amount // the last word on each
}

func newTally(now time.Time) *tally { return &tally{began: now} }

// Emit keeps what is told at the end: not each of a long wait's moments, with
// thousands of volumes each.
func (t *tally) Emit(u progress.Update) {
	if len(u.Amounts) > 0 {
		t.mu.Lock()
		t.volumes = u.Amounts
		t.mu.Unlock()
		u.Amounts = nil
	}
	if u.State.Transition() || u.State == progress.Skipped {
		t.recorder.Emit(u)
	}
}

// runSummary is the last line of a run's -o json.
type runSummary struct {
	Type              string            `json:"type"` // summary
	Run               string            `json:"run"`  // stage, migrate, rollback
	UID               string            `json:"uid,omitempty"`
	Record            string            `json:"record,omitempty"` // the ConfigMap with the run's story, namespace/name
	Plan              string            `json:"plan"`
	Result            string            `json:"result"` // done, incomplete, failed, blocked, interrupted
	Message           string            `json:"message,omitempty"`
	Seconds           float64           `json:"seconds"`
	SourceDownSeconds float64           `json:"sourceDownSeconds,omitempty"`
	Steps             []stepSummary     `json:"steps"`
	Volumes           []progress.Amount `json:"volumes,omitempty"`
	Warnings          []string          `json:"warnings,omitempty"`
	LeftOut           []string          `json:"leftOut,omitempty"`
}

// stepSummary is one step in the summary.
type stepSummary struct {
	Run     string         `json:"run,omitempty"` // where it is another: recovery
	Number  int            `json:"number"`
	Step    string         `json:"step"`
	State   progress.State `json:"state"`
	Seconds float64        `json:"seconds"`
	Message string         `json:"message,omitempty"` // of a step that is not done
}

func (t *tally) summary(r migrate.Options, result migrate.Result, err error, now time.Time) runSummary {
	took := result.Took
	if took <= 0 {
		took = now.Sub(t.began)
	}
	s := runSummary{
		Type: "summary", Run: string(r.Kind), UID: result.Run, Record: result.Record, Plan: r.Plan.Name(), Result: resultWord(err),
		Message: progress.Redact(result.Message), Seconds: seconds(took), SourceDownSeconds: seconds(result.Downtime),
		Steps: []stepSummary{},
	}
	for _, left := range result.LeftOut {
		s.LeftOut = append(s.LeftOut, progress.Redact(left))
	}
	t.mu.Lock()
	s.Volumes = t.volumes
	t.mu.Unlock()
	for _, u := range t.recorder.Updates() {
		switch u.State {
		case progress.Done, progress.Skipped, progress.Blocked, progress.Failed:
			if u.Step != "" {
				one := stepSummary{Run: otherRun(u, r), Number: u.Number, Step: u.Step, State: u.State, Seconds: seconds(u.Elapsed)}
				if u.State != progress.Done {
					one.Message = progress.Redact(u.Note.Text())
				}
				s.Steps = append(s.Steps, one)
			}
		case progress.Warning, progress.Stalled:
			s.Warnings = append(s.Warnings, progress.Redact(u.Note.Text()))
		}
	}
	return s
}

// otherRun is the name of a run within the run, such as a recovery.
func otherRun(u progress.Update, r migrate.Options) string {
	if u.Run == string(r.Kind) {
		return ""
	}
	return u.Run
}

func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

func resultWord(err error) string {
	if err == nil {
		return "done"
	}
	words := map[int]string{exitIncomplete: "incomplete", exitBlocked: "blocked", exitInterrupted: "interrupted", exitLocked: "blocked"}
	if word, ok := words[explain(err).Code]; ok {
		return word
	}
	return "failed"
}

// tell says the end to a person: warnings again, for the screen has scrolled
// past them, and what can be done next.
func (s runSummary) tell(streams Streams, arg string) {
	for _, w := range s.Warnings {
		_, _ = fmt.Fprintln(streams.ErrOut, "mig: warning: "+w)
	}
	if s.Result != "done" {
		return // the error tells the rest
	}
	_, _ = fmt.Fprintln(streams.Out, s.sentence(arg))
}

func (s runSummary) sentence(arg string) string {
	if s.UID == "" { // nothing was run
		return fmt.Sprintf("Nothing to do for plan %s: %s.", s.Plan, s.Message)
	}
	took := render.Took(time.Duration(s.Seconds * float64(time.Second)))
	if s.Run == kindRollback {
		return fmt.Sprintf("Plan %s is rolled back (%s). Migrate again with: mig migrate %s", s.Plan, took, arg)
	}
	if s.Run == kindClose {
		return fmt.Sprintf("Plan %s is closed (%s). What was migrated stays, and so do the records: mig status %s", s.Plan, took, arg)
	}
	text := fmt.Sprintf("Plan %s is migrated (%s)", s.Plan, took)
	if s.Run == kindStage {
		text = fmt.Sprintf("Plan %s is staged (%s)", s.Plan, took)
	}
	if len(s.Volumes) > 0 {
		var total int64
		for _, v := range s.Volumes {
			total += v.Done
		}
		text += fmt.Sprintf(": %s, %s", english.Plural(len(s.Volumes), "volume", ""), render.Size(total))
	}
	if s.Run == kindStage {
		return text + ". Stage again for what changes meanwhile, or cut over with: mig migrate " + arg
	}
	if s.SourceDownSeconds > 0 {
		text += "; the source was down for " + render.Took(time.Duration(s.SourceDownSeconds*float64(time.Second)))
	}
	return text + ". Take it back with: mig rollback " + arg
}

// confirm asks at a terminal whether to go on; without one it wants --yes. arg is
// how the plan is named on a command line.
func (o *runOptions) confirm(ctx context.Context, question, arg string) error {
	if o.yes {
		return nil
	}
	if !o.streams.InTerminal || !o.streams.ErrTerminal {
		command := o.kind
		if o.kind == kindClose {
			command = "plan close"
		}
		return &usageError{
			Err:  fmt.Errorf("%s of plan %s asks before it deletes, and there is no terminal to ask at", o.kind, arg),
			Hint: fmt.Sprintf("if you mean it: mig %s %s --yes", command, arg),
		}
	}
	_, _ = fmt.Fprint(o.streams.ErrOut, question+" [y/N] ")
	answer := make(chan string, 1)
	go func() { // a read of a terminal cannot be ended; the process's end does
		var word string
		_, _ = fmt.Fscanln(o.streams.In, &word)
		answer <- word
	}()
	select {
	case word := <-answer:
		if strings.EqualFold(word, "y") || strings.EqualFold(word, "yes") {
			return nil
		}
		return errNotConfirmed
	case <-o.stop:
		return ErrInterrupted
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// errNotConfirmed is a no to the question.
var errNotConfirmed = errors.New("nothing was done")
