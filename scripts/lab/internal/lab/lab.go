// Package lab is what the command does: it brings up the clusters part by part, takes them down and says how they are.
package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/mig-cli/mig/scripts/lab/internal/build"
	"github.com/mig-cli/mig/scripts/lab/internal/cluster"
	"github.com/mig-cli/mig/scripts/lab/internal/host"
	"github.com/mig-cli/mig/scripts/lab/internal/image"
	"github.com/mig-cli/mig/scripts/lab/internal/network"
	"github.com/mig-cli/mig/scripts/lab/internal/place"
	"github.com/mig-cli/mig/scripts/lab/internal/process"
	"github.com/mig-cli/mig/scripts/lab/internal/velero"
)

// Parts is how much of the clusters is wanted. Each value includes the ones before it.
type Parts int

// What can be up.
const (
	ControlPlane Parts = iota
	Nodes
	Velero
)

var partNames = []string{"control-plane", "nodes", "velero"}

func (p Parts) String() string { return partNames[p] }

// ParseParts reads the name of what is wanted.
func ParseParts(name string) (Parts, error) {
	if at := slices.Index(partNames, name); at >= 0 {
		return Parts(at), nil
	}
	return 0, fmt.Errorf("no parts %q: one of %s", name, strings.Join(partNames, ", "))
}

// Want is what is to be up. It is written down, so that status knows what is missing.
type Want struct {
	Parts    Parts    `json:"parts"`
	Clusters []string `json:"clusters"`
	// Kubernetes is the version of Kubernetes by cluster, where it is not the repository's.
	Kubernetes map[string]string `json:"kubernetes,omitempty"`
}

// Lab is the lab in its directory.
type Lab struct {
	Place place.Dir
	Say   func(string, ...any)
}

// made is everything that was built.
type made struct {
	kubernetes map[string]string // key of the build, by version
	s3         string
	velero     string
	plugin     string

	nodeImages   []image.Archive
	veleroImages []image.Archive
}

const (
	gib = 1 << 30
	// coldDisk is what building everything takes, most of it in Go's build cache; warmDisk is for the clusters' state.
	coldDisk, warmDisk = 12 * gib, 3 * gib

	postgresUID = 999
	// socketRoom is what the kernel allows for a socket's path, less the part below the lab's directory.
	socketRoom = 107 - len("/run/dst/dst-node-1/containerd.sock.ttrpc")
)

// Up brings up what is wanted and not there. It may be called again at any time, also after it was killed.
func (l Lab) Up(ctx context.Context, want Want) error {
	if err := l.checkAlone(); err != nil {
		return err
	}
	if err := l.check(ctx, want); err != nil {
		return err
	}
	if err := l.startAnewAfterBoot(ctx); err != nil {
		return err
	}
	want = l.withFormer(want)
	made, err := l.build(ctx, want)
	if err != nil {
		return err
	}
	if err := l.remember(want); err != nil {
		return err
	}
	clusters, err := l.clusters(want, made)
	if err != nil {
		return err
	}
	if err := l.network(ctx); err != nil {
		return err
	}
	// Before anything starts: with them a person can look at what does not come up.
	if err := cluster.WriteKubeconfigs(clusters); err != nil {
		return err
	}
	if err := eachOf(clusters, func(c cluster.Cluster) error { return l.upCluster(ctx, c, want, made) }); err != nil {
		return err
	}
	if want.Parts >= Velero {
		return l.upVelero(ctx, clusters, made)
	}
	return nil
}

// checkAlone returns an error when another directory's lab runs: the addresses and the names of namespaces and cgroups are
// the same for all.
func (l Lab) checkAlone() error {
	for _, owner := range process.Owners() {
		if owner != string(l.Place) {
			return fmt.Errorf("this machine has a lab already, in %s: use it, or take it down with `MIG_LAB=%s lab down`", owner, owner)
		}
	}
	return nil
}

func (l Lab) check(ctx context.Context, want Want) error {
	if len(l.Place) > socketRoom {
		return fmt.Errorf("the path %s is too long for sockets below it: set MIG_LAB to one of at most %d characters", l.Place, socketRoom)
	}
	if err := os.MkdirAll(string(l.Place), 0o755); err != nil {
		return err
	}
	wanted := uint64(warmDisk)
	if _, err := os.Stat(l.Place.Keys()); errors.Is(err, os.ErrNotExist) {
		wanted = coldDisk
	}
	if err := host.CheckDisk(string(l.Place), wanted); err != nil {
		return err
	}
	return host.EnsureTools(ctx, want.Parts >= Nodes, l.Say)
}

