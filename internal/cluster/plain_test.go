package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAServerThatDoesNotAnswerIsSaidInPlainWords(t *testing.T) {
	request := func(err error) error {
		return fmt.Errorf("claims of shop: %w", &url.Error{Op: "Get", URL: "https://10.0.0.1:6443/api/v1/namespaces?timeout=1m0s", Err: err})
	}
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"refused", dial(syscall.ECONNREFUSED), "cannot be reached: connection refused"},
		{"no route", dial(syscall.EHOSTUNREACH), "cannot be reached: no route to it"},
		{"unknown host", &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}}, "cannot be reached: no such host"},
		{"no proxy", &net.OpError{Op: "proxyconnect", Net: "tcp", Err: dial(syscall.ECONNREFUSED)}, "through the kubeconfig's or the environment's proxy cannot be reached: connection refused"},
		{"silence", context.DeadlineExceeded, "does not answer"},
		{"broken off", syscall.ECONNRESET, "closed the connection without an answer"},
		{"anything else", errors.New("odd"), "odd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Plain(request(c.err))
			if !strings.HasPrefix(got, "claims of shop: https://10.0.0.1:6443") || !strings.HasSuffix(got, c.want) || strings.Contains(got, "timeout=") {
				t.Errorf("got %q, want it to end in %q", got, c.want)
			}
		})
	}
}

func TestAServerThatIsNotTrustedOrDoesNotSpeakTLSIsSaidInPlainWords(t *testing.T) {
	get := func(c *http.Client, url string) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	secure, plain := httptest.NewUnstartedServer(http.NotFoundHandler()), httptest.NewServer(http.NotFoundHandler())
	defer secure.Close()
	defer plain.Close()
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it would say that we hung up
	secure.StartTLS()
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}}
	if got := Plain(get(client, secure.URL)); got != secure.URL+": its certificate is not trusted: certificate signed by unknown authority" {
		t.Errorf("not trusted: %q", got)
	}
	notTLS := strings.Replace(plain.URL, "http:", "https:", 1)
	if got := Plain(get(client, notTLS)); got != notTLS+" answers, but does not speak TLS" {
		t.Errorf("no TLS: %q", got)
	}
}
