package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/config"
	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/lock"
	"github.com/mig-cli/mig/internal/migrate"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/record"
)

// The exit codes are a contract: scripts branch on them.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitIncomplete  = 3
	exitDenied      = 4
	exitRunning     = 8
	exitBlocked     = 10
	exitLocked      = 11
	exitInterrupted = 130
)

// exitCodes documents the codes, for mig help exit-codes.
const exitCodes = `   0  done, or nothing was left to do
   1  failed
   2  wrong command line, or a plan or kubeconfig that cannot be read
   3  finished, but something was left out; each is named
   4  a cluster refused our credentials or rights
   8  still running (mig status)
  10  blocked: a person must decide, then the same command goes on
  11  another run holds the plan or one of its namespaces
 130  interrupted; the same command goes on where it was`

// ErrInterrupted is the cause of a context that ended at a person's wish.
var ErrInterrupted = errors.New("interrupted") //nolint:gochecknoglobals // a sentinel

// usageError is a command line that cannot be meant.
type usageError struct {
	Err  error
	Hint string
}

func (e *usageError) Error() string { return e.Err.Error() }

func (e *usageError) Unwrap() error { return e.Err }

func usagef(format string, args ...any) error { return &usageError{Err: fmt.Errorf(format, args...)} }

// sideError says on which of the two clusters something failed.
type sideError struct {
	Side string // source, destination
	Err  error
}

func (e *sideError) Error() string { return e.Side + ": " + e.Err.Error() }

func (e *sideError) Unwrap() error { return e.Err }

// blockedError is a plan that is not ready to run.
type blockedError struct {
	Message string
	Hint    string
	Denied  bool // because a cluster refused our credentials or rights, and for nothing else
}

func (e *blockedError) Error() string { return e.Message }

// incompleteError is a run that came to its end without all that the plan covers.
type incompleteError struct {
	Left []string // each in a sentence
}

func (e *incompleteError) Error() string {
	return "finished, but not everything was taken along:\n" + strings.Join(e.Left, "\n")
}

// runError is the end of a run that did not get there: it knows the commands
// that go on and back.
type runError struct {
	Kind string // migrate, rollback
	Plan string // as the user named it
	Err  error
}

func (e *runError) Error() string { return e.Err.Error() }

func (e *runError) Unwrap() error { return e.Err }

// ways are the commands to go on and to go back.
func (e *runError) ways() string {
	on := "go on with: mig " + e.Kind + " " + e.Plan
	if e.Kind == kindRollback {
		return on
	}
	return on + ", or back with: mig rollback " + e.Plan
}

