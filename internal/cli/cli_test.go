package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/event"
	"github.com/mig-cli/mig/internal/migrate"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/preflight"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/record"
	"github.com/mig-cli/mig/internal/render"
	"github.com/mig-cli/mig/internal/step"
)

// bench is a mig in an empty working directory, with no cluster behind it.
type bench struct {
	*Factory
	out, err  bytes.Buffer
	env       map[string]string
	stop      chan struct{}
	connected []cluster.Access // as asked for
}

func newBench(t *testing.T) *bench {
	t.Helper()
	t.Chdir(t.TempDir())
	b := &bench{env: map[string]string{}, stop: make(chan struct{})}
	b.Factory = &Factory{
		Streams:  Streams{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &b.out, ErrOut: &b.err}, Size: func() (int, int) { return 80, 24 }},
		Getenv:   func(key string) string { return b.env[key] },
		Stop:     b.stop,
		Contexts: func(string) []string { return []string{"dst", "src"} },
		Connect: func(a cluster.Access, velero string) (*cluster.Cluster, error) {
			b.connected = append(b.connected, a)
			return &cluster.Cluster{Access: a, VeleroNamespace: velero}, nil
		},
		Quiet: func(context.Context, step.Run) error { return nil },
	}
	return b
}

// mig runs a command line and gives its exit code; out and err are of this
// run alone.
func (b *bench) mig(args ...string) int {
	b.out.Reset()
	b.err.Reset()
	return Run(context.Background(), b.Factory, args)
}

// terminal makes all streams a terminal with someone who types.
func (b *bench) terminal(typed string) {
	b.Streams.In = strings.NewReader(typed)
	b.Streams.InTerminal, b.Streams.OutTerminal, b.Streams.ErrTerminal = true, true, true
}

const shopPlan = `apiVersion: mig/v1alpha1
kind: MigrationPlan
metadata: {name: shop, uid: 0123456789abcdef}
spec:
  source: {context: src}
  destination: {context: dst, kubeconfig: other.conf}
  storage: {location: default}
  namespaces:
  - {name: shop, destination: shop-prod}
  volumes:
  - {claim: shop/data, capacity: 1Gi, storageClass: gp2, accessModes: [ReadWriteOnce], action: copy}
  storageClasses: {gp2: fast}
`

func writePlan(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func proposal() *discover.Proposal {
	p, err := plan.Parse("shop.yaml", []byte(shopPlan))
	if err != nil {
		panic(err)
	}
	return &discover.Proposal{Plan: p, Claims: []discover.Row{{
		Claim: "shop/data", Phase: "Bound", Capacity: "1Gi", Used: "unknown", StorageClass: "gp2", AccessModes: []string{"ReadWriteOnce"},
		Action: "copy", DestinationClass: "fast", Why: "same provisioner", State: discover.Planned,
	}}, Notes: []string{"claim shop/old is not mounted by any pod"}}
}

func (b *bench) proposes(got *discover.Proposal, err error) *discover.Wish {
	var asked discover.Wish
	b.Propose = func(_ context.Context, _ cluster.Source, _ cluster.Destination, w discover.Wish) (*discover.Proposal, error) {
		asked = w
		return got, err
	}
	return &asked
}

func (b *bench) finds(conditions ...preflight.Condition) {
	b.Look = func(context.Context, cluster.Source, cluster.Destination, plan.Valid) (discover.SourceFacts, discover.DestinationFacts, error) {
		return discover.SourceFacts{}, discover.DestinationFacts{}, nil
	}
	b.Check = func(plan.Valid, discover.SourceFacts, discover.DestinationFacts) []preflight.Condition {
		return conditions
	}
	b.KnownUID = func(context.Context, cluster.Source, cluster.Destination, plan.Valid) error { return nil }
}

// wants compares what a command line did.
func (b *bench) wants(t *testing.T, code, wantCode int, out, errOut string) {
	t.Helper()
	if code != wantCode {
		t.Errorf("exit %d, want %d", code, wantCode)
	}
	if !strings.Contains(b.out.String(), out) || (out == "" && b.out.Len() > 0) {
		t.Errorf("stdout:\n%swant it to hold:\n%s", b.out.String(), out)
	}
	if !strings.Contains(b.err.String(), errOut) || (errOut == "" && b.err.Len() > 0) {
		t.Errorf("stderr:\n%swant it to hold:\n%s", b.err.String(), errOut)
	}
}

func TestAWrongCommandLineIsExit2AndNamesWhatIsNear(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
	}{
		{"migrat", "did you mean mig migrate?"},
		{"plan crate", "did you mean mig plan create?"},
		{"plan create --namspaces x", "did you mean --namespaces?"},
		{"migrate --wach", "did you mean --watch?"},
		{"frobnicate", `unknown command "frobnicate" for "mig"`},
		{"migrate a b", "takes at most 1 argument(s), got 2"},
		{"plan create x --dst dst", "--src is missing"},
		{"plan create x --src src", "--dst is missing"},
		{"plan create x --src src --dst src", "a migration needs two clusters"},
		{"plan show -o xml", `no output format "xml"; there are: table, json, yaml`},
		{"migrate -o yaml", `no output format "yaml"; there are: json`},
		{"plan create x --src src --dst dst -f - -o yaml", "choose one"},
		{"completion tcsh", `no completion for "tcsh"`},
		{"version --color purple", `color: "purple" is none of`},
	} {
		t.Run(c.args, func(t *testing.T) {
			b := newBench(t)
			code := b.mig(strings.Fields(c.args)...)
			b.wants(t, code, 2, "", c.want)
			if !strings.HasPrefix(b.err.String(), "mig: error: ") {
				t.Errorf("stderr: %s", b.err.String())
			}
		})
	}
}

