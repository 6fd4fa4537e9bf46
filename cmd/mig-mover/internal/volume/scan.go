// Package volume reads a directory entry by entry, and changes it, without ever following a symlink out of it: what is in a
// volume is not ours, and may be written to by others while it is read.
package volume

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/mig-cli/mig/internal/manifest"
)

// LostFound is what file systems of the ext family have in their root. It is the file system's and no one's data: it is neither
// read nor written nor removed.
const LostFound = "lost+found"

// Entry is an entry of a volume, and which inode it is.
type Entry struct {
	manifest.Entry
	Inode Inode
	// Links is how many names the inode has, in this directory or elsewhere.
	Links uint64
}

// Inode names a file whatever its path.
type Inode struct{ Device, Number uint64 }

// ScanOptions say how to read a volume.
type ScanOptions struct {
	// Hash reads all contents.
	Hash bool
	// Parallel is how many files are read at once; at least one.
	Parallel int
	// Read is told of each piece of content that was read, in bytes, by several at once. It may be nil.
	Read func(bytes int)
}

// Scan calls emit with all that is in the directory, in the manifest's order and one after the other. It returns how many
// entries went away while they were being read. Its errors are emit's, the context's, and those of reading.
func Scan(ctx context.Context, root string, options ScanOptions, emit func(Entry) error) (gone int64, err error) {
	s := scanner{
		options: options,
		ordered: make(chan *found, 1024),
		hash:    make(chan *found, 2*max(options.Parallel, 1)),
		first:   map[Inode]manifest.Text{},
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(s.ordered)
		defer close(s.hash)
		return s.walkRoot(ctx, root)
	})
	for range max(options.Parallel, 1) {
		group.Go(func() error {
			for entry := range s.hash {
				entry.err = s.readContent(ctx, entry)
				close(entry.done)
			}
			return nil
		})
	}
	group.Go(func() error {
		for entry := range s.ordered {
			select {
			case <-entry.done:
			case <-ctx.Done():
				return ctx.Err()
			}
			if entry.err != nil {
				return fmt.Errorf("read %q: %w", string(entry.Path), entry.err)
			}
			if err := emit(entry.Entry); err != nil {
				return err
			}
		}
		return nil
	})
	err = group.Wait()
	return s.gone, err
}

type scanner struct {
	options ScanOptions
	ordered chan *found
	hash    chan *found
	first   map[Inode]manifest.Text // the first name of each inode that has several
	gone    int64
}

// found is an entry whose content may still be being read.
type found struct {
	Entry
	content *os.File
	done    chan struct{}
	err     error
}

func (s *scanner) walkRoot(ctx context.Context, root string) error {
	dir, err := os.OpenFile(root, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &stat); err != nil {
		return &os.PathError{Op: "stat", Path: root, Err: err}
	}
	entry := entryOf(manifest.Root, stat)
	if entry.Xattrs, err = readXattrs(fmt.Sprintf("/proc/self/fd/%d/.", dir.Fd())); err != nil {
		return &os.PathError{Op: "listxattr", Path: root, Err: err}
	}
	if err := s.send(ctx, &found{Entry: entry}); err != nil {
		return err
	}
	return s.walk(ctx, dir, "")
}

func (s *scanner) send(ctx context.Context, entry *found) error {
	entry.done = make(chan struct{})
	if entry.content == nil {
		close(entry.done)
	}
	select {
	case s.ordered <- entry:
	case <-ctx.Done():
		return ctx.Err()
	}
	if entry.content == nil {
		return nil
	}
	select {
	case s.hash <- entry:
		return nil
	case <-ctx.Done():
		return errors.Join(ctx.Err(), entry.content.Close())
	}
}

func (s *scanner) walk(ctx context.Context, dir *os.File, prefix string) error {
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch err := s.visit(ctx, dir, prefix, name); {
		case errors.Is(err, unix.ENOENT):
			s.gone++
		case err != nil:
			return err
		}
	}
	return nil
}

func (s *scanner) visit(ctx context.Context, dir *os.File, prefix, name string) error {
	path := prefix + name
	var stat unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	entry := &found{Entry: entryOf(path, stat)}
	if prefix == "" && name == LostFound && entry.Type == manifest.Directory {
		return nil
	}
	if !entry.known() {
		return &os.PathError{Op: "stat", Path: path, Err: fmt.Errorf("mode %o is of no known type", stat.Mode)}
	}
	var err error
	if entry.Xattrs, err = readXattrs(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)); err != nil {
		return &os.PathError{Op: "listxattr", Path: path, Err: err}
	}
	switch entry.Type {
	case manifest.Symlink:
		target, err := readlinkat(int(dir.Fd()), name)
		if err != nil {
			return &os.PathError{Op: "readlink", Path: path, Err: err}
		}
		entry.Target = manifest.Text(target)
	case manifest.File:
		s.linked(entry)
		if s.options.Hash {
			if entry.content, err = openContent(int(dir.Fd()), name, path); err != nil {
				return err
			}
		}
	case manifest.Directory:
		child, err := openDirectory(int(dir.Fd()), name, path)
		if err != nil {
			return err
		}
		defer child.Close()
		if err := s.send(ctx, entry); err != nil {
			return err
		}
		return s.walk(ctx, child, path+"/")
	}
	return s.send(ctx, entry)
}

