package labtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/naming"
)

// Writing says how an application goes on writing when it is started again, so
// that the rest of its files can be compared while it runs.
type Writing struct {
	Appends  map[string]string // claim -> the one file in it that only grows
	Rewrites []string          // claims whose files change when the application starts
}

// ShopWriting is how the shop writes.
var ShopWriting = Writing{Appends: map[string]string{FilesClaim: "visits"}, Rewrites: []string{DatabaseClaim}} //nolint:gochecknoglobals // a constant of a struct type

// NotesWriting is how notes.yaml writes.
var NotesWriting = Writing{Appends: map[string]string{NotesClaim: "lines"}} //nolint:gochecknoglobals // a constant of a struct type

// NotesClaim is the claim of notes.yaml.
const NotesClaim = "notes"

// veleroMark is what a restore leaves in a volume for its init container to
// find (velero pkg/restorehelper); nothing of it may stay.
const veleroMark = ".velero"

// RestoredFiles waits until the plan's run has told that the volumes are
// restored, and reads one of them on the destination before the application
// does: a database that starts writes at once. It fails where it looked too
// late to prove anything.
func (l *Lab) RestoredFiles(ctx context.Context, planUID, namespace, claim string, limit time.Duration) (Manifest, error) {
	c := l.Destination.Cluster
	if err := WaitForEvent(ctx, c, planUID, "StageRestoreCreated", limit); err != nil {
		return nil, err
	}
	dir, err := VolumeDir(ctx, c, namespace, claim)
	if err != nil {
		return nil, err
	}
	files, err := Files(dir)
	if err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	for _, p := range pods.Items {
		if p.Labels[naming.LabelPlan] != planUID {
			return nil, fmt.Errorf("looked too late: pod %s/%s may have written already", namespace, p.Name)
		}
	}
	return files.Without(veleroMark), nil
}

// Arrived counts the files that are equal in the volumes of the source, which
// is at rest, and of the destination, where the application runs again. What
// differs but for what the application writes is an error.
func (l *Lab) Arrived(ctx context.Context, source, destination string, w Writing) (int, error) {
	was, err := FilesOf(ctx, l.Source.Cluster, source)
	if err != nil {
		return 0, err
	}
	equal := 0
	for claim, files := range was {
		dir, err := VolumeDir(ctx, l.Destination.Cluster, destination, claim)
		if err != nil {
			return 0, err
		}
		n, err := w.arrived(claim, files, dir)
		if err != nil {
			return 0, fmt.Errorf("claim %s: %w", claim, err)
		}
		equal += n
	}
	return equal, nil
}

func (w Writing) arrived(claim string, was Manifest, dir string) (int, error) {
	if _, err := os.Lstat(filepath.Join(dir, veleroMark)); err == nil {
		return 0, fmt.Errorf("%s was left in the volume", veleroMark)
	}
	if slices.Contains(w.Rewrites, claim) {
		return 0, nil
	}
	is, err := Files(dir)
	if err != nil {
		return 0, err
	}
	was = was.Without(w.Appends[claim])
	return len(was), was.SameAs(is.Without(w.Appends[claim]))
}

// GoesOn says whether the files that only grow go on, on the destination,
// where the source's ended.
func (l *Lab) GoesOn(ctx context.Context, source, destination string, w Writing) error {
	for claim, name := range w.Appends {
		from, err := VolumeDir(ctx, l.Source.Cluster, source, claim)
		if err != nil {
			return err
		}
		to, err := VolumeDir(ctx, l.Destination.Cluster, destination, claim)
		if err != nil {
			return err
		}
		if err := goesOn(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return fmt.Errorf("claim %s: %w", claim, err)
		}
	}
	return nil
}

func goesOn(source, destination string) error {
	was, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	is, err := os.ReadFile(destination)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(is, was) {
		return fmt.Errorf("%s does not begin with the source's %d bytes: what was written just before the quiesce is lost",
			filepath.Base(source), len(was))
	}
	return nil
}
