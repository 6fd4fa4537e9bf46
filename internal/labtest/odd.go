package labtest

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// oddFile is a file that copiers have been known to get wrong. The zero mode
// of a directory is 0755.
type oddFile struct {
	name   string
	mode   uint32 // as chmod takes it
	uid    int
	gid    int
	data   string
	target string // of a symbolic link
	isDir  bool
	mtime  time.Time
}

// WriteOddFiles fills a directory with files that are odd in every way that
// Velero's copier promises to carry: names, owners, modes, times, links, holes,
// sizes. It must run as root.
func WriteOddFiles(dir string) error {
	for _, f := range oddFiles() {
		if err := f.write(dir); err != nil {
			return fmt.Errorf("odd file %q: %w", f.name, err)
		}
	}
	if err := writeSparse(filepath.Join(dir, "sparse")); err != nil {
		return err
	}
	if err := WriteNoise(filepath.Join(dir, "big"), 24<<20); err != nil {
		return err
	}
	// Writing into a directory changes its time, so theirs are set at last.
	for _, f := range oddFiles() {
		if err := f.setTime(dir); err != nil {
			return fmt.Errorf("time of odd file %q: %w", f.name, err)
		}
	}
	return nil
}

func oddFiles() []oddFile {
	old := time.Date(2001, 9, 9, 1, 46, 40, 123456789, time.UTC)
	future := time.Date(2037, 12, 31, 23, 59, 59, 999999999, time.UTC)
	return []oddFile{
		{name: "index.html", mode: 0o644, data: "<h1>shop</h1>\n", mtime: old},
		{name: "empty", mode: 0o600, uid: 1000, gid: 1000, mtime: old},
		{name: "no rights", mode: 0o000, uid: 65534, gid: 65534, data: "closed", mtime: old},
		{name: "setuid", mode: 0o4755, data: "#!/bin/sh\n", mtime: old},
		{name: "setgid", mode: 0o2755, uid: 1, gid: 2, data: "#!/bin/sh\n", mtime: future},
		{name: "empty directory", mode: 0o750, uid: 1234, gid: 4321, isDir: true, mtime: old},
		{name: "sticky", mode: 0o1777, isDir: true, mtime: future},
		{name: "a/b/c/d/e/f", isDir: true, mode: 0o700, mtime: old},
		{name: "a/b/c/d/e/f/deep", mode: 0o640, uid: 4000000000, gid: 4000000001, data: "deep", mtime: old},
		{name: "name with spaces ", mode: 0o644, data: "x", mtime: old},
		{name: "name\nwith\na newline", mode: 0o644, data: "x", mtime: old},
		{name: "-rf *", mode: 0o644, data: "x", mtime: old},
		{name: `quo"te's \ back`, mode: 0o644, data: "x", mtime: old},
		{name: "Grüße, мир, 世界, 🛒", mode: 0o644, data: "unicode", mtime: old},
		{name: "cafe\u0301 and caf\u00e9", mode: 0o644, data: "two ways to write é", mtime: old},
		{name: ".hidden", mode: 0o400, data: "x", mtime: old},
		{name: "link to file", target: "index.html", mtime: old},
		{name: "link to directory", target: "a/b", uid: 1000, gid: 1000, mtime: old},
		{name: "link to nowhere", target: "../../no such file", mtime: old},
		{name: "absolute link", target: "/etc/hostname", mtime: old},
	}
}

func (f oddFile) write(dir string) error {
	path := filepath.Join(dir, f.name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := f.create(path); err != nil {
		return err
	}
	if err := os.Lchown(path, f.uid, f.gid); err != nil {
		return err
	}
	if f.target != "" {
		return nil
	}
	return syscall.Chmod(path, f.mode) // after chown, which drops setuid
}

func (f oddFile) create(path string) error {
	switch {
	case f.target != "":
		return os.Symlink(f.target, path)
	case f.isDir:
		return os.MkdirAll(path, 0o755)
	default:
		return os.WriteFile(path, []byte(f.data), 0o600)
	}
}

func (f oddFile) setTime(dir string) error {
	if f.target != "" {
		return nil // os cannot set a link's own time; it keeps that of its making
	}
	return os.Chtimes(filepath.Join(dir, f.name), f.mtime, f.mtime)
}

// writeSparse makes a file that is almost all hole.
func writeSparse(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt([]byte("at the end of the hole"), 8<<20); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// WriteNoise makes a file of bytes that neither compress nor repeat.
func WriteNoise(path string, size int64) error {
	data := make([]byte, size)
	if _, err := rand.Read(data); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}