func TestAnErrorIsJSONWhereItWasAskedFor(t *testing.T) {
	for name, prepare := range map[string]func(*bench) []string{
		"by the flag":                  func(*bench) []string { return []string{"plan", "show", "none", "-o", "json"} },
		"also on a wrong command line": func(*bench) []string { return []string{"plan", "shwo", "-o=json"} },
		"by the environment": func(b *bench) []string {
			b.env["MIG_OUTPUT"] = "json"
			return []string{"plan", "show", "none"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			code := b.mig(prepare(b)...)
			var f failure
			if err := json.Unmarshal(b.err.Bytes(), &f); err != nil || f.Type != "exit_error" || f.Code != code || code != 2 {
				t.Errorf("exit %d, stderr %q: %v", code, b.err.String(), err)
			}
		})
	}
}

// every calls f with each command that a person can run.
func every(cmd *cobra.Command, f func(*cobra.Command)) {
	for _, c := range cmd.Commands() {
		if c.HasSubCommands() {
			every(c, f)
		} else if c.Runnable() && !c.Hidden && c.Name() != "help" {
			f(c)
		}
	}
}

func TestEveryCommandSaysWhatItDoesWithAnExampleAndItsExitStatus(t *testing.T) {
	b := newBench(t)
	every(newRootCommand(b.Factory), func(c *cobra.Command) {
		if _, status, ok := strings.Cut(c.Long, "\nEXIT STATUS\n"); !ok || status == "" {
			t.Errorf("%s: its help does not end in EXIT STATUS", c.CommandPath())
		}
		if c.Example == "" || c.Short == "" {
			t.Errorf("%s: no example or no short help", c.CommandPath())
		}
		for line := range strings.Lines(c.Long) {
			if len([]rune(strings.TrimSuffix(line, "\n"))) > 80 {
				t.Errorf("%s: wider than 80 columns: %s", c.CommandPath(), line)
			}
		}
	})
}

func TestEveryExampleIsACommandLineThatMigTakes(t *testing.T) {
	b := newBench(t)
	every(newRootCommand(b.Factory), func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			words := strings.Fields(line)
			if i := slices.IndexFunc(words, func(w string) bool { return strings.ContainsAny(w, "|><(") }); i >= 0 {
				words = words[:i] // what the shell does
			}
			if len(words) < 2 || words[0] != "mig" {
				continue
			}
			root := newRootCommand(b.Factory)
			found, rest, err := root.Find(words[1:])
			if err != nil || found.CommandPath() != c.CommandPath() {
				t.Errorf("%s: not a command line of %s: %v", line, c.CommandPath(), err)
				continue
			}
			if err := found.ParseFlags(rest); err != nil {
				t.Errorf("%s: %v", line, err)
			} else if err := found.ValidateArgs(found.Flags().Args()); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	})
}

