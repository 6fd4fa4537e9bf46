package labtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestACopyOfOddFilesIsTheSame(t *testing.T) {
	source, copied := oddDirs(t)
	if err := read(t, source).SameAs(read(t, copied)); err != nil {
		t.Error(err)
	}
}

func TestEveryDifferenceOfACopyIsFound(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(dir string) error
		says   string
	}{
		{"content", func(d string) error {
			return keepTime(filepath.Join(d, "index.html"), func(p string) error { return os.WriteFile(p, []byte("<h1>sh0p</h1>\n"), 0o644) })
		}, `"index.html": was`},
		{"owner", func(d string) error { return os.Lchown(filepath.Join(d, "empty"), 1001, 1000) }, `"empty": was`},
		{"a link's owner", func(d string) error { return os.Lchown(filepath.Join(d, "link to nowhere"), 7, 7) }, `"link to nowhere": was`},
		{"setuid", func(d string) error { return syscall.Chmod(filepath.Join(d, "setuid"), 0o755) }, `"setuid": was`},
		{"a directory's mode", func(d string) error { return syscall.Chmod(filepath.Join(d, "sticky"), 0o777) }, `"sticky": was`},
		{"a nanosecond", func(d string) error {
			at := time.Date(2001, 9, 9, 1, 46, 40, 123456788, time.UTC)
			return os.Chtimes(filepath.Join(d, ".hidden"), at, at)
		}, `".hidden": was`},
		{"a missing file", func(d string) error { return os.Remove(filepath.Join(d, "name with spaces ")) }, `"name with spaces " is missing`},
		{"a file too many", func(d string) error { return os.WriteFile(filepath.Join(d, "sticky", "new"), nil, 0o600) }, `"sticky/new" was not there before`},
		{"a link's target", func(d string) error {
			link := filepath.Join(d, "absolute link")
			_ = os.Remove(link)
			return os.Symlink("/etc/passwd", link)
		}, `"absolute link": was`},
		{"the root's mode", func(d string) error { return os.Chmod(d, 0o700) }, `".": was`},
	} {
		t.Run(c.name, func(t *testing.T) {
			source, copied := oddDirs(t)
			if err := c.change(copied); err != nil {
				t.Fatal(err)
			}
			err := read(t, source).SameAs(read(t, copied))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want it to say: %s", err, c.says)
			}
		})
	}
}

func TestWithoutLeavesOutWhatIsBelowToo(t *testing.T) {
	m := Manifest{".": {}, "a": {}, "a/b": {}, "ab": {}}
	got := m.Without("a")
	if len(got) != 2 || len(m) != 4 {
		t.Errorf("got %v of %v", got, m)
	}
}

// oddDirs are a directory of odd files and a faithful copy.
func oddDirs(t *testing.T) (source, copied string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of others")
	}
	source, copied = filepath.Join(t.TempDir(), "source"), filepath.Join(t.TempDir(), "copy")
	if err := os.Mkdir(source, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WriteOddFiles(source); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", source, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return source, copied
}

func read(t *testing.T, dir string) Manifest {
	t.Helper()
	m, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// keepTime changes a file so that only its content tells.
func keepTime(path string, change func(string) error) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := change(path); err != nil {
		return err
	}
	return os.Chtimes(path, info.ModTime(), info.ModTime())
}
