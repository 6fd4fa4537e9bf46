package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mig-cli/mig/internal/migrate"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
)

// planted is the part of every secret that must be nowhere.
const planted = "Pl4nted"

// secretTexts are what clusters, object stores, credential helpers and
// applications' own messages quote of secrets.
func secretTexts() []string {
	return []string{
		`Get "https://jane:Pl4nted-userinfo@api.example.com/": refused`,
		`Authorization: Bearer Pl4nted-bearer.abc`,
		`the token eyJhbGciOiJSUzI1Pl4nted.eyJpc3MiOiJQbDRudGVk.c2lnUGw0bnRlZA is expired`,
		`{"kind":"ExecCredential","status":{"token":"Pl4nted-exec"}}`,
		`aws_secret_access_key = Pl4nted-s3`,
		`{"AccessKeyId":"x","SecretAccessKey":"Pl4nted-s3-json","SessionToken":"Pl4nted-session"}`,
		`AZURE_CLIENT_SECRET='Pl4nted-azure'`,
		`PUT https://s3/bucket?X-Amz-Signature=Pl4nted-signature&X-Amz-Credential=Pl4nted-credential: 403`,
		"-----BEGIN EC PRIVATE KEY-----\nPl4nted-key\n-----END EC PRIVATE KEY-----",
		`env POSTGRES_PASSWORD=Pl4nted-env is refused`,
		`kopia: repository password: "Pl4nted-kopia"`,
	}
}

// leaks makes every word that a run can say quote a secret, and gives what its
// end is.
func leaks(o migrate.Options) (migrate.Result, error) {
	result := migrate.Result{Run: "abc", Record: "velero/mig-run", Kind: o.Kind}
	var errs []error
	for i, text := range secretTexts() {
		for _, state := range []progress.State{progress.Happened, progress.Waiting, progress.Warning, progress.Stalled, progress.Done, progress.Blocked, progress.Failed} {
			u := progress.Update{Time: time.Now(), Run: string(o.Kind), Step: fmt.Sprintf("Step%d", i), Number: i + 1, Of: 20, State: state, Note: progress.Remark{Why: "Retrying", Say: text}}
			o.Sink.Emit(u)
		}
		o.Say(text)
		result.LeftOut = append(result.LeftOut, text)
		result.Message += text + "; "
		errs = append(errs, errors.New(text))
	}
	return result, &migrate.StoppedError{Err: &pipeline.FailedError{Step: "Step1", Err: errors.Join(errs...)}, State: result.Message}
}

func TestNoSecretIsShownInAnyForm(t *testing.T) {
	for _, args := range []string{"", "-o json", "-o markdown", "-vv", "--log-file run.log", "--junit run.xml", "--log-groups github", "--watch", "--on-failure rollback"} {
		for _, fails := range []bool{true, false} {
			b := newBench(t)
			writePlan(t, "shop.yaml", shopPlan)
			b.Preview = func(context.Context, migrate.Options) ([]migrate.Planned, error) { return nil, nil }
			b.Run = func(_ context.Context, o migrate.Options) (migrate.Result, error) {
				result, err := leaks(o)
				if !fails {
					err = nil
				}
				return result, err
			}
			if args == "--watch" {
				b.terminal("")
			}
			b.mig(append([]string{"migrate", "shop"}, strings.Fields(args)...)...)
			told := b.out.String() + b.err.String()
			for _, file := range []string{"run.log", "run.xml"} {
				if text, err := os.ReadFile(file); err == nil {
					told += string(text)
				}
			}
			if !strings.Contains(told, progress.Hidden) {
				t.Errorf("%s: nothing is hidden:\n%s", args, told)
			}
			noneIn(t, "migrate "+args, told)
		}
	}
}

// noneIn makes sure that no secret is in a text, and shows the lines that one is in.
func noneIn(t *testing.T, where, text string) {
	t.Helper()
	var bad []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, planted) {
			bad = append(bad, line)
		}
	}
	if slices.Sort(bad); len(bad) > 0 {
		t.Errorf("%s tells secrets:\n%s", where, strings.Join(slices.Compact(bad), ""))
	}
}