func TestPlanCreateReadsItsCommandLine(t *testing.T) {
	b := newBench(t)
	b.env["MIG_KUBECONFIG"] = "env.conf"
	var got *planCreateOptions
	cmd := newPlanCreateCommand(b.Factory, func(_ context.Context, o *planCreateOptions) error {
		got = o
		return nil
	})
	cmd.SetArgs(strings.Fields("shop --src a --dst b --dst-kubeconfig two.conf --storage-location s3 --velero-namespace backup -f x.yaml --force -o yaml"))
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got.name != "shop" || got.location != "s3" || got.file != "x.yaml" || !got.force || got.output != "yaml" {
		t.Errorf("got %+v", got)
	}
	if want := (plan.Cluster{Context: "b", Kubeconfig: "two.conf", VeleroNamespace: "backup"}); got.destination != want {
		t.Errorf("destination %+v, want %+v", got.destination, want)
	}
	if got.sourceKubeconfig != "" || got.destKubeconfig != "two.conf" {
		t.Errorf("in the plan would stand %q and %q: the environment is of this machine alone", got.sourceKubeconfig, got.destKubeconfig)
	}
}

func TestPlanCreateWritesThePlanAndSaysWhatIsNext(t *testing.T) {
	b := newBench(t)
	wish := b.proposes(proposal(), nil)
	code := b.mig("plan", "create", "shop", "--src", "src", "--dst", "dst", "--kubeconfig", "both.conf")
	b.wants(t, code, 0, "shop/data   Bound", "- claim shop/old is not mounted by any pod\nLook it over, then: mig plan validate shop\n")
	if wish.Name != "shop" || wish.UID != "" {
		t.Errorf("asked for %+v", wish)
	}
	if want := []cluster.Access{{Context: "src", Kubeconfig: "both.conf"}, {Context: "dst", Kubeconfig: "both.conf"}}; !slices.Equal(b.connected, want) {
		t.Errorf("connected to %v, want %v", b.connected, want)
	}
	p, err := plan.Load("shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if p.Spec.Source.Kubeconfig != "both.conf" {
		t.Errorf("the plan does not know the kubeconfig of this command line: %+v", p.Spec.Source)
	}
}

func TestPlanCreateSaysInOneSentenceWhatANameLacks(t *testing.T) {
	for args, want := range map[string]string{
		"shop --namespaces kube-system": "mig: error: kube-system belongs to the cluster itself or to Velero and is not migrated\nmig: hint: see: mig plan create --help\n",
		"shop --namespaces a:b:c":       "mig: error: namespaces \"a:b:c\": \"a:b:c\": one colon is enough; want SOURCE or SOURCE:DESTINATION, with commas between\nmig: hint: see: mig plan create --help\n",
		"Shop":                          "mig: error: \"Shop\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character\nmig: hint: see: mig plan create --help\n",
	} {
		b := newBench(t)
		code := b.mig(append([]string{"plan", "create", "--src", "src", "--dst", "dst"}, strings.Fields(args)...)...)
		if code != 2 || b.err.String() != want {
			t.Errorf("%s: exit %d\n%swant:\n%s", args, code, b.err.String(), want)
		}
	}
}

func TestPlanCreateKeepsAFileThatIsThere(t *testing.T) {
	b := newBench(t)
	b.proposes(nil, errors.New("looked, though the file is in the way"))
	writePlan(t, "shop.yaml", "mine")
	code := b.mig("plan", "create", "shop", "--src", "src", "--dst", "dst")
	b.wants(t, code, 2, "", "plan file shop.yaml is there already\nmig: hint: overwrite it with --force")
	if got, _ := os.ReadFile("shop.yaml"); string(got) != "mine" {
		t.Errorf("the file was changed: %s", got)
	}
}

func TestPlanCreateWithForceKeepsTheUID(t *testing.T) {
	b := newBench(t)
	wish := b.proposes(proposal(), nil)
	for args, want := range map[string]string{
		"shop":            "0123456789abcdef",
		"-f shop.yaml":    "0123456789abcdef",
		"x -f shop.yaml":  "", // another plan
		"x -f other.yaml": "",
	} {
		writePlan(t, "shop.yaml", shopPlan)
		if code := b.mig(append(strings.Fields("plan create --src src --dst dst --force"), strings.Fields(args)...)...); code != 0 {
			t.Fatalf("exit %d: %s", code, b.err.String())
		}
		if wish.UID != want {
			t.Errorf("%s: uid %q, want %q: what the old plan's runs made must stay in reach", args, wish.UID, want)
		}
	}
}

