package apitest

import (
	"context"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/labtest"
)

// Way is a way to a cluster that a test may cut, as when a network or an API
// server goes: what was open breaks off, and what is tried is refused.
type Way struct {
	tb     testing.TB
	target string // host:port of the API server

	mu       sync.Mutex
	address  string // of our own, the same after Mend
	listener net.Listener
	open     []net.Conn
}

// Through makes a client of one of the two contexts whose every connection goes
// by a way that is open.
func (p *Pair) Through(tb testing.TB, name string) (*cluster.Cluster, *Way) {
	tb.Helper()
	config, err := clientcmd.LoadFromFile(p.Kubeconfig)
	if err != nil {
		tb.Fatal(err)
	}
	server, err := url.Parse(config.Clusters[name].Server)
	if err != nil {
		tb.Fatal(err)
	}
	w := &Way{tb: tb, target: server.Host, address: "127.0.0.1:0"}
	w.Mend()
	tb.Cleanup(w.Cut)
	config.Clusters[name].Server = "https://" + w.address
	file := filepath.Join(tb.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		tb.Fatal(err)
	}
	c, err := cluster.Connect(cluster.Access{Kubeconfig: file, Context: name}, labtest.VeleroNamespace)
	if err != nil {
		tb.Fatal(err)
	}
	return c, w
}

// Mend opens the way, again at the address that it had.
func (w *Way) Mend() {
	w.tb.Helper()
	var config net.ListenConfig
	l, err := config.Listen(context.Background(), "tcp", w.address)
	if err != nil {
		w.tb.Fatal(err)
	}
	w.mu.Lock()
	w.listener, w.address = l, l.Addr().String()
	w.mu.Unlock()
	go w.serve(l)
}

// Cut closes the way and all that is on it.
func (w *Way) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener != nil {
		_ = w.listener.Close()
	}
	w.listener = nil
	for _, c := range w.open {
		_ = c.Close()
	}
	w.open = nil
}

func (w *Way) serve(l net.Listener) {
	for {
		from, err := l.Accept()
		if err != nil {
			return // cut
		}
		var dialer net.Dialer
		to, err := dialer.DialContext(context.Background(), "tcp", w.target)
		if err != nil || !w.keep(l, from, to) {
			_ = from.Close()
			continue
		}
		go carry(from, to)
		go carry(to, from)
	}
}

// keep notes what Cut has to close, but for what came in while it did.
func (w *Way) keep(l net.Listener, from, to net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener != l {
		_ = to.Close()
		return false
	}
	w.open = append(w.open, from, to)
	return true
}

func carry(from, to net.Conn) {
	_, _ = io.Copy(to, from) // the one side's end is the other's
	_ = to.Close()
}
