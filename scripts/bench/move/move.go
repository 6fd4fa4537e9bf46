package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/plan"
)

// patience is how long one command may take.
const patience = time.Hour

// shape is an application to move.
type shape struct {
	name   string // of the plan and of the namespace, on both sides
	claims int    // 0: one
	files  int    // in each volume
	bytes  int64  // of each file
}

// point is a figure of both.
type point struct{ gib, mig, byHand float64 }

const claimYAML = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data-%[1]d}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: src-standard
  resources: {requests: {storage: 20Gi}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: app-%[1]d}
spec:
  replicas: 1
  strategy: {type: Recreate}
  selector: {matchLabels: {app: app-%[1]d}}
  template:
    metadata: {labels: {app: app-%[1]d}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: app
        image: registry.test/toolbox:1
        command: [sleep, infinity]
        volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data-%[1]d}}]
`

// deploy makes the application and fills its volumes.
func (b *bench) deploy(ctx context.Context, s shape) error {
	for i := range max(1, s.claims) {
		if err := b.lab.Apply(ctx, b.lab.Source.Cluster, s.name, fmt.Sprintf(claimYAML, i)); err != nil {
			return err
		}
	}
	if err := b.lab.WorkloadsReady(ctx, b.lab.Source.Cluster, s.name, patience); err != nil {
		return err
	}
	return b.eachVolume(ctx, s, func(dir string) error {
		for i := range s.files {
			if err := write(filepath.Join(dir, fmt.Sprintf("d%03d", i/1000), fmt.Sprintf("f%06d", i)), s.bytes); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *bench) eachVolume(ctx context.Context, s shape, do func(dir string) error) error {
	for i := range max(1, s.claims) {
		dir, err := labtest.VolumeDir(ctx, b.lab.Source.Cluster, s.name, fmt.Sprintf("data-%d", i))
		if err == nil {
			err = do(dir)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func write(path string, size int64) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	content := make([]byte, size)
	if _, err := rand.Read(content); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// change rewrites, deletes and adds a hundredth of the files, a third each.
func change(dir string, s shape) error {
	every := 100
	for i := 0; i < s.files; i += every {
		path := filepath.Join(dir, fmt.Sprintf("d%03d", i/1000), fmt.Sprintf("f%06d", i))
		var err error
		switch (i / every) % 3 {
		case 0:
			err = write(path, s.bytes)
		case 1:
			err = os.Remove(path)
		default:
			err = write(path+"-added", s.bytes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) clear(ctx context.Context, s shape) error {
	ctx = context.WithoutCancel(ctx)
	return errors.Join(
		b.lab.CancelPlan(ctx, s.name),
		labtest.RemoveNamespaces(ctx, b.lab.Destination.Cluster, s.name), labtest.RemoveNamespaces(ctx, b.lab.Source.Cluster, s.name),
		b.lab.ForgetPlan(ctx, s.name), os.RemoveAll(filepath.Join(b.dir, s.name+".yaml")),
	)
}

// staged moves an application by hand, takes it back, and moves it with mig
// after a stage.
func (b *bench) staged(ctx context.Context, s shape) (p point, err error) {
	if err := b.clear(ctx, s); err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, b.clear(ctx, s)) }()
	if err := b.deploy(ctx, s); err != nil {
		return p, err
	}
	if err := b.plan(ctx, s, false); err != nil {
		return p, err
	}
	if _, err := b.command(ctx, "stage", s.name); err != nil {
		return p, err
	}
	if err := b.eachVolume(ctx, s, func(dir string) error { return change(dir, s) }); err != nil {
		return p, err
	}
	moved, err := b.migrate(ctx, s)
	if err != nil {
		return p, err
	}
	p.mig = moved.SourceDownSeconds
	if _, err := b.command(ctx, "rollback", s.name, "--yes"); err != nil {
		return p, err
	}
	hand, err := b.byHand(ctx, s, 0)
	p.byHand = hand["ready"]
	return p, err
}

func (b *bench) plan(ctx context.Context, s shape, verify bool) error {
	if _, err := b.command(ctx, "plan", "create", s.name, "--src", labtest.SourceContext, "--dst", labtest.DestinationContext, "--namespaces", s.name); err != nil {
		return err
	}
	return labtest.EditPlan(filepath.Join(b.dir, s.name+".yaml"), func(p *plan.Plan) {
		p.Spec.HelperImage = b.mover
		for i := range p.Spec.Volumes {
			p.Spec.Volumes[i].Verify = verify && b.mover != ""
		}
	})
}

// moved is of a run's summary what is looked at.
type moved struct {
	Seconds           float64 `json:"seconds"`
	SourceDownSeconds float64 `json:"sourceDownSeconds"`
}

func (b *bench) migrate(ctx context.Context, s shape) (moved, error) {
	var out moved
	r, err := b.command(ctx, "migrate", s.name, "-o", "json")
	if err != nil {
		return out, err
	}
	lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
	return out, json.Unmarshal([]byte(lines[len(lines)-1]), &out)
}

func (b *bench) command(ctx context.Context, args ...string) (labtest.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := b.lab.Run(ctx, b.dir, append([]string{b.mig}, args...)...)
	if err == nil && r.Code != 0 {
		err = errors.New(r.String())
	}
	return r, err
}

// classMap tells Velero's own restore which class the volumes get.
const classMap = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: bench-class-map
  namespace: velero
  labels: {velero.io/plugin-config: "", velero.io/change-storage-class: RestoreItemAction}
data: {src-standard: dst-gold}
`

