package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
)

// Plain is an error's text in which what the network libraries say of a
// request is replaced by what it means, once: https://10.0.0.1:6443 cannot be
// reached: connection refused.
func Plain(err error) string {
	var request *url.Error
	if !errors.As(err, &request) {
		return err.Error()
	}
	return strings.ReplaceAll(err.Error(), request.Error(), unanswered(request))
}

// unanswered says why a server did not answer as it should.
func unanswered(e *url.Error) string {
	server := e.URL
	if u, err := url.Parse(e.URL); err == nil {
		server = u.Scheme + "://" + u.Host
	}
	if isOfProxy(e) {
		server += " through the kubeconfig's or the environment's proxy"
	}
	var dns *net.DNSError
	var notTLS tls.RecordHeaderError
	switch {
	case errors.As(e, &dns):
		return fmt.Sprintf("%s cannot be reached: no such host", server)
	case errors.Is(e, syscall.ECONNREFUSED):
		return fmt.Sprintf("%s cannot be reached: connection refused", server)
	case errors.Is(e, syscall.ENETUNREACH), errors.Is(e, syscall.EHOSTUNREACH):
		return fmt.Sprintf("%s cannot be reached: no route to it", server)
	case e.Timeout():
		return fmt.Sprintf("%s does not answer", server)
	case errors.Is(e, io.EOF), errors.Is(e, io.ErrUnexpectedEOF), errors.Is(e, syscall.ECONNRESET):
		return fmt.Sprintf("%s closed the connection without an answer", server)
	case isUntrusted(e):
		return fmt.Sprintf("%s: its certificate is not trusted: %s", server, strings.TrimPrefix(rootCause(e).Error(), "x509: "))
	case errors.As(e, &notTLS), errors.Is(e, http.ErrSchemeMismatch):
		return fmt.Sprintf("%s answers, but does not speak TLS", server)
	default:
		return fmt.Sprintf("%s: %v", server, e.Err)
	}
}

// isOfProxy says whether it is the proxy that could not be reached.
func isOfProxy(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "proxyconnect" || op.Op == "socks")
}

func isUntrusted(err error) bool {
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &authority) || errors.As(err, &hostname) || errors.As(err, &invalid)
}

// rootCause is the innermost of a chain of errors.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
