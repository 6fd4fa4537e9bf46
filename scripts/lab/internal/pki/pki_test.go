package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
)

func TestIssue(t *testing.T) {
	authority, err := NewAuthority("lab")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority.Cert) {
		t.Fatal("the authority's certificate is none")
	}
	tests := map[string]struct {
		identity Identity
		usage    x509.ExtKeyUsage
		host     string
	}{
		"a client":                  {Identity{Name: "system:node:a", Groups: []string{"system:nodes"}}, x509.ExtKeyUsageClientAuth, ""},
		"a server with an address":  {Identity{Name: "kube-apiserver", Hosts: []string{"kubernetes", "172.31.0.11"}}, x509.ExtKeyUsageServerAuth, "172.31.0.11"},
		"a server with a host name": {Identity{Name: "kube-apiserver", Hosts: []string{"kubernetes"}}, x509.ExtKeyUsageServerAuth, "kubernetes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pair, err := authority.Issue(test.identity)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tls.X509KeyPair(pair.Cert, pair.Key); err != nil {
				t.Fatal("key and certificate do not fit:", err)
			}
			cert := parse(t, pair.Cert)
			if _, err := cert.Verify(x509.VerifyOptions{Roots: pool, DNSName: test.host, KeyUsages: []x509.ExtKeyUsage{test.usage}}); err != nil {
				t.Error(err)
			}
			if cert.Subject.CommonName != test.identity.Name || len(cert.Subject.Organization) != len(test.identity.Groups) {
				t.Errorf("got subject %s, want %+v", cert.Subject, test.identity)
			}
			if cert.IsCA {
				t.Error("it may sign others")
			}
		})
	}
}

func TestAnotherAuthorityIsNotTrusted(t *testing.T) {
	one, err := NewAuthority("one")
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewAuthority("one")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := other.Issue(Identity{Name: "admin", Groups: []string{"system:masters"}})
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(one.Cert)
	if _, err := parse(t, pair.Cert).Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
		t.Error("one cluster's administrator is another's")
	}
}

func TestKeysAreForTheirOwnerOnly(t *testing.T) {
	keys, err := NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := keys.Write(dir, "tokens"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "tokens.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want mode 0600", info, err)
	}
}

func parse(t *testing.T, certificate []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(certificate)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
