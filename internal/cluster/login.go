package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/runtime"
	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientauthv1beta1 "k8s.io/client-go/pkg/apis/clientauthentication/v1beta1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// LoginTimeout bounds one run of a login helper: a person may have to find a
// browser's window and a second factor.
const LoginTimeout = 3 * time.Minute

// Console is where a login helper may ask its user, and where requests are
// logged.
type Console struct {
	In  *os.File     // a terminal; nil: nobody can be asked
	Err io.Writer    // what a helper says while it asks
	Log *slog.Logger // is told of every request; nil: nobody is
}

// LoginError is a login helper of a kubeconfig (its users[].exec) that gave no
// credentials. Which cluster it was for, whoever asked the cluster says.
type LoginError struct {
	Command     string
	Said        string // the end of what it wrote to its standard error
	InstallHint string // what the kubeconfig says of how to get the helper
	Err         error

	worked bool // it gave credentials before
}

func (e *LoginError) Error() string {
	said := fmt.Sprintf("login helper %s: %v", e.Command, e.Err)
	if e.Said != "" {
		said += ": " + e.Said
	}
	if e.InstallHint != "" {
		said += "; the kubeconfig says of it: " + e.InstallHint
	}
	return said
}

func (e *LoginError) Unwrap() error { return e.Err }

var (
	errNotFound     = errors.New("there is no such program")
	errNoTerminal   = errors.New("it wants to ask its user and there is no terminal: run it once at one, or in a kubectl command")
	errNoAnswer     = errors.New("it has not answered yet")
	errSlowHelper   = fmt.Errorf("it did not end within %s", LoginTimeout)
	errNoCredential = errors.New("its answer is no ExecCredential")
	errNoStatus     = errors.New("its answer holds no credentials")
	errHalfPair     = errors.New("its answer holds a certificate without key, or a key without certificate")
	errBadPair      = errors.New("certificate and key in its answer do not fit or cannot be read")
)

// login gets credentials from a helper program and keeps them until they
// expire or are refused. client-go has the same, but writes what a helper says
// to the process's standard error, past the live view and away from the error
// that it explains, and cannot be told to stop waiting.
type login struct {
	helper  *clientcmdapi.ExecConfig
	cluster *clientauthv1.Cluster // nil: the helper does not ask for it
	console Console
	renewed func() // called when there is another client certificate

	turn chan struct{} // holds one who runs the helper
	have atomic.Pointer[credentials]
}

// credentials are what a request is made with. They are not changed any more.
type credentials struct {
	token       string
	certificate *tls.Certificate
	expires     time.Time // zero: unknown
}

func (c *credentials) usable(now time.Time) bool {
	return c != nil && (c.expires.IsZero() || now.Before(c.expires))
}

func newLogin(cfg *rest.Config, console Console) (*login, error) {
	l := &login{helper: cfg.ExecProvider, console: console, renewed: func() {}, turn: make(chan struct{}, 1)}
	if !l.helper.ProvideClusterInfo {
		return l, nil
	}
	info, err := rest.ConfigToExecCluster(cfg)
	if err != nil {
		return nil, err
	}
	l.cluster = &clientauthv1.Cluster{
		Server: info.Server, TLSServerName: info.TLSServerName, InsecureSkipTLSVerify: info.InsecureSkipTLSVerify,
		CertificateAuthorityData: info.CertificateAuthorityData, ProxyURL: info.ProxyURL, DisableCompression: info.DisableCompression,
	}
	if raw, ok := info.Config.(*runtime.Unknown); ok {
		l.cluster.Config.Raw = raw.Raw
	}
	return l, nil
}

// get gives credentials other than the refused ones, by running the helper
// where there are none. Where ctx's time is up before the helper ends, it goes
// on, for a person may be about to answer it: what it gets serves the next who
// asks.
// Errors: *LoginError, ctx's.
func (l *login) get(ctx context.Context, refused *credentials) (*credentials, error) {
	if have := l.have.Load(); have != refused && have.usable(time.Now()) {
		return have, nil
	}
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, l.notYet(ctx)
	}
	type answer struct {
		got *credentials
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		defer func() { <-l.turn }()
		alone, end := outliving(ctx)
		defer end()
		got, err := l.renew(alone, refused)
		answered <- answer{got, err}
	}()
	select {
	case a := <-answered:
		return a.got, a.err
	case <-ctx.Done():
		return nil, l.notYet(ctx)
	}
}

// outliving is a context that goes on when the time of another is up, but not
// when that is cancelled, which a person's interrupt does.
func outliving(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), LoginTimeout)
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})
	return out, func() { stop(); cancel() }
}

// renew runs the helper, if nobody did while we waited for our turn.
func (l *login) renew(ctx context.Context, refused *credentials) (*credentials, error) {
	before := l.have.Load()
	if before != refused && before.usable(time.Now()) {
		return before, nil
	}
	got, err := l.run(ctx)
	if err != nil {
		return nil, err
	}
	l.have.Store(got)
	if before != nil && !samePair(before.certificate, got.certificate) {
		l.renewed()
	}
	return got, nil
}

func samePair(a, b *tls.Certificate) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.EqualFunc(a.Certificate, b.Certificate, bytes.Equal)
}

