// Package labtest is what the demo and the end-to-end tests share: it finds
// the lab, puts an application with awkward data on it, runs mig as a person
// would, and compares what was there before with what is there after.
// It judges by what clusters and volumes hold; of mig's inside it knows the
// names that mig gives to objects, and nothing else.
package labtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/mig-cli/mig/internal/cluster"
)

// The contexts of the lab's kubeconfig.
const (
	SourceContext      = "src"
	DestinationContext = "dst"
)

// VeleroNamespace is where the lab keeps Velero, on both clusters.
const VeleroNamespace = "velero"

// Lab is two clusters on this machine, made by scripts/lab.
type Lab struct {
	Home        string // its state: binaries, kubeconfig, volumes
	Kubeconfig  string
	Source      cluster.Source
	Destination cluster.Destination

	held *os.File
}

// Find finds the lab: in $MIG_LAB, else in the user's cache. It dials nothing.
func Find() (*Lab, error) {
	home, err := Home()
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(home, "kubeconfig")
	if _, err := os.Stat(kubeconfig); err != nil {
		return nil, fmt.Errorf("the lab is not up: %w; start it with: make lab-up", err)
	}
	l := &Lab{Home: home, Kubeconfig: kubeconfig}
	src, err := l.connect(SourceContext)
	if err != nil {
		return nil, err
	}
	dst, err := l.connect(DestinationContext)
	if err != nil {
		return nil, err
	}
	l.Source, l.Destination = cluster.Source{Cluster: src}, cluster.Destination{Cluster: dst}
	return l, nil
}

func (l *Lab) connect(context string) (*cluster.Cluster, error) {
	return cluster.Connect(cluster.Access{Kubeconfig: l.Kubeconfig, Context: context}, VeleroNamespace)
}

// Hold keeps the lab for this process until it ends, and waits while another
// has it: two at once would clear away each other's namespaces.
func (l *Lab) Hold(waiting func()) error {
	f, err := os.OpenFile(filepath.Join(l.Home, "in-use"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		waiting()
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return fmt.Errorf("lock of the lab %s: %w", f.Name(), err)
	}
	l.held = f // closing it would let go
	return nil
}

// Both are the two clusters, the source first.
func (l *Lab) Both() []*cluster.Cluster {
	return []*cluster.Cluster{l.Source.Cluster, l.Destination.Cluster}
}

// Home is where the lab keeps its state: $MIG_LAB, else mig-lab in the user's cache.
func Home() (string, error) {
	if home := os.Getenv("MIG_LAB"); home != "" {
		return filepath.Abs(home)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "mig-lab"), nil
}

// Environ is the environment of this process with the lab's kubeconfig and
// with its kubectl and velero first in the path.
func (l *Lab) Environ() []string {
	bin := filepath.Join(l.Home, "bin")
	return append(os.Environ(),
		"KUBECONFIG="+l.Kubeconfig,
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}
