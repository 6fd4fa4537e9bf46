package labtest

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
)

// The manifests, for `kubectl apply -n NAMESPACE -f -`.
var (
	//go:embed shop.yaml
	ShopYAML string
	//go:embed archive.yaml
	ArchiveYAML string
	//go:embed notes.yaml
	NotesYAML string
	//go:embed front.yaml
	FrontYAML string
)

// The shop's claims.
const (
	DatabaseClaim = "data-db-0"
	FilesClaim    = "files"
	ArchiveClaim  = "archive"
)

// patience is how long a workload of the lab may take to start.
const patience = 3 * time.Minute

// Apply makes a namespace and what a manifest says in it.
func (l *Lab) Apply(ctx context.Context, c *cluster.Cluster, namespace, manifest string) error {
	ns := &corev1.Namespace{}
	ns.Name = namespace
	if err := c.Create(ctx, ns); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	_, err := l.Kubectl(ctx, c, manifest, "-n", namespace, "apply", "-f", "-")
	return err
}

// Shop is the application of the demo in a namespace of a cluster.
type Shop struct {
	lab       *Lab
	cluster   *cluster.Cluster
	namespace string
}

// ShopIn is the shop of a namespace, which may not be there yet.
func (l *Lab) ShopIn(c *cluster.Cluster, namespace string) Shop {
	return Shop{lab: l, cluster: c, namespace: namespace}
}

// Open deploys the shop and stocks it.
func (s Shop) Open(ctx context.Context, scale int) error {
	if err := s.lab.Apply(ctx, s.cluster, s.namespace, ShopYAML); err != nil {
		return err
	}
	if err := s.lab.Apply(ctx, s.cluster, s.namespace, ArchiveYAML); err != nil {
		return err
	}
	return s.Stock(ctx, scale)
}

// Stock waits for the applied shop and puts data into all its volumes.
func (s Shop) Stock(ctx context.Context, scale int) error {
	if err := s.archive(ctx); err != nil {
		return err
	}
	if err := s.lab.WorkloadsReady(ctx, s.cluster, s.namespace, patience); err != nil {
		return err
	}
	dir, err := VolumeDir(ctx, s.cluster, s.namespace, FilesClaim)
	if err != nil {
		return err
	}
	if err := WriteOddFiles(dir); err != nil {
		return err
	}
	if err := s.Database().Ready(ctx, patience); err != nil {
		return err
	}
	if err := s.Database().Fill(ctx, scale); err != nil {
		return err
	}
	return s.Writes(ctx, patience)
}

// archive waits for the pod that fills the archive and removes it.
func (s Shop) archive(ctx context.Context) error {
	key := client.ObjectKey{Namespace: s.namespace, Name: "archivist"}
	var pod corev1.Pod
	err := Until(ctx, patience, "the archive is filled", func(ctx context.Context) (NotYet, error) {
		if err := s.cluster.Get(ctx, key, &pod); err != nil {
			return "", err
		}
		if pod.Status.Phase != corev1.PodSucceeded {
			return NotYet("pod archivist is " + describePod(pod)), nil
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(s.cluster.Delete(ctx, &pod))
}

// Database is the shop's.
func (s Shop) Database() Database {
	return Database{lab: s.lab, cluster: s.cluster, namespace: s.namespace, pod: "db-0"}
}

// Writes waits until the client has written a row of now on a node of this
// cluster: the whole way through DNS, Service, password and disk works.
func (s Shop) Writes(ctx context.Context, limit time.Duration) error {
	nodes, err := Nodes(ctx, s.cluster)
	if err != nil {
		return err
	}
	written := "select count(*) from ledger where node in ('" + strings.Join(nodes, "','") + "')"
	before := -1
	return Until(ctx, limit, "the client writes in "+s.namespace+" on "+s.cluster.Access.Context, func(ctx context.Context) (NotYet, error) {
		now, err := s.Database().Count(ctx, written)
		if err != nil {
			return "", err
		}
		if before < 0 {
			before = now
		}
		if now <= before {
			return NotYet(fmt.Sprintf("%d rows written here, none of them new", now)), nil
		}
		return "", nil
	})
}

// Downtime is how long the client could not write: between its last row on
// the source and its first on the destination, by the database's own clock.
func (s Shop) Downtime(ctx context.Context, sourceNodes []string) (time.Duration, error) {
	in := "('" + strings.Join(sourceNodes, "','") + "')"
	ms, err := s.Database().Count(ctx, "select round(1000 * extract(epoch from "+
		"(select min(at) from ledger where node not in "+in+") - (select max(at) from ledger where node in "+in+")))::bigint")
	return time.Duration(ms) * time.Millisecond, err
}
