package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// RemoveAll removes a directory after unmounting what is mounted below it: a /proc that a killed debootstrap left there,
// or a volume, must not be emptied through its mount point.
func RemoveAll(dir string) error {
	if err := UnmountBelow(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// UnmountBelow unmounts everything at or below a directory, the innermost first.
func UnmountBelow(dir string) error {
	var errs []error
	// What a propagated mount hid comes to light when it goes, so look until there is nothing.
	for range 10 {
		content, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			return err
		}
		points := mountsBelow(string(content), dir)
		if len(points) == 0 {
			return nil
		}
		errs = nil
		for _, point := range points {
			if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
				errs = append(errs, fmt.Errorf("unmount %s: %w", point, err))
			}
		}
	}
	return errors.Join(append(errs, fmt.Errorf("there are still mounts below %s", dir))...)
}

func mountsBelow(mountinfo, dir string) []string {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var points []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		if point := unescape.Replace(fields[4]); point == dir || strings.HasPrefix(point, filepath.Clean(dir)+"/") {
			points = append(points, point)
		}
	}
	slices.Reverse(points) // mounted last, unmounted first
	return points
}

// IsMounted tells whether something is mounted at a path.
func IsMounted(path string) (bool, error) {
	content, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, err
	}
	return slices.Contains(mountsBelow(string(content), path), path), nil
}
