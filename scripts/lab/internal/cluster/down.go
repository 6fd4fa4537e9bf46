package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
		removeShimSockets(dir),
		removeCNIResults(),
		dir.RemoveRun(),
	)
}

// removeShimSockets removes the sockets of dead shims. They are where those of every containerd on this machine are, so only
// those go whose containers' states name them.
func removeShimSockets(dir place.Dir) error {
	files, _ := filepath.Glob(dir.Run("*", "*", "state", "io.containerd.runtime.v2.task", "*", "*", "address"))
	var errs []error
	for _, file := range files {
		address, err := os.ReadFile(file)
		if socket, found := strings.CutPrefix(string(address), "unix://"); err == nil && found {
			errs = append(errs, ignoreNotExist(os.Remove(strings.TrimSpace(socket))))
		}
	}
	return errors.Join(errs...)
}

// cniResults is where the CNI library keeps what it made for a pod: NETWORK-POD-INTERFACE.
const cniResults = "/var/lib/cni/results"

// cniLoopback is the network that all containerds call the same.
const cniLoopback = "cni-loopback-"

// removeCNIResults removes what is kept for pods of the lab, and of the network that all containerds call the same what
// belongs to no pod of another: a pod whose network was taken down leaves that behind, and it says nothing of whose it was.
func removeCNIResults() error {
	results, _ := filepath.Glob(filepath.Join(cniResults, "*"))
	var errs []error
	for _, result := range results {
		if isLabs(filepath.Base(result)) {
			errs = append(errs, ignoreNotExist(os.Remove(result)))
		}
	}
	others := map[string]bool{}
	results = slices.DeleteFunc(results, func(result string) bool { return isLabs(filepath.Base(result)) })
	for _, result := range results {
		if name := filepath.Base(result); !strings.HasPrefix(name, cniLoopback) {
			others[podOfResult(name)] = true
		}
	}
	for _, result := range results {
		if name := filepath.Base(result); strings.HasPrefix(name, cniLoopback) && !others[podOfResult(name)] {
			errs = append(errs, ignoreNotExist(os.Remove(result)))
		}
	}
	return errors.Join(errs...)
}

func isLabs(result string) bool { return strings.HasPrefix(result, cniNetwork("")) }

// podOfResult is the pod's id, which has no hyphen, as the interface has none; the network's name has some.
func podOfResult(name string) string {
	fields := strings.Split(name, "-")
	return fields[max(0, len(fields)-2)]
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
