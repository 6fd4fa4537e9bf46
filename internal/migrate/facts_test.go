package migrate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mig-cli/mig/internal/event"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/preflight"
	"github.com/mig-cli/mig/internal/record"
)

func TestReadinessTellsWhatHasChangedSinceTheLastLook(t *testing.T) {
	good := preflight.Condition{Type: "SourceReachable", Category: preflight.Required, Status: preflight.True}
	bad := preflight.Condition{Type: "StorageClassMissing", Category: preflight.Critical, Status: preflight.True}
	odd := preflight.Condition{Type: "VolumeFull", Category: preflight.Warn, Status: preflight.True}
	last := preflight.Condition{Type: preflight.ReadyType, Category: preflight.Required, Status: preflight.False}
	for name, c := range map[string]struct {
		now    []preflight.Condition
		before []preflight.Condition
		reason string
		text   string
	}{
		"at first":        {[]preflight.Condition{good, odd, last}, nil, "Ready", "plan shop is ready, with 1 warning"},
		"still":           {[]preflight.Condition{good, odd}, []preflight.Condition{good, odd}, "Ready", "plan shop is ready, with 1 warning"},
		"no longer":       {[]preflight.Condition{good, bad, bad, last}, []preflight.Condition{good, odd}, "NotReady", "plan shop is not ready: StorageClassMissing; new since the last look: StorageClassMissing; gone since the last look: VolumeFull"},
		"ready once more": {[]preflight.Condition{good}, []preflight.Condition{good, bad, last}, "Ready", "plan shop is ready, with 0 warnings; gone since the last look: StorageClassMissing"},
	} {
		t.Run(name, func(t *testing.T) {
			var before []record.Condition
			if c.before != nil {
				before = recorded(c.before)
			}
			if n := readinessOf("shop", c.now, before); n.Reason() != c.reason || n.Text() != c.text {
				t.Errorf("got %s: %s", n.Reason(), n.Text())
			}
		})
	}
}

