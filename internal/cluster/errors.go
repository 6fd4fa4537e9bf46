package cluster

import (
	"encoding/json"
	"errors"
	"net"
	"syscall"

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
