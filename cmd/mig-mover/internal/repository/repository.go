// Package repository reads the kopia repositories that Velero writes, and changes nothing in them.
//
// It uses kopia's library in the fork and version that Velero was built with, below the level of its restore: that takes files for
// equal whose times differ by less than two seconds and then leaves owner and mode alone, does not hand out the times of
// directories, and loses one of two names that JSON made equal.
package repository

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kopia/kopia/fs"
	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/blob"
	"github.com/kopia/kopia/repo/content"
	kopia "github.com/kopia/kopia/repo/manifest"
	"github.com/kopia/kopia/repo/object"
	"github.com/kopia/kopia/snapshot"
	"golang.org/x/sync/errgroup"

	"github.com/mig-cli/mig/internal/manifest"
)

// Repository is one that was opened for reading.
type Repository struct{ opened repo.Repository }

// Open opens the repository in the storage. In the directory it makes one of its own for caches, which [Repository.Close] does
// not remove. Its errors are those of the storage, or tell of a wrong password.
func Open(ctx context.Context, storage blob.Storage, password, dir string) (*Repository, error) {
	work, err := os.MkdirTemp(dir, "repository-") // which nobody else can enter
	if err != nil {
		return nil, err
	}
	// kopia can open only what a file describes, with the keys of the storage in it.
	config := filepath.Join(work, "config")
	defer os.Remove(config)
	options := repo.ConnectOptions{
		ClientOptions: repo.ClientOptions{Hostname: "default", Username: "default", ReadOnly: true},
		// What a restore reads it reads once, but for the directories and indexes, which are small and in packs.
		CachingOptions: content.CachingOptions{
			CacheDirectory: filepath.Join(work, "cache"), ContentCacheSizeBytes: 64 << 20, MetadataCacheSizeBytes: 512 << 20,
		},
	}
	if err := repo.Connect(ctx, config, storage, password, &options); err != nil {
		return nil, fmt.Errorf("connect to the repository: %w", err)
	}
	opened, err := repo.Open(ctx, config, password, nil)
	if err != nil {
		return nil, fmt.Errorf("open the repository: %w", err)
	}
	return &Repository{opened}, nil
}

// Close lets go of the repository.
func (r *Repository) Close(ctx context.Context) error { return r.opened.Close(ctx) }

// Snapshot is a volume as it was backed up.
type Snapshot struct {
	ID string
	// Source is what was backed up, as kopia names it: user@host:path.
	Source string
	Taken  time.Time
	Root   *Node
	// Dropped is how many entries the backup left out without failing, FIFOs and devices among them.
	Dropped int
	// DroppedPaths are the first few of them.
	DroppedPaths []string
}

// Node is one entry of a snapshot. Its path has only what JSON left of the name: bytes that are no UTF-8 have become U+FFFD.
type Node struct {
	manifest.Entry
	// Object is a file's content.
	Object string
	// Children are a directory's, in no order, and two of them may have one name.
	Children []*Node
}

// Snapshot reads all directories and symlinks of a snapshot, several at once. It fails for one that is incomplete.
func (r *Repository) Snapshot(ctx context.Context, id string, parallel int) (*Snapshot, error) {
	found, err := snapshot.LoadSnapshot(ctx, r.opened, kopia.ID(id))
	if err != nil {
		return nil, fmt.Errorf("snapshot %s: %w", id, err)
	}
	if found.IncompleteReason != "" {
		return nil, fmt.Errorf("snapshot %s is incomplete: %s", id, found.IncompleteReason)
	}
	if found.RootEntry == nil || found.RootEntry.Type != snapshot.EntryTypeDirectory {
		return nil, fmt.Errorf("snapshot %s is none of a directory", id)
	}
	result := &Snapshot{ID: id, Source: found.Source.String(), Taken: found.StartTime.ToTime()}
	if summary := found.RootEntry.DirSummary; summary != nil {
		if err := result.took(summary); err != nil {
			return nil, fmt.Errorf("snapshot %s: %w", id, err)
		}
	}
	reader := reader{repository: r, slots: make(chan struct{}, max(parallel, 1))}
	if result.Root, err = node(manifest.Root, found.RootEntry); err != nil {
		return nil, fmt.Errorf("snapshot %s: %w", id, err)
	}
	reader.group, ctx = errgroup.WithContext(ctx)
	reader.fill(ctx, result.Root, found.RootEntry)
	if err := reader.group.Wait(); err != nil {
		return nil, fmt.Errorf("snapshot %s: %w", id, err)
	}
	return result, nil
}

// took keeps what the backup left out, and refuses a backup with what it could not read.
func (s *Snapshot) took(summary *fs.DirectorySummary) error {
	for _, failed := range summary.FailedEntries {
		s.DroppedPaths = append(s.DroppedPaths, failed.EntryPath)
	}
	if summary.FatalErrorCount > 0 {
		return fmt.Errorf("the backup could not read %d entries, such as %q", summary.FatalErrorCount, s.DroppedPaths)
	}
	s.Dropped = summary.IgnoredErrorCount
	return nil
}

