// Package velero puts the object store on the host, and Velero with its node-agent into a cluster: as a user would, with
// `velero install` and no setting that makes it faster or slower.
package velero

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mig-cli/mig/scripts/lab/internal/cluster"
	"github.com/mig-cli/mig/scripts/lab/internal/host"
	"github.com/mig-cli/mig/scripts/lab/internal/image"
	"github.com/mig-cli/mig/scripts/lab/internal/place"
	"github.com/mig-cli/mig/scripts/lab/internal/process"
)

const (
	namespace = "velero"
	bucket    = "mig"
	s3Port    = "7070"

	// The store is within this machine, and these open nothing else.
	accessKey, secretKey = "labkey", "labsecret"

	storeTimeout    = time.Minute
	locationTimeout = 3 * time.Minute
)

// Store is the S3 server over a directory.
type Store struct {
	Place   place.Dir
	Version string // of the program's build
}

func (s Store) address() string { return cluster.S3Address + ":" + s3Port }

// Daemon is the server.
func (s Store) Daemon() process.Daemon {
	return process.Daemon{
		Name: "s3",
		Dir:  s.Place.Run("s3"),
		Command: []string{
			s.Place.Program("s3"), "-address=" + s.address(), "-data=" + s.Place.Run("s3", "data"), "-metadata=" + s.Place.Run("s3", "metadata"),
		},
		Env:     []string{cluster.Marker(s.Place), "ROOT_ACCESS_KEY=" + accessKey, "ROOT_SECRET_KEY=" + secretKey},
		Version: s.Version,
	}
}

// Up starts the server and waits until it answers.
func (s Store) Up(ctx context.Context) error {
	err := errors.Join(
		os.MkdirAll(s.Place.Run("s3", "data", bucket), 0o755),
		os.MkdirAll(s.Place.Run("s3", "metadata"), 0o755),
		process.WriteFile(s.credentials(), []byte(credentialsFile()), 0o600),
	)
	if err != nil {
		return err
	}
	daemon := s.Daemon()
	if _, alive := daemon.Record(); !alive {
		if err := host.CheckPort(ctx, s.address()); err != nil {
			return fmt.Errorf("S3 server: %w", err)
		}
	}
	if _, err := daemon.Ensure(ctx); err != nil {
		return fmt.Errorf("S3 server: %w", err)
	}
	return process.Wait(ctx, storeTimeout, "S3 server", func() (bool, error) {
		if _, alive := daemon.Record(); !alive {
			return false, fmt.Errorf("it ended, %s", daemon.Complaint())
		}
		return s.healthy(), nil
	})
}