func TestPlanCreateToStandardOutputPrintsThePlanAlone(t *testing.T) {
	b := newBench(t)
	b.proposes(proposal(), nil)
	code := b.mig("plan", "create", "shop", "--src", "src", "--dst", "dst", "-f", "-")
	b.wants(t, code, 0, "kind: MigrationPlan", "")
	if _, err := plan.Parse("stdout", b.out.Bytes()); err != nil {
		t.Errorf("not a plan: %v", err)
	}
}

func TestAnUnknownContextNamesThoseThatAreThere(t *testing.T) {
	b := newBench(t)
	b.Connect = func(a cluster.Access, _ string) (*cluster.Cluster, error) {
		return nil, &cluster.UnknownContextError{Access: a, Known: []string{"dst", "src"}}
	}
	code := b.mig("plan", "create", "shop", "--src", "sorce", "--dst", "dst")
	b.wants(t, code, 2, "", `mig: error: source: context "sorce" is not in the kubeconfig; there are: dst, src`)
}

func TestPlanValidateTellsWhetherThePlanCanRun(t *testing.T) {
	ready := preflight.Condition{Type: "SourceReachable", Category: preflight.Required, Status: preflight.True, Reason: "Answered", Message: "v1.34"}
	missing := preflight.Condition{
		Type: "StorageClassMissing", Category: preflight.Critical, Status: preflight.True, Reason: "NotFound",
		Message: "the destination has no class fast", Objects: []string{"shop/data"}, Hint: "choose another in spec.storageClasses",
	}
	t.Run("it can", func(t *testing.T) {
		b := newBench(t)
		b.finds(ready)
		writePlan(t, "shop.yaml", shopPlan)
		code := b.mig("plan", "validate")
		b.wants(t, code, 0, "✓   Required   SourceReachable", "Plan shop can run: mig migrate shop --watch")
	})
	t.Run("it cannot", func(t *testing.T) {
		b := newBench(t)
		b.finds(ready, missing)
		writePlan(t, "shop.yaml", shopPlan)
		code := b.mig("plan", "validate", "shop")
		b.wants(t, code, 10,
			"the destination has no class fast\n\nWHAT TO DO\n✗ StorageClassMissing → choose another in spec.storageClasses\n",
			"mig: error: plan shop is not ready:\nmig: error: the destination has no class fast\nmig: hint: settle what is marked ✗, then: mig plan validate shop")
	})
	t.Run("as JSON", func(t *testing.T) {
		b := newBench(t)
		b.finds(ready, missing)
		writePlan(t, "shop.yaml", shopPlan)
		code := b.mig("plan", "validate", "shop", "-o", "json")
		var got validation
		if err := json.Unmarshal(b.out.Bytes(), &got); err != nil || got.Ready || len(got.Conditions) != 2 || code != 10 {
			t.Errorf("exit %d, %v, %+v", code, err, got)
		}
	})
	t.Run("rights alone that we lack are exit 4", func(t *testing.T) {
		b := newBench(t)
		lacking := preflight.Condition{Type: preflight.SourceRights, Category: preflight.Required, Status: preflight.False, Message: "we may not patch", Hint: "kind: Role\nrules: []\n"}
		b.finds(ready, lacking)
		writePlan(t, "shop.yaml", shopPlan)
		code := b.mig("plan", "validate")
		b.wants(t, code, 4, "✗ SourceRightsGranted → kind: Role\nrules: []\n", "plan shop is not ready:\nmig: error: we may not patch\n")
		b.finds(lacking, missing)
		if code := b.mig("plan", "validate"); code != 10 {
			t.Errorf("with more than rights: exit %d", code)
		}
	})
	t.Run("a refusal of our credentials is exit 4", func(t *testing.T) {
		b := newBench(t)
		b.finds(missing)
		b.Look = func(context.Context, cluster.Source, cluster.Destination, plan.Valid) (discover.SourceFacts, discover.DestinationFacts, error) {
			return discover.SourceFacts{Facts: discover.Facts{Reach: discover.Denied}}, discover.DestinationFacts{}, nil
		}
		writePlan(t, "shop.yaml", shopPlan)
		if code := b.mig("plan", "validate"); code != 4 {
			t.Errorf("exit %d", code)
		}
	})
}

