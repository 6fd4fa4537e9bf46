package cluster

import (
	"maps"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// Contexts are the names of the contexts that a kubeconfig knows, in order; an
// empty path means kubectl's rules. None where it cannot be read: this is for
// completion, which has no place to say why.
func Contexts(kubeconfig string) []string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	raw, err := rules.Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(raw.Contexts))
}

// SilenceClients keeps the client libraries from writing to the process's
// standard error: what a person should know comes back as an error, and their
// lines would tear the live view.
func SilenceClients() {
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
}
