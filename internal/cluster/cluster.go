// Package cluster reaches one cluster: a kubeconfig and a context become
// clients. It is the only place that makes clients; it knows nothing of plans,
// runs and Velero's ways.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/naming"
)

// DialTimeout bounds how long an address may take to answer at all.
const DialTimeout = 10 * time.Second

// RequestTimeout bounds one request, its answer included.
const RequestTimeout = time.Minute

// Access says how a cluster is reached.
type Access struct {
	Kubeconfig string // a path; empty: kubectl's rules (KUBECONFIG's list, then the home file)
	Context    string
}

// Cluster is one cluster with its clients. The embedded client reads and writes
// typed and unstructured objects, uncached.
type Cluster struct {
	client.Client

	Access          Access
	Server          string // the address of its API
	VeleroNamespace string
	Discovery       discovery.DiscoveryInterface
	Config          *rest.Config

	http *http.Client // the one that all of them ask with
}

// Source is the cluster that applications are moved from. Its objects and data
// are never deleted.
type Source struct{ *Cluster }

// Destination is the cluster that applications are moved to.
type Destination struct{ *Cluster }

// Scheme knows every typed object that mig handles.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(velerov1.AddToScheme(s))
	return s
}

// UnknownContextError is a context that no kubeconfig file has.
type UnknownContextError struct {
	Access Access
	Known  []string
}

func (e *UnknownContextError) Error() string {
	where := e.Access.Kubeconfig
	if where == "" {
		where = "the kubeconfig"
	}
	if len(e.Known) == 0 {
		return fmt.Sprintf("context %q: %s has no contexts", e.Access.Context, where)
	}
	return fmt.Sprintf("context %q is not in %s; there are: %s", e.Access.Context, where, strings.Join(e.Known, ", "))
}

// KubeconfigError is a kubeconfig that cannot be read or is malformed.
type KubeconfigError struct {
	Access Access
	Err    error
}

func (e *KubeconfigError) Error() string {
	return fmt.Sprintf("kubeconfig for context %q: %v", e.Access.Context, e.Err)
}

func (e *KubeconfigError) Unwrap() error { return e.Err }

// Connect makes the clients of a cluster. It dials nothing yet.
// Errors: *UnknownContextError, *KubeconfigError.
func Connect(a Access, veleroNamespace string) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: a.Context})
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, &KubeconfigError{Access: a, Err: err}
	}
	if _, ok := raw.Contexts[a.Context]; !ok {
		known := make([]string, 0, len(raw.Contexts))
		for name := range raw.Contexts {
			known = append(known, name)
		}
		slices.Sort(known)
		return nil, &UnknownContextError{Access: a, Known: known}
	}
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, &KubeconfigError{Access: a, Err: err}
	}
	cfg.Timeout = RequestTimeout
	cfg.Dial = (&net.Dialer{Timeout: DialTimeout}).DialContext
	cfg.QPS = -1 // the server's own priority and fairness paces us
	cfg.WarningHandler = rest.NoWarnings{}
	cfg.UserAgent = naming.CreatedBy // also the field manager that objects remember us by
	return New(cfg, a, veleroNamespace)
}

// New makes a cluster of a finished configuration.
func New(cfg *rest.Config, a Access, veleroNamespace string) (*Cluster, error) {
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, &KubeconfigError{Access: a, Err: err}
	}
	c, err := client.New(cfg, client.Options{Scheme: Scheme(), HTTPClient: httpClient})
	if err != nil {
		return nil, &KubeconfigError{Access: a, Err: err}
	}
	d, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, &KubeconfigError{Access: a, Err: err}
	}
	return &Cluster{Client: c, Access: a, Server: cfg.Host, VeleroNamespace: veleroNamespace, Discovery: d, Config: cfg, http: httpClient}, nil
}

// NotKubernetesError is an address that answers, but not as a Kubernetes API does.
type NotKubernetesError struct {
	Server string
	Err    error
}

func (e *NotKubernetesError) Error() string {
	return fmt.Sprintf("%s answers, but not as a Kubernetes API: %v", e.Server, e.Err)
}

func (e *NotKubernetesError) Unwrap() error { return e.Err }

// Version asks the cluster for its version.
func (c *Cluster) Version(ctx context.Context) (*apiversion.Info, error) {
	body, err := c.Discovery.RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	return parseVersion(c.Server, body)
}

// UID is the uid of the namespace kube-system: it tells whether two contexts
// are one cluster under two names.
func (c *Cluster) UID(ctx context.Context) (string, error) {
	var ns corev1.Namespace
	if err := c.Get(ctx, client.ObjectKey{Name: "kube-system"}, &ns); err != nil {
		return "", err
	}
	return string(ns.UID), nil
}

// errNoVersion is an answer without a version.
var errNoVersion = errors.New("the answer to /version holds no version")
