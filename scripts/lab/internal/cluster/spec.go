// Package cluster runs one Kubernetes cluster: its control plane on the host, each node in a network namespace of its own.
package cluster

import (
	"fmt"
	"os"
	"strconv"

	"github.com/mig-cli/mig/scripts/lab/internal/network"
	"github.com/mig-cli/mig/scripts/lab/internal/place"
	"github.com/mig-cli/mig/scripts/lab/internal/process"
)

// S3Address is the object store's, in reach of the host, the nodes and the pods of all clusters.
const S3Address = "172.31.0.1"

// ProvisionerName is what the StorageClasses name.
const ProvisionerName = "lab.mig.test/local"

// Class is a StorageClass.
type Class struct {
	Name    string
	Default bool
	Wait    bool // for the first consumer
	Sized   bool // its volumes end at the claim's size
}

// Spec is one of the lab's clusters.
type Spec struct {
	Name    string
	Number  int // 1 and up; the addresses are made of it
	Nodes   int
	Classes []Class
}

// Specs are all clusters that the lab has. The two sides differ in nodes and in their classes' names, as real ones do.
var Specs = []Spec{
	{Name: "src", Number: 1, Nodes: 2, Classes: []Class{
		{Name: "src-standard", Default: true, Wait: true}, {Name: "src-fast"}, {Name: "src-sized", Wait: true, Sized: true},
	}},
	{Name: "dst", Number: 2, Nodes: 1, Classes: []Class{
		{Name: "dst-gold", Default: true, Wait: true}, {Name: "dst-silver"}, {Name: "dst-sized", Wait: true, Sized: true},
	}},
}

// APIAddress is the API server's, on the host.
func (s Spec) APIAddress() string { return fmt.Sprintf("172.31.0.%d", 10+s.Number) }

// Server is the API server's URL, for the host, the nodes and the pods alike.
func (s Spec) Server() string { return "https://" + s.APIAddress() + ":6443" }

func (s Spec) serviceCIDR() string { return fmt.Sprintf("10.9%d.0.0/16", s.Number) }
func (s Spec) serviceIP() string   { return fmt.Sprintf("10.9%d.0.1", s.Number) }
func (s Spec) dnsIP() string       { return fmt.Sprintf("10.9%d.0.10", s.Number) }
func (s Spec) podCIDR() string     { return fmt.Sprintf("10.24%d.0.0/16", s.Number) }

// What only the control plane's own programs use listens on loopback.
func (s Spec) etcdClients() string    { return fmt.Sprintf("127.0.0.1:2379%d", s.Number) }
func (s Spec) etcdPeers() string      { return fmt.Sprintf("127.0.0.1:2389%d", s.Number) }
func (s Spec) controllerPort() string { return fmt.Sprintf("1%d257", s.Number) }
func (s Spec) schedulerPort() string  { return fmt.Sprintf("1%d259", s.Number) }

func (s Spec) nodeName(number int) string { return fmt.Sprintf("%s-node-%d", s.Name, number) }

// NodeNames are the names of the cluster's nodes.
func (s Spec) NodeNames() []string {
	var names []string
	for number := 1; number <= s.Nodes; number++ {
		names = append(names, s.nodeName(number))
	}
	return names
}

func (s Spec) network(number int) network.Node {
	// Four addresses for each link: net, host, node, broadcast.
	first := 4 * (number - 1)
	return network.Node{
		Name:    s.nodeName(number),
		Host:    fmt.Sprintf("172.31.%d.%d", s.Number, first+1),
		Address: fmt.Sprintf("172.31.%d.%d", s.Number, first+2),
		Pods:    fmt.Sprintf("10.24%d.%d.0/24", s.Number, number),
	}
}

// Cluster is a spec in the lab's directory.
type Cluster struct {
	Spec
	Place   place.Dir
	Program string // of Kubernetes
	Version string // of the program's build
	Say     func(string, ...any)
}

func (c Cluster) dir(elements ...string) string {
	return c.Place.Run(append([]string{c.Name}, elements...)...)
}

func (c Cluster) cert(name string) string { return c.dir("pki", name+".crt") }
func (c Cluster) key(name string) string  { return c.dir("pki", name+".key") }

// Kubeconfig is that of one of the cluster's programs or of the administrator.
func (c Cluster) kubeconfig(name string) string { return c.dir("kubeconfig", name) }

// Admin is the administrator's kubeconfig.
func (c Cluster) Admin() string { return c.kubeconfig("admin") }

func (c Cluster) kubeletRoot(node string) string { return c.dir(node, "kubelet") }

// KubeletRoot is where a pod finds its node's kubelet directory: one path on all nodes, as on nodes that are machines.
// Each node's containerd sees its own kubelet's there.
func (c Cluster) KubeletRoot() string { return c.dir("kubelet") }

// daemon is one of the programs in the Kubernetes binary.
func (c Cluster) daemon(name, dir string, args ...string) process.Daemon {
	return process.Daemon{
		Name:    name,
		Dir:     dir,
		Command: append([]string{c.Program, name}, args...),
		Version: c.Version,
		Env:     []string{Marker(c.Place)},
	}
}

// Marker is what all of the lab's processes have in their environment.
func Marker(dir place.Dir) string { return process.Marker + "=" + string(dir) }

// versionOf stands for the content of files that a daemon reads once.
func versionOf(files ...string) string {
	var all string
	for _, file := range files {
		content, _ := os.ReadFile(file)
		all += strconv.Itoa(len(content)) + string(content)
	}
	return all
}
