//go:build e2e

package cases

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"path/filepath"
	"time"
)

// certificates writes, beside a kubeconfig, the files that it refers to: an
// authority that has signed nothing, a user's certificate, and a helper to log
// in.
func (p *place) certificates(dir string) {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p.must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "somebody"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	p.must(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	p.must(err)
	crt := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
	for name, content := range map[string]string{
		"ca.crt": crt, "u.crt": crt,
		"u.key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
	} {
		p.write(filepath.Join(dir, "pki", name), content, 0o600)
	}
	p.write(filepath.Join(dir, "login-helper"), loginHelper, 0o700)
}

// loginHelper hands out a token, and keeps beside itself what it was asked.
const loginHelper = `#!/bin/sh
echo "$KUBERNETES_EXEC_INFO" >> "$0.asked"
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"a-secret-token"}}'
`
