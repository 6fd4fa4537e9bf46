package process

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func TestParseStat(t *testing.T) {
	const after = " S 1 77 77 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 9 0 4242 1000 50"
	for _, name := range []string{"(etcd)", "(a b)", "(odd) name) x)"} {
		got, err := parseStat("77 " + name + after)
		if err != nil || got.started != 4242 || got.state != 'S' {
			t.Errorf("parseStat of %s: got %+v, %v, want start 4242 in state S", name, got, err)
		}
	}
	for _, bad := range []string{"", "77 (etcd)", "77 (etcd) S 1"} {
		if _, err := parseStat(bad); err == nil {
			t.Errorf("parseStat(%q): got no error", bad)
		}
	}
}

func TestRecordIsAliveOnlyWithItsStart(t *testing.T) {
	self, err := readStat(os.Getpid())
	if err != nil {
		t.Skip("no /proc here:", err)
	}
	tests := map[string]struct {
		record Record
		want   bool
	}{
		"this process":                        {Record{PID: os.Getpid(), Started: self.started}, true},
		"another that had this pid before":    {Record{PID: os.Getpid(), Started: self.started - 1}, false},
		"a pid that no process can ever have": {Record{PID: 1 << 30, Started: self.started}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			content, err := json.Marshal(test.record)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "record.json")
			if err := os.WriteFile(file, content, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, got := ReadRecord(file); got != test.want {
				t.Errorf("alive: got %t, want %t", got, test.want)
			}
		})
	}
}

func TestHalfWrittenRecordIsNoRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "record.json")
	if err := os.WriteFile(file, []byte(`{"pid": 1, "star`), 0o644); err != nil {
		t.Fatal(err)
	}
	if record, alive := ReadRecord(file); alive || record != (Record{}) {
		t.Errorf("got %+v alive %t, want nothing", record, alive)
	}
}

func TestWantedChangesWithEverythingThatADaemonIsStartedWith(t *testing.T) {
	base := Daemon{Command: []string{"etcd", "--a"}, Env: []string{"B=1"}, Version: "1"}
	seen := map[string]string{base.wanted(): "base"}
	for name, daemon := range map[string]Daemon{
		"argument":    {Command: []string{"etcd", "--b"}, Env: base.Env, Version: "1"},
		"split":       {Command: []string{"etcd --a"}, Env: base.Env, Version: "1"},
		"environment": {Command: base.Command, Env: []string{"B=2"}, Version: "1"},
		"build":       {Command: base.Command, Env: base.Env, Version: "2"},
		"namespace":   {Command: base.Command, Env: base.Env, Version: "1", Namespace: "/run/netns/x"},
		"bind":        {Command: base.Command, Env: base.Env, Version: "1", Binds: []Bind{{"a", "b"}}},
	} {
		if other, found := seen[daemon.wanted()]; found {
			t.Errorf("%s: not told apart from %s", name, other)
		}
		seen[daemon.wanted()] = name
	}
	if same := (Daemon{Name: "other", Command: base.Command, Env: base.Env, Version: "1"}); same.wanted() != base.wanted() {
		t.Error("equal daemons are told apart")
	}
}

func TestWriteFileLeavesEqualContentAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dir", "file")
	if err := WriteFile(file, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(file, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(file); err != nil || !os.SameFile(before, after) {
		t.Errorf("the file was written again (%v)", err)
	}
	if err := WriteFile(file, []byte("b"), 0o600); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != "b" {
		t.Errorf("got %q, %v, want b", content, err)
	}
}

func TestHasEntry(t *testing.T) {
	environ := []byte("A=1\x00MIG_LAB_OWNER=/lab\x00B=2\x00")
	for entry, want := range map[string]bool{"MIG_LAB_OWNER=/lab": true, "MIG_LAB_OWNER=/la": false, "MIG_LAB_OWNER=/lab2": false} {
		if got := hasEntry(environ, entry); got != want {
			t.Errorf("hasEntry(%s): got %t, want %t", entry, got, want)
		}
	}
}

func TestParsePSS(t *testing.T) {
	const rollup = "00400000-7fff ---p 00000000 00:00 0 [rollup]\nRss:  900 kB\nPss:  300 kB\nPss_Dirty: 100 kB\n"
	if got := parsePSS(rollup); got != 300<<10 {
		t.Errorf("got %d, want %d", got, 300<<10)
	}
}