// failure is an error as a person or a script is told of it.
type failure struct {
	Type    string `json:"type"` // exit_error
	Code    int    `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// report tells of an error, if there is one, and gives the exit code.
func report(w io.Writer, asJSON bool, err error) int {
	if err == nil {
		return exitDone
	}
	f := explain(err)
	if asJSON {
		line := f
		line.Message = strings.ReplaceAll(f.Message, "\n", "; ")
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(line) // nobody is left to tell
		return f.Code
	}
	for line := range strings.SplitSeq(f.Message, "\n") {
		_, _ = fmt.Fprintln(w, "mig: error: "+line)
	}
	if f.Hint != "" {
		_, _ = fmt.Fprintln(w, "mig: hint: "+f.Hint)
	}
	return f.Code
}

// explain maps an error to code, message and hint. It asks the error's type,
// never its text.
func explain(err error) failure {
	f := failure{Type: "exit_error", Code: exitFailed, Message: message(err)}
	for _, kind := range []func(error, *failure) bool{
		interrupted, wrongUse, unreadable, leftOut, held, blocked, denied, notReached, unfinished, failedRun,
	} {
		if kind(err, &f) {
			break
		}
	}
	return f
}

func interrupted(err error, f *failure) bool {
	var inStep *pipeline.InterruptedError
	var stopped *migrate.StoppedError
	isCancel := errors.Is(err, ErrInterrupted) || errors.Is(err, context.Canceled)
	switch {
	case errors.Is(err, errNotConfirmed), errors.As(err, &inStep):
	case isCancel && !errors.As(err, &stopped):
		f.Message = "interrupted" // where, does not matter: nothing had begun
	case !isCancel:
		return false
	}
	f.Code, f.Hint = exitInterrupted, ways(err)
	return true
}

// ways are the commands that go on and back after a run that had begun; none
// after anything else.
func ways(err error) string {
	var stopped *migrate.StoppedError
	var run *runError
	if !errors.As(err, &stopped) || !errors.As(err, &run) {
		return ""
	}
	return run.ways()
}

func wrongUse(err error, f *failure) bool {
	var usage *usageError
	var noNamespace *discover.NoNamespaceError
	var sameCluster *discover.SameClusterError
	switch {
	case errors.As(err, &usage):
		f.Hint = usage.Hint
	case errors.As(err, &noNamespace), errors.As(err, &sameCluster):
	default:
		return false
	}
	f.Code = exitUsage
	return true
}

// unreadable are files that are not what they should be: plan, kubeconfig, settings.
func unreadable(err error, f *failure) bool {
	var load *plan.LoadError
	var find *plan.FindError
	var unknown *cluster.UnknownContextError
	var kubeconfig *cluster.KubeconfigError
	var settings *config.Error
	switch {
	case errors.As(err, &load) && errors.Is(err, fs.ErrNotExist):
		f.Hint = "make a plan with: mig plan create"
	case errors.As(err, &load), errors.As(err, &find), errors.As(err, &settings):
	case errors.As(err, &unknown):
		f.Hint = "see the contexts with: kubectl config get-contexts"
	case errors.As(err, &kubeconfig):
		f.Hint = "see what kubectl makes of it with: kubectl config view"
	default:
		return false
	}
	f.Code = exitUsage
	return true
}

func leftOut(err error, f *failure) bool {
	var incomplete *incompleteError
	if !errors.As(err, &incomplete) {
		return false
	}
	f.Code = exitIncomplete
	return true
}

func held(err error, f *failure) bool {
	var holder *lock.HeldError
	var ended *record.EndedError
	if !errors.As(err, &holder) && !errors.As(err, &ended) && !errors.Is(err, lock.ErrLost) {
		return false
	}
	f.Code = exitLocked
	f.Hint = "wait until that run has ended, then run the same command again"
	return true
}

func blocked(err error, f *failure) bool {
	var step *pipeline.BlockedError
	var notReady *blockedError
	var newer *record.NewerError
	var refused *migrate.RefusedError
	switch {
	case errors.As(err, &notReady):
		f.Hint = notReady.Hint
		f.Code = exitBlocked
		if notReady.Denied {
			f.Code = exitDenied
		}
		return true
	case errors.As(err, &step):
		f.Hint = "settle that, then run the same command again"
		if ways := ways(err); ways != "" {
			f.Hint = "settle that, then " + ways
		}
	case errors.As(err, &refused):
		f.Hint = refused.Hint
	case errors.As(err, &newer):
	default:
		return false
	}
	f.Code = exitBlocked
	return true
}

func denied(err error, f *failure) bool {
	var part *discover.PartError
	if !cluster.IsDenied(err) && (!errors.As(err, &part) || !part.Denied) {
		return false
	}
	f.Code = exitDenied
	f.Hint = "ask the cluster's administrator for the right, then run the same command again"
	return true
}

func notReached(err error, f *failure) bool {
	var reach *discover.ReachError
	if !errors.As(err, &reach) || reach.Reach == discover.Denied {
		return false
	}
	f.Hint = "see whether kubectl gets there: kubectl --context " + reach.Context + " version"
	return true
}

func unfinished(err error, f *failure) bool {
	var state *stateError
	if !errors.As(err, &state) {
		return false
	}
	f.Hint = state.Hint
	if state.State == record.Running {
		f.Code = exitRunning
	}
	return true
}

func failedRun(err error, f *failure) bool {
	f.Hint = ways(err)
	return f.Hint != ""
}

// message is an error in words for a person, without what looks like a secret.
func message(err error) string {
	var reach *discover.ReachError
	var request *url.Error
	if errors.As(err, &reach) && errors.As(err, &request) {
		return progress.Redact(fmt.Sprintf("%s cluster (context %s): %s", reach.Side, reach.Context, cluster.Plain(request)))
	}
	return progress.Redact(cluster.Plain(err))
}

// placed says of a request that came to nothing which cluster it was meant for.
// Other errors are given back as they are, and so are those of a run that had
// begun: they say where.
func placed(err error, src cluster.Source, dst cluster.Destination) error {
	var request *url.Error
	var stopped *migrate.StoppedError
	if !errors.As(err, &request) || errors.As(err, &stopped) {
		return err
	}
	for _, side := range []struct {
		name string
		of   *cluster.Cluster
	}{{"source", src.Cluster}, {"destination", dst.Cluster}} {
		if strings.HasPrefix(request.URL, side.of.Server) {
			return &discover.ReachError{
				Side: side.name, Context: side.of.Access.Context, Server: side.of.Server, Reach: discover.Unreachable, Err: err,
			}
		}
	}
	return err
}

// withHelp turns an error of parsing the command line into a usage error that
// says where to look.
func withHelp(cmd *cobra.Command, err error) error {
	hint := "see: " + cmd.CommandPath() + " --help"
	if near := nearestFlag(cmd, err); near != "" {
		hint = "did you mean --" + near + "? " + hint
	}
	return &usageError{Err: err, Hint: hint}
}
