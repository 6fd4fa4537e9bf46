package cluster

import (
	"encoding/base64"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/mig-cli/mig/scripts/lab/internal/pki"
)

func clusters() []Cluster {
	var all []Cluster
	for _, spec := range Specs {
		all = append(all, Cluster{Spec: spec, Place: "/lab", Program: "/lab/bin/kubernetes"})
	}
	return all
}

func TestAddressesOfClustersDoNotMeet(t *testing.T) {
	seen := map[string]string{}
	var ranges []netip.Prefix
	for _, c := range clusters() {
		addresses := []string{c.APIAddress(), c.etcdClients(), c.etcdPeers(), c.controllerPort(), c.schedulerPort()}
		ranges = append(ranges, netip.MustParsePrefix(c.serviceCIDR()))
		for _, node := range c.nodes() {
			addresses = append(addresses, node.net.Host, node.net.Address, node.net.Name)
			ranges = append(ranges, netip.MustParsePrefix(node.net.Pods))
			if pods := netip.MustParsePrefix(c.podCIDR()); !pods.Overlaps(netip.MustParsePrefix(node.net.Pods)) {
				t.Errorf("%s: pods of %s are not in the cluster's range %s", c.Name, node.net.Pods, pods)
			}
			link := netip.MustParsePrefix(node.net.Host + "/30").Masked()
			if !link.Contains(netip.MustParseAddr(node.net.Address)) || link.Addr().String() == node.net.Host {
				t.Errorf("%s: %s and %s are not the two hosts of a /30", node.net.Name, node.net.Host, node.net.Address)
			}
		}
		for _, address := range addresses {
			if other, found := seen[address]; found {
				t.Errorf("%s: %s has %s too", c.Name, other, address)
			}
			seen[address] = c.Name
		}
	}
	for i, one := range ranges {
		for _, other := range ranges[i+1:] {
			if one.Overlaps(other) {
				t.Errorf("%s overlaps %s", one, other)
			}
		}
	}
}

func TestEverySideHasADefaultAnImmediateAndASizedClassOfItsOwn(t *testing.T) {
	names := map[string]bool{}
	for _, c := range clusters() {
		var defaults, immediate, sized int
		for _, class := range c.Classes {
			if names[class.Name] {
				t.Errorf("class %s is on both sides", class.Name)
			}
			names[class.Name] = true
			if class.Default {
				defaults++
			}
			if !class.Wait {
				immediate++
			}
			if class.Sized {
				sized++
			}
		}
		if defaults != 1 || immediate != 1 || sized != 1 {
			t.Errorf("%s: got %d default, %d immediate, %d sized classes, want one each", c.Name, defaults, immediate, sized)
		}
	}
}

func TestNothingListensOnAllAddresses(t *testing.T) {
	for _, c := range clusters() {
		var all strings.Builder
		for _, daemon := range c.controlPlane() {
			all.WriteString(strings.Join(daemon.Command, "\n"))
		}
		for _, node := range c.nodes() {
			all.WriteString(node.renderKubelet() + node.renderKubeProxy() + node.renderContainerd())
		}
		for _, everywhere := range []string{"0.0.0.0:", "=0.0.0.0", ": 0.0.0.0", "[::]"} {
			if strings.Contains(all.String(), everywhere) {
				t.Errorf("%s: something listens on %s", c.Name, everywhere)
			}
		}
	}
}

func TestNodesShareNothing(t *testing.T) {
	seen := map[string]string{}
	for _, c := range clusters() {
		for _, node := range c.nodes() {
			for _, own := range []string{node.socket(), node.kubeletRoot(node.net.Name), node.net.Namespace(), cgroupOf(node.net.Name), node.dir("containerd")} {
				if other, found := seen[own]; found {
					t.Errorf("%s and %s share %s", other, node.net.Name, own)
				}
				seen[own] = node.net.Name
			}
			if !strings.Contains(node.renderKubelet(), "unix://"+node.socket()) || !strings.Contains(node.renderContainerd(), node.socket()) {
				t.Errorf("%s: kubelet and containerd do not meet at %s", node.net.Name, node.socket())
			}
			if got := node.containerd().Binds; len(got) != 1 || got[0].To != c.KubeletRoot() {
				t.Errorf("%s: its pods do not find their kubelet's directory: %v", node.net.Name, got)
			}
		}
	}
}

func TestRenderCNIIsJSON(t *testing.T) {
	for _, c := range clusters() {
		for _, node := range c.nodes() {
			var list struct {
				Name    string
				Plugins []struct{ Type string }
			}
			if err := json.Unmarshal([]byte(node.renderCNI()), &list); err != nil {
				t.Fatal(err)
			}
			if list.Name != cniNetwork(node.net.Name) || len(list.Plugins) != 2 {
				t.Errorf("got %+v", list)
			}
		}
	}
}

func TestRenderKubeconfig(t *testing.T) {
	got := renderKubeconfig(
		entry{Context: "src", Server: "https://a", Authority: []byte("ca"), Client: pki.Pair{Cert: []byte("crt"), Key: []byte("key")}},
		entry{Context: "dst", Server: "https://b"},
	)
	for _, want := range []string{
		"current-context: src\n",
		"- name: src\n  cluster:\n    server: https://a\n    certificate-authority-data: " + base64.StdEncoding.EncodeToString([]byte("ca")) + "\n",
		"- name: dst\n  context:\n    cluster: dst\n    user: dst\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant in it\n%s", got, want)
		}
	}
}

func TestIdentitiesOfNodesAreTheirs(t *testing.T) {
	for _, c := range clusters() {
		identities := c.identities()
		for _, node := range c.nodes() {
			client, server := identities[node.net.Name], identities[node.net.Name+"-serving"]
			if client.Name != "system:node:"+node.net.Name || len(client.Hosts) != 0 {
				t.Errorf("%s: got %+v", node.net.Name, client)
			}
			if len(server.Hosts) != 2 || server.Hosts[1] != node.net.Address {
				t.Errorf("%s: got %+v", node.net.Name, server)
			}
		}
	}
}

func TestPodOfResult(t *testing.T) {
	if got := podOfResult("miglab-src-node-1-0aab63-eth0"); got != "0aab63" {
		t.Errorf("got %q", got)
	}
}
