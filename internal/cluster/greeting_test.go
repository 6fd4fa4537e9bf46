package cluster

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func jwt(payload string) string {
	return "h." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".s"
}

func TestATokenTellsWhenItEnds(t *testing.T) {
	end := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(jwt(`{"exp":1927857906}`)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		cfg  rest.Config
		want Credentials
	}{
		"a web token":         {rest.Config{BearerToken: jwt(`{"exp":1927857906}`)}, Credentials{What: "token", Until: end}},
		"a token in a file":   {rest.Config{BearerToken: "old", BearerTokenFile: file}, Credentials{What: "token", Until: end}},
		"a token without end": {rest.Config{BearerToken: jwt(`{"sub":"me"}`)}, Credentials{What: "token"}},
		"an opaque token":     {rest.Config{BearerToken: "sha256~abc"}, Credentials{What: "token"}},
		"nothing":             {rest.Config{}, Credentials{}},
		"TLS is not checked":  {rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, Credentials{Insecure: true}},
		"a broken certificate": {
			rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte("no certificate")}}, Credentials{What: "client certificate"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&Cluster{Config: &c.cfg}).Credentials(); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestAClusterTellsItsTimeAndItsCertificatesEnd(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", "Mon, 03 Feb 2031 04:05:06 GMT")
	}))
	defer s.Close()
	c, err := New(&rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, Access{}, "velero")
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Greet(t.Context())
	if err != nil || !got.Now.Equal(time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)) || !got.CertificateUntil.Equal(s.Certificate().NotAfter) {
		t.Errorf("got %+v, %v", got, err)
	}
}
