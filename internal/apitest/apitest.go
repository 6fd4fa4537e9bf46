// Package apitest gives tests real API servers of their own: etcd and
// kube-apiserver on loopback, with Velero's kinds, without nodes and without
// Velero. They start in seconds, and a test may break them as it likes, which
// the shared lab is too dear for. It knows clusters, and nothing of what mig
// does with them.
package apitest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/vmware-tanzu/velero/config/crd/v1/crds"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/labtest"
)

// Options say what is started beside the API servers.
type Options struct {
	// Controllers starts a controller-manager for each, so that claims bind to
	// volumes, workloads make pods, and deleted namespaces empty.
	Controllers bool
	// NoVelero leaves Velero's kinds out.
	NoVelero bool
	// SourceData is etcd's directory of the source, made where it is not there
	// and kept; empty: one that is removed at the end.
	SourceData string
}

// Pair is a source and a destination.
type Pair struct {
	Dir         string // where the kubeconfig is, for files of the test's own
	Kubeconfig  string // with the contexts labtest.SourceContext and labtest.DestinationContext
	Source      cluster.Source
	Destination cluster.Destination

	stops []func() error
}

// For starts a pair that is stopped when the test ends. The programs are the
// lab's: `make lab-build` makes them.
func For(tb testing.TB, o Options) *Pair {
	tb.Helper()
	p, err := Start(tb.TempDir(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return p
}

// Start starts a pair with its files in dir. Who has several tests share one
// starts it in TestMain, and stops it.
func Start(dir string, o Options) (*Pair, error) {
	programs, err := programs(dir)
	if err != nil {
		return nil, err
	}
	p := &Pair{Dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig")}
	all := clientcmdapi.NewConfig()
	for _, name := range []string{labtest.SourceContext, labtest.DestinationContext} {
		if err := p.start(name, programs, o, all); err != nil {
			return nil, errors.Join(err, p.Stop())
		}
	}
	all.CurrentContext = labtest.SourceContext
	if err := clientcmd.WriteToFile(*all, p.Kubeconfig); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, p.connect()
}

// Stop ends all that was started.
func (p *Pair) Stop() error {
	var errs []error
	for _, stop := range slices.Backward(p.stops) {
		errs = append(errs, stop())
	}
	p.stops = nil
	return errors.Join(errs...)
}

// programs makes a directory with a script for each of the programs that the
// lab's one binary is.
func programs(dir string) (string, error) {
	home, err := labtest.Home()
	if err != nil {
		return "", err
	}
	all := filepath.Join(home, "bin", "kubernetes")
	if _, err := os.Stat(all); err != nil {
		return "", fmt.Errorf("the lab's programs are not built: %w; build them with: make lab-build", err)
	}
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kubectl"} {
		// They end with the test binary, also when that is killed.
		script := fmt.Sprintf("#!/bin/sh\nexec setpriv --pdeathsig KILL -- %q %s \"$@\"\n", all, name)
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			return "", err
		}
	}
	return bin, nil
}

// start starts one API server and adds it to the kubeconfig.
func (p *Pair) start(name, programs string, o Options, all *clientcmdapi.Config) error {
	env := &envtest.Environment{
		BinaryAssetsDirectory:    programs,
		ControlPlaneStartTimeout: 3 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	if !o.NoVelero {
		env.CRDs = append(env.CRDs, crds.CRDs...)
	}
	env.ControlPlane.GetAPIServer().Configure().
		Set("profiling", "false").
		Set("service-cluster-ip-range", "10.0.0.0/16")
	env.ControlPlane.Etcd = &envtest.Etcd{}
	if name == labtest.SourceContext {
		env.ControlPlane.Etcd.DataDir = o.SourceData
	}
	env.ControlPlane.Etcd.Configure().Set("unsafe-no-fsync", "true")
	if _, err := env.Start(); err != nil {
		return fmt.Errorf("API server %s: %w", name, err)
	}
	p.stops = append(p.stops, env.Stop)
	admin, err := env.ControlPlane.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return err
	}
	raw, err := admin.KubeConfig()
	if err != nil {
		return err
	}
	if err := merge(all, name, raw); err != nil || !o.Controllers {
		return err
	}
	return p.startControllers(name, programs, raw)
}

// merge adds the one context of a kubeconfig under another name.
func merge(all *clientcmdapi.Config, name string, raw []byte) error {
	one, err := clientcmd.Load(raw)
	if err != nil {
		return err
	}
	for _, context := range one.Contexts {
		all.Clusters[name] = one.Clusters[context.Cluster]
		all.AuthInfos[name] = one.AuthInfos[context.AuthInfo]
	}
	all.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	return nil
}

func (p *Pair) startControllers(name, programs string, kubeconfig []byte) error {
	file := filepath.Join(p.Dir, name+"-controllers.kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(p.Dir, name+"-controllers.log"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, filepath.Join(programs, "kube-controller-manager"),
		"--kubeconfig="+file, "--leader-elect=false", "--secure-port=0",
		"--kube-api-qps=500", "--kube-api-burst=1000", "--v=0")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		cancel()
		return errors.Join(err, log.Close())
	}
	p.stops = append(p.stops, func() error {
		cancel()
		_ = cmd.Wait() // killed, which is what we asked for
		return log.Close()
	})
	return nil
}

func (p *Pair) connect() error {
	src, err := p.Connect(labtest.SourceContext)
	if err != nil {
		return errors.Join(err, p.Stop())
	}
	dst, err := p.Connect(labtest.DestinationContext)
	if err != nil {
		return errors.Join(err, p.Stop())
	}
	p.Source, p.Destination = cluster.Source{Cluster: src}, cluster.Destination{Cluster: dst}
	return nil
}

// Connect makes a new client of one of the two contexts. One made before does
// not know kinds that were added since.
func (p *Pair) Connect(context string) (*cluster.Cluster, error) {
	return cluster.Connect(cluster.Access{Kubeconfig: p.Kubeconfig, Context: context}, labtest.VeleroNamespace)
}
