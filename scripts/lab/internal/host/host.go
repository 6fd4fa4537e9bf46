// Package host tells whether this machine can carry the lab, and installs the Debian packages that it lacks.
package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// A tool is a program that the lab calls and the Debian package that has it.
type tool struct{ path, deb string }

var (
	running = []tool{
		{"ip", "iproute2"},
		{"mount", "mount"},
	}
	nodes = []tool{
		{"containerd", "containerd"},
		{"ctr", "containerd"},
		{"runc", "runc"},
		{"/usr/lib/cni/bridge", "containernetworking-plugins"},
		{"iptables", "iptables"},
		{"conntrack", "conntrack"},
		{"mkfs.ext4", "e2fsprogs"},
		{"busybox", "busybox-static"},
		{"debootstrap", "debootstrap"},
	}
)

// CheckRoot returns an error on a machine or as a user with which the lab cannot work at all.
func CheckRoot() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("the lab needs Linux (network namespaces, cgroups, containerd), and this is %s: run it in a Linux machine or VM", runtime.GOOS)
	}
	if os.Geteuid() != 0 {
		return errors.New("the lab needs root, for network namespaces, mounts and containers: run it again with sudo")
	}
	return nil
}

// CheckDisk returns an error when the file system of dir has less room than wanted.
func CheckDisk(dir string, wanted uint64) error {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return fmt.Errorf("file system of %s: %w", dir, err)
	}
	const gib = 1 << 30
	if free := stat.Bavail * uint64(stat.Bsize); free < wanted {
		return fmt.Errorf("%s has %.1f GiB of disk left and the lab wants %.1f: free some, or set MIG_LAB to a directory elsewhere",
			dir, float64(free)/gib, float64(wanted)/gib)
	}
	return nil
}

// EnsureTools installs the Debian packages of what is missing: little for control planes, more for nodes.
func EnsureTools(ctx context.Context, withNodes bool, say func(string, ...any)) error {
	wanted := running
	if withNodes {
		wanted = append(slices.Clip(wanted), nodes...)
	}
	missing := missingPackages(wanted)
	if len(missing) == 0 {
		return nil
	}
	names := strings.Join(missing, " ")
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("the lab needs what these Debian packages have, and there is no apt-get to install them: %s", names)
	}
	say("installing Debian packages: %s", names)
	for _, args := range [][]string{
		{"update", "-q"},
		append([]string{"install", "-y", "-q", "--no-install-recommends"}, missing...),
	} {
		command := exec.CommandContext(ctx, "apt-get", args...)
		command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("install what the lab needs (%s): apt-get %s: %w\n%s", names, args[0], err, output)
		}
	}
	if missing := missingPackages(wanted); len(missing) > 0 {
		return fmt.Errorf("still missing after apt-get install: %s", strings.Join(missing, " "))
	}
	return nil
}

func missingPackages(tools []tool) []string {
	var missing []string
	seen := map[string]bool{}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool.path); err != nil && !seen[tool.deb] {
			seen[tool.deb] = true
			missing = append(missing, tool.deb)
		}
	}
	return missing
}
