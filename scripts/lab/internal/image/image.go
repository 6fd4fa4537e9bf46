// Package image makes the container images that the lab's nodes run, as archives that containerd imports.
package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// The configuration and the digests are go-containerregistry's business: it has four small modules in all, and a
// mistake there would only show as containerd's complaint.

// Config is what an image says of itself.
type Config struct {
	Entrypoint []string
	Command    []string
	Env        []string
	User       string
}

// write puts an image of one layer, which is a tar file, into an archive with a name.
func write(archive, reference, layer string, config Config) error {
	tag, err := name.NewTag(reference, name.StrictValidation)
	if err != nil {
		return err
	}
	// Not compressed: it never leaves the machine, and each node would have to inflate it.
	made, err := tarball.LayerFromFile(layer, tarball.WithCompressionLevel(gzip.NoCompression))
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, made)
	if err != nil {
		return err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", architecture()
	file.Config = v1.Config{Entrypoint: config.Entrypoint, Cmd: config.Command, Env: config.Env, User: config.User, WorkingDir: "/"}
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return err
	}
	partial := archive + ".partial"
	if err := tarball.WriteToFile(partial, tag, image); err != nil {
		return err
	}
	return os.Rename(partial, archive)
}

// Layer writes a layer of a few files. All of them are root's and as old as can be, so equal files make an equal image.
type Layer struct {
	tar  *tar.Writer
	dirs map[string]bool
	err  error
}

func newLayer(to io.Writer) *Layer {
	return &Layer{tar: tar.NewWriter(to), dirs: map[string]bool{"/": true, ".": true}}
}

var epoch = time.Unix(0, 0)

func (l *Layer) add(header tar.Header, content []byte) {
	if l.err != nil {
		return
	}
	header.ModTime, header.Format = epoch, tar.FormatPAX
	header.Size = int64(len(content))
	if l.err = l.tar.WriteHeader(&header); l.err == nil {
		_, l.err = l.tar.Write(content)
	}
}

func (l *Layer) dir(name string, mode int64) {
	if l.dirs[name] {
		return
	}
	l.dir(path.Dir(name), 0o755)
	l.dirs[name] = true
	l.add(tar.Header{Typeflag: tar.TypeDir, Name: name[1:] + "/", Mode: mode}, nil)
}

func (l *Layer) file(name string, content []byte, mode int64) {
	l.dir(path.Dir(name), 0o755)
	l.add(tar.Header{Typeflag: tar.TypeReg, Name: name[1:], Mode: mode}, content)
}

func (l *Layer) program(name, from string) {
	content, err := os.ReadFile(from)
	if err != nil && l.err == nil {
		l.err = err
	}
	l.file(name, content, 0o755)
}

func (l *Layer) link(name, target string) {
	l.dir(path.Dir(name), 0o755)
	l.add(tar.Header{Typeflag: tar.TypeSymlink, Name: name[1:], Linkname: target, Mode: 0o777}, nil)
}

// base is what every program expects of a root file system.
func (l *Layer) base() {
	l.dir("/tmp", 0o1777)
	l.file("/etc/passwd", []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"), 0o644)
	l.file("/etc/group", []byte("root:x:0:\nnobody:x:65534:\n"), 0o644)
	l.dir("/root", 0o700)
}

func (l *Layer) close() error {
	if l.err != nil {
		return l.err
	}
	return l.tar.Close()
}

// Small is an image of a few files.
type Small struct {
	Name      string // of the archive
	Reference string // of the image
	Config    Config
	// Programs are files of this machine, by their path in the image.
	Programs map[string]string
	// Links are symbolic links, by their path in the image.
	Links map[string]string
}

func (s Small) write(work, archive string) error {
	var content bytes.Buffer
	layer := newLayer(&content)
	layer.base()
	for _, name := range sorted(s.Programs) {
		layer.program(name, s.Programs[name])
	}
	for _, name := range sorted(s.Links) {
		layer.link(name, s.Links[name])
	}
	if err := layer.close(); err != nil {
		return fmt.Errorf("image %s: %w", s.Reference, err)
	}
	file := path.Join(work, s.Name+".layer")
	if err := os.WriteFile(file, content.Bytes(), 0o644); err != nil {
		return err
	}
	defer os.Remove(file)
	return write(archive, s.Reference, file, s.Config)
}

func sorted(values map[string]string) []string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
