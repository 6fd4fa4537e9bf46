package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/migrate"
)

func TestARollbackWithoutTheDestinationIsNamedAskedAndNotTheWholeOfIt(t *testing.T) {
	b := newBench(t)
	b.runs(migrate.Result{}, &discover.ReachError{Side: "destination", Context: "dst", Server: "https://dst:6443", Reach: discover.Unreachable, Err: errors.New("connection refused")})
	writePlan(t, "shop.yaml", shopPlan)
	if code := b.mig("rollback", "--yes"); code != 1 || !strings.Contains(b.err.String(), "mig rollback shop --source-only") {
		t.Errorf("exit %d, and no word of the way without the destination:\n%s", code, b.err.String())
	}
	asked := b.runs(migrate.Result{Run: "abc", LeftOut: []string{"what the plan's runs made on the destination"}}, nil)
	b.terminal("y\n")
	code := b.mig("rollback", "--source-only")
	if code != 3 || !asked.SourceOnly || !strings.Contains(b.err.String(), "if they run there, both sides will write") {
		t.Errorf("exit %d, source only %t:\n%s", code, asked.SourceOnly, b.err.String())
	}
	if !strings.Contains(b.err.String(), "not everything was taken back") {
		t.Errorf("the rest is not named:\n%s", b.err.String())
	}
}
