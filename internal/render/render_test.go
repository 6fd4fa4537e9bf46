package render

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/mig-cli/mig/internal/progress"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// golden compares with testdata/name, byte for byte.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (write it with -update)\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

func remark(why, say string, on progress.Ref) progress.Note {
	return progress.Remark{Why: why, Say: say, On: on}
}

// stepNames are those of the played run.
func stepNames() []string {
	return []string{"Prepare", "QuiesceApplications", "StageBackupCreated", "StageRestoreCreated", "Completed"}
}

// play sends a run of five steps in 100 s of the test's clock to a view: a
// workload is quiesced, two volumes are copied, the copy stalls once, then the
// restore fails. At each pause it calls seen, if there is one.
func play(v progress.Sink, seen func(moment string)) {
	if seen == nil {
		seen = func(string) {}
	}
	const mib = 1 << 20
	u := progress.Update{Run: "migrate", Of: 5}
	emit := func(number int, s progress.State, n progress.Note, elapsed time.Duration, amounts ...progress.Amount) {
		u.Time, u.Number, u.State, u.Note, u.Elapsed, u.Amounts, u.Step = time.Now(), number, s, n, elapsed, amounts, ""
		if number > 0 {
			u.Step = stepNames()[number-1]
		}
		v.Emit(u)
	}
	emit(0, progress.RunStart, remark("Started", "run k3x7 of plan shop started", progress.Ref{}), 0)
	emit(1, progress.Skipped, remark("Prepare", "done before", progress.Ref{}), 0)
	time.Sleep(time.Second)
	emit(2, progress.Started, remark("Quiescing", "scaling down Deployment shop/web", progress.Ref{}), 0)
	emit(2, progress.Happened, remark("Quiesced", "replicas 3 → 0", progress.Ref{Side: progress.OnSource, Kind: "Deployment", Namespace: "shop", Name: "web"}), 0)
	time.Sleep(2 * time.Second)
	emit(2, progress.Done, remark("QuiesceApplications", "2 workloads quiesced", progress.Ref{}), 2*time.Second)
	const waits = "Velero backup mig-shop-k3x7-stage: InProgress"
	emit(3, progress.Started, remark("StageBackupCreated", waits, progress.Ref{}), 0,
		progress.Amount{Item: "shop/data-db-0"}, progress.Amount{Item: "shop/uploads", Total: 100 * mib})
	seen("begun")
	for i := range int64(4) {
		time.Sleep(10 * time.Second)
		emit(3, progress.Waiting, remark("StageBackupCreated", waits, progress.Ref{}), 0,
			progress.Amount{Item: "shop/data-db-0", Done: (i + 1) * 300 * mib, Total: 2048 * mib},
			progress.Amount{Item: "shop/uploads", Done: (i + 1) * 25 * mib, Total: 100 * mib})
	}
	seen("copying")
	time.Sleep(20 * time.Second)
	emit(3, progress.Stalled, remark("StageBackupCreated", waits, progress.Ref{}), time.Minute)
	emit(3, progress.Warning, remark("VolumeSlow", "claim shop/data-db-0: nothing copied for 20s", progress.Ref{Side: progress.OnSource}), 0)
	time.Sleep(10 * time.Second)
	emit(3, progress.Done, remark("StageBackupCreated", "2 volumes captured, 2.1 GiB", progress.Ref{}), 70*time.Second,
		progress.Amount{Item: "shop/data-db-0", Done: 2048 * mib, Total: 2048 * mib},
		progress.Amount{Item: "shop/uploads", Done: 100 * mib, Total: 100 * mib})
	seen("copied")
	time.Sleep(27 * time.Second)
	emit(4, progress.Failed, remark("StageRestoreCreatedFailed", "Velero restore mig-shop-k3x7-stage: PartiallyFailed: claim shop-prod/uploads was not restored", progress.Ref{}), 27*time.Second)
	emit(0, progress.RunFinish, remark("MigrationFailed", "step StageRestoreCreated failed; the source is down", progress.Ref{}), 0)
}

// utc makes the clock of a bubble the same on every machine.
func utc(t *testing.T) {
	t.Helper()
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
}

var everyHalfMinute = LinesOptions{Heartbeat: 30 * time.Second}

