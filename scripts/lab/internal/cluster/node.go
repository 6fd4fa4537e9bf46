package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mig-cli/mig/scripts/lab/internal/host"
	"github.com/mig-cli/mig/scripts/lab/internal/image"
	"github.com/mig-cli/mig/scripts/lab/internal/network"
	"github.com/mig-cli/mig/scripts/lab/internal/process"
)

// node is one of a cluster's nodes.
type node struct {
	Cluster
	net network.Node
}

func (c Cluster) nodes() []node {
	var nodes []node
	for number := 1; number <= c.Nodes; number++ {
		nodes = append(nodes, node{Cluster: c, net: c.network(number)})
	}
	return nodes
}

func (n node) dir(elements ...string) string {
	return n.Cluster.dir(append([]string{n.net.Name}, elements...)...)
}

func (n node) socket() string { return n.dir("containerd.sock") }

// UpNodes starts what of the nodes does not run, gives them the images, and returns when they are ready.
func (c Cluster) UpNodes(ctx context.Context, images []image.Archive) error {
	if err := c.ensureKubeletRoot(); err != nil {
		return err
	}
	for _, node := range c.nodes() {
		if err := node.up(ctx, images); err != nil {
			return fmt.Errorf("node %s: %w", node.net.Name, err)
		}
	}
	for _, node := range c.nodes() {
		ready := func() bool {
			status, err := c.Get(ctx, "get", "node", node.net.Name, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
			return err == nil && status == "True"
		}
		if err := c.waitFor(ctx, node.kubelet(), "node "+node.net.Name+" ready", ready); err != nil {
			return err
		}
		c.Say("%s: node %s is ready", c.Name, node.net.Name)
	}
	return nil
}

// ensureKubeletRoot makes the place for each node's kubelet directory: a private mount, so that what a node mounts there
// stays the node's. Volumes, on the other hand, must be seen by host, kubelet and containers alike, so the rest is shared.
func (c Cluster) ensureKubeletRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share the mounts below /: %w", err)
	}
	root := c.KubeletRoot()
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	mounted, err := host.IsMounted(root)
	if err != nil {
		return err
	}
	if !mounted {
		if err := unix.Mount("lab", root, "tmpfs", 0, "size=64k,mode=0755"); err != nil {
			return fmt.Errorf("mount %s: %w", root, err)
		}
	}
	if err := unix.Mount("", root, "", unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make %s private: %w", root, err)
	}
	return nil
}

func (n node) up(ctx context.Context, images []image.Archive) error {
	if !n.net.Exists() {
		if err := n.end(ctx); err != nil {
			return err
		}
	}
	if err := errors.Join(n.net.Ensure(ctx), ensureCgroup(n.net.Name), n.writeFiles()); err != nil {
		return err
	}
	if err := n.ensure(ctx, listening{Daemon: n.containerd()}); err != nil {
		return err
	}
	answers := func() bool { return n.ctr(ctx, "version") == nil }
	if err := n.waitFor(ctx, n.containerd(), "containerd of "+n.net.Name, answers); err != nil {
		return err
	}
	if err := n.ImportImages(ctx, images); err != nil {
		return err
	}
	for _, daemon := range []process.Daemon{n.kubelet(), n.kubeProxy()} {
		if err := n.ensure(ctx, listening{Daemon: daemon}); err != nil {
			return err
		}
	}
	return nil
}

// end ends all processes of a node whose namespace was taken away: they live on there, and reach nothing. The kubelet will
// make the pods again.
func (n node) end(ctx context.Context) error {
	var errs []error
	for _, daemon := range n.daemons() {
		errs = append(errs, daemon.Stop(ctx))
	}
	shims := func() []int {
		return slices.DeleteFunc(process.Marked(Marker(n.Place)), func(pid int) bool { return !process.HasArgument(pid, n.socket()) })
	}
	contained := func() []int { return processesIn(groups(cgroupOf(n.net.Name))) }
	return errors.Join(append(errs, process.KillAll(ctx, shims), process.KillAll(ctx, contained))...)
}

// ImportImages imports on all nodes what they lack.
func (c Cluster) ImportImages(ctx context.Context, images []image.Archive) error {
	for _, node := range c.nodes() {
		if err := node.ImportImages(ctx, images); err != nil {
			return err
		}
	}
	return nil
}

// ImportImages imports the images that the node lacks, or has in another make.
func (n node) ImportImages(ctx context.Context, images []image.Archive) error {
	for _, archive := range images {
		stamp := n.dir("images", archive.Name)
		if imported, err := os.ReadFile(stamp); err == nil && string(imported) == archive.Key {
			continue
		}
		if err := n.ctr(ctx, "images", "import", archive.File); err != nil {
			return fmt.Errorf("import image %s: %w", archive.Name, err)
		}
		if err := process.WriteFile(stamp, []byte(archive.Key), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (n node) ctr(ctx context.Context, args ...string) error {
	const limit = 5 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	args = append([]string{"--address", n.socket(), "--namespace", "k8s.io"}, args...)
	command := exec.CommandContext(ctx, "ctr", args...)
	command.Env = append(os.Environ(), Marker(n.Place))
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, output)
	}
	return nil
}

func (n node) writeFiles() error {
	const mode = 0o644
	var errs []error
	for _, dir := range []string{"kubelet", "pod-logs", "plugins", "images"} {
		errs = append(errs, os.MkdirAll(n.dir(dir), 0o755))
	}
	for file, content := range map[string]string{
		n.dir("containerd.toml"):                      n.renderContainerd(),
		n.dir("cni", "10-lab.conflist"):               n.renderCNI(),
		n.dir("kubelet.yaml"):                         n.renderKubelet(),
		n.dir("kube-proxy.yaml"):                      n.renderKubeProxy(),
		n.dir("resolv.conf"):                          "",
		n.dir("registries", "_default", "hosts.toml"): renderNoRegistry(),
	} {
		errs = append(errs, process.WriteFile(file, []byte(content), mode))
	}
	return errors.Join(errs...)
}

func (n node) daemons() []process.Daemon {
	return []process.Daemon{n.containerd(), n.kubelet(), n.kubeProxy()}
}

func (n node) containerd() process.Daemon {
	return process.Daemon{
		Name:      "containerd",
		Dir:       n.dir(),
		Command:   []string{"containerd", "--config", n.dir("containerd.toml")},
		Env:       []string{Marker(n.Place)},
		Namespace: n.net.Namespace(),
		Binds:     []process.Bind{{From: n.kubeletRoot(n.net.Name), To: n.KubeletRoot()}},
		Version:   versionOf(n.dir("containerd.toml")),
	}
}

func (n node) kubelet() process.Daemon {
	daemon := n.daemon("kubelet", n.dir(),
		"--config="+n.dir("kubelet.yaml"),
		"--kubeconfig="+n.kubeconfig(n.net.Name),
		"--root-dir="+n.kubeletRoot(n.net.Name),
		"--cert-dir="+filepath.Join(n.kubeletRoot(n.net.Name), "pki"),
		"--hostname-override="+n.net.Name,
		"--node-ip="+n.net.Address,
		"--v=1",
	)
	daemon.Namespace = n.net.Namespace()
	daemon.Version += versionOf(n.dir("kubelet.yaml"))
	return daemon
}

func (n node) kubeProxy() process.Daemon {
	daemon := n.daemon("kube-proxy", n.dir(), "--config="+n.dir("kube-proxy.yaml"))
	daemon.Namespace = n.net.Namespace()
	daemon.Version += versionOf(n.dir("kube-proxy.yaml"))
	return daemon
}