func TestAPlanWithAMistakeIsExit2WithItsPlace(t *testing.T) {
	for _, command := range []string{"plan validate", "plan show", "pv discover", "migrate", "rollback --yes"} {
		t.Run(command, func(t *testing.T) {
			b := newBench(t)
			writePlan(t, "shop.yaml", strings.Replace(shopPlan, "storage:", "sotrage:", 1))
			code := b.mig(strings.Fields(command)...)
			b.wants(t, code, 2, "", "shop.yaml:7:3: spec.sotrage: unknown field; did you mean storage?")
			if len(b.connected) > 0 {
				t.Errorf("connected all the same: %v", b.connected)
			}
		})
	}
}

func TestPlanShowFillsInTheDefaults(t *testing.T) {
	b := newBench(t)
	writePlan(t, "shop.yaml", shopPlan)
	code := b.mig("plan", "show", "shop")
	b.wants(t, code, 0, "shop/data   1Gi        gp2     copy     fast        RWO", "")
	code = b.mig("plan", "show", "shop", "-o", "json")
	b.wants(t, code, 0, `"veleroNamespace": "velero"`, "")
}

func TestPVDiscoverShowsClaimsAndChangesTheFileOnlyWhenAsked(t *testing.T) {
	b := newBench(t)
	found := proposal()
	found.Claims[0].State = discover.New
	found.Plan.Spec.StorageClasses["gp2"] = "slow"
	b.Refresh = func(_ context.Context, _ cluster.Source, _ cluster.Destination, p *plan.Plan) (*discover.Proposal, error) {
		if p.Spec.Namespaces[0].Name != "shop" || p.Spec.Source.VeleroNamespace != "" {
			t.Errorf("not the plan as it is written: %+v", p)
		}
		return found, nil
	}
	writePlan(t, "shop.yaml", shopPlan)
	code := b.mig("pv", "discover", "shop")
	b.wants(t, code, 0, "shop/data   Bound   1Gi        unknown   gp2     RWO     copy     fast        new     same provisioner",
		"Bring the plan up to date with: mig pv discover shop --update")
	if got, _ := os.ReadFile("shop.yaml"); string(got) != shopPlan {
		t.Errorf("the file was changed:\n%s", got)
	}
	if code := b.mig("pv", "discover", "shop", "--update"); code != 0 {
		t.Fatalf("exit %d: %s", code, b.err.String())
	}
	if p, err := plan.Load("shop.yaml"); err != nil || p.Spec.StorageClasses["gp2"] != "slow" {
		t.Errorf("the file was not brought up to date: %v", err)
	}
}

// runs makes the bench's runs tell a few updates and end as given.
func (b *bench) runs(result migrate.Result, err error) *migrate.Options {
	var asked migrate.Options
	b.Run = func(_ context.Context, o migrate.Options) (migrate.Result, error) {
		asked = o
		o.Sink.Emit(progress.Update{
			Run: string(o.Kind), Step: "Prepare", Number: 1, Of: 2, State: progress.Done, Note: progress.Remark{Why: "Prepare", Say: "fine"},
			Amounts: []progress.Amount{{Item: "shop/data", Done: 5 << 20, Total: 5 << 20}},
		})
		o.Sink.Emit(progress.Update{
			Run: string(o.Kind), Step: "Restore", Number: 2, Of: 2, State: progress.Warning,
			Note: progress.Remark{Why: "Odd", Say: "Service shop/web has another clusterIP"},
		})
		return result, err
	}
	return &asked
}

func TestMigrateTellsHowItWent(t *testing.T) {
	b := newBench(t)
	asked := b.runs(migrate.Result{Run: "abc", Downtime: 41e9, Took: 133e9}, nil)
	writePlan(t, "shop.yaml", shopPlan)
	code := b.mig("migrate", "shop")
	b.wants(t, code, 0,
		"Plan shop is migrated (2m13s): 1 volume, 5.0 MiB; the source was down for 41s. Take it back with: mig rollback shop\n",
		"[1/2] Prepare: done in 0s: fine\n")
	if !strings.HasSuffix(b.err.String(), "mig: warning: Service shop/web has another clusterIP\n") {
		t.Errorf("the warning is not repeated at the end:\n%s", b.err.String())
	}
	if asked.Kind != migrate.Cutover || asked.Text != shopPlan || asked.Plan.Name() != "shop" || asked.Source.Access.Context != "src" || asked.Destination.Access.Kubeconfig != "other.conf" {
		t.Errorf("asked for %+v", asked)
	}
}