func (s Store) healthy() bool {
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Get("http://" + s.address() + "/health") //nolint:noctx // ends with its timeout
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

func (s Store) credentials() string { return s.Place.Run("s3", "credentials") }

func credentialsFile() string {
	return "[default]\naws_access_key_id=" + accessKey + "\naws_secret_access_key=" + secretKey + "\n"
}

// Images are Velero's and its plugin's, laid out like the released ones.
func Images(dir place.Dir, veleroVersion, pluginVersion string) []image.Small {
	return []image.Small{
		{
			Name:      "velero",
			Reference: veleroImage(veleroVersion),
			Config:    image.Config{Entrypoint: []string{"/velero"}, Env: []string{"PATH=/usr/bin:/bin"}},
			Programs: map[string]string{
				"/velero":                dir.Program("velero"),
				"/velero-helper":         dir.Program("velero-helper"),
				"/velero-restore-helper": dir.Program("velero-restore-helper"),
			},
		},
		{
			Name:      "velero-plugin-for-aws",
			Reference: pluginImage(pluginVersion),
			Config: image.Config{
				Entrypoint: []string{"cp-plugin", "/plugins/velero-plugin-for-aws", "/target/velero-plugin-for-aws"},
				Env:        []string{"PATH=/bin"},
			},
			Programs: map[string]string{
				"/plugins/velero-plugin-for-aws": dir.Program("velero-plugin-for-aws"),
				"/bin/cp-plugin":                 dir.Program("cp-plugin"),
			},
		},
	}
}

// veleroImage has the released name: Velero makes that of its restore helper's image from its version, whatever image it
// was installed with.
func veleroImage(version string) string { return "docker.io/velero/velero:" + version }

func pluginImage(version string) string { return "docker.io/velero/velero-plugin-for-aws:" + version }

// Velero is Velero in one cluster.
type Velero struct {
	Cluster cluster.Cluster
	Store   Store
	// Version and Plugin are versions of Velero and its plugin, Images the keys of their images.
	Version, Plugin string
	Images          []image.Archive
}

// Up installs Velero if something of it is missing, and returns when the storage location is available.
func (v Velero) Up(ctx context.Context) error {
	if err := v.Cluster.ImportImages(ctx, v.Images); err != nil {
		return err
	}
	if !v.isInstalled(ctx) {
		v.Cluster.Say("%s: installing Velero %s", v.Cluster.Name, v.Version)
		if err := v.install(ctx); err != nil {
			return err
		}
	}
	if err := v.renewPods(ctx); err != nil {
		return err
	}
	for _, workload := range []string{"deployment/velero", "daemonset/node-agent"} {
		if err := v.Cluster.Rollout(ctx, namespace, workload); err != nil {
			return err
		}
	}
	if err := v.waitForLocation(ctx); err != nil {
		return err
	}
	v.Cluster.Say("%s: Velero is ready", v.Cluster.Name)
	return nil
}

// isInstalled looks at what `velero install` makes last as well as first, since it may have been killed in between.
func (v Velero) isInstalled(ctx context.Context) bool {
	return v.Cluster.Kubectl(ctx, "-n", namespace, "get",
		"secret/cloud-credentials", "backupstoragelocation/default", "deployment/velero", "daemonset/node-agent") == nil
}

func (v Velero) install(ctx context.Context) error {
	args := []string{
		"install",
		"--kubeconfig=" + v.Cluster.Admin(),
		"--namespace=" + namespace,
		"--image=" + veleroImage(v.Version),
		"--provider=aws",
		"--plugins=" + pluginImage(v.Plugin),
		"--bucket=" + bucket,
		"--secret-file=" + v.Store.credentials(),
		"--backup-location-config=region=us-east-1,s3ForcePathStyle=true,s3Url=http://" + v.Store.address(),
		"--use-volume-snapshots=false",
		"--use-node-agent",
		"--kubelet-root-dir=" + v.Cluster.KubeletRoot(),
	}
	// Two clusters on a small machine: what they ask for by default would leave nothing for others' pods.
	for _, component := range []string{"velero", "node-agent"} {
		for _, resource := range []string{"cpu-request", "mem-request", "cpu-limit", "mem-limit"} {
			args = append(args, "--"+component+"-pod-"+resource+"=0")
		}
	}
	command := exec.CommandContext(ctx, v.Store.Place.Program("velero"), args...)
	command.Env = append(os.Environ(), cluster.Marker(v.Store.Place))
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("velero install in %s: %w\n%s", v.Cluster.Name, err, bytes.TrimSpace(output))
	}
	return nil
}

// renewPods starts Velero's pods again when their images, whose tags stay, are of another make.
func (v Velero) renewPods(ctx context.Context) error {
	stamp := v.Store.Place.Run(v.Cluster.Name, "velero-images")
	var keys []string
	for _, archive := range v.Images {
		keys = append(keys, archive.Key)
	}
	now := strings.Join(keys, " ")
	before, err := os.ReadFile(stamp)
	if err == nil && string(before) != now {
		if err := v.Cluster.Kubectl(ctx, "-n", namespace, "rollout", "restart", "deployment/velero", "daemonset/node-agent"); err != nil {
			return err
		}
	}
	return process.WriteFile(filepath.Clean(stamp), []byte(now), 0o644)
}

func (v Velero) waitForLocation(ctx context.Context) error {
	var phase string
	err := process.Wait(ctx, locationTimeout, "storage location of "+v.Cluster.Name+" available", func() (bool, error) {
		var err error
		phase, err = v.Cluster.Get(ctx, "-n", namespace, "get", "backupstoragelocation", "default", "-o", "jsonpath={.status.phase} {.status.message}")
		return err == nil && strings.HasPrefix(phase, "Available"), nil
	})
	if err != nil {
		return fmt.Errorf("%w; its phase is %q, log of the S3 server: %s", err, phase, v.Store.Daemon().Log())
	}
	return nil
}

// IsReady tells whether Velero works.
func (v Velero) IsReady(ctx context.Context) bool {
	ready, err := v.Cluster.Get(ctx, "-n", namespace, "get", "deployment/velero", "daemonset/node-agent", "backupstoragelocation/default",
		"-o", `jsonpath={range .items[*]}{.status.availableReplicas}{.status.numberReady}{.status.phase} {end}`)
	if err != nil {
		return false
	}
	return ready == fmt.Sprintf("1 %d Available ", v.Cluster.Nodes)
}
