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
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
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

	http  *http.Client // the one that all of them ask with
	login *login       // nil where the kubeconfig names no login helper
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

// Connect makes the clients of a cluster for a process in which nobody can be
// asked. It dials nothing yet and runs no login helper.
// Errors: *UnknownContextError, *KubeconfigError.
func Connect(a Access, veleroNamespace string) (*Cluster, error) {
	return Console{}.Connect(a, veleroNamespace)
}

// Connect is Connect for a process whose user can be asked by a login helper.
func (console Console) Connect(a Access, veleroNamespace string) (*Cluster, error) {
	k, err := readKubeconfig(a)
	if err != nil {
		return nil, err
	}
	cfg, err := k.restConfig()
	if err != nil {
		return nil, err
	}
	cfg.Timeout = RequestTimeout
	cfg.Dial = (&net.Dialer{Timeout: DialTimeout}).DialContext
	cfg.QPS = -1 // the server's own priority and fairness paces us
	cfg.WarningHandler = rest.NoWarnings{}
	cfg.UserAgent = naming.CreatedBy // also the field manager that objects remember us by
	if console.Log != nil {
		cfg.Wrap(func(base http.RoundTripper) http.RoundTripper {
			return &logging{log: console.Log, context: a.Context, base: base}
		})
	}
	return console.open(cfg, a, veleroNamespace)
}

// New makes a cluster of a finished configuration.
func New(cfg *rest.Config, a Access, veleroNamespace string) (*Cluster, error) {
	return Console{}.open(cfg, a, veleroNamespace)
}

func (console Console) open(cfg *rest.Config, a Access, veleroNamespace string) (*Cluster, error) {
	httpClient, login, err := httpClientFor(cfg, console)
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
	return &Cluster{Client: c, Access: a, Server: cfg.Host, VeleroNamespace: veleroNamespace, Discovery: d, Config: cfg, http: httpClient, login: login}, nil
}

// Login has the kubeconfig's login helper get credentials, if there is one and
// there are none yet. It may ask a person, and so take up to LoginTimeout: who
// has a shorter limit for the cluster calls it before. Errors: *LoginError, ctx's.
func (c *Cluster) Login(ctx context.Context) error {
	if c.login == nil {
		return nil
	}
	_, err := c.login.get(ctx, nil)
	return err
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
		return nil, c.whyRefused(err, time.Now())
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
