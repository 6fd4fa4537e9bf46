package labtest

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
)

const postgresBin = "/usr/lib/postgresql/15/bin/"

// Database is a PostgreSQL in a pod.
type Database struct {
	lab       *Lab
	cluster   *cluster.Cluster
	namespace string
	pod       string
}

// Query asks for one value.
func (d Database) Query(ctx context.Context, sql string) (string, error) {
	out, err := d.exec(ctx, "psql", "-h", "/tmp", "-U", "postgres", "-qtA", "-v", "ON_ERROR_STOP=1", "-c", sql)
	return strings.TrimSpace(out), err
}

// Count asks for a number.
func (d Database) Count(ctx context.Context, sql string) (int, error) {
	out, err := d.Query(ctx, sql)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(out)
}

// dumpLimit bounds a dump, with the tries that a broken connection cost.
const dumpLimit = 3 * time.Minute

// Dump is what pg_dump says, but for the words that it draws by lot
// (\restrict, since 15.14). Megabytes through an exec break off at times on a
// busy machine: they come compressed, and are asked for again.
func (d Database) Dump(ctx context.Context) (Dump, error) {
	var out []byte
	err := Until(ctx, dumpLimit, "a whole pg_dump of "+d.namespace+"/"+d.pod, func(ctx context.Context) (NotYet, error) {
		packed, err := d.exec(ctx, "pg_dump", "-h", "/tmp", "-U", "postgres", "-Z", "1", "postgres")
		if err != nil {
			return "", err
		}
		zr, err := gzip.NewReader(strings.NewReader(packed))
		if err != nil {
			return "", err
		}
		out, err = io.ReadAll(zr) // fails on half a dump: gzip ends with a checksum
		return "", err
	})
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(out), "\n")
	return slices.DeleteFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, `\restrict `) || strings.HasPrefix(l, `\unrestrict `)
	}), nil
}

// Fill puts pgbench's tables into the database: 100,000 accounts for each unit
// of scale.
func (d Database) Fill(ctx context.Context, scale int) error {
	_, err := d.exec(ctx, "pgbench", "-h", "/tmp", "-U", "postgres", "-i", "-q", "-s", strconv.Itoa(scale), "postgres")
	return err
}

// Ready waits until the database answers.
func (d Database) Ready(ctx context.Context, limit time.Duration) error {
	return Until(ctx, limit, "the database in "+d.namespace+"/"+d.pod+" answers", func(ctx context.Context) (NotYet, error) {
		_, err := d.Query(ctx, "select 1")
		return "", err
	})
}

func (d Database) exec(ctx context.Context, program string, args ...string) (string, error) {
	return d.lab.Exec(ctx, d.cluster, d.namespace, d.pod, append([]string{postgresBin + program}, args...)...)
}

// Dump is the lines of a pg_dump.
type Dump []string

// Parts of a dump that tell of the client's rows.
const (
	ledgerRows = "COPY public.ledger "
	ledgerNext = "SELECT pg_catalog.setval('public.ledger_n_seq'"
	endOfRows  = `\.`
)

// WrittenOn is the dump as it would be if only these nodes' clients had ever
// written, and how many rows of others were left out for that.
func (d Dump) WrittenOn(nodes []string) (Dump, int) {
	var out Dump
	inLedger, others := false, 0
	for _, line := range d {
		switch {
		case strings.HasPrefix(line, ledgerNext):
			continue // the number that the next row would get
		case strings.HasPrefix(line, ledgerRows):
			inLedger = true
		case line == endOfRows:
			inLedger = false
		case inLedger && !slices.Contains(nodes, strings.Split(line, "\t")[1]):
			others++
			continue
		}
		out = append(out, line)
	}
	return out, others
}

// SameAs says where two dumps part; nil: nowhere.
func (d Dump) SameAs(other Dump) error {
	for i := range max(len(d), len(other)) {
		a, b := "the end", "the end"
		if i < len(d) {
			a = d[i]
		}
		if i < len(other) {
			b = other[i]
		}
		if a != b {
			return fmt.Errorf("pg_dump differs at line %d of %d and %d: was %q, is %q", i+1, len(d), len(other), a, b)
		}
	}
	return nil
}

// DumpOfCopy copies the files of a database that does not run, starts
// PostgreSQL on the copy and dumps it: what the files hold, proved without
// touching them.
func (l *Lab) DumpOfCopy(ctx context.Context, namespace, claim string) (Dump, error) {
	files, err := VolumeDir(ctx, l.Source.Cluster, namespace, claim)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(l.Home, "copy-of-"+claim+"-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if out, err := exec.CommandContext(ctx, "cp", "-a", files, filepath.Join(dir, "data")).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("copy of %s/%s: %w: %s", namespace, claim, err, out)
	}
	d := Database{lab: l, cluster: l.Source.Cluster, namespace: "default", pod: "copy-of-" + namespace + "-" + claim}
	defer func() { _ = l.deletePod(context.WithoutCancel(ctx), d) }()
	if err := l.startOn(ctx, d, filepath.Join(dir, "data")); err != nil {
		return nil, err
	}
	return d.Dump(ctx)
}

// startOn starts the database of a directory of this machine, on whichever
// node: all of them are this machine.
func (l *Lab) startOn(ctx context.Context, d Database, dir string) error {
	if err := l.deletePod(ctx, d); err != nil {
		return err
	}
	if err := d.cluster.Create(ctx, copyPod(d, dir)); err != nil {
		return err
	}
	return d.Ready(ctx, time.Minute)
}

func (l *Lab) deletePod(ctx context.Context, d Database) error {
	_, err := l.Kubectl(ctx, d.cluster, "", "-n", d.namespace, "delete", "pod", d.pod, "--ignore-not-found", "--grace-period=1")
	return err
}

func copyPod(d Database, dir string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = d.namespace, d.pod
	user := int64(postgresUID)
	pod.Spec = corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsUser: &user, RunAsGroup: &user},
		Containers: []corev1.Container{{
			Name: "postgres", Image: "registry.test/postgres:15",
			Command:      []string{postgresBin + "postgres", "-D", "/data/pgdata", "-c", "unix_socket_directories=/tmp", "-c", "listen_addresses="},
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
		}},
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}}}},
	}
	return pod
}

// postgresUID is the user postgres in the lab's image, and its group.
const postgresUID = 999

// Nodes are the names of a cluster's nodes.
func Nodes(ctx context.Context, c *cluster.Cluster) ([]string, error) {
	var list corev1.NodeList
	if err := c.List(ctx, &list, &client.ListOptions{}); err != nil {
		return nil, err
	}
	var out []string
	for _, n := range list.Items {
		out = append(out, n.Name)
	}
	return out, nil
}
