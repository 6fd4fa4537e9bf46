package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// stopped is what a run returns that had begun and did not come to its end.
func stopped(err error) error {
	return &runError{Kind: "migrate", Plan: "shop", Err: &migrate.StoppedError{Err: err, State: "the source runs again as before"}}
}

func TestEveryKindOfErrorHasItsCodeMessageAndHint(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	note := progress.Remark{Why: "X", Say: "Deployment shop/web: an autoscaler scales it"}
	const onOrBack = "go on with: mig migrate shop, or back with: mig rollback shop"
	for _, c := range []struct {
		name    string
		err     error
		code    int
		message string
		hint    string
	}{
		{"nothing known about it", errors.New("no luck"), 1, "no luck", ""},
		{"a wrong command line", &usageError{Err: errors.New("no"), Hint: "see"}, 2, "no", "see"},
		{"a plan with a mistake", &plan.LoadError{File: "p.yaml", Problems: []plan.Problem{{Field: "spec.x", Message: "unknown field", Pos: plan.Position{File: "p.yaml", Line: 3, Column: 5}}}}, 2, "p.yaml:3:5: spec.x: unknown field", ""},
		{"a plan that is not there", &plan.LoadError{File: "p.yaml", Err: fs.ErrNotExist}, 2, "plan file p.yaml: file does not exist", "make a plan with: mig plan create"},
		{"no plan to be found", &plan.FindError{Dir: "/x"}, 2, "no plan file in /x: name one, or make one with: mig plan create", ""},
		{"a plan that is named wrongly", &plan.FindError{Arg: "shpo", Dir: "/x"}, 2, `there is no plan "shpo": no file shpo, shpo.yaml or shpo.plan.yaml in /x`, "see the plans here with: mig plan list"},
		{"a setting that cannot be used", &config.Error{Where: "color", Err: errors.New("no"), Hint: "it is set by --color"}, 2, "color: no", "it is set by --color"},
		{"an unknown context", &sideError{Side: "source", Err: &cluster.UnknownContextError{Access: cluster.Access{Context: "x"}, Known: []string{"dst", "src"}}}, 2, `source: context "x" is not in the kubeconfig; there are: dst, src`, "see the contexts with: kubectl config get-contexts"},
		{"a namespace that is not there", &discover.NoNamespaceError{Context: "src", Names: []string{"shpo"}, Near: []string{"shop"}}, 1, "source cluster (context src) has no namespace shpo; it has shop", "name others with --namespaces"},
		{"one cluster under two names", &discover.SameClusterError{Source: "a", Destination: "b", UID: "u"}, 1, "contexts a and b are one cluster (its kube-system has the uid u): a migration needs two", "name another cluster's context with --src or --dst"},
		{"a cluster that does not answer", &discover.ReachError{
			Side: "source", Context: "src", Server: "https://10.0.0.1:6443", Reach: discover.Unreachable,
			Err: &url.Error{Op: "Get", URL: "https://10.0.0.1:6443/version?timeout=1m", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
		}, 1, "source cluster (context src): https://10.0.0.1:6443 cannot be reached: connection refused", "see whether kubectl gets there: kubectl --context src version"},
		{"two clusters that do not answer", &discover.NeitherReachedError{
			Source:      &discover.ReachError{Side: "source", Context: "src", Server: "https://s", Reach: discover.Unreachable, Err: errors.New("refused")},
			Destination: &discover.ReachError{Side: "destination", Context: "dst", Server: "https://d", Reach: discover.Untrusted, Err: errors.New("unknown authority")},
		}, 1, "source cluster (context src, https://s): no answer: refused\ndestination cluster (context dst, https://d): its certificate is not trusted: unknown authority", "see whether kubectl gets there: kubectl --context src version"},
		{"a part that we may not see", &discover.PartError{Side: "source", Context: "src", Part: "claims", Denied: true, Err: errors.New("no")}, 4, "source cluster (context src): claims: no", "ask the cluster's administrator for the right, then run the same command again"},
		{"a malformed kubeconfig", &cluster.KubeconfigError{Access: cluster.Access{Context: "x"}, Err: errors.New("yaml: line 3")}, 2, `kubeconfig for context "x": yaml: line 3`, "see what kubectl makes of it with: kubectl config view"},
		{"something left out", &incompleteError{Left: []string{"claim shop/a: not restored"}}, 3, "finished, but not everything was taken along:\nclaim shop/a: not restored", ""},
		{"credentials refused", apierrors.NewUnauthorized("Unauthorized"), 4, "Unauthorized", "the kubeconfig's credentials are wrong or expired: log in again, then run the same command again"},
		{"a right refused in a step", stopped(&pipeline.FailedError{Step: "Quiesce", Err: apierrors.NewForbidden(deployments, "web", errors.New("no patch"))}), 4, `step Quiesce: deployments.apps "web" is forbidden: no patch; the source runs again as before`, "ask the cluster's administrator for the right, then run the same command again"},
		{"a plan that is not ready", &blockedError{Message: "not ready", Hint: "settle"}, 10, "not ready", "settle"},
		{"a plan that is not ready for want of rights", &blockedError{Message: "not ready", Denied: true}, 4, "not ready", ""},
		{"a step that needs a person", stopped(&pipeline.BlockedError{Step: "Quiesce", Note: note}), 10, "step Quiesce is blocked: Deployment shop/web: an autoscaler scales it; the source runs again as before", "settle that, then " + onOrBack},
		{"a step that failed", stopped(&pipeline.FailedError{Step: "Quiesce", Note: note}), 1, "step Quiesce: Deployment shop/web: an autoscaler scales it; the source runs again as before", onOrBack},
		{"a command that does not fit", &runError{Kind: "migrate", Plan: "shop", Err: &migrate.RefusedError{Why: "migrated already", Hint: "to take it back: mig rollback shop"}}, 10, "migrated already", "to take it back: mig rollback shop"},
		{"another run's namespace", &runError{Kind: "migrate", Plan: "shop", Err: &lock.HeldError{What: "namespace shop on the source", Holder: "ann", Host: "h, process 3"}}, 11, "namespace shop on the source is held by ann from h, process 3", "run the same command again when that run has ended, or let it queue with --wait"},
		{"a lease that was lost", stopped(lock.ErrLost), 11, "the lease of this run is lost; the source runs again as before", "see who is at it with: mig status shop; if nobody is, " + onOrBack},
		{"a run that another took over", &record.EndedError{Name: "velero/r", State: record.Running, Host: "h"}, 11, "run record velero/r: another mig, on h, has taken this run over", "run the same command again when that run has ended, or let it queue with --wait"},
		{"a damaged record", &record.BrokenError{Name: "velero/r", Err: errors.New("its part is missing")}, 1, "run record velero/r is damaged: its part is missing", "see what is left of it with: kubectl -n velero get configmap r -o yaml; the other cluster has a copy, which mig history tells"},
		{"a step that ran into its limit", stopped(&pipeline.FailedError{Step: "Quiesce", Note: note, Err: &pipeline.TimeoutError{}}), 1, "step Quiesce: Deployment shop/web: an autoscaler scales it; the source runs again as before", onOrBack + " (whoever goes on waits for as long again)"},
		{"a record of a newer mig", &record.NewerError{Name: "velero/r", Schema: 9, Version: "v9"}, 10, "run record velero/r was written by mig v9 in format 9, and this mig knows up to 1: use that version or a newer one", ""},
		{"an interrupt in a step", stopped(&pipeline.InterruptedError{Step: "Quiesce"}), 130, "interrupted in step Quiesce; the source runs again as before", onOrBack},
		{"a second interrupt", stopped(ErrInterrupted), 130, "interrupted; the source runs again as before", onOrBack},
		{"an interrupt before anything began", fmt.Errorf("Get x: %w", context.Canceled), 130, "interrupted", ""},
		{"a no to the question", errNotConfirmed, 130, "nothing was done", ""},
		{"a secret in an error", errors.New("store refused AKIAIOSFODNN7EXAMPLE"), 1, "store refused [hidden]", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := explain(c.err)
			if want := (failure{Type: "exit_error", Code: c.code, Message: c.message, Hint: c.hint}); got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestAnErrorIsTalkForPeopleAndOneLineForScripts(t *testing.T) {
	err := &incompleteError{Left: []string{"claim shop/a: not restored"}}
	var forEyes, forScripts bytes.Buffer
	if code := report(&forEyes, false, err); code != 3 {
		t.Errorf("code %d", code)
	}
	report(&forScripts, true, err)
	want := "mig: error: finished, but not everything was taken along:\nmig: error: claim shop/a: not restored\n"
	if forEyes.String() != want {
		t.Errorf("for eyes: %q, want %q", forEyes.String(), want)
	}
	var f failure
	if err := json.Unmarshal(forScripts.Bytes(), &f); err != nil || f.Code != 3 || strings.Count(forScripts.String(), "\n") != 1 {
		t.Errorf("for scripts: %q, %v", forScripts.String(), err)
	}
	if !strings.HasPrefix(forScripts.String(), `{"type":"exit_error","code":3,`) {
		t.Errorf("for scripts: %s", forScripts.String())
	}
}
