package cluster

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// gate is an API server that lets in who bears one of its tokens.
type gate struct {
	*httptest.Server
	valid  []string
	bodies []string // of the requests that were let in
}

func newGate(t *testing.T, valid ...string) *gate {
	t.Helper()
	g := &gate{valid: valid}
	g.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		if !slices.Contains(g.valid, token) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","message":"Unauthorized","code":401}`)
			return
		}
		g.bodies = append(g.bodies, string(body))
		_, _ = io.WriteString(w, `{"gitVersion":"v1.34.4"}`)
	}))
	g.Config.ErrorLog = log.New(io.Discard, "", 0)
	g.StartTLS()
	t.Cleanup(g.Close)
	return g
}

// by is the cluster behind the gate, entered by a helper.
func (g *gate) by(t *testing.T, e *clientcmdapi.ExecConfig) *Cluster {
	t.Helper()
	c, err := New(&rest.Config{
		Host: g.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, ExecProvider: e, Timeout: 30 * time.Second,
	}, Access{Context: "src"}, "velero")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func version(t *testing.T, c *Cluster) error {
	t.Helper()
	_, err := c.Version(t.Context())
	return err
}

func TestALoginHelperIsRunOnceForManyRequests(t *testing.T) {
	h, g := newHelper(t), newGate(t, "one")
	h.gives("one", "")
	c := g.by(t, h.exec())
	if len(h.asked()) != 0 {
		t.Error("the helper was run before anything was asked")
	}
	if err := c.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := version(t, c); err != nil {
			t.Fatal(err)
		}
	}
	want := `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}`
	if got := h.asked(); !slices.Equal(got, []string{want}) {
		t.Errorf("asked %v, want once: %s", got, want)
	}
}

func TestALoginHelperIsToldOfTheClusterWhereItAsksForThat(t *testing.T) {
	h, g := newHelper(t), newGate(t, "one")
	h.gives("one", "")
	e := h.exec()
	e.ProvideClusterInfo = true
	e.Config = &runtime.Unknown{Raw: []byte(`{"audience":"shop"}`)}
	if err := version(t, g.by(t, e)); err != nil {
		t.Fatal(err)
	}
	want := `"cluster":{"server":"` + g.URL + `","insecure-skip-tls-verify":true,"config":{"audience":"shop"}}`
	if got := h.asked(); len(got) != 1 || !strings.Contains(got[0], want) {
		t.Errorf("asked %v, want %s", got, want)
	}
}

func TestATokenThatExpiresIsRenewed(t *testing.T) {
	h, g := newHelper(t), newGate(t, "one", "two")
	h.gives("one", "2020-01-01T00:00:00Z")
	c := g.by(t, h.exec())
	if err := version(t, c); err != nil {
		t.Fatal(err)
	}
	g.valid = []string{"two"}
	h.gives("two", "2090-01-01T00:00:00Z")
	for range 2 {
		if err := version(t, c); err != nil {
			t.Errorf("the token that the helper gives now: %v", err)
		}
	}
	if n := len(h.asked()); n != 2 {
		t.Errorf("asked %d times, want twice: the second token lasts", n)
	}
}

func TestATokenThatIsRefusedIsRenewedAndTheRequestMadeAgain(t *testing.T) {
	h, g := newHelper(t), newGate(t, "one")
	h.gives("one", "")
	c := g.by(t, h.exec())
	if err := version(t, c); err != nil {
		t.Fatal(err)
	}
	g.valid = []string{"two"}
	h.gives("two", "")
	if err := c.Discovery.RESTClient().Post().AbsPath("/x").Body([]byte(`{"a":1}`)).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	if got := g.bodies[len(g.bodies)-1]; got != `{"a":1}` {
		t.Errorf("the second time the body was %q", got)
	}
	g.valid = nil
	if err := version(t, c); !IsDenied(err) {
		t.Errorf("got %v, want the cluster's refusal where new credentials are no better", err)
	}
	h.fails("session over: log in again")
	if err := version(t, c); err == nil || !strings.Contains(err.Error(), "session over: log in again") {
		t.Errorf("got %v, want what the helper says, for it explains the refusal", err)
	}
}

