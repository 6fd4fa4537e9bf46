//go:build e2e

package cases

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// The beds that a case may need.
const (
	cli    = "cli"    // no cluster
	api    = "api"    // two API servers with their controllers; Velero looks healthy and does nothing
	velero = "velero" // the lab
	node   = "node"   // the lab, and what only a real node has
)

// The exit codes that mig promises.
const (
	done    = 0
	failed  = 1
	usage   = 2
	denied  = 4
	blocked = 10
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := stopAPI(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the API servers:", err)
		code = max(code, 1)
	}
	theTable.print(os.Stdout)
	os.Exit(code)
}

// scenario says what a case is called, what kind it is of, and its bed.
type scenario struct{ id, kind, needs string }

// wanted says whether the bed of a case is to be used in this run.
func (s scenario) wanted() bool {
	asked := strings.Fields(os.Getenv("MIG_NEEDS"))
	return len(asked) == 0 || slices.Contains(asked, s.needs)
}

// told puts a case into the table when its test ends; one whose bed is not
// wanted is left out.
func (s scenario) told(t *testing.T) {
	t.Helper()
	if !s.wanted() {
		theTable.leaveOut(s)
		t.Skipf("needs %s, which $MIG_NEEDS does not name", s.needs)
	}
	began := time.Now()
	t.Cleanup(func() { theTable.add(s, outcomeOf(t), time.Since(began)) })
}

func outcomeOf(t *testing.T) string {
	t.Helper()
	switch {
	case t.Failed():
		return "failed"
	case t.Skipped():
		return "skipped"
	default:
		return "passed"
	}
}

// table gathers how the cases ended.
type table struct {
	mu      sync.Mutex
	rows    []row
	leftOut map[string]int // by bed
}

type row struct {
	scenario
	outcome string
	took    time.Duration
}

var theTable = &table{leftOut: map[string]int{}}

func (t *table) add(s scenario, outcome string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, row{s, outcome, took})
}

func (t *table) leaveOut(s scenario) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leftOut[s.needs]++
}

// print writes a line a case, and last how many passed and failed.
func (t *table) print(w io.Writer) {
	slices.SortStableFunc(t.rows, func(a, b row) int { return cmp.Compare(a.id, b.id) })
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	count := map[string]int{}
	_, _ = fmt.Fprintln(tab, "\nCASE\tKIND\tNEEDS\tOUTCOME\tSECONDS")
	for _, r := range t.rows {
		count[r.outcome]++
		_, _ = fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%.1f\n", r.id, r.kind, r.needs, r.outcome, r.took.Seconds())
	}
	_ = tab.Flush()
	for _, bed := range []string{cli, api, velero, node} {
		if n := t.leftOut[bed]; n > 0 {
			_, _ = fmt.Fprintf(w, "left out, for they need %s: %d\n", bed, n)
		}
	}
	_, _ = fmt.Fprintf(w, "%d passed, %d failed\n", count["passed"], count["failed"])
}
