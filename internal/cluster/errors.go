package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	apiversion "k8s.io/apimachinery/pkg/version"
)

// IsPassing says whether an error goes away by itself: time-outs, refused and
// broken connections, 429, 5xx, conflicts. Never a refusal of rights, of the
// credentials or of the object.
func IsPassing(err error) bool {
	var netErr net.Error
	switch {
	case err == nil:
		return false
	case isLoginThatWorked(err):
		return true
	case apierrors.IsConflict(err), apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err),
		apierrors.IsTimeout(err), apierrors.IsServiceUnavailable(err), apierrors.IsInternalError(err):
		return true
	case utilnet.IsConnectionRefused(err), utilnet.IsConnectionReset(err), utilnet.IsProbableEOF(err), utilnet.IsHTTP2ConnectionLost(err):
		return true
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EPIPE):
		return true
	default:
		return errors.As(err, &netErr) && netErr.Timeout()
	}
}

// IsDenied says whether the cluster refused our credentials or rights.
func IsDenied(err error) bool { return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) }

// IsUnreachable says whether there was no answer at all.
func IsUnreachable(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) || errors.As(err, &dns) || utilnet.IsConnectionRefused(err) || utilnet.IsTimeout(err)
}

// WhyAway says in a few words why a cluster gives no answer that helps, in the
// same ones while nothing changes: no addresses, no ports. Empty where it
// answers, be it with a refusal.
func WhyAway(err error) string {
	dns, unknown := errors.AsType[*net.DNSError](err)
	status, answered := errors.AsType[*apierrors.StatusError](err)
	switch {
	case err == nil, IsDenied(err):
		return ""
	case unknown:
		return "the name " + dns.Name + " is not known"
	case utilnet.IsConnectionRefused(err):
		return "connection refused"
	case utilnet.IsConnectionReset(err), utilnet.IsProbableEOF(err), utilnet.IsHTTP2ConnectionLost(err), errors.Is(err, syscall.EPIPE):
		return "the connection broke"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to it"
	case isLoginThatWorked(err):
		return "the login helper gives no credentials"
	case answered && IsPassing(err):
		return fmt.Sprintf("it answers with status %d", status.ErrStatus.Code)
	case errors.Is(err, context.DeadlineExceeded), utilnet.IsTimeout(err):
		return "no answer in time"
	case IsUnreachable(err):
		return "no connection"
	default:
		return ""
	}
}

// isLoginThatWorked says whether a login helper failed that gave credentials
// before: what it asks may be away for a while. One that never worked is not
// run again and again, which would ask its user again and again.
func isLoginThatWorked(err error) bool {
	login, ok := errors.AsType[*LoginError](err)
	return ok && login.worked
}

// ExpiredError is a refusal of credentials whose end has passed.
type ExpiredError struct {
	What  string // client certificate, token
	Since time.Time
	Err   error // the cluster's refusal
}

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("the kubeconfig's %s expired on %s", e.What, e.Since.UTC().Format("2006-01-02 15:04 UTC"))
}

func (e *ExpiredError) Unwrap() error { return e.Err }

// whyRefused tells a refusal of credentials that have expired as what it is.
func (c *Cluster) whyRefused(err error, now time.Time) error {
	had := c.Credentials()
	if !apierrors.IsUnauthorized(err) || had.Until.IsZero() || now.Before(had.Until) {
		return err
	}
	return &ExpiredError{What: had.What, Since: had.Until, Err: err}
}

func parseVersion(server string, body []byte) (*apiversion.Info, error) {
	var v apiversion.Info
	if err := json.Unmarshal(body, &v); err != nil {
		return nil, &NotKubernetesError{Server: server, Err: err}
	}
	if v.GitVersion == "" {
		return nil, &NotKubernetesError{Server: server, Err: errNoVersion}
	}
	return &v, nil
}