func TestLinesTellTransitionsAndWhatIsWaitedFor(t *testing.T) {
	utc(t)
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := NewLines(&out, everyHalfMinute)
		play(l, nil)
		l.Say("interrupted: stopping at the next safe point")
		l.Close()
		golden(t, "lines.golden", out.String())
		if strings.ContainsAny(out.String(), "\x1b\r") {
			t.Error("plain lines hold control characters")
		}
	})
}

func TestLinesAreSilentOnceClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := NewLines(&out, everyHalfMinute)
		l.Emit(progress.Update{Step: "X", Number: 1, Of: 1, State: progress.Started, Note: remark("X", "waits", progress.Ref{}), Time: time.Now()})
		l.Close()
		time.Sleep(time.Hour)
		if out.Len() > 0 {
			t.Errorf("said after the end: %s", out.String())
		}
	})
}

func TestJSONIsOneObjectALineThatBeginsWithItsType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		j := NewJSON(&out)
		play(j, nil)
		j.Say("interrupted: stopping at the next safe point")
		j.Close()
		golden(t, "json.golden", out.String())
		for line := range strings.Lines(out.String()) {
			if !strings.HasPrefix(line, `{"type":"`) || !json.Valid([]byte(line)) {
				t.Errorf("not an object that begins with its type: %s", line)
			}
		}
	})
}

func TestTheLiveViewFitsTheTerminal(t *testing.T) {
	utc(t)
	for _, size := range []struct {
		name          string
		width, height int
	}{{"80x24", 80, 24}, {"200x50", 200, 50}, {"40x12", 40, 12}} {
		t.Run(size.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newModel("mig migrate shop: src → dst", stepNames(), time.Now())
				var out strings.Builder
				play(sinkFunc(m.apply), func(moment string) {
					lines := m.frame(newPalette(&out, false), time.Now(), size.width, size.height)
					if len(lines) > size.height {
						t.Errorf("%s: %d lines on a terminal of %d", moment, len(lines), size.height)
					}
					for _, l := range lines {
						if ansi.StringWidth(l) > size.width {
							t.Errorf("%s: wider than %d: %q", moment, size.width, l)
						}
					}
					out.WriteString("== " + moment + "\n" + strings.Join(lines, "\n") + "\n")
				})
				golden(t, "bars-"+size.name+".golden", out.String())
			})
		})
	}
}

type sinkFunc func(progress.Update)

func (f sinkFunc) Emit(u progress.Update) { f(u) }

func TestTheLiveViewEndsWithEverythingShownAndTheCursorBack(t *testing.T) {
	utc(t)
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		b := NewBars(BarsOptions{Writer: &out, Title: "mig migrate shop", Size: func() (int, int) { return 80, 10 }})
		b.Announce(stepNames())
		play(b, nil)
		b.Close()
		b.Close() // twice is as once
		if !strings.HasSuffix(out.String(), showCursor) {
			t.Error("the cursor stays hidden")
		}
		last := out.String()[strings.LastIndex(out.String(), "mig migrate shop"):]
		for _, want := range append(stepNames(), "shop/data-db-0", "shop/uploads", "PartiallyFailed: claim", "restored") {
			if !strings.Contains(last, want) {
				t.Errorf("the last frame does not show %s:\n%s", want, last)
			}
		}
	})
}

func TestTheLiveViewKeepsToColourWhereItIsWanted(t *testing.T) {
	for _, colour := range []bool{false, true} {
		m := newModel("x", []string{"Prepare"}, time.Now())
		m.apply(progress.Update{Step: "Prepare", Number: 1, Of: 1, State: progress.Done, Note: remark("Prepare", "fine", progress.Ref{})})
		lines := strings.Join(m.frame(newPalette(os.Stderr, colour), time.Now(), 80, 10), "\n")
		if got := strings.Contains(lines, "\x1b["); got != colour {
			t.Errorf("colour %v, but escape sequences: %v", colour, got)
		}
	}
}

func TestAnUpdatedViewCountsTheRowsThatItsLastFrameTakesNow(t *testing.T) {
	b := &Bars{drawn: []int{80, 10, 0}}
	if got := b.rows(80); got != 3 {
		t.Errorf("at the same width: %d rows, want 3", got)
	}
	if got := b.rows(40); got != 4 {
		t.Errorf("made narrower: %d rows, want 4", got)
	}
}