func (l Lab) network(ctx context.Context) error {
	addresses := []string{cluster.S3Address}
	for _, spec := range cluster.Specs {
		addresses = append(addresses, spec.APIAddress())
	}
	return network.EnsureHost(ctx, addresses...)
}

func (l Lab) upCluster(ctx context.Context, c cluster.Cluster, want Want, made made) error {
	if err := c.UpControlPlane(ctx); err != nil {
		return err
	}
	l.Say("%s: API server is ready", c.Name)
	if want.Parts < Nodes {
		return nil
	}
	if err := c.UpNodes(ctx, made.nodeImages); err != nil {
		return err
	}
	return c.UpAddons(ctx)
}

func (l Lab) upVelero(ctx context.Context, clusters []cluster.Cluster, made made) error {
	store := velero.Store{Place: l.Place, Version: made.s3}
	if err := store.Up(ctx); err != nil {
		return err
	}
	return eachOf(clusters, func(c cluster.Cluster) error {
		return velero.Velero{Cluster: c, Store: store, Version: made.velero, Plugin: made.plugin, Images: made.veleroImages}.Up(ctx)
	})
}

// clusters are those wanted, with what they run.
func (l Lab) clusters(want Want, made made) ([]cluster.Cluster, error) {
	var clusters []cluster.Cluster
	for _, name := range want.Clusters {
		at := slices.IndexFunc(cluster.Specs, func(s cluster.Spec) bool { return s.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("no cluster %q in the lab: src, dst or both", name)
		}
		version := want.Kubernetes[name]
		clusters = append(clusters, cluster.Cluster{
			Spec:    cluster.Specs[at],
			Place:   l.Place,
			Program: l.Place.Program(build.KubernetesProgram(version)),
			Version: made.kubernetes[version],
			Say:     l.Say,
		})
	}
	return clusters, nil
}

// startAnewAfterBoot removes the state of a lab that the machine's end took down: its namespaces and mounts are gone, and
// etcd, which does not wait for the disk here, may have lost any part of its data.
func (l Lab) startAnewAfterBoot(ctx context.Context) error {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return err
	}
	file := l.Place.Run("boot")
	before, err := os.ReadFile(file)
	if err == nil && string(before) != string(boot) {
		l.Say("the machine was started since the lab was: removing what is left, and beginning anew")
		if err := l.Down(ctx); err != nil {
			return err
		}
	}
	return process.WriteFile(file, boot, 0o644)
}

func (l Lab) wantFile() string { return l.Place.Run("want.json") }

// withFormer adds what was wanted before: `up` never takes anything down.
func (l Lab) withFormer(want Want) Want {
	if before, ok := l.wanted(); ok {
		return merge(before, want)
	}
	return want
}

func (l Lab) remember(want Want) error {
	content, err := json.Marshal(want)
	if err != nil {
		return err
	}
	return process.WriteFile(l.wantFile(), content, 0o644)
}

func merge(before, now Want) Want {
	merged := Want{Parts: max(before.Parts, now.Parts), Kubernetes: before.Kubernetes}
	if now.Kubernetes != nil {
		merged.Kubernetes = now.Kubernetes
	}
	for _, spec := range cluster.Specs {
		if slices.Contains(before.Clusters, spec.Name) || slices.Contains(now.Clusters, spec.Name) {
			merged.Clusters = append(merged.Clusters, spec.Name)
		}
	}
	return merged
}

func (l Lab) wanted() (Want, bool) {
	content, err := os.ReadFile(l.wantFile())
	if err != nil {
		return Want{}, false
	}
	var want Want
	return want, json.Unmarshal(content, &want) == nil
}

// Down ends everything and removes all state but what is built.
func (l Lab) Down(ctx context.Context) error {
	errs := []error{cluster.DownAll(ctx, l.Place), os.RemoveAll(l.Place.Kubeconfig())}
	for _, spec := range cluster.Specs {
		errs = append(errs, os.RemoveAll(l.Place.KubeconfigOf(spec.Name)))
	}
	return errors.Join(errs...)
}

// eachOf does something for all at the same time and returns what went wrong for any.
func eachOf[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, one := range all {
		group.Go(func() { errs[i] = do(one) })
	}
	group.Wait()
	return errors.Join(errs...)
}
