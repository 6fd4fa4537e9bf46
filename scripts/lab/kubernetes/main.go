// kubernetes is every program of a cluster in one binary: etcd, the control plane, kubelet, kube-proxy, kubectl and the
// lab's volume provisioner. One binary is linked once and its parts share their pages in memory.
//
// The program is the base name of argv[0] (a link) or the first argument.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"github.com/mig-cli/mig/scripts/lab/kubernetes/provisioner"
)

// A program gets the arguments after its name and returns the exit code.
type program func(args []string) int

var programs = map[string]program{
	"etcd":                    etcd,
	"kube-apiserver":          command(apiserver.NewAPIServerCommand),
	"kube-controller-manager": command(controllermanager.NewControllerManagerCommand),
	"kube-scheduler":          command(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kube-proxy":              command(proxy.NewProxyCommand),
	"kubelet":                 command(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
	"kubectl":                 runKubectl,
	"provisioner":             provisioner.Main,
}

func main() {
	name, args := filepath.Base(os.Args[0]), os.Args[1:]
	if _, found := programs[name]; !found && len(args) > 0 {
		name, args = args[0], args[1:]
	}
	run, found := programs[name]
	if !found {
		fmt.Fprintf(os.Stderr, "kubernetes: no program %q\n", name)
		os.Exit(2)
	}
	// All of them look at os.Args too, kubectl for its plugins and etcd for its flags.
	os.Args = append([]string{name}, args...)
	os.Exit(run(args))
}

func command(construct func() *cobra.Command) program {
	return func([]string) int { return cli.Run(construct()) }
}

func etcd([]string) int {
	etcdmain.Main(os.Args)
	return 0
}

func runKubectl([]string) int {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err) // exits, with kubectl's own texts and codes
	}
	return 0
}
