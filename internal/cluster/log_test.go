package cluster

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestARequestIsLoggedInTheWordsOfRights(t *testing.T) {
	for _, c := range []struct {
		method, path string
		want         asking
	}{
		{"GET", "/api/v1/namespaces/shop/pods/web-0", asking{"get", "pods", "shop", "web-0"}},
		{"GET", "/api/v1/namespaces/shop/pods", asking{"list", "pods", "shop", ""}},
		{"GET", "/api/v1/pods?watch=true", asking{"watch", "pods", "", ""}},
		{"GET", "/api/v1/namespaces", asking{"list", "namespaces", "", ""}},
		{"PATCH", "/api/v1/namespaces/shop", asking{"patch", "namespaces", "", "shop"}},
		{"PUT", "/api/v1/namespaces/shop/finalize", asking{"update", "namespaces/finalize", "", "shop"}},
		{"PATCH", "/apis/apps/v1/namespaces/shop/deployments/web/scale", asking{"patch", "deployments/scale.apps", "shop", "web"}},
		{"POST", "/k8s/clusters/c-1/apis/velero.io/v1/namespaces/velero/backups", asking{"create", "backups.velero.io", "velero", ""}},
		{"DELETE", "/apis/velero.io/v1/namespaces/velero/backups", asking{"deletecollection", "backups.velero.io", "velero", ""}},
		{"DELETE", "/apis/velero.io/v1/namespaces/velero/backups/x", asking{"delete", "backups.velero.io", "velero", "x"}},
		{"GET", "/version", asking{"get", "/version", "", ""}},
		{"GET", "/apis", asking{"get", "/apis", "", ""}},
		{"GET", "/apis/apps/v1", asking{"get", "/apis/apps/v1", "", ""}},
		{"GET", "/api/v1", asking{"get", "/api/v1", "", ""}},
	} {
		if got := requestOf(httptest.NewRequestWithContext(t.Context(), c.method, c.path, nil)); got != c.want {
			t.Errorf("%s %s: got %+v, want %+v", c.method, c.path, got, c.want)
		}
	}
}

func TestTheLogTellsOfEveryRequestAndOfNoSecret(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/secrets/s3"):
			_, _ = w.Write([]byte(`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s3"},"data":{"cloud":"c2VjcmV0LWluLWEtYm9keQ=="}}`))
		case strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/"):
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == "/api/v1":
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"secrets","namespaced":true,"kind":"Secret","verbs":["get"]},{"name":"pods","namespaced":true,"kind":"Pod","verbs":["get"]}]}`))
		case r.URL.Path == "/api":
			_, _ = w.Write([]byte(`{"kind":"APIVersions","versions":["v1"]}`))
		default:
			_, _ = w.Write([]byte(`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`))
		}
	}))
	defer server.Close()
	k := clientcmdapi.NewConfig()
	k.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL}
	k.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "secret-in-a-header"}
	k.Contexts["ctx"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	path := t.TempDir() + "/kubeconfig"
	if err := clientcmd.WriteToFile(*k, path); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c, err := Console{Log: log}.Connect(Access{Kubeconfig: path, Context: "ctx"}, "velero")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "velero", Name: "s3"}, &corev1.Secret{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "velero", Name: "web-0"}, &corev1.Pod{}); !IsDenied(err) {
		t.Fatal(err)
	}
	for _, want := range []string{
		"level=DEBUG msg=request cluster=ctx verb=get resource=secrets namespace=velero name=s3 code=200 took=",
		"level=INFO msg=request cluster=ctx verb=get resource=pods namespace=velero name=web-0 code=403 took=",
	} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("no %q in\n%s", want, said.String())
		}
	}
	if strings.Contains(said.String(), "secret-in-a") || strings.Contains(said.String(), "c2VjcmV0") {
		t.Errorf("a secret is in the log:\n%s", said.String())
	}
}
