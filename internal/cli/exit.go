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
	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
var ErrInterrupted = errors.New("interrupted")

// usageError is a command line that cannot be meant.
type usageError struct {
	Err  error
	Hint string
}

func (e *usageError) Error() string { return e.Err.Error() }

func (e *usageError) Unwrap() error { return e.Err }

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
	Kind   string   // stage, migrate, rollback
	Record string   // namespace/name
	Left   []string // each in a sentence
}

func (e *incompleteError) Error() string {
	way := "along"
	if e.Kind == kindRollback {
		way = "back"
	}
	return "finished, but not everything was taken " + way + ":\n" + strings.Join(e.Left, "\n")
}

// runError is the end of a run that did not get there: it knows the commands
// that go on and back.
type runError struct {
	Kind string // stage, migrate, rollback
	Plan string // as the user named it
	Err  error

	Record string // namespace/name; empty where the run had not begun
}

func (e *runError) Error() string { return e.Err.Error() }

func (e *runError) Unwrap() error { return e.Err }

// ways are the commands to go on and to go back.
func (e *runError) ways() string {
	if e.Kind == kindClose {
		return "go on with: mig plan close " + e.Plan
	}
	on := "go on with: mig " + e.Kind + " " + e.Plan
	if e.Kind == kindRollback || e.Kind == kindStage {
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
	Record  string `json:"record,omitempty"` // the ConfigMap with the run's story, namespace/name
}

// codeOf is the exit code of an error.
func codeOf(err error) int {
	if err == nil {
		return exitDone
	}
	return explain(err).Code
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
		interrupted, wrongUse, unreadable, leftOut, differs, held, blocked, denied, notReached, wrongNames, unfinished, damaged, failedRun,
	} {
		if kind(err, &f) {
			break
		}
	}
	f.Record = recordOf(err)
	return f
}

// recordOf is where the story of a run is that ended in an error.
func recordOf(err error) string {
	if run, ok := errors.AsType[*runError](err); ok {
		return run.Record
	}
	if run, ok := errors.AsType[*incompleteError](err); ok {
		return run.Record
	}
	return ""
}

// is says whether an error is of a kind.
func is[Kind error](err error) bool {
	_, ok := errors.AsType[Kind](err)
	return ok
}