func TestARunThatLeftSomethingOutIsExit3(t *testing.T) {
	b := newBench(t)
	b.runs(migrate.Result{Run: "abc", LeftOut: []string{"Secret shop/x was there before and differs"}}, nil)
	writePlan(t, "shop.yaml", shopPlan)
	code := b.mig("migrate")
	b.wants(t, code, 3, "", "mig: error: Secret shop/x was there before and differs\n")
}

func TestARunWithNothingToDoSaysWhy(t *testing.T) {
	b := newBench(t)
	b.runs(migrate.Result{Message: "the plan was rolled back already"}, nil)
	writePlan(t, "shop.yaml", shopPlan)
	code := b.mig("rollback", "--yes")
	if want := "Nothing to do for plan shop: the plan was rolled back already.\n"; code != 0 || b.out.String() != want {
		t.Errorf("exit %d: %q, want %q", code, b.out.String(), want)
	}
}

func TestARunAsJSONEndsInItsSummary(t *testing.T) {
	b := newBench(t)
	blocked := &migrate.StoppedError{Err: &pipeline.BlockedError{Step: "Restore", Note: progress.Remark{Say: "choose"}}, State: "the source is down"}
	b.runs(migrate.Result{Run: "abc", Record: "velero/mig-run"}, blocked)
	writePlan(t, "shop.yaml", shopPlan)
	code := b.mig("migrate", "-o", "json")
	lines := strings.Split(strings.TrimSpace(b.out.String()), "\n")
	var last runSummary
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if last.Type != "summary" || last.Result != "blocked" || last.Record != "velero/mig-run" || len(last.Steps) != 1 || len(last.Warnings) != 1 {
		t.Errorf("got %+v", last)
	}
	b.wants(t, code, 10, `{"type":"progress"`, `"hint":"settle that, then go on with: mig migrate shop, or back with: mig rollback shop","record":"velero/mig-run"}`)
	if strings.Contains(b.err.String(), "mig: ") {
		t.Errorf("talk between a script's lines: %s", b.err.String())
	}
}

func TestRollbackAsksFirst(t *testing.T) {
	for _, c := range []struct {
		name, typed string
		args        []string
		terminal    bool
		code        int
		runs        bool
		says        string
	}{
		{"yes", "y\n", nil, true, 0, true, "deletes on dst what its runs made, in: shop-prod"},
		{"no", "n\n", nil, true, 130, false, "mig: error: nothing was done"},
		{"nothing", "\n", nil, true, 130, false, "mig: error: nothing was done"},
		{"without a terminal", "y\n", nil, false, 2, false, "if you mean it: mig rollback shop --yes"},
		{"not with --yes", "", []string{"--yes"}, false, 0, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			asked := b.runs(migrate.Result{Run: "abc"}, nil)
			writePlan(t, "shop.yaml", shopPlan)
			if c.terminal {
				b.terminal(c.typed)
			}
			code := b.mig(append([]string{"rollback", "shop"}, c.args...)...)
			if code != c.code || (asked.Kind == migrate.Rollback) != c.runs || !strings.Contains(b.err.String(), c.says) {
				t.Errorf("exit %d, ran %q, said:\n%s", code, asked.Kind, b.err.String())
			}
		})
	}
}

func TestAnInterruptIsSaidAndLetsTheRunEnd(t *testing.T) {
	b := newBench(t)
	writePlan(t, "shop.yaml", shopPlan)
	told := make(chan struct{})
	b.Streams.ErrOut = writerFunc(func(p []byte) (int, error) {
		if strings.Contains(string(p), "stopping at the next safe point") {
			close(told)
		}
		return b.err.Write(p)
	})
	b.Run = func(_ context.Context, o migrate.Options) (migrate.Result, error) {
		close(b.stop)
		<-o.Stop
		<-told
		return migrate.Result{}, &migrate.StoppedError{Err: &pipeline.InterruptedError{Step: "Quiesce"}, State: "the source runs again"}
	}
	code := b.mig("migrate")
	want := "mig: error: interrupted in step Quiesce; the source runs again\nmig: hint: go on with: mig migrate shop, or back with: mig rollback shop\n"
	if code != 130 || !strings.HasSuffix(b.err.String(), want) {
		t.Errorf("exit %d:\n%s", code, b.err.String())
	}
}

