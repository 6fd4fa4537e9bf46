package cluster

import (
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// logging tells a log of every request to a cluster: who asked for what, how it
// was answered, and how long that took. Neither headers nor bodies are looked
// at: they hold the secrets.
type logging struct {
	log     *slog.Logger
	context string // of the kubeconfig
	base    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *logging) RoundTrip(req *http.Request) (*http.Response, error) {
	began := time.Now()
	resp, err := t.base.RoundTrip(req)
	a := requestOf(req)
	attrs := []slog.Attr{slog.String("cluster", t.context), slog.String("verb", a.verb), slog.String("resource", a.resource)}
	for _, more := range []slog.Attr{slog.String("namespace", a.namespace), slog.String("name", a.name)} {
		if more.Value.String() != "" {
			attrs = append(attrs, more)
		}
	}
	level := slog.LevelDebug
	if err != nil {
		level = slog.LevelInfo
		attrs = append(attrs, slog.String("error", err.Error()))
	} else {
		attrs = append(attrs, slog.Int("code", resp.StatusCode))
		if resp.StatusCode >= http.StatusBadRequest && resp.StatusCode != http.StatusNotFound { // that something is not there is an answer
			level = slog.LevelInfo
		}
	}
	attrs = append(attrs, slog.Duration("took", time.Since(began).Round(time.Millisecond/10)))
	t.log.LogAttrs(req.Context(), level, "request", attrs...)
	return resp, err
}

// asking is a request in the words of Kubernetes' rights.
type asking struct{ verb, resource, namespace, name string }

// requestOf reads a request's path: /api/v1/namespaces/NS/pods/NAME/SUB, or
// /apis/GROUP/VERSION/…, behind whatever path the server's address has.
func requestOf(req *http.Request) asking {
	path := req.URL.Path
	var group string
	var rest []string
	if _, after, ok := strings.Cut(path, "/apis/"); ok {
		parts := strings.Split(strings.Trim(after, "/"), "/")
		group, rest = parts[0], parts[min(2, len(parts)):]
	} else if _, after, ok := strings.Cut(path, "/api/"); ok {
		rest = strings.Split(strings.Trim(after, "/"), "/")[1:]
	}
	if len(rest) == 0 {
		return asking{verb: strings.ToLower(req.Method), resource: path}
	}
	var a asking
	if rest[0] == "namespaces" && len(rest) > 2 && rest[2] != "status" && rest[2] != "finalize" {
		a.namespace, rest = rest[1], rest[2:]
	}
	a.resource = rest[0]
	if len(rest) > 1 {
		a.name = rest[1]
	}
	if len(rest) > 2 {
		a.resource += "/" + strings.Join(rest[2:], "/")
	}
	if group != "" {
		a.resource += "." + group
	}
	a.verb = verbOf(req, a.name != "")
	return a
}

func verbOf(req *http.Request, named bool) string {
	switch req.Method {
	case http.MethodGet:
		switch {
		case named:
			return "get"
		case req.URL.Query().Get("watch") == "true":
			return "watch"
		default:
			return "list"
		}
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodDelete:
		if !named {
			return "deletecollection"
		}
	}
	return strings.ToLower(req.Method)
}
