package moverlog

import (
	"strings"
	"testing"

	"github.com/mig-cli/mig/internal/manifest"
)

func TestASummaryFitsWhatAKubeletKeepsAndStillCountsAll(t *testing.T) {
	s := Summary{Type: TypeSummary, Snapshot: "abc"}
	for range 20 {
		s.First = append(s.First, manifest.Difference{Path: manifest.Text(strings.Repeat("ü/", 500)), Kind: manifest.Missing})
		s.Disagreements++
	}
	line, err := s.Within(4000)
	if err != nil || len(line) > 4000 {
		t.Fatalf("%d bytes, %v", len(line), err)
	}
	got, err := ReadSummary(string(line))
	if err != nil || got.Disagreements != 20 || len(got.First) == 0 {
		t.Errorf("got %d disagreements, the first %d, %v", got.Disagreements, len(got.First), err)
	}
}

func TestOnlyAWholeSummaryIsOne(t *testing.T) {
	for _, line := range []string{"", "null", `{"type":"progress"}`, `{"type":"summary","snapsh`, "mig-mover: error: no"} {
		if _, err := ReadSummary(line); err == nil {
			t.Errorf("%q was taken for a summary", line)
		}
	}
}

func TestProgressIsReadFromItsOwnLinesOnly(t *testing.T) {
	if p, ok := ReadProgress([]byte(`{"type":"progress","phase":"write","bytes":5,"totalBytes":9}`)); !ok || p.Bytes != 5 || p.TotalBytes != 9 {
		t.Errorf("got %+v, %v", p, ok)
	}
	for _, line := range []string{"", `{"type":"summary"}`, `{"type":"progr`} {
		if _, ok := ReadProgress([]byte(line)); ok {
			t.Errorf("%q was taken for progress", line)
		}
	}
}
