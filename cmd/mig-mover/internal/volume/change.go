package volume

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/mig-cli/mig/internal/manifest"
)

// Volume is a directory that is changed. Its methods may be called at once for different paths, which are those of a manifest;
// their errors are the operating system's and name the path.
type Volume struct{ root *os.Root }

// Open opens the directory.
func Open(dir string) (*Volume, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Volume{root}, nil
}

// Close lets go of the directory.
func (v *Volume) Close() error { return v.root.Close() }

// Remove removes what is at the path with all that is below it, or nothing.
func (v *Volume) Remove(path manifest.Text) error { return v.root.RemoveAll(string(path)) }

// MakeDirectory makes a directory that only its owner can enter until [Volume.SetAttributes].
func (v *Volume) MakeDirectory(path manifest.Text) error { return v.root.Mkdir(string(path), 0o700) }

// MakeSymlink makes a symlink to any target.
func (v *Volume) MakeSymlink(path, target manifest.Text) error {
	return v.root.Symlink(string(target), string(path))
}

// MakeLink gives the file at existing one more name.
func (v *Volume) MakeLink(existing, path manifest.Text) error {
	return v.root.Link(string(existing), string(path))
}

// MakeSpecial makes a FIFO, a socket or a device.
func (v *Volume) MakeSpecial(entry manifest.Entry) error {
	types := map[manifest.Type]uint32{
		manifest.FIFO: unix.S_IFIFO, manifest.Socket: unix.S_IFSOCK, manifest.CharDevice: unix.S_IFCHR, manifest.BlockDevice: unix.S_IFBLK,
	}
	return v.at("mknod", entry.Path, func(dir int, name string) error {
		return unix.Mknodat(dir, name, types[entry.Type]|0o600, int(entry.Device))
	})
}

// Create makes a file that must not be there, which only its owner can open.
func (v *Volume) Create(path manifest.Text) (*os.File, error) {
	return v.root.OpenFile(string(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// Read opens a file that is there.
func (v *Volume) Read(path manifest.Text) (*os.File, error) {
	return v.root.OpenFile(string(path), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
}

// SetAttributes gives what is at the path the owner, mode and, if asked to, exactly the extended attributes of the entry. The
// time is left to [Volume.SetTime]. It reports if anything was to be changed.
//
// The order matters: a change of owner takes setuid and capabilities away, and a change of mode is one of an access list too.
func (v *Volume) SetAttributes(want manifest.Entry, xattrs bool) (changed bool, err error) {
	err = v.at("set attributes of", want.Path, func(dir int, name string) error {
		var stat unix.Stat_t
		if err := unix.Fstatat(dir, name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		chown := stat.Uid != want.UID || stat.Gid != want.GID
		if chown {
			changed = true
			if err := unix.Fchownat(dir, name, int(want.UID), int(want.GID), unix.AT_SYMLINK_NOFOLLOW); err != nil {
				return fmt.Errorf("owner: %w", err)
			}
		}
		file := fmt.Sprintf("/proc/self/fd/%d/%s", dir, name)
		if xattrs {
			set, err := setXattrs(file, want.Xattrs)
			if err != nil {
				return err
			}
			changed = changed || set
		}
		if want.Type == manifest.Symlink {
			return nil
		}
		if err := unix.Fstatat(dir, name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		if stat.Mode&0o7777 == want.Mode {
			return nil
		}
		changed = true
		if err := unix.Fchmodat(dir, name, want.Mode, 0); err != nil {
			return fmt.Errorf("mode: %w", err)
		}
		return nil
	})
	return changed, err
}

// SetTime sets the time of the last change, in nanoseconds since 1970. It reports if it was another.
func (v *Volume) SetTime(path manifest.Text, mtime int64) (changed bool, err error) {
	err = v.at("set time of", path, func(dir int, name string) error {
		var stat unix.Stat_t
		if err := unix.Fstatat(dir, name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		if nanoseconds(stat.Mtim) == mtime {
			return nil
		}
		changed = true
		times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(mtime)}
		return unix.UtimesNanoAt(dir, name, times, unix.AT_SYMLINK_NOFOLLOW)
	})
	return changed, err
}

// Sync returns when all that was written to the file system is on its disk.
func (v *Volume) Sync() error {
	dir, err := v.root.Open(manifest.Root)
	if err != nil {
		return err
	}
	defer dir.Close()
	return os.NewSyscallError("syncfs", unix.Syncfs(int(dir.Fd())))
}

// at calls with the open directory that the path is in, since what os.Root cannot do is done by name in a directory.
func (v *Volume) at(op string, file manifest.Text, call func(dir int, name string) error) error {
	parent, name := path.Dir(string(file)), path.Base(string(file))
	dir, err := v.root.Open(parent)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := call(int(dir.Fd()), name); err != nil {
		return &os.PathError{Op: op, Path: string(file), Err: err}
	}
	return nil
}

func setXattrs(file string, want []manifest.Xattr) (changed bool, err error) {
	have, err := readXattrs(file)
	if err != nil {
		return false, fmt.Errorf("extended attributes: %w", err)
	}
	values := map[manifest.Text][]byte{}
	for _, attribute := range have {
		values[attribute.Name] = attribute.Value
	}
	for _, attribute := range want {
		value, there := values[attribute.Name]
		delete(values, attribute.Name)
		if there && bytes.Equal(value, attribute.Value) {
			continue
		}
		changed = true
		if err := unix.Lsetxattr(file, string(attribute.Name), attribute.Value, 0); err != nil {
			return changed, fmt.Errorf("extended attribute %s: %w", attribute.Name, err)
		}
	}
	for name := range values {
		changed = true
		if err := unix.Lremovexattr(file, string(name)); err != nil && !errors.Is(err, unix.ENODATA) {
			return changed, fmt.Errorf("extended attribute %s: %w", name, err)
		}
	}
	return changed, nil
}

// hole is the least that is left out of a sparse file: what file systems allocate at once.
const hole = 4096

// WriteContent writes all of from into a file that is empty, with the kernel's holes where it is sparse and there are zeros.
// Its errors are from's or the file's.
func WriteContent(to *os.File, from io.Reader, sparse bool) (size int64, err error) {
	buffer := make([]byte, 1<<18)
	for {
		count, readErr := io.ReadFull(from, buffer)
		for at := 0; at < count; {
			end := run(buffer[:count], at, sparse)
			if !sparse || !zero(buffer[at:end]) {
				if _, err := to.WriteAt(buffer[at:end], size+int64(at)); err != nil {
					return size, err
				}
			}
			at = end
		}
		size += int64(count)
		if errors.Is(readErr, io.EOF) || errors.Is(readErr, io.ErrUnexpectedEOF) {
			return size, to.Truncate(size) // a hole at the end is written by no one
		}
		if readErr != nil {
			return size, readErr
		}
	}
}

// run is where blocks that are all zero, or all not, end.
func run(buffer []byte, at int, sparse bool) int {
	if !sparse {
		return len(buffer)
	}
	first := zero(buffer[at:min(at+hole, len(buffer))])
	end := at
	for end < len(buffer) {
		next := min(end+hole, len(buffer))
		if zero(buffer[end:next]) != first {
			return end
		}
		end = next
	}
	return end
}

func zero(block []byte) bool {
	var none [hole]byte
	for len(block) > hole {
		if !bytes.Equal(block[:hole], none[:]) {
			return false
		}
		block = block[hole:]
	}
	return bytes.Equal(block, none[:len(block)])
}