// byHand moves with the other program and removes what it made on the
// destination. It returns the seconds from its start to each of its marks.
func (b *bench) byHand(ctx context.Context, s shape, round int) (marks map[string]float64, err error) {
	if b.baseline == "" {
		return nil, nil //nolint:nilnil // nothing to compare with
	}
	dst := b.lab.Destination.Cluster
	if _, err := b.lab.Kubectl(ctx, dst, classMap, "apply", "-f", "-"); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s-by-hand-%d-%d", s.name, round, time.Now().Unix())
	defer func() {
		ctx := context.WithoutCancel(ctx)
		_, unmapped := b.lab.Kubectl(ctx, dst, classMap, "delete", "--ignore-not-found", "-f", "-")
		_, undone := b.lab.Run(ctx, b.dir, "velero", "--kubecontext", labtest.SourceContext, "backup", "delete", name, "--confirm")
		_, forgotten := b.lab.Run(ctx, b.dir, "velero", "--kubecontext", labtest.DestinationContext, "restore", "delete", name, "--confirm")
		err = errors.Join(err, labtest.RemoveNamespaces(ctx, dst, s.name), unmapped, undone, forgotten)
	}()
	r, err := b.lab.Run(ctx, b.dir, b.baseline, name, s.name)
	if err != nil {
		return nil, err
	}
	marks = map[string]float64{}
	for line := range strings.Lines(r.Stdout) {
		var ms float64
		var mark string
		if n, _ := fmt.Sscanf(line, "%f ms %s", &ms, &mark); n == 2 {
			marks[mark] = ms / 1000
		}
	}
	if marks["ready"] == 0 {
		return nil, errors.New(r.String())
	}
	return marks, nil
}

// small moves a small namespace with both in turn, and compares the medians.
func (b *bench) small(ctx context.Context, rounds int) (err error) {
	s := shape{name: "bench-small", claims: 2, files: 19, bytes: 1 << 20}
	if err := b.clear(ctx, s); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.clear(ctx, s)) }()
	if err := b.deploy(ctx, s); err != nil {
		return err
	}
	if err := b.plan(ctx, s, b.verify); err != nil {
		return err
	}
	var whole, down, ready, unsynced []float64
	for round := range rounds {
		m, err := b.migrate(ctx, s)
		if err != nil {
			return err
		}
		whole, down = append(whole, m.Seconds), append(down, m.SourceDownSeconds)
		if _, err := b.command(ctx, "rollback", s.name, "--yes"); err != nil {
			return err
		}
		hand, err := b.byHand(ctx, s, round)
		if err != nil {
			return err
		}
		if hand != nil {
			ready, unsynced = append(ready, hand["ready"]), append(unsynced, hand["ready"]-(hand["synced"]-hand["backup"]))
		}
	}
	say("migrate-small", median(whole), "s", median(ready))
	say("migrate-small-unsynced", median(whole), "s", median(unsynced))
	say("migrate-small-downtime", median(down), "s", median(ready))
	return nil
}

func median(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	of = slices.Sorted(slices.Values(of))
	return of[len(of)/2]
}
