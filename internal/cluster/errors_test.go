package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhyAClusterIsAwayIsSaidInWordsThatStayTheSame(t *testing.T) {
	dial := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://192.0.2.7:6443/version", Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}}
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), "connection refused"},
		{dial(os.NewSyscallError("read", syscall.ECONNRESET)), "the connection broke"},
		{dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), "no route to it"},
		{dial(&net.DNSError{Name: "api.example.com", Err: "no such host"}), "the name api.example.com is not known"},
		{dial(os.ErrDeadlineExceeded), "no answer in time"},
		{fmt.Errorf("ask: %w", context.DeadlineExceeded), "no answer in time"},
		{&url.Error{Op: "Get", URL: "https://192.0.2.7:6443/version", Err: io.EOF}, "the connection broke"},
		{apierrors.NewServiceUnavailable("starting"), "it answers with status 503"},
		{apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no")), ""},
		{apierrors.NewNotFound(schema.GroupResource{}, ""), ""},
	} {
		if got := WhyAway(c.err); got != c.want {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
	}
}