// reader reads directories, as many at once as there are slots. Waiting ones are cheap.
type reader struct {
	repository *Repository
	group      *errgroup.Group
	slots      chan struct{}
}

func (r *reader) fill(ctx context.Context, parent *Node, described *snapshot.DirEntry) {
	r.group.Go(func() error {
		var children []*snapshot.DirEntry
		err := r.inSlot(ctx, func() (err error) {
			children, err = r.directory(ctx, described.ObjectID)
			return err
		})
		if err != nil {
			return fmt.Errorf("directory %q: %w", string(parent.Path), err)
		}
		for _, child := range children {
			if err := r.child(ctx, parent, child); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *reader) child(ctx context.Context, parent *Node, described *snapshot.DirEntry) error {
	if !manifest.ValidName(described.Name) {
		return fmt.Errorf("directory %q has an entry %q, which no file system has", string(parent.Path), described.Name)
	}
	path := described.Name
	if parent.Path != manifest.Root {
		path = string(parent.Path) + "/" + path
	}
	child, err := node(path, described)
	if err != nil {
		return err
	}
	parent.Children = append(parent.Children, child)
	switch child.Type {
	case manifest.Directory:
		r.fill(ctx, child, described)
	case manifest.Symlink:
		r.group.Go(func() error {
			return r.inSlot(ctx, func() error {
				target, err := r.repository.readAll(ctx, described.ObjectID)
				if err == nil && (len(target) == 0 || bytes.ContainsRune(target, 0)) {
					err = fmt.Errorf("no link can have the target %q", target)
				}
				if err != nil {
					return fmt.Errorf("symlink %q: %w", path, err)
				}
				child.Target = manifest.Text(target)
				return nil
			})
		})
	}
	return nil
}

func (r *reader) inSlot(ctx context.Context, call func() error) error {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.slots }()
	return call()
}

// directory reads a directory's object itself, because kopia's own walk puts the time of the newest file below in place of
// each directory's.
func (r *reader) directory(ctx context.Context, id object.ID) ([]*snapshot.DirEntry, error) {
	content, err := r.repository.readAll(ctx, id)
	if err != nil {
		return nil, err
	}
	var directory snapshot.DirManifest
	if err := json.Unmarshal(content, &directory); err != nil {
		return nil, err
	}
	if directory.StreamType != "kopia:directory" {
		return nil, fmt.Errorf("object %s is no directory but %q", id, directory.StreamType)
	}
	return directory.Entries, nil
}

func (r *Repository) readAll(ctx context.Context, id object.ID) ([]byte, error) {
	opened, err := r.opened.OpenObject(ctx, id)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	return io.ReadAll(opened)
}

// Content opens a file's content, by the object of its node. It reads while the context lasts.
func (r *Repository) Content(ctx context.Context, objectID string) (io.ReadCloser, error) {
	id, err := object.ParseID(objectID)
	if err != nil {
		return nil, err
	}
	return r.opened.OpenObject(ctx, id)
}

func node(path string, described *snapshot.DirEntry) (*Node, error) {
	result := &Node{Entry: manifest.Entry{
		Path: manifest.Text(path), Mode: permissions(described), UID: described.UserID, GID: described.GroupID,
		MTime: int64(described.ModTime),
	}}
	switch described.Type {
	case snapshot.EntryTypeFile:
		result.Type, result.Size, result.Object = manifest.File, described.FileSize, described.ObjectID.String()
	case snapshot.EntryTypeDirectory:
		result.Type = manifest.Directory
	case snapshot.EntryTypeSymlink:
		result.Type, result.Mode = manifest.Symlink, 0
	default:
		return nil, fmt.Errorf("%q is of a type that is not known: %q", path, described.Type)
	}
	if result.Size < 0 {
		return nil, fmt.Errorf("%q has the size %d", path, result.Size)
	}
	return result, nil
}

// permissions are kopia's, which are those of Go, as those of stat.
func permissions(described *snapshot.DirEntry) uint32 {
	mode := os.FileMode(described.Permissions)
	bits := uint32(mode.Perm())
	for flag, bit := range map[os.FileMode]uint32{os.ModeSetuid: 0o4000, os.ModeSetgid: 0o2000, os.ModeSticky: 0o1000} {
		if mode&flag != 0 {
			bits |= bit
		}
	}
	return bits
}

// ReadPassword reads a repository's password from a file, without the end of a line that an editor puts there.
func ReadPassword(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	password := strings.TrimRight(string(content), "\r\n")
	if password == "" {
		return "", errors.New(file + ": the password is empty")
	}
	return password, nil
}
