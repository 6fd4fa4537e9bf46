package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mig-cli/mig/scripts/lab/internal/place"
	"github.com/mig-cli/mig/scripts/lab/internal/process"
)

// Archive is an image that was made: the file, and the key of what it is made from.
type Archive struct{ Name, File, Key string }

// Maker makes images into the lab's directory.
type Maker struct {
	Place place.Dir
	Say   func(string, ...any)
}

// Small makes an image of a few files, unless it is there and was made from the same.
func (m Maker) Small(image Small) (Archive, error) {
	key, err := image.key()
	if err != nil {
		return Archive{}, err
	}
	return m.ensure(image.Name, key, func(archive string) error { return image.write(m.Place.Work(), archive) })
}

// Postgres makes the image of PostgreSQL, unless it is there and was made the same way.
func (m Maker) Postgres(ctx context.Context, image Postgres) (Archive, error) {
	return m.ensure("postgres", hash(image.Reference, image.recipe()), func(archive string) error {
		m.Say("making the image of PostgreSQL from Debian's packages: a minute or two")
		return image.write(ctx, m.Place.Work(), archive)
	})
}

func (m Maker) ensure(name, key string, make func(archive string) error) (Archive, error) {
	archive := Archive{Name: name, File: m.Place.Image(name), Key: key}
	keyFile := filepath.Join(m.Place.Keys(), "image-"+name)
	if written, err := os.ReadFile(keyFile); err == nil && string(written) == key {
		if _, err := os.Stat(archive.File); err == nil {
			return archive, nil
		}
	}
	if err := errors.Join(os.MkdirAll(m.Place.Work(), 0o755), os.MkdirAll(filepath.Dir(archive.File), 0o755)); err != nil {
		return Archive{}, err
	}
	if err := make(archive.File); err != nil {
		return Archive{}, err
	}
	return archive, process.WriteFile(keyFile, []byte(key), 0o644)
}

// key stands for all that the image is made from. The version is that of the code in this package.
func (s Small) key() (string, error) {
	const version = "1"
	parts := []string{version, s.Reference, fmt.Sprint(s.Config)}
	for _, name := range sorted(s.Programs) {
		sum, err := hashFile(s.Programs[name])
		if err != nil {
			return "", err
		}
		parts = append(parts, name, sum)
	}
	for _, name := range sorted(s.Links) {
		parts = append(parts, name, s.Links[name])
	}
	return hash(parts...), nil
}

func hash(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

func hashFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	return hex.EncodeToString(sum.Sum(nil)), err
}