func (s *scanner) linked(entry *found) {
	if entry.Links < 2 {
		return
	}
	if first, there := s.first[entry.Inode]; there {
		entry.HardLink = first
		return
	}
	s.first[entry.Inode] = entry.Path
}

// readContent hashes the file, and says if it changed meanwhile.
func (s *scanner) readContent(ctx context.Context, entry *found) error {
	defer entry.content.Close()
	sum := sha256.New()
	buffer := make([]byte, 1<<18)
	var size int64
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		count, err := entry.content.Read(buffer)
		sum.Write(buffer[:count])
		size += int64(count)
		if s.options.Read != nil {
			s.options.Read(count)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	entry.Hash = sum.Sum(nil)
	var stat unix.Stat_t
	if err := unix.Fstat(int(entry.content.Fd()), &stat); err != nil {
		return err
	}
	entry.Changed = size != entry.Size || stat.Size != entry.Size || nanoseconds(stat.Mtim) != entry.MTime
	return nil
}

// entryOf is what stat says, and its type "" if it says nothing that is known.
func entryOf(path string, stat unix.Stat_t) Entry {
	entry := Entry{
		Entry: manifest.Entry{
			Path: manifest.Text(path), Mode: stat.Mode & 0o7777, UID: stat.Uid, GID: stat.Gid, MTime: nanoseconds(stat.Mtim),
		},
		Inode: Inode{Device: stat.Dev, Number: stat.Ino},
		Links: uint64(stat.Nlink), //nolint:unconvert // of another type on other architectures
	}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		entry.Type, entry.Size = manifest.File, stat.Size
		entry.Sparse = stat.Blocks*512 < stat.Size
	case unix.S_IFDIR:
		entry.Type = manifest.Directory
	case unix.S_IFLNK:
		entry.Type, entry.Mode = manifest.Symlink, 0
	case unix.S_IFIFO:
		entry.Type = manifest.FIFO
	case unix.S_IFSOCK:
		entry.Type = manifest.Socket
	case unix.S_IFCHR:
		entry.Type, entry.Device = manifest.CharDevice, stat.Rdev
	case unix.S_IFBLK:
		entry.Type, entry.Device = manifest.BlockDevice, stat.Rdev
	}
	return entry
}

func (f *found) known() bool { return f.Type != "" }

func nanoseconds(time unix.Timespec) int64 { return time.Nano() }

func openDirectory(dir int, name, path string) (*os.File, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openContent opens what was a regular file a moment ago, and does not wait if it has become a FIFO. The time of the last access
// stays as it is where we may leave it.
func openContent(dir int, name, path string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, name, flags|unix.O_NOATIME, 0)
	if errors.Is(err, unix.EPERM) {
		fd, err = unix.Openat(dir, name, flags, 0)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

func readlinkat(dir int, name string) (string, error) {
	for size := 256; ; size *= 2 {
		buffer := make([]byte, size)
		count, err := unix.Readlinkat(dir, name, buffer)
		if err != nil {
			return "", err
		}
		if count < size {
			return string(buffer[:count]), nil
		}
	}
}

// carried says which extended attributes are a volume's content. Labels and measurements of the node's security modules are not:
// another node gives its own.
func carried(name string) bool {
	switch name {
	case "security.capability", "system.posix_acl_access", "system.posix_acl_default":
		return true
	}
	return strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "trusted.")
}

func readXattrs(path string) ([]manifest.Xattr, error) {
	names, err := grow(func(to []byte) (int, error) { return unix.Llistxattr(path, to) })
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil // a file system without them
	}
	if err != nil {
		return nil, err
	}
	var attributes []manifest.Xattr
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if !carried(name) {
			continue
		}
		value, err := grow(func(to []byte) (int, error) { return unix.Lgetxattr(path, name, to) })
		if errors.Is(err, unix.ENODATA) {
			continue // went away between the two calls
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		attributes = append(attributes, manifest.Xattr{Name: manifest.Text(name), Value: value})
	}
	slices.SortFunc(attributes, func(a, b manifest.Xattr) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return attributes, nil
}

// grow calls for a value whose size may change between asking for it and fetching it.
func grow(call func([]byte) (int, error)) ([]byte, error) {
	for {
		size, err := call(nil)
		if err != nil || size == 0 {
			return nil, err
		}
		value := make([]byte, size)
		if size, err = call(value); !errors.Is(err, unix.ERANGE) {
			return value[:max(size, 0)], err
		}
	}
}
