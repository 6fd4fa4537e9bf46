package discover

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mig-cli/mig/internal/cluster"
)

// ReachTimeout bounds the first question to a cluster: dialling, trusting its
// certificate, presenting credentials, and its version.
const ReachTimeout = cluster.DialTimeout + 5*time.Second

// ReachError is a cluster that cannot be looked at at all.
type ReachError struct {
	Side    string // source, destination
	Context string
	Server  string
	Reach   Reach
	Err     error
}

func (e *ReachError) Error() string {
	return fmt.Sprintf("%s cluster (context %s, %s): %s: %v", e.Side, e.Context, e.Server, e.Reach.says(), e.Err)
}

func (e *ReachError) Unwrap() error { return e.Err }

// NeitherReachedError is two clusters that cannot be looked at, each for a
// reason of its own: who mends one should know of the other.
type NeitherReachedError struct{ Source, Destination error } // *ReachError

func (e *NeitherReachedError) Error() string {
	return e.Source.Error() + "\n" + e.Destination.Error()
}

func (e *NeitherReachedError) Unwrap() []error { return []error{e.Source, e.Destination} }

func (r Reach) says() string {
	said, ok := map[Reach]string{
		Reached:       "it answers",
		Unreachable:   "no answer",
		NotKubernetes: "this is not a Kubernetes API",
		Untrusted:     "its certificate is not trusted",
		Denied:        "it refuses our credentials",
	}[r]
	if !ok {
		return "cannot be asked"
	}
	return said
}

// Says is how far the cluster was reached, in words.
func (r Reach) Says() string { return r.says() }

// reach asks for the cluster's version: the one question that every cluster
// answers to everyone it knows.
func reach(ctx context.Context, c *cluster.Cluster) (version string, r Reach, err error) {
	if err := c.Login(ctx); err != nil {
		return "", classify(err), err // it may have waited for a person, for longer than a cluster may take
	}
	ctx, cancel := context.WithTimeout(ctx, ReachTimeout)
	defer cancel()
	v, err := c.Version(ctx)
	if err != nil {
		return "", classify(err), explained(err)
	}
	return v.GitVersion, Reached, nil
}

// explained takes off the address, which every message names already, and says
// how long was waited.
func explained(err error) error {
	if asked, ok := errors.AsType[*url.Error](err); ok {
		err = asked.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("nothing within %s: %w", ReachTimeout, err)
	}
	return err
}

// classify tells from the kind of an error, never from its text, why a cluster
// could not be reached.
func classify(err error) Reach {
	var notKubernetes *cluster.NotKubernetesError
	switch {
	case err == nil:
		return Reached
	case isUntrusted(err):
		return Untrusted
	case errors.As(err, &notKubernetes), apierrors.IsNotFound(err), speaksNoTLS(err):
		return NotKubernetes
	case cluster.IsDenied(err):
		return Denied
	case cluster.IsUnreachable(err), errors.Is(err, context.DeadlineExceeded):
		return Unreachable
	default:
		return Failed
	}
}

func isUntrusted(err error) bool {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}

func speaksNoTLS(err error) bool {
	var record tls.RecordHeaderError
	return errors.As(err, &record) || errors.Is(err, http.ErrSchemeMismatch)
}
