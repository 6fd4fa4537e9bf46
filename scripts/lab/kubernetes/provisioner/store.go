package provisioner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// store keeps volumes as base/NODE/NAME. A sized one has its file system in base/NODE/NAME.img, mounted there.
type store struct{ base string }

// smallestImage is what mkfs.ext4 still makes something useful of.
const smallestImage = 4 << 20

func (s store) holds(path string) bool {
	return filepath.Dir(filepath.Dir(path)) == filepath.Clean(s.base)
}

// make returns the directory for a volume, which any user may write to, as with most provisioners.
func (s store) make(node, name string) (string, error) {
	path := filepath.Join(s.base, node, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", err
	}
	return path, os.Chmod(path, 0o777) // not by MkdirAll: the umask
}

// makeSized returns a directory that holds as many bytes as asked for, and says ENOSPC to more.
func (s store) makeSized(ctx context.Context, node, name string, size int64) (string, error) {
	path := filepath.Join(s.base, node, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", err
	}
	if _, err := os.Stat(imageOf(path)); errors.Is(err, fs.ErrNotExist) {
		if err := makeImage(ctx, imageOf(path), max(size, smallestImage)); err != nil {
			return "", err
		}
	}
	if err := s.mount(ctx, path); err != nil {
		return "", err
	}
	// Nobody looks for lost files here, and an initdb or a restore into the volume's root wants it empty.
	_ = os.Remove(filepath.Join(path, "lost+found"))
	return path, os.Chmod(path, 0o777)
}

func imageOf(path string) string { return path + ".img" }

// makeImage appears under its name only when it is whole.
func makeImage(ctx context.Context, image string, size int64) error {
	partial := image + ".partial"
	file, err := os.Create(partial)
	if err != nil {
		return err
	}
	err = file.Truncate(size)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := command(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal", partial); err != nil {
		return err
	}
	return os.Rename(partial, image)
}

// mount mounts a volume that has an image and is not mounted.
func (s store) mount(ctx context.Context, path string) error {
	if _, err := os.Stat(imageOf(path)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	mounted, err := isMounted(path)
	if err != nil || mounted {
		return err
	}
	return command(ctx, "mount", "-o", "loop", imageOf(path), path)
}

func isMounted(path string) (bool, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == path {
			return true, nil
		}
	}
	return false, nil
}

func (s store) remove(path string) error {
	mounted, err := isMounted(path)
	if err != nil {
		return err
	}
	if mounted {
		if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
	return errors.Join(os.RemoveAll(imageOf(path)), os.RemoveAll(imageOf(path)+".partial"), os.RemoveAll(path))
}

func command(ctx context.Context, name string, args ...string) error {
	if output, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(output))
	}
	return nil
}
