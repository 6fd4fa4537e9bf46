// Package network makes the lab's addresses and the network namespaces of its nodes. It is all on this machine: nothing
// listens on, or is sent to, the network that the machine is in.
package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/mig-cli/mig/scripts/lab/internal/process"
)

const (
	// device carries the addresses that the host, the nodes and the pods of all clusters reach. It is a bridge without
	// ports: kernels that run pods have bridges, and not all have dummy devices.
	device = "miglab0"
	// prefix begins the names of the nodes' namespaces and links.
	prefix     = "miglab-"
	linkPrefix = "ml-"

	namespaces = "/run/netns"
	// lastResort is the metric of routes that count only where there is no other.
	lastResort = "4000"
)

// ranges are all addresses that the lab uses. None of them is the machine's network.
var ranges = []string{"172.31.0.0/16", "10.241.0.0/16", "10.242.0.0/16", "10.91.0.0/16", "10.92.0.0/16"}

// Node is what the network knows of a node.
type Node struct {
	Name    string
	Host    string // the host's end of the link
	Address string // the node's end
	Pods    string // CIDR of its pods
}

// Namespace is the path of the node's network namespace.
func (n Node) Namespace() string { return filepath.Join(namespaces, prefix+n.Name) }

func (n Node) link() string { return linkPrefix + n.Name }

// EnsureHost makes the device with the shared addresses.
func EnsureHost(ctx context.Context, addresses ...string) error {
	if !linkExists(device) {
		if err := ip(ctx, "link", "add", device, "type", "bridge"); err != nil {
			return err
		}
	}
	for _, address := range addresses {
		if err := ip(ctx, "address", "replace", address+"/32", "dev", device); err != nil {
			return err
		}
	}
	if err := ip(ctx, "link", "set", device, "up"); err != nil {
		return err
	}
	// A packet for a node that is not there must not go out through the machine's default route.
	for _, cidr := range ranges {
		if err := ip(ctx, "route", "replace", "unreachable", cidr, "metric", lastResort); err != nil {
			return err
		}
	}
	return setSysctl("net/ipv4/ip_forward")
}

// Ensure makes a node's namespace, the link to it and the route to its pods.
func (n Node) Ensure(ctx context.Context) error {
	if !isNamespace(n.Namespace()) {
		_ = os.Remove(n.Namespace()) // a name without a namespace is what a half-made or half-removed one leaves
		if err := ip(ctx, "netns", "add", filepath.Base(n.Namespace())); err != nil {
			return err
		}
		// The other end of a link that is there is in a namespace that lost its name.
		if linkExists(n.link()) {
			if err := ip(ctx, "link", "delete", n.link()); err != nil {
				return err
			}
		}
	}
	if !linkExists(n.link()) {
		if err := ip(ctx, "link", "add", n.link(), "type", "veth", "peer", "name", "eth0", "netns", filepath.Base(n.Namespace())); err != nil {
			return err
		}
	}
	// Each of these says the same when said twice, so a lab that was killed in between goes on here.
	for _, args := range [][]string{
		{"address", "replace", n.Host + "/30", "dev", n.link()},
		{"link", "set", n.link(), "up"},
		{"-n", filepath.Base(n.Namespace()), "link", "set", "lo", "up"},
		{"-n", filepath.Base(n.Namespace()), "address", "replace", n.Address + "/30", "dev", "eth0"},
		{"-n", filepath.Base(n.Namespace()), "link", "set", "eth0", "up"},
		{"-n", filepath.Base(n.Namespace()), "route", "replace", "default", "via", n.Host},
		{"route", "replace", n.Pods, "via", n.Address},
	} {
		if err := ip(ctx, args...); err != nil {
			return err
		}
	}
	return process.InNamespace(n.Namespace(), func() error { return setSysctl("net/ipv4/ip_forward") })
}

// Exists tells whether the node's namespace and link are there.
func (n Node) Exists() bool { return isNamespace(n.Namespace()) && linkExists(n.link()) }

// Remove removes all that the lab's networks are made of, whichever clusters and nodes there were.
func Remove(ctx context.Context) error {
	var errs []error
	names, _ := filepath.Glob(filepath.Join(namespaces, prefix+"*"))
	for _, name := range names {
		if isNamespace(name) {
			errs = append(errs, ip(ctx, "netns", "delete", filepath.Base(name)))
		} else {
			errs = append(errs, os.Remove(name))
		}
	}
	links, _ := filepath.Glob("/sys/class/net/" + linkPrefix + "*")
	links = append(links, device)
	for _, link := range links {
		if linkExists(filepath.Base(link)) {
			errs = append(errs, ip(ctx, "link", "delete", filepath.Base(link)))
		}
	}
	for _, cidr := range ranges {
		_ = ip(ctx, "route", "delete", "unreachable", cidr, "metric", lastResort) // it may not be there
	}
	return errors.Join(errs...)
}

// Leftovers lists the lab's namespaces and links that exist.
func Leftovers() []string {
	names, _ := filepath.Glob(filepath.Join(namespaces, prefix+"*"))
	links, _ := filepath.Glob("/sys/class/net/" + linkPrefix + "*")
	return append(names, links...)
}

// isNamespace tells a namespace's mount from the empty file that it is mounted on.
func isNamespace(path string) bool {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	return err == nil && strings.Contains(string(mounts), " "+path+" ")
}

func linkExists(name string) bool {
	_, err := os.Stat("/sys/class/net/" + name)
	return err == nil
}

func setSysctl(name string) error {
	return os.WriteFile("/proc/sys/"+name, []byte("1"), 0o644)
}

func ip(ctx context.Context, args ...string) error {
	if output, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(output))
	}
	return nil
}
