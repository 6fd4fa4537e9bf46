package labtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mig-cli/mig/internal/cluster"
)

// Request is one that mig makes of an API server.
type Request struct {
	Side   string // its context
	Method string
	Path   string
	Number int    // from 1, of this process
	Step   string // that mig was at, as it told with -o json
	OfStep int    // from 1, of this process at this step
}

// Resource is what the request is about, without the object's name.
func (r Request) Resource() string {
	path := strings.Split(strings.Trim(r.Path, "/"), "/")
	skip := 2 // api/v1
	if path[0] == "apis" {
		skip = 3
	}
	if len(path) <= skip {
		return ""
	}
	path = path[skip:]
	if path[0] == "namespaces" && len(path) > 2 {
		path = path[2:]
	}
	return path[0]
}

// IsEffect says whether the request changes more than mig's own accounts: its
// records, leases and Events.
func (r Request) IsEffect() bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return false
	}
	switch resource := r.Resource(); {
	case resource == "leases", resource == "events", strings.HasPrefix(resource, "self"):
		return false
	case resource == "configmaps":
		name := r.Path[strings.LastIndex(r.Path, "/")+1:]
		return name != "configmaps" && !strings.HasPrefix(name, "mig-plan-") && !strings.Contains(name, "-run")
	default:
		return true
	}
}

func (r Request) String() string { return r.Method + " " + r.Resource() + " on " + r.Side }

// Fate is what becomes of a request.
type Fate int

// The fates.
const (
	Pass       Fate = iota
	KillBefore      // mig is killed and the request is never made
	KillAfter       // the request is made, and mig is killed before it learns of it
)

func (f Fate) String() string { return [...]string{"pass", "before", "after"}[f] }

// Wire stands between mig and the API servers. It can kill mig at a request, to
// the very instant, without mig being built for it.
type Wire struct {
	judge   func(Request) Fate
	behind  Lab // the lab as mig sees it
	servers []*http.Server

	mu      sync.Mutex
	process *Process
	started chan struct{}
	count   int
	step    string
	ofStep  int
	killed  *Request
}

// NewWire opens a wire, with its kubeconfig in dir.
func (l *Lab) NewWire(dir string, judge func(Request) Fate) (*Wire, error) {
	w := &Wire{judge: judge, behind: *l}
	w.behind.Kubeconfig = filepath.Join(dir, "wire.kubeconfig")
	config := clientcmdapi.NewConfig()
	for _, c := range l.Both() {
		address, err := w.open(c)
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		name := c.Access.Context
		config.Clusters[name] = &clientcmdapi.Cluster{Server: "http://" + address}
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	return w, clientcmd.WriteToFile(*config, w.behind.Kubeconfig)
}

// Close closes the wire.
func (w *Wire) Close() error {
	var errs []error
	for _, s := range w.servers {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

func (w *Wire) open(c *cluster.Cluster) (string, error) {
	transport, err := rest.TransportFor(c.Config)
	if err != nil {
		return "", err
	}
	target, err := url.Parse(c.Config.Host)
	if err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is local and ends with the wire
	if err != nil {
		return "", err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch w.meet(c.Access.Context, r) {
		case KillBefore:
			w.kill()
			panic(http.ErrAbortHandler)
		case KillAfter:
			err := carryOut(transport, target, r)
			w.kill()
			if err != nil {
				panic(err)
			}
			panic(http.ErrAbortHandler)
		case Pass:
			proxy.ServeHTTP(out, r)
		}
	})}
	w.servers = append(w.servers, server)
	go func() { _ = server.Serve(listener) }() // ends with Close
	return listener.Addr().String(), nil
}

// carryOut makes the request and reads its whole answer, which nobody gets.
func carryOut(transport http.RoundTripper, target *url.URL, r *http.Request) error {
	out := r.Clone(context.WithoutCancel(r.Context()))
	out.URL.Scheme, out.URL.Host, out.Host, out.RequestURI = target.Scheme, target.Host, "", ""
	response, err := transport.RoundTrip(out)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}

var stepTold = regexp.MustCompile(`"step":"(\w+)"`)

// meet counts a request and asks what becomes of it. After a kill, what the
// dead process has still on the way is lost.
func (w *Wire) meet(side string, r *http.Request) Fate {
	w.mu.Lock()
	started := w.started
	w.mu.Unlock()
	<-started
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.killed != nil {
		panic(http.ErrAbortHandler)
	}
	w.count++
	w.ofStep++
	if told := stepTold.FindAllStringSubmatch(w.process.stdout.String(), -1); len(told) > 0 {
		if now := told[len(told)-1][1]; now != w.step {
			w.step, w.ofStep = now, 1
		}
	}
	request := Request{Side: side, Method: r.Method, Path: r.URL.Path, Number: w.count, Step: w.step, OfStep: w.ofStep}
	fate := w.judge(request)
	if fate != Pass {
		w.killed = &request
	}
	return fate
}

func (w *Wire) kill() {
	w.mu.Lock()
	p := w.process
	w.mu.Unlock()
	if err := p.Kill(); err != nil {
		panic(fmt.Errorf("kill mig: %w", err))
	}
}

// Run runs a program to its end, or to the request at which it was killed.
func (w *Wire) Run(ctx context.Context, dir string, args ...string) (Result, *Request, error) {
	w.mu.Lock()
	w.started, w.count, w.step, w.ofStep, w.killed = make(chan struct{}), 0, "", 0, nil
	w.mu.Unlock()
	p, err := w.behind.Start(ctx, dir, args...)
	if err != nil {
		return Result{}, nil, err
	}
	w.mu.Lock()
	w.process = p
	close(w.started)
	w.mu.Unlock()
	r, err := p.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return r, w.killed, err
}