func TestAHelperThatGivesNoCredentialsIsNamedWithWhatItSays(t *testing.T) {
	const secret = "s3cr3t-t0ken"
	credential := func(version, status string) string {
		return `{"apiVersion":"client.authentication.k8s.io/` + version + `","kind":"ExecCredential","status":` + status + `}`
	}
	for name, c := range map[string]struct {
		says, answer string
		change       func(*clientcmdapi.ExecConfig)
		want         string
	}{
		"it fails": {
			says: "\x1b[31mThe SSO session has expired.\x1b[0m\nrun: aws sso login\n",
			want: "it ended with exit status 3: The SSO session has expired. run: aws sso login",
		},
		"it is not there": {
			change: func(e *clientcmdapi.ExecConfig) { e.Command = "no-such-helper" },
			want:   "login helper no-such-helper: there is no such program",
		},
		"it is not there where the kubeconfig says": {
			change: func(e *clientcmdapi.ExecConfig) { e.Command = "/no/such/helper" },
			want:   "login helper /no/such/helper: there is no such program",
		},
		"it may not be run": {
			change: func(e *clientcmdapi.ExecConfig) { e.Command = os.TempDir() },
			want:   "permission denied",
		},
		"the kubeconfig is of a time gone by": {
			change: func(e *clientcmdapi.ExecConfig) { e.APIVersion = "client.authentication.k8s.io/v1alpha1" },
			want:   "client.authentication.k8s.io/v1alpha1, which Kubernetes has dropped",
		},
		"it must ask and nobody is there": {
			change: func(e *clientcmdapi.ExecConfig) { e.InteractiveMode = clientcmdapi.AlwaysExecInteractiveMode },
			want:   "there is no terminal",
		},
		"it answers something else":      {answer: secret, want: "its answer is no ExecCredential"},
		"it answers another kind":        {answer: `{"kind":"` + secret + `"}`, want: "its answer is no ExecCredential"},
		"it answers another apiVersion":  {answer: credential("v1beta1", `{"token":"`+secret+`"}`), want: "another apiVersion than client.authentication.k8s.io/v1,"},
		"it answers nothing of use":      {answer: credential("v1", `null`), says: "no account\n", want: "holds no credentials: no account"},
		"it answers half a pair":         {answer: credential("v1", `{"clientKeyData":"`+secret+`"}`), want: "a key without certificate"},
		"it answers a pair that is none": {answer: credential("v1", `{"clientCertificateData":"x","clientKeyData":"`+secret+`"}`), want: "do not fit or cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			h, g := newHelper(t), newGate(t)
			h.write("says", c.says)
			if c.answer != "" {
				h.write("answer", c.answer)
			}
			e := h.exec()
			e.Env = append(e.Env, clientcmdapi.ExecEnvVar{Name: "CLIENT_SECRET", Value: secret})
			e.Args = []string{"--client-secret=" + secret}
			e.InstallHint = "get it with:\n  brew install helper"
			if c.change != nil {
				c.change(e)
			}
			err := version(t, g.by(t, e))
			if _, ok := errors.AsType[*LoginError](err); !ok {
				t.Fatalf("got %v, want a *LoginError", err)
			}
			for _, want := range []string{c.want, e.Command, "get it with: brew install helper"} {
				if !strings.Contains(Plain(err), want) {
					t.Errorf("got %q, want %q in it", Plain(err), want)
				}
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("a secret is in %q", err)
			}
			if IsPassing(err) {
				t.Error("a helper that never worked would be run again and again")
			}
		})
	}
}

func TestAHelperThatWorkedAndFailsOnceDoesNotEndARun(t *testing.T) {
	h, g := newHelper(t), newGate(t, "one")
	h.gives("one", "2020-01-01T00:00:00Z")
	c := g.by(t, h.exec())
	if err := version(t, c); err != nil {
		t.Fatal(err)
	}
	h.fails("identity provider: connection refused")
	if err := version(t, c); !IsPassing(err) {
		t.Errorf("got %v, want one that passes by itself", err)
	}
	h.gives("one", "2090-01-01T00:00:00Z")
	if err := version(t, c); err != nil {
		t.Error(err)
	}
}

func TestAHelperThatDoesNotEndIsNotWaitedForLongerThanTheRequest(t *testing.T) {
	h, g := newHelper(t), newGate(t)
	h.write("hangs", "")
	c := g.by(t, h.exec())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	var login *LoginError
	if _, err := c.Version(ctx); !errors.As(err, &login) || !strings.Contains(err.Error(), "it has not answered yet") {
		t.Errorf("got %v, want the helper named", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := c.Login(stopped); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the interrupt", err)
	}
}

func TestAHelperAsksAtTheTerminalThatThereIs(t *testing.T) {
	terminal, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	for mode, want := range map[clientcmdapi.ExecInteractiveMode]bool{
		clientcmdapi.NeverExecInteractiveMode: false, clientcmdapi.IfAvailableExecInteractiveMode: true, clientcmdapi.AlwaysExecInteractiveMode: true,
	} {
		t.Run(string(mode), func(t *testing.T) {
			h, g := newHelper(t), newGate(t, "one")
			h.gives("one", "")
			h.write("says", "open https://login.example.com and enter ABCD\n")
			e := h.exec()
			e.InteractiveMode = mode
			var shown strings.Builder
			c, err := Console{In: terminal, Err: &shown}.open(&rest.Config{
				Host: g.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, ExecProvider: e,
			}, Access{Context: "src"}, "velero")
			if err != nil {
				t.Fatal(err)
			}
			if err := version(t, c); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(h.asked()[0], `"interactive":true`); got != want {
				t.Errorf("told that it may ask: %v, want %v", got, want)
			}
			if got := strings.Contains(shown.String(), "enter ABCD"); got != want {
				t.Errorf("shown to the person: %q, want %v", shown.String(), want)
			}
		})
	}
}

func TestATokenFileThatOthersRewriteIsReadAgain(t *testing.T) {
	g := newGate(t, "one")
	path := t.TempDir() + "/token"
	write := func(token string) {
		if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	c, err := New(&rest.Config{
		Host: g.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, BearerToken: "one", BearerTokenFile: path,
	}, Access{Context: "src"}, "velero")
	if err != nil {
		t.Fatal(err)
	}
	if err := version(t, c); err != nil {
		t.Fatal(err)
	}
	g.valid = []string{"two"}
	write("two")
	if err := version(t, c); err != nil {
		t.Errorf("after the file was written anew: %v", err)
	}
	for _, state := range []struct {
		name   string
		become func() error
	}{
		{"emptied for a moment", func() error { return os.WriteFile(path, nil, 0o600) }},
		{"gone for a moment", func() error { return os.Remove(path) }},
	} {
		if err := state.become(); err != nil {
			t.Fatal(err)
		}
		if err := version(t, c); err != nil {
			t.Errorf("a file that is %s: %v", state.name, err)
		}
	}
}
