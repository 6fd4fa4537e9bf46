package cluster

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // users[].auth-provider: OIDC as in kubectl; of those that are gone, what replaces them
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mig-cli/mig/internal/naming"
)

// UnknownContextError is a context that no kubeconfig file has.
type UnknownContextError struct {
	Access  Access
	Known   []string // the contexts that there are
	Near    []string // those of them that were probably meant
	Files   []string // the kubeconfig files that were read
	Missing []string // those that are named but not there
}

func (e *UnknownContextError) Error() string {
	where := cmp.Or(strings.Join(e.Files, ", "), e.Access.Kubeconfig, "the kubeconfig")
	if len(e.Files) == 0 && len(e.Missing) > 0 {
		return fmt.Sprintf("context %q: there is no kubeconfig file %s", e.Access.Context, strings.Join(e.Missing, ", "))
	}
	if len(e.Missing) > 0 {
		where += fmt.Sprintf(" (not there: %s)", strings.Join(e.Missing, ", "))
	}
	if len(e.Known) == 0 {
		return fmt.Sprintf("context %q: %s has no contexts", e.Access.Context, where)
	}
	said := fmt.Sprintf("context %q is not in %s; ", e.Access.Context, where)
	if len(e.Near) > 0 {
		said += fmt.Sprintf("did you mean %s? ", few(e.Near, " or "))
	}
	return said + "there are: " + few(e.Known, ", ")
}

// KubeconfigError is a kubeconfig that cannot be read or is malformed.
type KubeconfigError struct {
	Access Access
	File   string // the one at fault; empty where it is none alone
	Err    error
}

