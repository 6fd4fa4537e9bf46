package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/mig-cli/mig/scripts/lab/internal/host"
	"github.com/mig-cli/mig/scripts/lab/internal/process"
)

const (
	readyTimeout = 3 * time.Minute
	// The controllers' own limits on requests would make most of a namespace's deletion waiting.
	clientQPS, clientBurst = "--kube-api-qps=500", "--kube-api-burst=1000"
)

// listening is a daemon and where it listens on the host.
type listening struct {
	process.Daemon
	ports []string
}

// UpControlPlane starts what of the control plane does not run, and returns when the API server serves.
func (c Cluster) UpControlPlane(ctx context.Context) error {
	if err := os.MkdirAll(c.dir("etcd"), 0o700); err != nil {
		return err
	}
	for _, daemon := range c.controlPlane() {
		if err := c.ensure(ctx, daemon); err != nil {
			return err
		}
	}
	api := c.controlPlane()[1].Daemon
	if err := c.waitFor(ctx, api, "API server of "+c.Name+" ready", c.serves); err != nil {
		return err
	}
	// Pods of a namespace are refused until the controller-manager has made its service account.
	controllers := c.controlPlane()[2].Daemon
	return c.waitFor(ctx, controllers, "service accounts of "+c.Name, func() bool {
		return c.Kubectl(ctx, "-n", "default", "get", "serviceaccount", "default") == nil
	})
}

// ensure starts a daemon that does not run, after a look at who else has its port.
func (c Cluster) ensure(ctx context.Context, daemon listening) error {
	if _, alive := daemon.Record(); !alive {
		for _, port := range daemon.ports {
			if err := host.CheckPort(ctx, port); err != nil {
				return fmt.Errorf("%s of %s: %w", daemon.Name, c.Name, err)
			}
		}
	}
	started, err := daemon.Ensure(ctx)
	if err != nil {
		return fmt.Errorf("%s of %s: %w", daemon.Name, c.Name, err)
	}
	if started {
		c.Say("%s: started %s", c.Name, daemon.Name)
	}
	return nil
}

// waitFor waits for something that a daemon does, and no longer than the daemon lives.
func (c Cluster) waitFor(ctx context.Context, daemon process.Daemon, what string, done func() bool) error {
	err := process.Wait(ctx, readyTimeout, what, func() (bool, error) {
		if done() {
			return true, nil
		}
		if _, alive := daemon.Record(); !alive {
			return false, fmt.Errorf("%s ended", daemon.Name)
		}
		return false, nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w; %s", err, daemon.Complaint())
	}
	return err
}

func (c Cluster) serves() bool {
	authority, err := os.ReadFile(c.cert("ca"))
	if err != nil {
		return false
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	client := http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true},
	}
	response, err := client.Get(c.Server() + "/readyz") //nolint:noctx // ends with its timeout
	if err != nil {
		return false
	}
	return errors.Join(response.Body.Close()) == nil && response.StatusCode == http.StatusOK
}

// controlPlane are the daemons in the order in which they start.
func (c Cluster) controlPlane() []listening {
	dir := c.dir("control-plane")
	return []listening{
		{c.etcd(dir), []string{c.etcdClients(), c.etcdPeers()}},
		{c.apiServer(dir), []string{c.APIAddress() + ":6443"}},
		{c.controllerManager(dir), []string{"127.0.0.1:" + c.controllerPort()}},
		{c.scheduler(dir), []string{"127.0.0.1:" + c.schedulerPort()}},
	}
}

func (c Cluster) etcd(dir string) process.Daemon {
	clients, peers := "http://"+c.etcdClients(), "http://"+c.etcdPeers()
	return c.daemon("etcd", dir,
		"--name="+c.Name,
		"--data-dir="+c.dir("etcd"),
		// A killed process loses nothing by this; a machine that stops does, and its lab starts anew.
		"--unsafe-no-fsync",
		"--listen-client-urls="+clients,
		"--advertise-client-urls="+clients,
		"--listen-peer-urls="+peers,
		"--initial-advertise-peer-urls="+peers,
		"--initial-cluster="+c.Name+"="+peers,
		"--log-level=warn",
	)
}

func (c Cluster) apiServer(dir string) process.Daemon {
	return c.daemon("kube-apiserver", dir,
		"--etcd-servers=http://"+c.etcdClients(),
		// One address that all reach; loopback would do for the host, but may not be an endpoint for pods.
		"--bind-address="+c.APIAddress(),
		"--advertise-address="+c.APIAddress(),
		"--secure-port=6443",
		"--service-cluster-ip-range="+c.serviceCIDR(),
		"--client-ca-file="+c.cert("ca"),
		"--tls-cert-file="+c.cert("apiserver"),
		"--tls-private-key-file="+c.key("apiserver"),
		"--service-account-key-file="+c.cert("service-accounts"),
		"--service-account-signing-key-file="+c.key("service-accounts"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--kubelet-client-certificate="+c.cert("apiserver-kubelet"),
		"--kubelet-client-key="+c.key("apiserver-kubelet"),
		"--kubelet-certificate-authority="+c.cert("ca"),
		"--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file="+c.cert("front-proxy-ca"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file="+c.cert("front-proxy"),
		"--proxy-client-key-file="+c.key("front-proxy"),
		// The host has no kube-proxy, but it does reach the pods.
		"--enable-aggregator-routing=true",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--profiling=false",
	)
}

func (c Cluster) controllerManager(dir string) process.Daemon {
	kubeconfig := c.kubeconfig("controller-manager")
	return c.daemon("kube-controller-manager", dir,
		"--kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port="+c.controllerPort(),
		"--leader-elect=false",
		"--cluster-name="+c.Name,
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+c.key("service-accounts"),
		"--root-ca-file="+c.cert("ca"),
		"--client-ca-file="+c.cert("ca"),
		"--requestheader-client-ca-file="+c.cert("front-proxy-ca"),
		"--cluster-signing-cert-file="+c.cert("ca"),
		"--cluster-signing-key-file="+c.key("ca"),
		"--profiling=false",
		clientQPS, clientBurst,
	)
}

func (c Cluster) scheduler(dir string) process.Daemon {
	kubeconfig := c.kubeconfig("scheduler")
	return c.daemon("kube-scheduler", dir,
		"--kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port="+c.schedulerPort(),
		"--leader-elect=false",
		clientQPS, clientBurst,
	)
}