func TestWhatCouldNotBeSeenIsToldApartFromWhatIsWrong(t *testing.T) {
	got := unseenOf([]preflight.Condition{
		{Type: preflight.SourceReachable, Category: preflight.Required, Status: preflight.True, Message: "it answers"},
		{Type: preflight.DestinationReachable, Category: preflight.Required, Status: preflight.False, Message: "no answer"},
		{Type: preflight.LookIncomplete, Category: preflight.Error, Status: preflight.True, Message: "cannot be looked at: claims"},
		{Type: preflight.SourceRights, Category: preflight.Required, Status: preflight.Unknown, Message: "rights are not known"},
		{Type: "StorageClassMissing", Category: preflight.Error, Status: preflight.True, Message: "no such class"},
		{Type: "UsedUnknown", Category: preflight.Advisory, Status: preflight.Unknown, Message: "not measured"},
	})
	if want := []string{"no answer", "cannot be looked at: claims", "rights are not known"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	n := validationFailed{Plan: "shop", Unseen: got}
	if n.Text() != "plan shop could not be validated: no answer; cannot be looked at: claims; rights are not known" {
		t.Errorf("it says %q", n.Text())
	}
}

func TestSkippedVolumesAreNamed(t *testing.T) {
	r := runOf(t, plan.Volume{Claim: "shop/data", Action: plan.Copy}, plan.Volume{Claim: "shop/cache", Action: plan.Skip})
	got := skippedOf(r.Plan)
	if len(got) != 1 || got[0].Claim.Namespace != "shop" || got[0].Claim.Name != "cache" {
		t.Errorf("got %+v", got)
	}
}

// TestEveryReasonInTheCodeIsInTheTable reads the sources: what a note is built
// with as its Why, and what a note's Reason gives.
func TestEveryReasonInTheCodeIsInTheTable(t *testing.T) {
	known := plan.StepNames()
	for _, r := range event.Reasons() {
		known = append(known, r.Name)
	}
	known = append(known, "Interrupted", "MaxDowntimeExceeded") // the latter is of a note of a failed step: <Step>Failed
	known = append(known, "Lock")                               // where a run was interrupted before its first step
	reasons := map[string]string{}
	for _, dir := range []string{"../step", "../migrate", "../quiesce"} {
		for reason, at := range reasonsIn(t, os.DirFS(dir)) {
			reasons[reason] = dir + "/" + at
		}
	}
	if len(reasons) < 20 {
		t.Fatalf("only %d reasons are found", len(reasons))
	}
	for reason, at := range reasons {
		if !slices.Contains(known, reason) {
			t.Errorf("%s (%s) is not in event.Reasons()", reason, at)
		}
	}
	for _, r := range event.Reasons() {
		if _, used := reasons[r.Name]; !used && !strings.HasPrefix(r.Name, "<Step>") {
			t.Errorf("%s is in the table, and nothing sends it", r.Name)
		}
	}
}

// reasonsIn are the reasons in a package's sources, with the file of each.
func reasonsIn(t *testing.T, dir fs.FS) map[string]string {
	t.Helper()
	files, err := fs.Glob(dir, "*.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		take := func(e ast.Expr) {
			if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil && s != "" {
					out[s] = name
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "Why" || key.Name == "Step") {
					take(n.Value)
				}
			case *ast.AssignStmt: // state, reason := …
				for i, e := range n.Lhs {
					if id, ok := e.(*ast.Ident); ok && id.Name == "reason" && i < len(n.Rhs) {
						take(n.Rhs[i])
					}
				}
			case *ast.ValueSpec:
				for i, id := range n.Names {
					if strings.HasPrefix(id.Name, "Reason") && i < len(n.Values) {
						take(n.Values[i])
					}
				}
			case *ast.FuncDecl:
				if n.Name.Name == "Reason" && n.Recv != nil {
					ast.Inspect(n.Body, func(n ast.Node) bool {
						if r, ok := n.(*ast.ReturnStmt); ok {
							for _, e := range r.Results {
								take(e)
							}
						}
						return true
					})
				}
			}
			return true
		})
	}
	return out
}

func TestStorageClassesAreToldOnlyWhereTwoLooksDiffer(t *testing.T) {
	for _, c := range []struct {
		before, now []string
		want        string // empty: nothing is told
	}{
		{nil, []string{"fast"}, ""},
		{[]string{"fast"}, nil, ""}, // not looked at
		{[]string{"fast"}, []string{"fast"}, ""},
		{[]string{"fast", "old"}, []string{"fast", "new"}, "the destination's storage classes are others than at the last look; new: new; gone: old"},
	} {
		n, told := classesChanged(c.before, c.now)
		if told != (c.want != "") || told && n.Text() != c.want {
			t.Errorf("%v, %v: %v %q", c.before, c.now, told, n.Text())
		}
	}
}

func TestVeleroIsReadyOnlyWhereItRunsOnBothClusters(t *testing.T) {
	here := veleroOn{Namespace: "velero", Version: "v1.15.0", Ready: 1, Wanted: 1}
	down := veleroOn{Namespace: "velero", Wanted: 1}
	for _, c := range []struct {
		src, dst veleroOn
		want     string
	}{
		{here, here, "VeleroReady Velero on the source: v1.15.0 in namespace velero, 1 of 1 pods ready; on the destination: v1.15.0 in namespace velero, 1 of 1 pods ready"},
		{here, down, "VeleroNotReady Velero on the source: v1.15.0 in namespace velero, 1 of 1 pods ready; on the destination: of unknown version in namespace velero, 0 of 1 pods ready"},
		{down, here, "VeleroNotReady"},
	} {
		n := veleroState{Source: c.src, Destination: c.dst}
		if got := n.Reason() + " " + n.Text(); !strings.HasPrefix(got, c.want) {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
