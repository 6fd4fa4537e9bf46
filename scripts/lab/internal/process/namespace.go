package process

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// enter moves the calling thread into a network namespace. Unlike `ip netns exec` it leaves /sys alone, where the cgroups are.
func enter(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
}

// bind moves the calling thread into a mount namespace of its own, still exchanging mounts with the host's, and makes the
// binds there.
func bind(binds []Bind) error {
	if len(binds) == 0 {
		return nil
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("mount namespace: %w", err)
	}
	for _, bind := range binds {
		// Private on the host, the place is shared within this namespace: containerd refuses propagation to a container
		// whose source lies on a mount that is not.
		if err := unix.Mount("", bind.To, "", unix.MS_SHARED, ""); err != nil {
			return fmt.Errorf("share %s: %w", bind.To, err)
		}
		if err := unix.Mount(bind.From, bind.To, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mount %s at %s: %w", bind.From, bind.To, err)
		}
	}
	return nil
}

// InNamespace calls do in a network namespace.
func InNamespace(path string, do func() error) error {
	done := make(chan error, 1)
	go func() {
		// The thread stays locked, so it ends with the goroutine and takes its namespace with it.
		runtime.LockOSThread()
		if err := enter(path); err != nil {
			done <- err
			return
		}
		done <- do()
	}()
	return <-done
}
