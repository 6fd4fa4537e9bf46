package cluster

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// Greeting is what a cluster's answer tells beside its content.
type Greeting struct {
	Now              time.Time // by the API server's own clock, to the second
	CertificateUntil time.Time // when the API server's certificate ends; zero without TLS
}

// Greet asks the cluster for its time and shows its certificate. It costs one
// small request.
func (c *Cluster) Greet(ctx context.Context) (Greeting, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Discovery.RESTClient().Get().AbsPath("/version").URL().String(), nil)
	if err != nil {
		return Greeting{}, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return Greeting{}, err
	}
	if err := resp.Body.Close(); err != nil {
		return Greeting{}, err
	}
	now, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return Greeting{}, fmt.Errorf("%s does not tell its time: %w", c.Server, err)
	}
	g := Greeting{Now: now}
	if resp.TLS != nil && len(resp.TLS.PeerCertificates) > 0 {
		g.CertificateUntil = resp.TLS.PeerCertificates[0].NotAfter
	}
	return g, nil
}

// Credentials is how we prove who we are, as far as it can be told without
// asking anybody.
type Credentials struct {
	What  string    // client certificate, token; empty: something else, a credential plugin for one
	Until time.Time // when it ends; zero: never, or not told
	// Insecure: the kubeconfig says that the API server's certificate is not to be checked.
	Insecure bool
}

// Credentials reads the configuration; it asks nobody.
func (c *Cluster) Credentials() Credentials {
	if c.Config == nil {
		return Credentials{}
	}
	out := Credentials{Insecure: c.Config.Insecure}
	if token := bearer(c.Config); token != "" {
		out.What, out.Until = "token", tokenUntil(token)
		return out
	}
	if pemData := either(c.Config.CertData, c.Config.CertFile); len(pemData) > 0 {
		out.What, out.Until = "client certificate", certificateUntil(pemData)
	}
	return out
}

func bearer(cfg *rest.Config) string {
	if cfg.BearerTokenFile != "" {
		if b, err := os.ReadFile(cfg.BearerTokenFile); err == nil {
			return strings.TrimSpace(string(b)) // the file is read before each request, so it is what counts
		}
	}
	return cfg.BearerToken
}

func either(data []byte, file string) []byte {
	if len(data) == 0 && file != "" {
		data, _ = os.ReadFile(file) // unreadable: the first request says so
	}
	return data
}

// tokenUntil reads the end of a JSON Web Token; zero for any other token.
func tokenUntil(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Exp int64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Exp <= 0 {
		return time.Time{}
	}
	return time.Unix(claims.Exp, 0).UTC()
}

func certificateUntil(data []byte) time.Time {
	block, _ := pem.Decode(data)
	if block == nil {
		return time.Time{}
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}
	}
	return cert.NotAfter
}