func (e *KubeconfigError) Error() string {
	if e.File != "" {
		return fmt.Sprintf("kubeconfig %s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("kubeconfig for context %q: %v", e.Access.Context, e.Err)
}

func (e *KubeconfigError) Unwrap() error { return e.Err }

// Contexts are the names of the contexts that a kubeconfig knows, in order; an
// empty path means kubectl's rules. None where it cannot be read: this is for
// completion, which has no place to say why.
func Contexts(path string) []string {
	k, err := readKubeconfig(Access{Kubeconfig: path})
	if err != nil {
		return nil
	}
	return k.contexts()
}

// kubeconfig is what the files of an access say together.
type kubeconfig struct {
	clientcmdapi.Config

	access  Access
	rules   *clientcmd.ClientConfigLoadingRules
	files   []string // read, in the order in which they win
	missing []string // named, but not there
}

// readKubeconfig reads the file of an access, or those of kubectl's rules: of
// every entry the first file wins, one that is not there is passed over, and
// paths in a file are relative to it.
func readKubeconfig(a Access) (*kubeconfig, error) {
	k := &kubeconfig{access: a, rules: clientcmd.NewDefaultClientConfigLoadingRules()}
	if a.Kubeconfig != "" {
		k.rules.ExplicitPath = a.Kubeconfig
		k.rules.Precedence = []string{a.Kubeconfig}
	}
	for _, file := range k.rules.Precedence {
		if file == "" {
			continue // KUBECONFIG=:a is a list whose first element is empty
		}
		_, err := clientcmd.LoadFromFile(file)
		switch {
		case errors.Is(err, fs.ErrNotExist) && a.Kubeconfig == "":
			k.missing = append(k.missing, file)
		case err != nil:
			return nil, &KubeconfigError{Access: a, File: file, Err: unreadable(file, err)}
		default:
			k.files = append(k.files, file)
		}
	}
	merged, err := k.rules.Load()
	if err != nil {
		return nil, &KubeconfigError{Access: a, Err: err}
	}
	k.Config = *merged
	return k, nil
}

var (
	errTilde         = errors.New("a shell expands ~, mig does not, and no shell does behind a =: write the path out")
	errList          = errors.New("a list of files is understood in the environment's KUBECONFIG only: name one file")
	errNoKubeconfig  = errors.New("this is not a kubeconfig")
	errNoCluster     = errors.New("it names no cluster")
	errNoProxyURL    = errors.New("is not a URL")
	errNoProxyScheme = errors.New("wants a proxy by http://, https:// or socks5://")
)

// unreadable says why a file is no kubeconfig. What is in the file is not
// repeated: it may be a secret.
func unreadable(file string, err error) error {
	pathErr, ok := errors.AsType[*os.PathError](err)
	switch {
	case ok && errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(file, "~"):
		return errTilde
	case ok && errors.Is(err, fs.ErrNotExist) && strings.ContainsRune(file, os.PathListSeparator):
		return errList
	case ok:
		return pathErr.Err
	}
	if at := yamlLine.FindStringSubmatch(err.Error()); at != nil {
		return fmt.Errorf("%w (line %s)", errNoKubeconfig, at[1])
	}
	return errNoKubeconfig
}

// yamlLine is all that is taken of what the parser says.
var yamlLine = regexp.MustCompile(`\byaml: line (\d+)`)

func (k *kubeconfig) contexts() []string { return slices.Sorted(maps.Keys(k.Contexts)) }

// restConfig is how the access's context is reached.
// Errors: *UnknownContextError, *KubeconfigError.
func (k *kubeconfig) restConfig() (*rest.Config, error) {
	context, ok := k.Contexts[k.access.Context]
	if !ok {
		known := k.contexts()
		return nil, &UnknownContextError{Access: k.access, Known: known, Near: near(k.access.Context, known), Files: k.files, Missing: k.missing}
	}
	if err := k.check(context); err != nil {
		return nil, &KubeconfigError{Access: k.access, Err: err}
	}
	cfg, err := clientcmd.NewNonInteractiveClientConfig(k.Config, k.access.Context, &clientcmd.ConfigOverrides{}, k.rules).ClientConfig()
	if err != nil {
		return nil, &KubeconfigError{Access: k.access, Err: all(err)}
	}
	if err := checkPair(cfg); err != nil {
		return nil, &KubeconfigError{Access: k.access, Err: err}
	}
	return cfg, nil
}

// checkPair reads a client certificate that is in files, which otherwise is
// read at the first request, and not spoken of.
func checkPair(cfg *rest.Config) error {
	if cfg.CertFile == "" || len(cfg.CertData) > 0 || len(cfg.KeyData) > 0 {
		return nil
	}
	if _, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile); err != nil {
		return fmt.Errorf("client certificate %s: %w", cfg.CertFile, err)
	}
	return nil
}

// check finds what a context refers to and is not there.
func (k *kubeconfig) check(context *clientcmdapi.Context) error {
	if context.Cluster == "" {
		return errNoCluster
	}
	c, ok := k.Clusters[context.Cluster]
	if !ok {
		return k.dangling("cluster", context.Cluster, slices.Sorted(maps.Keys(k.Clusters)))
	}
	if _, ok := k.AuthInfos[context.AuthInfo]; !ok && context.AuthInfo != "" {
		return k.dangling("user", context.AuthInfo, slices.Sorted(maps.Keys(k.AuthInfos)))
	}
	if c.Server == "" {
		return fmt.Errorf("its cluster %q has no server", context.Cluster)
	}
	if err := checkProxy(c.ProxyURL); err != nil {
		return fmt.Errorf("proxy-url of its cluster %q %w", context.Cluster, err) // not which: it may hold a password
	}
	return nil
}

func (k *kubeconfig) dangling(kind, name string, known []string) error {
	there := "there is none at all"
	if len(known) > 0 {
		there = "there are: " + few(known, ", ")
	}
	return fmt.Errorf("it names the %s %q, which is not in %s; %s", kind, name, strings.Join(k.files, ", "), there)
}

func checkProxy(proxy string) error {
	u, err := url.Parse(proxy)
	switch {
	case proxy == "":
		return nil
	case err != nil:
		return errNoProxyURL
	case !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme):
		return errNoProxyScheme
	default:
		return nil
	}
}

// all is an error of several in one line.
func all(err error) error {
	several, ok := errors.AsType[utilerrors.Aggregate](err)
	if !ok {
		return err
	}
	said := make([]string, 0, len(several.Errors()))
	for _, e := range several.Errors() {
		said = append(said, e.Error())
	}
	return errors.New(strings.Join(said, "; "))
}

// near are the names that were probably meant: misspelt by little, or, as
// people shorten the long ones that clouds make, named by a part.
func near(name string, known []string) []string {
	if best := naming.Nearest(name, known); best != "" {
		return []string{best}
	}
	const least = 3 // letters; fewer are a part of anything
	var out []string
	for _, k := range known {
		short, long := strings.ToLower(name), strings.ToLower(k)
		if len(name) >= least && (strings.Contains(long, short) || len(k) >= least && strings.Contains(short, long)) {
			out = append(out, k)
		}
	}
	return out
}

// few names the first ten and counts the rest.
func few(names []string, between string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, between)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], between), len(names)-most)
}

// SilenceClients keeps the client libraries from writing to the process's
// standard error: what a person should know comes back as an error, and their
// lines would tear the live view.
func SilenceClients() {
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
}
