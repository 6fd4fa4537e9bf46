package lab

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/mig-cli/mig/scripts/lab/internal/cluster"
	"github.com/mig-cli/mig/scripts/lab/internal/network"
	"github.com/mig-cli/mig/scripts/lab/internal/process"
	"github.com/mig-cli/mig/scripts/lab/internal/velero"
)

// Status is how the parts of the lab are.
type Status struct {
	Parts []cluster.Part
	// Memory is that of the daemons and of all processes in containers.
	Daemons, Containers int64
	// Leftovers are the lab's namespaces and links where it is not up.
	Leftovers []string
}

// Status looks at everything that was wanted last.
func (l Lab) Status(ctx context.Context) (Status, error) {
	want, up := l.wanted()
	if !up {
		return Status{Leftovers: network.Leftovers()}, nil
	}
	clusters, err := l.clusters(want, made{})
	if err != nil {
		return Status{}, err
	}
	var status Status
	for _, c := range clusters {
		status.Parts = append(status.Parts, c.ControlPlaneParts()...)
		if want.Parts >= Nodes {
			status.Parts = append(status.Parts, c.NodeParts(ctx)...)
		}
		if want.Parts >= Velero {
			status.Parts = append(status.Parts, cluster.Part{Name: c.Name + " velero", Up: velero.Velero{Cluster: c}.IsReady(ctx)})
		}
	}
	if want.Parts >= Velero {
		record, alive := velero.Store{Place: l.Place}.Daemon().Record()
		status.Parts = append(status.Parts, cluster.Part{Name: "S3 server", Up: alive, PID: record.PID})
	}
	contained := map[int]bool{}
	for _, pid := range cluster.Contained() {
		contained[pid] = true
		status.Containers += process.Memory(pid)
	}
	for _, pid := range process.Marked(cluster.Marker(l.Place)) {
		if !contained[pid] {
			status.Daemons += process.Memory(pid)
		}
	}
	return status, nil
}

// IsUp tells whether all that was wanted is up.
func (s Status) IsUp() bool {
	for _, part := range s.Parts {
		if !part.Up {
			return false
		}
	}
	return len(s.Parts) > 0
}

// Print writes the status as a table.
func (s Status) Print(to io.Writer) error {
	if len(s.Parts) == 0 {
		fmt.Fprintln(to, "the lab is down")
		for _, leftover := range s.Leftovers {
			fmt.Fprintln(to, "left over:", leftover)
		}
		return nil
	}
	table := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "PART\tSTATE\tPID")
	for _, part := range s.Parts {
		state, pid := "down", ""
		if part.Up {
			state = "up"
		}
		if part.PID != 0 {
			pid = fmt.Sprint(part.PID)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", part.Name, state, pid)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	const mib = 1 << 20
	_, err := fmt.Fprintf(to, "memory: %d MiB (%d daemons, %d containers)\n", (s.Daemons+s.Containers)/mib, s.Daemons/mib, s.Containers/mib)
	return err
}
