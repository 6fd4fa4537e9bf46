package progress

import (
	"strings"
	"testing"
)

func TestSecretsAreHiddenInEveryShapeThatErrorsQuote(t *testing.T) {
	for _, text := range []string{
		`Get "https://jane:s3cr3t-value@api.example.com/": refused`,
		`Authorization: Bearer s3cr3t-value.abc`,
		`exec plugin: token=s3cr3t-value expired`,
		`{"password": "s3cr3t-value"}`,
		`aws_secret_access_key = s3cr3t-value`,
		`AZURE_STORAGE_ACCOUNT_ACCESS_KEY: ok, AZURE_CLIENT_SECRET='s3cr3t-value'`,
		`PUT https://s3/bucket?X-Amz-Signature=s3cr3t-value&x=1: 403`,
		"-----BEGIN RSA PRIVATE KEY-----\ns3cr3t-value\n-----END RSA PRIVATE KEY-----",
		`POSTGRES_PASSWORD=s3cr3t-value`,
	} {
		if got := Redact(text); strings.Contains(got, "s3cr3t") {
			t.Errorf("%s\nbecame %s", text, got)
		}
	}
	if got := Redact("key AKIAIOSFODNN7EXAMPLE is unknown, eyJhbGciOiJSUzI1.eyJpc3MiOi.c2ln too"); strings.Contains(got, "AKIA") || strings.Contains(got, "eyJ") {
		t.Errorf("got %s", got)
	}
}

func TestOrdinarySentencesStayAsTheyAre(t *testing.T) {
	for _, text := range []string{
		"Step 7 of 21 completed in 12s: backup mig-shop-abcdefghij-stage Completed, 2 of 2 volumes, 38 MB",
		`secrets "cloud-credentials" is forbidden: User "jane" cannot get resource "secrets" in API group "" in the namespace "velero"`,
		"storage location default is Unavailable on the destination: dial tcp 10.0.0.1:9000: connect: connection refused",
		"replicas 3 → 0",
	} {
		if got := Redact(text); got != text {
			t.Errorf("%q\nbecame %q", text, got)
		}
	}
}
