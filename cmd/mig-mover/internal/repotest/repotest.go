// Package repotest makes real kopia repositories with real snapshots in them, the way Velero does, for tests.
package repotest

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/kopia/kopia/fs/localfs"
	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/blob"
	"github.com/kopia/kopia/repo/blob/filesystem"
	"github.com/kopia/kopia/repo/content"
	"github.com/kopia/kopia/snapshot"
	"github.com/kopia/kopia/snapshot/policy"
	"github.com/kopia/kopia/snapshot/upload"

	"github.com/mig-cli/mig/cmd/mig-mover/internal/repository"
)

// Password is that of each repository made here.
const Password = "secret of a test"

// Repository is one that a test writes snapshots into.
type Repository struct {
	// Path is the directory that it is in; empty where it is in another storage.
	Path string

	opened repo.Repository
	last   map[string]*snapshot.Manifest
}

// New makes a repository in a directory of the test's.
func New(t *testing.T) *Repository {
	t.Helper()
	path := t.TempDir()
	storage, err := filesystem.New(t.Context(), &filesystem.Options{Path: path}, true)
	if err != nil {
		t.Fatal(err)
	}
	r := In(t, storage)
	r.Path = path
	return r
}

// In makes a repository in a storage.
func In(t *testing.T, storage blob.Storage) *Repository {
	t.Helper()
	if err := repo.Initialize(t.Context(), storage, &repo.NewRepositoryOptions{}, Password); err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	config := filepath.Join(work, "config")
	options := repo.ConnectOptions{
		CachingOptions: content.CachingOptions{CacheDirectory: filepath.Join(work, "cache"), ContentCacheSizeBytes: 1 << 20},
		ClientOptions:  repo.ClientOptions{Hostname: "default", Username: "default"},
	}
	if err := repo.Connect(t.Context(), config, storage, Password, &options); err != nil {
		t.Fatal(err)
	}
	opened, err := repo.Open(t.Context(), config, Password, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close(context.WithoutCancel(t.Context())) })
	return &Repository{opened: opened, last: map[string]*snapshot.Manifest{}}
}

// Snapshot backs a directory up, from its last snapshot on as Velero does, and returns the snapshot's ID.
func (r *Repository) Snapshot(t *testing.T, dir string) string {
	t.Helper()
	ctx := t.Context()
	ctx, writer, err := r.opened.NewWriter(ctx, repo.WriteSessionOptions{Purpose: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Close(ctx) }()
	source := snapshot.SourceInfo{Host: "default", UserName: "default", Path: "snapshot-pod-volume/kopia/shop/pod/data"}
	ignore := policy.OptionalBool(true)
	if err := policy.SetPolicy(ctx, writer, source, &policy.Policy{
		CompressionPolicy:   policy.CompressionPolicy{CompressorName: "none"},
		ErrorHandlingPolicy: policy.ErrorHandlingPolicy{IgnoreUnknownTypes: &ignore},
	}); err != nil {
		t.Fatal(err)
	}
	tree, err := policy.TreeForSource(ctx, writer, source)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := localfs.NewEntry(dir)
	if err != nil {
		t.Fatal(err)
	}
	var before []*snapshot.Manifest
	if last := r.last[dir]; last != nil {
		before = append(before, last)
	}
	made, err := upload.NewUploader(writer).Upload(ctx, entry, tree, source, before...)
	if err != nil {
		t.Fatal(err)
	}
	id, err := snapshot.SaveSnapshot(ctx, writer, made)
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	r.last[dir] = made
	return string(id)
}

// Follow makes the next snapshot of a directory go on from the last of another.
func (r *Repository) Follow(dir, other string) { r.last[dir] = r.last[other] }

// Open opens the repository as the mover does. What is written later is not in what was opened.
func (r *Repository) Open(t *testing.T) *repository.Repository {
	t.Helper()
	storage, err := repository.Storage{Path: r.Path}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	opened, err := repository.Open(t.Context(), storage, Password, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close(context.WithoutCancel(t.Context())) })
	return opened
}
