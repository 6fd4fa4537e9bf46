package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mig-cli/mig/scripts/lab/internal/process"
)

// lockTimeout is longer than any command takes, with everything to build.
const lockTimeout = 90 * time.Minute

// Lock keeps other lab commands of this directory waiting until unlock is called or this process ends.
func (l Lab) Lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(string(l.Place), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(l.Place.Lock(), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	said := false
	err = process.Wait(ctx, lockTimeout, "lock "+l.Place.Lock(), func() (bool, error) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return false, err
		}
		if !said {
			holder, _ := os.ReadFile(l.Place.Lock())
			l.Say("waiting for another lab command (process %s)", strings.TrimSpace(string(holder)))
			said = true
		}
		return false, nil
	})
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	_ = file.Truncate(0)
	_, _ = fmt.Fprintln(file, os.Getpid())
	return func() {
		_ = file.Truncate(0)
		_ = file.Close()
	}, nil
}