// certificate is the client certificate for a new connection; none where the
// helper gives tokens.
func (l *login) certificate() (*tls.Certificate, error) {
	if have := l.have.Load(); have != nil {
		return have.certificate, nil
	}
	return nil, nil //nolint:nilnil // as transport.GetCertHolder has it
}

func (l *login) notYet(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return l.failed(errNoAnswer, "")
}

func (l *login) failed(err error, said string) error {
	return &LoginError{
		Command: l.helper.Command, Said: said, InstallHint: oneLine(l.helper.InstallHint),
		Err: err, worked: l.have.Load() != nil,
	}
}

// run runs the helper once. Errors: *LoginError.
func (l *login) run(ctx context.Context) (*credentials, error) {
	if err := l.checkVersion(); err != nil {
		return nil, l.failed(err, "")
	}
	asks := l.helper.InteractiveMode != clientcmdapi.NeverExecInteractiveMode && l.console.In != nil
	if !asks && l.helper.InteractiveMode == clientcmdapi.AlwaysExecInteractiveMode {
		return nil, l.failed(errNoTerminal, "")
	}
	cmd, err := l.command(ctx, asks)
	if err != nil {
		return nil, l.failed(err, "")
	}
	var out bytes.Buffer
	said := &tail{}
	cmd.Stdout, cmd.Stderr = &out, said
	if asks {
		cmd.Stdin, cmd.Stderr = l.console.In, io.MultiWriter(said, l.console.Err)
	}
	if err := cmd.Run(); err != nil {
		return nil, l.failed(whyNotRun(ctx, err), said.String())
	}
	got, err := l.read(out.Bytes())
	if err != nil {
		return nil, l.failed(err, said.String()) // never what it wrote to its standard output
	}
	return got, nil
}

func (l *login) checkVersion() error {
	switch v := l.helper.APIVersion; v {
	case clientauthv1.SchemeGroupVersion.String(), clientauthv1beta1.SchemeGroupVersion.String():
		return nil
	default:
		return fmt.Errorf("the kubeconfig wants it to speak %s, which Kubernetes has dropped: have a newer version of it write the kubeconfig, for %s",
			cmp.Or(v, "no apiVersion"), clientauthv1.SchemeGroupVersion)
	}
}

func (l *login) command(ctx context.Context, asks bool) (*exec.Cmd, error) {
	ask := clientauthv1.ExecCredential{Spec: clientauthv1.ExecCredentialSpec{Interactive: asks, Cluster: l.cluster}}
	ask.APIVersion, ask.Kind = l.helper.APIVersion, credentialKind
	info, err := json.Marshal(ask)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, l.helper.Command, l.helper.Args...)
	cmd.WaitDelay = time.Second // a child of the helper that keeps its output open is not waited for
	cmd.Env = os.Environ()
	for _, e := range l.helper.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	cmd.Env = append(cmd.Env, "KUBERNETES_EXEC_INFO="+string(info))
	return cmd, nil
}

const credentialKind = "ExecCredential"

func whyNotRun(ctx context.Context, err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err // the command is named already
	}
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return errSlowHelper
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return errNotFound
	case ended:
		return fmt.Errorf("it ended with %w", exit) // exit status 1
	default:
		return err
	}
}

// read reads a helper's answer. Its errors hold nothing of it.
func (l *login) read(answer []byte) (*credentials, error) {
	var c clientauthv1.ExecCredential
	if err := json.Unmarshal(answer, &c); err != nil || c.Kind != credentialKind {
		return nil, errNoCredential
	}
	if c.APIVersion != l.helper.APIVersion {
		return nil, fmt.Errorf("it answers in another apiVersion than %s, which it was asked for", l.helper.APIVersion)
	}
	s := c.Status
	switch {
	case s == nil, s.Token == "" && s.ClientCertificateData == "" && s.ClientKeyData == "":
		return nil, errNoStatus
	case (s.ClientCertificateData == "") != (s.ClientKeyData == ""):
		return nil, errHalfPair
	}
	got := &credentials{token: s.Token}
	if s.ExpirationTimestamp != nil {
		got.expires = s.ExpirationTimestamp.Time
	}
	if s.ClientCertificateData == "" {
		return got, nil
	}
	pair, err := tls.X509KeyPair([]byte(s.ClientCertificateData), []byte(s.ClientKeyData))
	if err != nil {
		return nil, errBadPair
	}
	got.certificate = &pair
	if leaf := pair.Leaf; got.expires.IsZero() && leaf != nil {
		got.expires = leaf.NotAfter
	}
	return got, nil
}

// tail keeps the end of what is written to it.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	const most = 1024
	t.kept = append(t.kept, p...)
	t.kept = t.kept[max(0, len(t.kept)-most):]
	return len(p), nil
}

// String is the end in one line.
func (t *tail) String() string { return oneLine(string(t.kept)) }

var steering = regexp.MustCompile("\x1b\\[[0-9;?]*[a-zA-Z]")

// oneLine is a text without line ends and without what steers a terminal.
func oneLine(text string) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, steering.ReplaceAllString(text, ""))
	return strings.Join(strings.Fields(printable), " ")
}
