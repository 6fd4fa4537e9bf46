package cluster

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/mig-cli/mig/scripts/lab/internal/pki"
	"github.com/mig-cli/mig/scripts/lab/internal/process"
)

// ensureIdentities makes the cluster's certificates and kubeconfigs, once. Nothing has been started with a part of them:
// the mark that they are complete comes before the first daemon.
func (c Cluster) ensureIdentities() error {
	complete := c.dir("pki", "complete")
	if _, err := os.Stat(complete); err == nil {
		return nil
	}
	if err := os.MkdirAll(c.dir("pki"), 0o700); err != nil {
		return err
	}
	authority, err := pki.NewAuthority("lab-" + c.Name)
	if err != nil {
		return err
	}
	proxies, err := pki.NewAuthority("lab-" + c.Name + "-front-proxy")
	if err != nil {
		return err
	}
	tokens, err := pki.NewSigningKey()
	if err != nil {
		return err
	}
	err = errors.Join(
		authority.Write(c.dir("pki"), "ca"),
		proxies.Write(c.dir("pki"), "front-proxy-ca"),
		tokens.Write(c.dir("pki"), "service-accounts"),
		c.issue(proxies, "front-proxy", pki.Identity{Name: "front-proxy-client"}),
	)
	for name, identity := range c.identities() {
		err = errors.Join(err, c.issue(authority, name, identity))
	}
	if err != nil {
		return err
	}
	return os.WriteFile(complete, nil, 0o644)
}

// identities are the certificates of the cluster's authority, by file name. A client's has a kubeconfig of that name.
func (c Cluster) identities() map[string]pki.Identity {
	masters := []string{"system:masters"}
	identities := map[string]pki.Identity{
		"apiserver": {Name: "kube-apiserver", Hosts: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
			"127.0.0.1", c.APIAddress(), c.serviceIP(),
		}},
		"apiserver-kubelet":  {Name: "kube-apiserver-kubelet-client", Groups: masters},
		"admin":              {Name: "admin", Groups: masters},
		"controller-manager": {Name: "system:kube-controller-manager"},
		"scheduler":          {Name: "system:kube-scheduler"},
		"proxy":              {Name: "system:kube-proxy"},
	}
	for number := 1; number <= c.Nodes; number++ {
		node := c.network(number)
		name := "system:node:" + node.Name
		identities[node.Name] = pki.Identity{Name: name, Groups: []string{"system:nodes"}}
		identities[node.Name+"-serving"] = pki.Identity{Name: name, Groups: []string{"system:nodes"}, Hosts: []string{node.Name, node.Address}}
	}
	return identities
}

func (c Cluster) issue(authority pki.Authority, name string, identity pki.Identity) error {
	pair, err := authority.Issue(identity)
	if err != nil {
		return err
	}
	if err := pair.Write(c.dir("pki"), name); err != nil {
		return err
	}
	if len(identity.Hosts) > 0 {
		return nil
	}
	entry := entry{Context: c.Name, Server: c.Server(), Authority: authority.Cert, Client: pair}
	return process.WriteFile(c.kubeconfig(name), []byte(renderKubeconfig(entry)), 0o600)
}

// Entry is the administrator's access, under a context's name.
func (c Cluster) entry(context string) (entry, error) {
	authority, err := os.ReadFile(c.cert("ca"))
	cert, certErr := os.ReadFile(c.cert("admin"))
	key, keyErr := os.ReadFile(c.key("admin"))
	return entry{Context: context, Server: c.Server(), Authority: authority, Client: pki.Pair{Cert: cert, Key: key}}, errors.Join(err, certErr, keyErr)
}

// WriteKubeconfigs writes the files for people and programs: one with all clusters, and one for each, whose contexts have
// the same name, as those of a user with a file for each cluster often do.
func WriteKubeconfigs(clusters []Cluster) error {
	const sameName = "lab"
	var all []entry
	for _, cluster := range clusters {
		if err := cluster.ensureIdentities(); err != nil {
			return fmt.Errorf("certificates of %s: %w", cluster.Name, err)
		}
		named, err := cluster.entry(cluster.Name)
		if err != nil {
			return err
		}
		all = append(all, named)
		alone := named
		alone.Context = sameName
		if err := process.WriteFile(cluster.Place.KubeconfigOf(cluster.Name), []byte(renderKubeconfig(alone)), 0o600); err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return nil
	}
	return process.WriteFile(clusters[0].Place.Kubeconfig(), []byte(renderKubeconfig(all...)), 0o600)
}

type entry struct {
	Context   string
	Server    string
	Authority []byte
	Client    pki.Pair
}

// renderKubeconfig makes a kubeconfig with the first entry's context in use.
func renderKubeconfig(entries ...entry) string {
	var clusters, users, contexts strings.Builder
	encode := base64.StdEncoding.EncodeToString
	for _, e := range entries {
		fmt.Fprintf(&clusters, "- name: %s\n  cluster:\n    server: %s\n    certificate-authority-data: %s\n", e.Context, e.Server, encode(e.Authority))
		fmt.Fprintf(&users, "- name: %s\n  user:\n    client-certificate-data: %s\n    client-key-data: %s\n", e.Context, encode(e.Client.Cert), encode(e.Client.Key))
		fmt.Fprintf(&contexts, "- name: %s\n  context:\n    cluster: %[1]s\n    user: %[1]s\n", e.Context)
	}
	return "apiVersion: v1\nkind: Config\ncurrent-context: " + entries[0].Context +
		"\nclusters:\n" + clusters.String() + "users:\n" + users.String() + "contexts:\n" + contexts.String()
}
