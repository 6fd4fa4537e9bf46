package labtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
)

// File is what an inode says, and a digest of what it holds.
type File struct {
	Mode   fs.FileMode // with the type and the setuid, setgid and sticky bits
	UID    uint32
	GID    uint32
	Size   int64 // of regular files
	MTime  int64 // nanoseconds since 1970
	Target string
	Sum    string
}

// Manifest is every file of a volume by its path; the volume itself is ".".
type Manifest map[string]File

// Files reads a directory. A file that goes away while it is read is an error:
// a manifest of something that moves proves nothing.
func Files(dir string) (Manifest, error) {
	m := Manifest{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		m[name], err = readFile(path)
		return err
	})
	return m, err
}

func readFile(path string) (File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return File{}, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return File{}, fmt.Errorf("%s: this system does not tell a file's owner", path)
	}
	f := File{Mode: info.Mode(), UID: stat.Uid, GID: stat.Gid, MTime: info.ModTime().UnixNano()}
	switch {
	case info.Mode().IsRegular():
		f.Size = info.Size()
		f.Sum, err = sum(path)
	case info.Mode()&fs.ModeSymlink != 0:
		f.Target, err = os.Readlink(path)
	}
	return f, err
}

func sum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Without is the manifest without the named paths and what is below them.
func (m Manifest) Without(paths ...string) Manifest {
	out := maps.Clone(m)
	maps.DeleteFunc(out, func(name string, _ File) bool {
		return slices.ContainsFunc(paths, func(p string) bool { return name == p || strings.HasPrefix(name, p+"/") })
	})
	return out
}

// Bytes is the size of all regular files.
func (m Manifest) Bytes() int64 {
	var n int64
	for _, f := range m {
		n += f.Size
	}
	return n
}

// SameAs says how a copy differs, file by file; nil: it does not. Left out of
// the comparison are the times of directories and of symbolic links, which
// kopia does not carry: it restores a directory with the newest time of what is
// in it (kopia snapshot/upload), a link with a thousandth of its own.
func (m Manifest) SameAs(copied Manifest) error {
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		got, ok := copied[name]
		if !ok {
			differ = append(differ, fmt.Sprintf("%q is missing", name))
			continue
		}
		if why := m[name].differs(got); why != "" {
			differ = append(differ, fmt.Sprintf("%q: %s", name, why))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(copied)) {
		if _, ok := m[name]; !ok {
			differ = append(differ, fmt.Sprintf("%q was not there before", name))
		}
	}
	return listed("files differ", differ)
}

func (f File) differs(got File) string {
	want := f
	if !f.Mode.IsRegular() {
		want.MTime, got.MTime = 0, 0
	}
	if want == got {
		return ""
	}
	return fmt.Sprintf("was %s, is %s", f, got)
}

// String is like a line of ls.
func (f File) String() string {
	s := fmt.Sprintf("%s %d:%d %d bytes %s", f.Mode, f.UID, f.GID, f.Size, time.Unix(0, f.MTime).UTC().Format("2006-01-02T15:04:05.000000000"))
	if f.Target != "" {
		s += " -> " + f.Target
	}
	if f.Sum != "" {
		s += " sha256:" + f.Sum[:8]
	}
	return s
}

// listed makes one error of many findings, with the first ten in words.
func listed(what string, findings []string) error {
	if len(findings) == 0 {
		return nil
	}
	shown := findings
	if len(shown) > 10 {
		shown = append(slices.Clone(shown[:10]), fmt.Sprintf("and %d more", len(findings)-10))
	}
	return fmt.Errorf("%s (%d):\n  %s", what, len(findings), strings.Join(shown, "\n  "))
}

// VolumeDir is the directory of this machine that a bound claim's data is in:
// the lab's volumes are local ones, and its nodes are this machine.
func VolumeDir(ctx context.Context, c *cluster.Cluster, namespace, claim string) (string, error) {
	var pvc corev1.PersistentVolumeClaim
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: claim}, &pvc); err != nil {
		return "", err
	}
	if pvc.Status.Phase != corev1.ClaimBound {
		return "", fmt.Errorf("claim %s/%s is %s", namespace, claim, pvc.Status.Phase)
	}
	var pv corev1.PersistentVolume
	if err := c.Get(ctx, client.ObjectKey{Name: pvc.Spec.VolumeName}, &pv); err != nil {
		return "", err
	}
	if pv.Spec.Local == nil {
		return "", fmt.Errorf("volume %s of claim %s/%s is not a local one", pv.Name, namespace, claim)
	}
	return pv.Spec.Local.Path, nil
}

// FilesOf is the manifest of every claim of a namespace, by the claim's name.
func FilesOf(ctx context.Context, c *cluster.Cluster, namespace string) (map[string]Manifest, error) {
	var claims corev1.PersistentVolumeClaimList
	if err := c.List(ctx, &claims, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	out := map[string]Manifest{}
	for _, claim := range claims.Items {
		dir, err := VolumeDir(ctx, c, namespace, claim.Name)
		if err != nil {
			return nil, err
		}
		if out[claim.Name], err = Files(dir); err != nil {
			return nil, err
		}
	}
	return out, nil
}