func interrupted(err error, f *failure) bool {
	isCancel := errors.Is(err, ErrInterrupted) || errors.Is(err, context.Canceled)
	switch {
	case errors.Is(err, errNotConfirmed), is[*pipeline.InterruptedError](err):
	case isCancel && !is[*migrate.StoppedError](err):
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
	run, ok := errors.AsType[*runError](err)
	if !ok || !is[*migrate.StoppedError](err) {
		return ""
	}
	if is[*takenBackError](err) {
		return "try again with: mig migrate " + run.Plan
	}
	return run.ways()
}

// wrongUse is what is known to be wrong before any cluster is asked.
func wrongUse(err error, f *failure) bool {
	usage, ok := errors.AsType[*usageError](err)
	if !ok {
		return false
	}
	f.Code, f.Hint = exitUsage, usage.Hint
	return true
}

// unreadable are files that are not what they should be: plan, kubeconfig, settings.
func unreadable(err error, f *failure) bool {
	switch {
	case is[*plan.LoadError](err) && errors.Is(err, fs.ErrNotExist):
		f.Hint = "make a plan with: mig plan create"
	case is[*plan.FindError](err):
		if missing, _ := errors.AsType[*plan.FindError](err); missing.Arg != "" {
			f.Hint = "see the plans here with: mig plan list"
		}
	case is[*config.Error](err):
		bad, _ := errors.AsType[*config.Error](err)
		f.Hint = bad.Hint
	case is[*plan.LoadError](err):
	case is[*cluster.UnknownContextError](err):
		unknown, _ := errors.AsType[*cluster.UnknownContextError](err)
		f.Hint = "see the contexts with: kubectl config get-contexts" + kubeconfigFlag(unknown.Access)
	case is[*cluster.KubeconfigError](err):
		bad, _ := errors.AsType[*cluster.KubeconfigError](err)
		f.Hint = "see what kubectl makes of it with: kubectl config view" + kubeconfigFlag(bad.Access)
	default:
		return false
	}
	f.Code = exitUsage
	return true
}

// kubeconfigFlag is the flag with which kubectl reads the file that we read.
func kubeconfigFlag(a cluster.Access) string {
	if a.Kubeconfig == "" {
		return ""
	}
	return " --kubeconfig " + a.Kubeconfig
}

func leftOut(err error, f *failure) bool {
	if !is[*incompleteError](err) {
		return false
	}
	f.Code = exitIncomplete
	return true
}

func held(err error, f *failure) bool {
	if !is[*lock.HeldError](err) && !is[*record.EndedError](err) && !errors.Is(err, lock.ErrLost) {
		return false
	}
	f.Code = exitLocked
	f.Hint = "run the same command again when that run has ended, or let it queue with --wait"
	if run, ok := errors.AsType[*runError](err); ok && is[*migrate.StoppedError](err) {
		f.Hint = "see who is at it with: mig status " + run.Plan + "; if nobody is, " + run.ways()
	}
	return true
}

func blocked(err error, f *failure) bool {
	f.Code = exitBlocked
	if notReady, ok := errors.AsType[*blockedError](err); ok {
		f.Hint = notReady.Hint
		if notReady.Denied {
			f.Code = exitDenied
		}
		return true
	}
	if refused, ok := errors.AsType[*migrate.RefusedError](err); ok {
		f.Hint = refused.Hint
		return true
	}
	if is[*pipeline.BlockedError](err) {
		f.Hint = "settle that, then run the same command again"
		if ways := ways(err); ways != "" {
			f.Hint = "settle that, then " + ways
		}
		return true
	}
	if is[*record.NewerError](err) {
		return true
	}
	f.Code = exitFailed
	return false
}

func denied(err error, f *failure) bool {
	part, ok := errors.AsType[*discover.PartError](err)
	if !cluster.IsDenied(err) && (!ok || !part.Denied) {
		return false
	}
	f.Code = exitDenied
	f.Hint = "ask the cluster's administrator for the right, then run the same command again"
	if apierrors.IsUnauthorized(err) {
		f.Hint = "the kubeconfig's credentials are wrong or expired: log in again, then run the same command again"
	}
	return true
}

func notReached(err error, f *failure) bool {
	reach, ok := errors.AsType[*discover.ReachError](err)
	if !ok || reach.Reach == discover.Denied {
		return false
	}
	f.Hint = "see whether kubectl gets there: kubectl --context " + reach.Context + " version"
	if run, ok := errors.AsType[*runError](err); ok && run.Kind == kindRollback && reach.Side == "destination" {
		f.Hint += "; to bring the source up without it: mig rollback " + run.Plan + " --source-only"
	}
	return true
}

func wrongNames(err error, f *failure) bool {
	switch {
	case is[*discover.NoNamespaceError](err):
		f.Hint = "name others with --namespaces"
	case is[*noSuchRunError](err):
		missing, _ := errors.AsType[*noSuchRunError](err)
		f.Hint = missing.Hint
	case is[*discover.SameClusterError](err):
		f.Hint = "name another cluster's context with --src or --dst"
	default:
		return false
	}
	return true
}

func unfinished(err error, f *failure) bool {
	state, ok := errors.AsType[*stateError](err)
	if !ok {
		return false
	}
	f.Hint = state.Hint
	if state.State == record.Running {
		f.Code = exitRunning
	}
	return true
}

// damaged is a record that cannot be read on the one cluster.
func damaged(err error, f *failure) bool {
	broken, ok := errors.AsType[*record.BrokenError](err)
	if !ok {
		return false
	}
	namespace, name, _ := strings.Cut(broken.Name, "/")
	f.Hint = fmt.Sprintf("see what is left of it with: kubectl -n %s get configmap %s -o yaml; the other cluster has a copy, which mig history tells", namespace, name)
	return true
}

func failedRun(err error, f *failure) bool {
	f.Hint = ways(err)
	if f.Hint != "" && is[*pipeline.TimeoutError](err) {
		f.Hint += " (whoever goes on waits for as long again)"
	}
	return f.Hint != ""
}

// message is an error in words for a person, without what looks like a secret.
func message(err error) string {
	if neither, ok := errors.AsType[*discover.NeitherReachedError](err); ok {
		return message(neither.Source) + "\n" + message(neither.Destination)
	}
	reach, notReached := errors.AsType[*discover.ReachError](err)
	request, asked := errors.AsType[*url.Error](err)
	if notReached && asked {
		return progress.Redact(fmt.Sprintf("%s cluster (context %s): %s", reach.Side, reach.Context, cluster.Plain(request)))
	}
	return progress.Redact(cluster.Plain(err))
}

// placed says of a request that came to nothing which cluster it was meant for.
// Other errors are given back as they are, and so are those of a run that had
// begun: they say where.
func placed(err error, src cluster.Source, dst cluster.Destination) error {
	request, ok := errors.AsType[*url.Error](err)
	if !ok || is[*migrate.StoppedError](err) {
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
