package repository

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEndpoint(t *testing.T) {
	for address, want := range map[string]struct {
		region, host string
		plain, fails bool
	}{
		"":                          {host: "s3.amazonaws.com"},
		"http://10.0.0.1:7070":      {host: "10.0.0.1:7070", plain: true},
		"http://10.0.0.1:7070/":     {host: "10.0.0.1:7070", plain: true},
		"https://s3.test":           {region: "eu-1", host: "s3.test"},
		"s3.test:9000":              {host: "s3.test:9000"},
		"https://s3.test/path":      {fails: true},
		"ftp://s3.test":             {fails: true},
		"https://user:pw@s3.test":   {fails: true},
		"https://":                  {fails: true},
		"https://s3.test:no-number": {fails: true},
	} {
		host, plain, err := endpoint(address, want.region)
		if host != want.host || plain != want.plain || (err != nil) != want.fails {
			t.Errorf("%q: got %q, %v, %v", address, host, plain, err)
		}
		if err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("%q: a password was told: %v", address, err)
		}
	}
	if host, _, err := endpoint("", "eu-central-1"); host != "s3.eu-central-1.amazonaws.com" || err != nil {
		t.Errorf("got %q, %v", host, err)
	}
}

func TestKeysComeFromVelerosFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cloud")
	content := "[default]\naws_access_key_id=key\naws_secret_access_key=secret\n\n[two]\naws_access_key_id = key2\naws_secret_access_key = secret2\naws_session_token = token2\n[none]\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	getenv := func(string) string { return file }
	for profile, want := range map[string][3]string{"": {"key", "secret", ""}, "two": {"key2", "secret2", "token2"}} {
		options, err := Storage{Bucket: "b", Profile: profile}.s3Options(getenv)
		if got := [3]string{options.AccessKeyID, options.SecretAccessKey, options.SessionToken}; got != want || err != nil {
			t.Errorf("%q: got %q, %v", profile, got, err)
		}
	}
	for _, profile := range []string{"none", "missing"} {
		if _, err := (Storage{Bucket: "b", Profile: profile}).s3Options(getenv); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v", profile, err)
		}
	}
	if options, err := (Storage{Bucket: "b"}).s3Options(func(string) string { return "" }); err != nil || options.AccessKeyID != "" {
		t.Errorf("without a file: got %q, %v", options.AccessKeyID, err)
	}
}
