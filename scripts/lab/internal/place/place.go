// Package place says where the lab keeps what. Everything is below one directory, outside the source tree.
package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Dir is the lab's directory.
type Dir string

// New returns $MIG_LAB, or mig-lab in the user's cache directory.
func New() (Dir, error) {
	if dir := os.Getenv("MIG_LAB"); dir != "" {
		absolute, err := filepath.Abs(dir)
		return Dir(absolute), err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", errors.Join(errors.New("no directory for the lab: set MIG_LAB to one"), err)
	}
	return Dir(filepath.Join(cache, "mig-lab")), nil
}

func (d Dir) path(elements ...string) string {
	return filepath.Join(append([]string{string(d)}, elements...)...)
}

// Bin is where the programs are.
func (d Dir) Bin() string { return d.path("bin") }

// Program is one of the programs.
func (d Dir) Program(name string) string { return d.path("bin", name) }

// Image is an image's archive.
func (d Dir) Image(name string) string { return d.path("images", name+".tar") }

// Keys is where it is written down what programs and images were made from.
func (d Dir) Keys() string { return d.path("keys") }

// Work is for what is half made. It may be removed when nobody holds the lock.
func (d Dir) Work() string { return d.path("work") }

// Modules is where Kubernetes modules of other versions are.
func (d Dir) Modules() string { return d.path("modules") }

// Lock is the file that a lab command locks.
func (d Dir) Lock() string { return d.path("lock") }

// Run is the state of everything that runs; `down` removes it.
func (d Dir) Run(elements ...string) string {
	return d.path(append([]string{"run"}, elements...)...)
}

// gone is what is left of Run while it is removed.
func (d Dir) gone() string { return d.path("run-gone") }

// RemoveRun removes Run. Whoever is killed at it leaves either all of it or nothing that could be taken for a part of a lab: a
// node without its images that says it has them never comes up.
func (d Dir) RemoveRun() error {
	if err := os.RemoveAll(d.gone()); err != nil {
		return err
	}
	if err := os.Rename(d.Run(), d.gone()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(d.gone())
}

// Kubeconfig has a context for each cluster, named like it.
func (d Dir) Kubeconfig() string { return d.path("kubeconfig") }

// KubeconfigOf is one cluster's, with a context of the same name in all of them.
func (d Dir) KubeconfigOf(cluster string) string { return d.path("kubeconfig-" + cluster) }