func TestAnInterruptEndsWhatHasNoSafePointAtOnce(t *testing.T) {
	b := newBench(t)
	writePlan(t, "shop.yaml", shopPlan)
	b.Look = func(ctx context.Context, _ cluster.Source, _ cluster.Destination, _ plan.Valid) (discover.SourceFacts, discover.DestinationFacts, error) {
		close(b.stop)
		<-ctx.Done()
		return discover.SourceFacts{}, discover.DestinationFacts{}, ctx.Err()
	}
	code := b.mig("plan", "validate")
	b.wants(t, code, 130, "", "mig: error: interrupted\n")
}

func TestStatusTellsWhereTheLastRunIs(t *testing.T) {
	for _, c := range []struct {
		state record.State
		code  int
		says  string
	}{
		{record.Completed, 0, ""},
		{record.Running, 8, "mig: error: the last run of plan shop is not at its end\nmig: hint: where no process drives it any more, go on with: mig migrate shop"},
		{record.Failed, 1, "mig: error: the last run of plan shop has ended as Failed\nmig: hint: go on with: mig migrate shop, or back with: mig rollback shop"},
	} {
		t.Run(string(c.state), func(t *testing.T) {
			b := newBench(t)
			b.Latest = func(context.Context, cluster.Source, cluster.Destination, plan.Valid) (*record.Run, error) {
				return &record.Run{
					UID: "abc", Kind: "migrate", State: c.state, Plan: record.Plan{Name: "shop"},
					Steps: []record.Step{{Number: 1, Name: "Prepare", State: record.StepDone, Took: 3e9, Note: "fine"}, {Number: 2, Name: "Restore"}},
				}, nil
			}
			writePlan(t, "shop.yaml", shopPlan)
			code := b.mig("status")
			b.wants(t, code, c.code, "2   Restore   to come   -", c.says)
		})
	}
	t.Run("none yet", func(t *testing.T) {
		b := newBench(t)
		b.Latest = func(context.Context, cluster.Source, cluster.Destination, plan.Valid) (*record.Run, error) {
			return nil, record.ErrNoRun
		}
		writePlan(t, "shop.yaml", shopPlan)
		b.wants(t, b.mig("status"), 0, "", "Plan shop has no run yet: mig migrate shop\n")
	})
}

func TestARunThatCannotBeginSaysWhatThePlanLacks(t *testing.T) {
	b := newBench(t)
	b.runs(migrate.Result{}, errors.New("namespaces velero not found"))
	b.finds(preflight.Condition{Type: "VeleroReady", Category: preflight.Required, Status: preflight.False, Message: "no Velero in namespace velero of the source"})
	writePlan(t, "shop.yaml", shopPlan)
	code := b.mig("migrate")
	b.wants(t, code, 10, "", "mig: error: plan shop is not ready:\nmig: error: no Velero in namespace velero of the source\nmig: hint: see all of it with: mig plan validate shop\n")
	b.finds(preflight.Condition{Type: preflight.ReadyType, Category: preflight.Required, Status: preflight.True})
	code = b.mig("migrate")
	b.wants(t, code, 1, "", "mig: error: namespaces velero not found\n")
}

func TestARunThatCannotReachAClusterSaysWhich(t *testing.T) {
	b := newBench(t)
	b.Connect = func(a cluster.Access, _ string) (*cluster.Cluster, error) {
		return &cluster.Cluster{Access: a, Server: "https://" + a.Context}, nil
	}
	b.finds(preflight.Condition{Type: preflight.ReadyType, Category: preflight.Required, Status: preflight.True})
	b.runs(migrate.Result{}, fmt.Errorf("list the run records: %w", &url.Error{Op: "Get", URL: "https://dst/api?x", Err: syscall.ECONNREFUSED}))
	writePlan(t, "shop.yaml", shopPlan)
	code := b.mig("migrate", "shop")
	b.wants(t, code, 1, "", "mig: error: destination cluster (context dst): https://dst cannot be reached: connection refused\n"+
		"mig: hint: see whether kubectl gets there: kubectl --context dst version\n")
}

func TestADryRunShowsTheStepsAndRunsNothing(t *testing.T) {
	b := newBench(t)
	asked := b.runs(migrate.Result{}, nil)
	b.Preview = func(context.Context, migrate.Options) ([]migrate.Planned, error) {
		return []migrate.Planned{{Number: 1, Step: "Prepare", Does: "checks both clusters", Done: true}}, nil
	}
	writePlan(t, "shop.yaml", shopPlan)
	code := b.mig("migrate", "--dry-run")
	b.wants(t, code, 0, "1   Prepare   done    checks both clusters", "")
	if asked.Kind != "" {
		t.Error("it ran")
	}
}