func TestTheStepsAroundTheCurrentOneAreShown(t *testing.T) {
	for total := 1; total < 40; total++ {
		for n := fewestSteps; n < 42; n++ {
			for current := -1; current < total; current++ {
				from, to := window(total, current, n)
				lines := to - from
				if from > 0 {
					lines++
				}
				if to < total {
					lines++
				}
				if lines > n || (current >= 0 && (current < from || current >= to)) || from < 0 || to > total {
					t.Fatalf("window(%d, %d, %d) = %d, %d", total, current, n, from, to)
				}
			}
		}
	}
}

func TestLaterStepsWithoutNamesAreCounted(t *testing.T) {
	m := newModel("x", nil, time.Now())
	m.apply(progress.Update{Step: "Prepare", Number: 1, Of: 21, State: progress.Started, Note: remark("S", "s", progress.Ref{})})
	got := strings.Join(m.stepLines(newPalette(os.Stderr, false), time.Now(), 80, 10), "\n")
	if !strings.HasSuffix(got, "\n· 20 more steps") {
		t.Errorf("got:\n%s", got)
	}
}

func TestARunWithinTheRunIsToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := progress.Update{Run: "migrate", Step: "EnsureQuiesced", Number: 7, Of: 9, State: progress.Failed, Note: remark("F", "no", progress.Ref{})}
		within := progress.Update{Run: "recovery", Step: "SourceRestored", Number: 1, Of: 2, State: progress.Done, Note: remark("D", "up", progress.Ref{})}
		var out bytes.Buffer
		l, m := NewLines(&out, everyHalfMinute), newModel("mig migrate shop", nil, time.Now())
		for _, u := range []progress.Update{failed, within} {
			l.Emit(u)
			m.apply(u)
		}
		l.Close()
		if !strings.Contains(out.String(), " recovery [1/2] SourceRestored: done") {
			t.Errorf("lines:\n%s", out.String())
		}
		frame := strings.Join(m.frame(newPalette(&out, false), time.Now(), 80, 24), "\n")
		if !strings.HasPrefix(frame, "mig migrate shop, recovery") || strings.Contains(frame, "7 EnsureQuiesced") {
			t.Errorf("live view:\n%s", frame)
		}
	})
}

func TestManyVolumesAreSummedUp(t *testing.T) {
	m := newModel("x", nil, time.Now())
	var amounts []progress.Amount
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		amounts = append(amounts, progress.Amount{Item: "shop/" + name, Total: 10})
	}
	amounts[0].Done, amounts[5].Done = 10, 5
	m.apply(progress.Update{Step: "S", Number: 1, Of: 1, State: progress.Waiting, Note: remark("S", "s", progress.Ref{}), Amounts: amounts})
	got := strings.Join(m.volumeLines(newPalette(os.Stderr, false), 80, 3), "\n")
	if !strings.Contains(got, "shop/f") || strings.Contains(got, "shop/a") {
		t.Errorf("the volume under way is not preferred to the complete one:\n%s", got)
	}
	if !strings.Contains(got, "4 more: 1 of 6 volumes, 15 B of 60 B in all") {
		t.Errorf("the rest is not summed up:\n%s", got)
	}
}

func TestTables(t *testing.T) {
	table := Table{
		Columns: []string{"CATEGORY", "TYPE", "MESSAGE"},
		Rows: [][]string{
			{"Critical", "DestinationStorageClassMissing", "claim shop/data-db-0: the destination has no storage class gp2; choose one with: mig pv set shop/data-db-0 --storage-class CLASS"},
			{"Required", "SourceReachable", "https://10.0.0.1:6443 answers"},
		},
	}
	for _, c := range []struct {
		name  string
		width int
	}{{"piped", 0}, {"100", 100}, {"60", 60}} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := Print(&out, FormatTable, c.width, nil, func() Table { return table }); err != nil {
				t.Fatal(err)
			}
			golden(t, "table-"+c.name+".golden", out.String())
			if !strings.Contains(out.String(), "shop/data-db-0") || !strings.Contains(out.String(), "--storage-class") {
				t.Error("a name or a flag is broken")
			}
			if c.width == 0 && strings.Count(out.String(), "\n") != 3 {
				t.Error("piped, a row is not one line")
			}
		})
	}
}

