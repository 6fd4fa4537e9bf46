package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/migrate"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/preflight"
)

func TestPlanCloseAsksAndSaysWhatStays(t *testing.T) {
	b := newBench(t)
	asked := b.runs(migrate.Result{Run: "abc", Took: 3e9}, nil)
	writePlan(t, "shop.yaml", shopPlan)
	code := b.mig("plan", "close", "shop")
	b.wants(t, code, 2, "", "close of plan shop asks before it deletes, and there is no terminal to ask at\nmig: hint: if you mean it: mig plan close shop --yes")
	code = b.mig("plan", "close", "shop", "--yes")
	b.wants(t, code, 0, "Plan shop is closed (3s). What was migrated stays, and so do the records: mig status shop\n", "Prepare: done")
	if asked.Kind != migrate.Close {
		t.Errorf("ran %q", asked.Kind)
	}
	b.terminal("n\n")
	code = b.mig("plan", "close", "shop")
	if code != exitInterrupted || !strings.Contains(b.err.String(), "cannot be taken back") {
		t.Errorf("exit %d: %s", code, b.err.String())
	}
}

func TestPlanCloseThatBreaksOffNamesTheCommandThatGoesOn(t *testing.T) {
	b := newBench(t)
	b.runs(migrate.Result{}, &migrate.StoppedError{Err: context.Canceled, State: "the closing can be taken up again"})
	writePlan(t, "shop.yaml", shopPlan)
	code := b.mig("plan", "close", "shop", "--yes")
	if code != exitInterrupted || !strings.Contains(b.err.String(), "hint: go on with: mig plan close shop\n") {
		t.Errorf("exit %d: %s", code, b.err.String())
	}
}

func TestPlanValidateTellsOfACopiedUID(t *testing.T) {
	b := newBench(t)
	b.finds(preflight.Condition{Type: "SourceReachable", Category: preflight.Required, Status: preflight.True, Reason: "Answered", Message: "v1.34"})
	b.KnownUID = func(context.Context, cluster.Source, cluster.Destination, plan.Valid) error {
		return &migrate.RefusedError{Why: "uid 1 is of plan other", Hint: "mig plan copy shop NEWNAME"}
	}
	writePlan(t, "shop.yaml", shopPlan)
	code := b.mig("plan", "validate")
	b.wants(t, code, 10, "✗ PlanUIDKnown → mig plan copy shop NEWNAME\n", "mig: error: uid 1 is of plan other\n")
}

func TestPlanCopyKeepsTheTextAndMakesANewUID(t *testing.T) {
	b := newBench(t)
	writePlan(t, "shop.yaml", lovedPlan)
	code := b.mig("plan", "copy", "shop", "blog")
	b.wants(t, code, 0, "", "Plan blog is in blog.yaml, with a uid of its own: ")
	p, err := plan.LoadValid("blog.yaml")
	if err != nil || p.UID() == "0123456789abcdef" {
		t.Fatalf("uid %s, %v", p.UID(), err)
	}
	want := strings.Replace(lovedPlan, "name: shop, uid: 0123456789abcdef", `name: blog, uid: `+written(t, "blog.yaml", "uid: "), 1)
	if got := read(t, "blog.yaml"); got != want {
		t.Errorf("the copy:\n%s", got)
	}
	code = b.mig("plan", "copy", "shop", "blog")
	b.wants(t, code, 2, "", "plan file blog.yaml is there already")
	code = b.mig("plan", "copy", "shop", "Blog!")
	b.wants(t, code, 2, "", `metadata.name: "Blog!"`)
	code = b.mig("plan", "copy", "shop")
	b.wants(t, code, 2, "", "plan copy wants a plan and a new name")
}

// written is what stands behind a word in a file, up to the next bracket.
func written(t *testing.T, file, word string) string {
	t.Helper()
	_, rest, _ := strings.Cut(read(t, file), word)
	value, _, _ := strings.Cut(rest, "}")
	return value
}
