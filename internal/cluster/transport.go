package cluster

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/connrotation"
)

// source gives the credentials that requests are made with.
type source interface {
	// get gives credentials other than the refused ones, if there are any.
	get(ctx context.Context, refused *credentials) (*credentials, error)
}

// httpClientFor makes the client that all requests to a cluster go through.
// Credentials that are renewed outside of this process are taken from where
// they are when they are needed, so that a run of hours does not end with the
// token it began with.
func httpClientFor(cfg *rest.Config, console Console) (*http.Client, *login, error) {
	own := rest.CopyConfig(cfg)
	own.ExecProvider, own.BearerTokenFile = nil, ""
	switch {
	case cfg.ExecProvider != nil:
		l, err := newLogin(cfg, console)
		if err != nil {
			return nil, nil, err
		}
		base, err := loginTransport(own, l)
		return &http.Client{Transport: &renewing{source: l, base: base}, Timeout: cfg.Timeout}, l, err
	case cfg.BearerTokenFile != "":
		own.BearerToken = ""
		base, err := rest.TransportFor(own)
		return &http.Client{Transport: &renewing{source: &tokenFile{path: cfg.BearerTokenFile}, base: base}, Timeout: cfg.Timeout}, nil, err
	default:
		c, err := rest.HTTPClientFor(cfg)
		return c, nil, err
	}
}

// loginTransport presents the client certificate of a login, and dials anew
// when there is another.
func loginTransport(cfg *rest.Config, l *login) (http.RoundTripper, error) {
	tc, err := cfg.TransportConfig()
	if err != nil {
		return nil, err
	}
	if cfg.Dial != nil {
		dialer := connrotation.NewDialer(cfg.Dial)
		tc.DialHolder = &transport.DialHolder{Dial: dialer.DialContext}
		l.renewed = dialer.CloseAll
	}
	tc.TLS.GetCertHolder = &transport.GetCertHolder{GetCert: l.certificate}
	return transport.New(tc)
}

// renewing makes requests with the credentials of a source, and once more with
// new ones where a cluster refuses them: they may have been renewed early, or
// revoked.
type renewing struct {
	source source
	base   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *renewing) RoundTrip(req *http.Request) (*http.Response, error) {
	had, err := t.source.get(req.Context(), nil)
	if err != nil {
		return nil, closing(req, err)
	}
	resp, err := t.base.RoundTrip(had.on(req))
	if err != nil || resp.StatusCode != http.StatusUnauthorized || !repeatable(req) {
		return resp, err
	}
	renewed, err := t.source.get(req.Context(), had)
	if err == nil && renewed == had {
		return resp, nil // there is nothing better
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // so that the connection can be used again
	_ = resp.Body.Close()
	if err != nil {
		return nil, err // why there are no others says more than the refusal
	}
	again := renewed.on(req)
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return t.base.RoundTrip(again)
}

// closing closes a request's body, as whoever does not send it must.
func closing(req *http.Request, err error) error {
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return err
}

// repeatable says whether a request can be sent twice.
func repeatable(req *http.Request) bool {
	return req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
}

// on is the request with the credentials.
func (c *credentials) on(req *http.Request) *http.Request {
	if c.token == "" || req.Header.Get("Authorization") != "" {
		return req
	}
	out := req.Clone(req.Context())
	out.Header.Set("Authorization", "Bearer "+c.token)
	return out
}

// tokenFile is a file that others write the token to, again and again.
type tokenFile struct {
	path string
	last atomic.Pointer[credentials]
}

// get reads the file; while it cannot be read the last token is good enough.
func (f *tokenFile) get(context.Context, *credentials) (*credentials, error) {
	last := f.last.Load()
	data, err := os.ReadFile(f.path)
	if err != nil && last != nil {
		return last, nil
	}
	if err != nil {
		return nil, err
	}
	token := strings.TrimSpace(string(data))
	if last != nil && (token == last.token || token == "") {
		return last, nil
	}
	read := &credentials{token: token}
	f.last.Store(read)
	return read, nil
}
