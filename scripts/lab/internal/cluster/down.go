package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mig-cli/mig/scripts/lab/internal/host"
	"github.com/mig-cli/mig/scripts/lab/internal/network"
	"github.com/mig-cli/mig/scripts/lab/internal/place"
	"github.com/mig-cli/mig/scripts/lab/internal/process"
)

// DownAll ends everything that any lab of this directory ever started and removes what it left, by what is there and not
// by what should be: records may be lost, and a cluster may have had other nodes.
func DownAll(ctx context.Context, dir place.Dir) error {
	// Daemons, containers' shims and helpers first, or they would start new containers.
	marked := func() []int { return process.Marked(Marker(dir)) }
	if err := process.KillAll(ctx, marked); err != nil {
		return fmt.Errorf("end the lab's daemons: %w", err)
	}
	if err := process.KillAll(ctx, Contained); err != nil {
		return fmt.Errorf("end the lab's containers: %w", err)
	}
	if err := host.UnmountBelow(dir.Run()); err != nil {
		return err
	}
	return errors.Join(
		removeCgroups(),
		network.Remove(ctx),
		removeShimSockets(),
		removeCNIResults(),
		os.RemoveAll(dir.Run()),
	)
}

// removeShimSockets removes the sockets of dead shims. Their directory is fixed and all containerds' on this machine, so
// only those go that nobody listens on any more.
func removeShimSockets() error {
	const dir = "/run/containerd/s"
	open, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return err
	}
	sockets, _ := filepath.Glob(dir + "/*")
	var errs []error
	for _, socket := range sockets {
		if !strings.Contains(string(open), socket) {
			errs = append(errs, os.Remove(socket))
		}
	}
	return errors.Join(errs...)
}

// removeCNIResults removes what the CNI library keeps of pods' networks, in a directory that is fixed too.
func removeCNIResults() error {
	results, _ := filepath.Glob("/var/lib/cni/results/" + cniNetwork("") + "*")
	var errs []error
	for _, result := range results {
		if err := os.Remove(result); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
