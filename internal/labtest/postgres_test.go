package labtest

import (
	"strings"
	"testing"
)

const dumpOfSource = `COPY public.accounts (id, node) FROM stdin;
1	dst-node
\.
COPY public.ledger (n, node, at) FROM stdin;
1	src-a	2026-11-30
2	src-b	2026-11-30
\.
SELECT pg_catalog.setval('public.ledger_n_seq', 2, true);
the end`

func TestADumpIsEqualButForWhatTheOtherSideHasWrittenSince(t *testing.T) {
	later := strings.Replace(dumpOfSource, "2	src-b	2026-11-30\n", "2	src-b	2026-11-30\n3	dst-node	2026-12-01\n", 1)
	later = strings.Replace(later, "seq', 2,", "seq', 3,", 1)
	nodes := []string{"src-a", "src-b"}
	source, none := lines(dumpOfSource).WrittenOn(nodes)
	destination, since := lines(later).WrittenOn(nodes)
	if none != 0 || since != 1 {
		t.Errorf("%d and %d rows of others, want none and one", none, since)
	}
	if err := source.SameAs(destination); err != nil {
		t.Error(err)
	}
}

func TestALostRowOfTheSourceShowsInTheDump(t *testing.T) {
	nodes := []string{"src-a", "src-b"}
	source, _ := lines(dumpOfSource).WrittenOn(nodes)
	lost, _ := lines(strings.Replace(dumpOfSource, "2	src-b	2026-11-30\n", "", 1)).WrittenOn(nodes)
	err := source.SameAs(lost)
	if err == nil || !strings.Contains(err.Error(), "src-b") {
		t.Errorf("got %v, want the lost row", err)
	}
	if source.contained(lost) == nil {
		t.Error("a dump without the row is said to contain it")
	}
	if err := lost.contained(source); err != nil {
		t.Error(err)
	}
}

func lines(s string) Dump { return strings.Split(s, "\n") }
