//go:build e2e

package cluster_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/apitest"
	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/labtest"
)

// door is a real API server with ways to enter it.
type door struct {
	*apitest.Pair
	t      *testing.T
	source *clientcmdapi.Cluster
}

func newDoor(t *testing.T) *door {
	t.Helper()
	p := apitest.For(t, apitest.Options{NoVelero: true})
	raw, err := clientcmd.LoadFromFile(p.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	d := &door{Pair: p, t: t, source: raw.Clusters[p.Source.Access.Context]}
	d.must(p.Source.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "readers"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}},
	}))
	d.must(p.Source.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "readers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "readers"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "readers"}},
	}))
	return d
}

func (d *door) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// token is a token of a new service account. Deleting the account ends it.
func (d *door) token(account string) (string, *corev1.ServiceAccount) {
	d.t.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: account}}
	d.must(d.Source.Create(d.t.Context(), sa))
	request := &authenticationv1.TokenRequest{}
	d.must(d.Source.SubResource("token").Create(d.t.Context(), sa, request))
	return request.Status.Token, sa
}

// enter connects by a user and a cluster that a test may change.
func (d *door) enter(user clientcmdapi.AuthInfo, change ...func(*clientcmdapi.Cluster)) *cluster.Cluster {
	d.t.Helper()
	to := d.source.DeepCopy()
	for _, c := range change {
		c(to)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"], config.AuthInfos["u"] = to, &user
	config.Contexts["src"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	path := filepath.Join(d.t.TempDir(), "kubeconfig")
	d.must(clientcmd.WriteToFile(*config, path))
	c, err := cluster.Connect(cluster.Access{Kubeconfig: path, Context: "src"}, "velero")
	d.must(err)
	return c
}

// admin is who may do everything.
func (d *door) admin() clientcmdapi.AuthInfo {
	cfg := d.Source.Config
	return clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}
}

// lists asks for what only those may see whom the cluster knows.
func (d *door) lists(c *cluster.Cluster) error {
	d.t.Helper()
	return c.List(d.t.Context(), &corev1.NamespaceList{}, client.Limit(1))
}

func TestTheWaysIntoAnAPIServer(t *testing.T) {
	d := newDoor(t)
	for name, test := range map[string]func(*door){
		"a helper's token that is revoked is renewed in the middle": renewedInTheMiddle,
		"a token file that is written anew is read again":           rewrittenTokenFile,
		"a static token that is refused is told as such":            refusedToken,
		"a client certificate that expired is told as such":         expiredCertificate,
		"as another, with groups":                                   asAnother,
		"through a proxy":                                           throughAProxy,
		"by another name of the server":                             byAnotherName,
		"without checking the server's certificate":                 unchecked,
	} {
		t.Run(name, func(t *testing.T) { test(&door{Pair: d.Pair, t: t, source: d.source}) })
	}
}

func renewedInTheMiddle(d *door) {
	d.t.Parallel()
	first, account := d.token("first")
	second, _ := d.token("second")
	dir := d.t.TempDir()
	d.gives(dir, first)
	c := d.enter(clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: os.Args[0], InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode,
		Env: []clientcmdapi.ExecEnvVar{{Name: "MIG_TEST_LOGIN_HELPER", Value: dir}},
	}})
	if _, err := c.Version(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
	d.must(d.Source.Delete(d.t.Context(), account))
	d.gives(dir, second)
	d.untilRefused(first)
	if err := d.lists(c); apierrors.IsUnauthorized(err) {
		d.t.Errorf("the helper has another token now: %v", err)
	}
	d.must(os.Remove(filepath.Join(dir, "answer")))
	d.must(os.WriteFile(filepath.Join(dir, "says"), []byte("session expired: run idp login"), 0o600))
	fresh := d.enter(clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: os.Args[0], InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		InstallHint: "get it from idp.example.com", Env: []clientcmdapi.ExecEnvVar{{Name: "MIG_TEST_LOGIN_HELPER", Value: dir}},
	}})
	_, err := fresh.Version(d.t.Context())
	for _, want := range []string{os.Args[0], "session expired: run idp login", "get it from idp.example.com"} {
		if err == nil || !strings.Contains(cluster.Plain(err), want) {
			d.t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

// gives makes the helper of TestMain give a token.
func (d *door) gives(dir, token string) {
	d.t.Helper()
	answer, err := json.Marshal(map[string]any{
		"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": map[string]string{"token": token},
	})
	d.must(err)
	d.must(os.WriteFile(filepath.Join(dir, "answer"), answer, 0o600))
}

// untilRefused waits until the API server, which keeps its answers about
// tokens for seconds, refuses one.
func (d *door) untilRefused(token string) {
	d.t.Helper()
	c := d.enter(clientcmdapi.AuthInfo{Token: token})
	d.must(labtest.Until(d.t.Context(), time.Minute, "the token of a deleted account is refused", func(context.Context) (labtest.NotYet, error) {
		if apierrors.IsUnauthorized(d.lists(c)) {
			return "", nil
		}
		return "it is still good", nil
	}))
}

func rewrittenTokenFile(d *door) {
	d.t.Parallel()
	first, account := d.token("file-first")
	second, _ := d.token("file-second")
	path := filepath.Join(d.t.TempDir(), "token")
	d.must(os.WriteFile(path, []byte(first+"\n"), 0o600))
	c := d.enter(clientcmdapi.AuthInfo{TokenFile: path})
	if _, err := c.Version(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
	d.must(d.Source.Delete(d.t.Context(), account))
	d.untilRefused(first)
	if err := d.lists(c); !apierrors.IsUnauthorized(err) {
		d.t.Errorf("got %v, want a refusal: the file holds nothing better", err)
	}
	d.must(os.WriteFile(path, []byte(second+"\n"), 0o600))
	if err := d.lists(c); apierrors.IsUnauthorized(err) {
		d.t.Errorf("the file has another token now: %v", err)
	}
}

func refusedToken(d *door) {
	const token = "n0-such-t0ken"
	err := d.lists(d.enter(clientcmdapi.AuthInfo{Token: token}))
	if !cluster.IsDenied(err) || strings.Contains(err.Error(), token) {
		d.t.Errorf("got %v, want a refusal that does not tell the token", err)
	}
	ended := strings.Join([]string{"e30", "eyJleHAiOjE1NzcwODgwMDB9", "c2ln"}, ".") // {"exp":1577088000}
	_, err = d.enter(clientcmdapi.AuthInfo{Token: ended}).Version(d.t.Context())
	if want := "the kubeconfig's token expired on 2019-12-23 08:00 UTC"; err == nil || err.Error() != want || !cluster.IsDenied(err) {
		d.t.Errorf("got %v, want %s", err, want)
	}
}

func expiredCertificate(d *door) {
	certificate, key := pairUntil(d.t, time.Date(2024, 5, 6, 7, 8, 0, 0, time.UTC))
	_, err := d.enter(clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}).Version(d.t.Context())
	if want := "the kubeconfig's client certificate expired on 2024-05-06 07:08 UTC"; err == nil || err.Error() != want || !cluster.IsDenied(err) {
		d.t.Errorf("got %v, want %s", err, want)
	}
}

func pairUntil(t *testing.T, end time.Time) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "me"}, NotBefore: end.Add(-time.Hour), NotAfter: end,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

func asAnother(d *door) {
	user := d.admin()
	user.Impersonate = "jane"
	err := d.lists(d.enter(user))
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"jane"`) {
		d.t.Errorf("got %v, want jane refused", err)
	}
	user.ImpersonateGroups = []string{"readers"}
	c := d.enter(user)
	if err := c.List(d.t.Context(), &corev1.PodList{}, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		d.t.Errorf("readers may read: %v", err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "x"}}
	if err := c.Create(d.t.Context(), cm); !apierrors.IsForbidden(err) {
		d.t.Errorf("got %v, want readers not to write", err)
	}
}

// throughAProxy tells that requests go through the proxy, with its password,
// which no error repeats.
func throughAProxy(d *door) {
	const password = "pr0xy-passw0rd"
	var tunnels atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Proxy-Authorization"), "Basic ") {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		tunnels.Add(1)
		tunnel(w, r)
	}))
	defer proxy.Close()
	address := strings.TrimPrefix(proxy.URL, "http://")
	by := func(proxyURL string) *cluster.Cluster {
		return d.enter(d.admin(), func(c *clientcmdapi.Cluster) { c.ProxyURL = proxyURL })
	}
	if err := d.lists(by("http://me:" + password + "@" + address)); err != nil || tunnels.Load() == 0 {
		d.t.Errorf("got %v after %d tunnels, want the list through one", err, tunnels.Load())
	}
	for name, c := range map[string]struct{ proxy, want string }{
		"it wants a password":  {"http://" + address, "Proxy Authentication Required"},
		"nobody listens there": {"http://me:" + password + "@127.0.0.1:1", "through the kubeconfig's or the environment's proxy cannot be reached: connection refused"},
	} {
		err := d.lists(by(c.proxy))
		if err == nil || !strings.Contains(cluster.Plain(err), c.want) || strings.Contains(err.Error(), password) {
			d.t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

// tunnel joins a client with the server that it wants.
func tunnel(w http.ResponseWriter, r *http.Request) {
	to, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	from, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = to.Close()
		return
	}
	_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
	go func() { _, _ = io.Copy(from, to); _ = from.Close() }()
}

// byAnotherName reaches the server by an address that its certificate does not
// name.
func byAnotherName(d *door) {
	server, err := url.Parse(d.source.Server)
	d.must(err)
	server.Host = net.JoinHostPort("127.0.0.2", server.Port())
	forward := forwardTo(d.t, d.source.Server, server.Host)
	elsewhere := func(c *clientcmdapi.Cluster) { c.Server = "https://" + forward }
	untrusted := x509.HostnameError{}
	if err := d.lists(d.enter(d.admin(), elsewhere)); !errors.As(err, &untrusted) {
		d.t.Errorf("got %v, want the certificate not to be of that name", err)
	}
	named := func(c *clientcmdapi.Cluster) { c.TLSServerName = "localhost" }
	if err := d.lists(d.enter(d.admin(), elsewhere, named)); err != nil {
		d.t.Error(err)
	}
}

// forwardTo listens on an address and hands every connection on to a server.
func forwardTo(t *testing.T, server, address string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", u.Host)
			if err != nil {
				_ = from.Close()
				continue
			}
			go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
			go func() { _, _ = io.Copy(from, to); _ = from.Close() }()
		}
	}()
	return l.Addr().String()
}

func unchecked(d *door) {
	nobodys := func(c *clientcmdapi.Cluster) { c.CertificateAuthorityData = nil }
	unknown := x509.UnknownAuthorityError{}
	if err := d.lists(d.enter(d.admin(), nobodys)); !errors.As(err, &unknown) {
		d.t.Errorf("got %v, want the certificate not to be trusted", err)
	}
	insecure := func(c *clientcmdapi.Cluster) { c.InsecureSkipTLSVerify = true }
	if err := d.lists(d.enter(d.admin(), nobodys, insecure)); err != nil {
		d.t.Errorf("the user wants it unchecked: %v", err)
	}
}