func TestTheLiveViewNeedsATerminalThatCanRedraw(t *testing.T) {
	for _, c := range []struct {
		name     string
		terminal bool
		term     string
		live     bool
	}{{"a terminal", true, "xterm", true}, {"a dumb terminal", true, "dumb", false}, {"a pipe", false, "xterm", false}} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.runs(migrate.Result{Run: "abc"}, nil)
			b.Preview = func(context.Context, migrate.Options) ([]migrate.Planned, error) {
				return []migrate.Planned{{Number: 1, Step: "Prepare"}, {Number: 2, Step: "Restore"}, {Number: 3, Step: "ToCome"}}, nil
			}
			b.env["TERM"] = c.term
			if c.terminal {
				b.terminal("")
			}
			writePlan(t, "shop.yaml", shopPlan)
			code := b.mig("migrate", "--watch")
			if live := strings.Contains(b.err.String(), "·  3 ToCome"); live != c.live || code != 0 {
				t.Errorf("exit %d, live %v:\n%q", code, live, b.err.String())
			}
		})
	}
}

func TestCompletionOffersContextsAndPlanFiles(t *testing.T) {
	b := newBench(t)
	b.mig("__complete", "plan", "create", "--src", "")
	if !strings.HasPrefix(b.out.String(), "dst\nsrc\n:4\n") {
		t.Errorf("contexts: %q", b.out.String())
	}
	b.mig("__complete", "migrate", "")
	if !strings.HasPrefix(b.out.String(), "yaml\nyml\n:8\n") {
		t.Errorf("plan files: %q", b.out.String())
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code := b.mig("completion", shell); code != 0 || b.out.Len() == 0 {
			t.Errorf("%s: exit %d", shell, code)
		}
	}
}

func TestVersionIsSaidInAnyFormat(t *testing.T) {
	b := newBench(t)
	b.wants(t, b.mig("version"), 0, "mig ", "")
	b.wants(t, b.mig("version", "-o", "json"), 0, `"platform":`, "")
	b.wants(t, b.mig("help", "exit-codes"), 0, " 130  interrupted", "")
}

func TestTheSettingsFileIsRead(t *testing.T) {
	b := newBench(t)
	path := filepath.Join(t.TempDir(), "c.yaml")
	writePlan(t, path, "output: json\n")
	b.env["MIG_CONFIG"] = path
	b.wants(t, b.mig("version"), 0, `"go":`, "")
}

func TestTheHelpOnJSONNamesEveryFieldThatIsPrinted(t *testing.T) {
	b := newBench(t)
	b.mig("help", "json")
	help := b.out.String()
	for _, object := range []any{render.ProgressLine{}, render.MessageLine{}, runSummary{}, stepSummary{}, progress.Ref{}, progress.Amount{}, failure{}} {
		for field := range reflect.TypeOf(object).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !strings.Contains(help, name) && name != "code" && name != "hint" { // told by mig help exit-codes
				t.Errorf("%T: %s is not in the help", object, name)
			}
		}
	}
	for _, state := range []progress.State{
		progress.Started, progress.Waiting, progress.Stalled, progress.Happened, progress.Warning, progress.Done,
		progress.Skipped, progress.Blocked, progress.Failed, progress.RunStart, progress.RunFinish,
	} {
		if !strings.Contains(help, string(state)) {
			t.Errorf("state %s is not in the help", state)
		}
	}
}

func TestTheHelpOnEventsTellsOfEveryReason(t *testing.T) {
	b := newBench(t)
	b.wants(t, b.mig("help", "events"), 0, "SourceScaledUp (Warning)\n    about   the workload → run record\n    action  the step\n    means   somebody started it", "")
	for _, r := range event.Reasons() {
		if !strings.Contains(b.out.String(), "\n"+r.Name+" ("+r.Kind+")\n") || r.Means == "" || r.Kind == "Warning" && r.Do == "" {
			t.Errorf("%s is not told, or not what to do", r.Name)
		}
	}
	for _, name := range plan.StepNames() {
		if !strings.Contains(b.out.String(), " "+name) {
			t.Errorf("step %s is not told", name)
		}
	}
}
