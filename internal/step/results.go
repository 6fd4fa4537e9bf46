package step

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/velero"
)

// resultsTimeout bounds the download of a restore's results.
const resultsTimeout = 20 * time.Second

// storeTrust is how the object store's certificate is checked: as the
// destination's storage location says.
type storeTrust struct {
	caCert   []byte
	insecure bool // only where the location says so
}

func (r Run) storeTrust(ctx context.Context) storeTrust {
	var l velerov1.BackupStorageLocation
	key := client.ObjectKey{Namespace: r.Destination.VeleroNamespace, Name: r.Plan.Plan().Spec.Storage.Location}
	if err := r.Destination.Get(ctx, key, &l); err != nil || l.Spec.ObjectStorage == nil {
		return storeTrust{} // the system's own roots
	}
	return storeTrust{caCert: l.Spec.ObjectStorage.CACert, insecure: l.Spec.Config["insecureSkipTLSVerify"] == "true"}
}

// fetchResults reads a results file from the store. The address is signed:
// no error repeats it.
func fetchResults(ctx context.Context, address string, trust storeTrust) (velero.Results, error) {
	ctx, cancel := context.WithTimeout(ctx, resultsTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return velero.Results{}, fmt.Errorf("malformed address of the object store")
	}
	res, err := trust.client().Do(req)
	if err != nil {
		return velero.Results{}, fmt.Errorf("object store %s: %w", req.URL.Host, unsigned(err))
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return velero.Results{}, fmt.Errorf("object store %s: %s", req.URL.Host, res.Status)
	}
	return velero.ParseResults(res.Body)
}

func (t storeTrust) client() *http.Client {
	cfg := &tls.Config{InsecureSkipVerify: t.insecure, MinVersion: tls.VersionTLS12} //nolint:gosec // as the user's storage location says
	if len(t.caCert) > 0 {
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		roots.AppendCertsFromPEM(t.caCert)
		cfg.RootCAs = roots
	}
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: cfg}}
}

// unsigned takes the address, which carries a signature, out of an error.
func unsigned(err error) error {
	if e, ok := err.(*url.Error); ok { //nolint:errorlint // http.Client returns this very type
		return e.Err
	}
	return err
}