func TestABarNeverGoesBackNorBeyondItsEnd(t *testing.T) {
	now := time.Now()
	v := &volume{item: "shop/data"}
	shows := func(done, total int64, want string) {
		t.Helper()
		v.update(progress.Amount{Item: v.item, Done: done, Total: total}, now)
		if got := v.line(10, 80); !strings.Contains(got, want) || ansi.StringWidth(got) > 80 {
			t.Errorf("at %d of %d: %q, want %q in 80 columns", done, total, got, want)
		}
	}
	shows(0, 0, "waits for its turn")
	shows(10, 0, "10 B so far")
	shows(50, 100, " 50% ")
	shows(30, 100, " 50% ")
	shows(50, 200, " 25% ") // a copier that still counts
	shows(300, 200, "200 B")
	shows(200, 200, "200 B")
}

func TestATableWiderThanTheTerminalBecomesBlocks(t *testing.T) {
	table := Table{
		Columns: []string{"CLAIM", "CLASS", "WHY"},
		Rows:    [][]string{{"shop/data", "gold", "no class of this name"}, {"shop/a-claim-with-a-long-name", "silver", "same provisioner"}},
	}
	var out bytes.Buffer
	if err := table.Write(&out, 30); err != nil {
		t.Fatal(err)
	}
	golden(t, "table-blocks.golden", out.String())
}

func TestColumnsThatSayTheSameEverywhereAreLeftOut(t *testing.T) {
	table := Table{Columns: []string{"CLAIM", "PHASE", "STATE"}, Rows: [][]string{{"a", "Bound", "planned"}, {"b", "Bound", "new"}}}
	got := table.Without(map[string]string{"PHASE": "Bound", "STATE": "planned"})
	if want := (Table{Columns: []string{"CLAIM", "STATE"}, Rows: [][]string{{"a", "planned"}, {"b", "new"}}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(table.Rows[0]) != 3 {
		t.Error("the table itself was changed")
	}
}

func TestNoViewShowsASecret(t *testing.T) {
	const secret = "AKIAIOSFODNN7EXAMPLE"
	u := progress.Update{
		Step: "S", Number: 1, Of: 1, State: progress.Failed, Time: time.Now(),
		Note: remark("SFailed", "the store refused key "+secret, progress.Ref{}),
	}
	var out bytes.Buffer
	views := []View{NewLines(&out, everyHalfMinute), NewJSON(&out), NewBars(BarsOptions{Writer: &out, Size: func() (int, int) { return 200, 50 }})}
	for _, v := range views {
		v.Emit(u)
		v.Close()
	}
	if got := strings.Count(out.String(), "the store refused key "+progress.Hidden); got < len(views) {
		t.Errorf("told %d times, want each of %d views to tell it:\n%s", got, len(views), out.String())
	}
	if strings.Contains(out.String(), secret) {
		t.Errorf("a secret is shown:\n%s", out.String())
	}
}

func TestATableWithoutRowsSaysSo(t *testing.T) {
	var out bytes.Buffer
	if err := (Table{Columns: []string{"A"}, Empty: "No claims."}).Write(&out, 80); err != nil || out.String() != "No claims.\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestAllFormatsPrintTheSameObject(t *testing.T) {
	object := struct {
		Claim string `json:"claim"`
	}{"shop/data <db>"}
	for format, want := range map[Format]string{
		FormatJSON: "{\n  \"claim\": \"shop/data <db>\"\n}\n",
		FormatYAML: "claim: shop/data <db>\n",
	} {
		var out bytes.Buffer
		if err := Print(&out, format, 0, object, nil); err != nil || out.String() != want {
			t.Errorf("%s: got %q, %v", format, out.String(), err)
		}
	}
	if err := Print(&bytes.Buffer{}, "xml", 0, object, nil); err == nil || !strings.Contains(err.Error(), "table, json, yaml") {
		t.Errorf("an unknown format: %v", err)
	}
}
