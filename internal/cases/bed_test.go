//go:build e2e

package cases

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/apitest"
	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/labtest"
)

// patience is how long something may take on a busy machine; no test measures it.
const patience = 2 * time.Minute

// The nodes of the API bed, by context.
var nodesOf = map[string][]string{
	labtest.SourceContext:      {"node-s1", "node-s2"},
	labtest.DestinationContext: {"node-d1", "node-d2"},
}

// The parts of the API bed that are stopped at the end, the last one first.
var apiStops []func() error

func stopAPI() error {
	var errs []error
	for _, stop := range slices.Backward(apiStops) {
		errs = append(errs, stop())
	}
	return errors.Join(errs...)
}

// theAPI is two API servers with their controllers, hands for their nodes, and
// a Velero that looks healthy. All cases of one run share it.
var theAPI = sync.OnceValues(func() (*labtest.Lab, error) {
	dir, err := os.MkdirTemp("", "mig-cases-")
	if err != nil {
		return nil, err
	}
	apiStops = append(apiStops, func() error { return os.RemoveAll(dir) })
	pair, err := apitest.Start(dir, apitest.Options{Controllers: true})
	if err != nil {
		return nil, err
	}
	apiStops = append(apiStops, pair.Stop)
	lab, err := bare(pair.Kubeconfig)
	if err != nil {
		return nil, err
	}
	lab.Source, lab.Destination = pair.Source, pair.Destination
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, c := range lab.Both() {
		if err := furnish(ctx, lab, dir, c); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Access.Context, err)
		}
	}
	return lab, nil
})

// bare is a lab without clusters: the programs, and a kubeconfig.
func bare(kubeconfig string) (*labtest.Lab, error) {
	home, err := labtest.Home()
	return &labtest.Lab{Home: home, Kubeconfig: kubeconfig}, err
}

var theLab = sync.OnceValues(func() (*labtest.Lab, error) {
	lab, err := labtest.Find()
	if err != nil {
		return nil, err
	}
	return lab, lab.Hold(func() { fmt.Fprintln(os.Stderr, "waiting for others who use the lab") })
})

var theMig = sync.OnceValues(func() (string, error) {
	lab, err := bare("")
	if err != nil {
		return "", err
	}
	return lab.Mig(context.Background())
})

// furnish gives a cluster nodes and Velero, as its own installer makes it.
func furnish(ctx context.Context, lab *labtest.Lab, dir string, c *cluster.Cluster) error {
	h := &hands{c: c, nodes: nodesOf[c.Access.Context]}
	if err := h.makeNodes(ctx); err != nil {
		return err
	}
	apiStops = append(apiStops, h.start())
	if err := installVelero(ctx, lab, dir, c); err != nil {
		return err
	}
	return labtest.Until(ctx, patience, "Velero looks ready", func(ctx context.Context) (labtest.NotYet, error) {
		return veleroReady(ctx, c, len(h.nodes))
	})
}

func installVelero(ctx context.Context, lab *labtest.Lab, dir string, c *cluster.Cluster) error {
	secret := filepath.Join(dir, "cloud-credentials")
	if err := os.WriteFile(secret, []byte("[default]\naws_access_key_id=nobody\naws_secret_access_key=nothing\n"), 0o600); err != nil {
		return err
	}
	r, err := lab.Run(ctx, dir, "velero", "install", "--kubecontext="+c.Access.Context, "--namespace="+labtest.VeleroNamespace,
		"--image=velero/velero:v1.18.3", "--provider=aws", "--plugins=velero/velero-plugin-for-aws:v1.14.0", "--bucket=shared",
		"--secret-file="+secret, "--backup-location-config=region=here,s3ForcePathStyle=true,s3Url=http://store.example:9000",
		"--use-volume-snapshots=false", "--use-node-agent")
	if err == nil && r.Code != 0 {
		err = errors.New(r.String())
	}
	if err != nil {
		return err
	}
	// What Velero's server does when it starts.
	repository := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: labtest.VeleroNamespace, Name: "velero-repo-credentials"}}
	repository.StringData = map[string]string{"repository-password": "static-passw0rd"}
	if err := c.Create(ctx, repository); err != nil {
		return err
	}
	return locationAvailable(ctx, c)
}

// locationAvailable says of the storage location what Velero says each minute.
func locationAvailable(ctx context.Context, c *cluster.Cluster) error {
	location := &velerov1.BackupStorageLocation{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: labtest.VeleroNamespace, Name: "default"}, location); err != nil {
		return err
	}
	now := metav1.Now()
	location.Status.Phase = velerov1.BackupStorageLocationPhaseAvailable
	location.Status.LastValidationTime, location.Status.LastSyncedTime = &now, &now
	return c.Update(ctx, location) // Velero's kinds have no status of their own
}

func veleroReady(ctx context.Context, c *cluster.Cluster, nodes int) (labtest.NotYet, error) {
	var server appsv1.Deployment
	if err := c.Get(ctx, client.ObjectKey{Namespace: labtest.VeleroNamespace, Name: "velero"}, &server); err != nil {
		return "", err
	}
	var agent appsv1.DaemonSet
	if err := c.Get(ctx, client.ObjectKey{Namespace: labtest.VeleroNamespace, Name: "node-agent"}, &agent); err != nil {
		return "", err
	}
	if server.Status.ReadyReplicas < 1 || int(agent.Status.NumberReady) < nodes {
		return labtest.NotYet(fmt.Sprintf("ready are %d servers and %d of %d node-agents", server.Status.ReadyReplicas, agent.Status.NumberReady, nodes)), nil
	}
	return "", nil
}
