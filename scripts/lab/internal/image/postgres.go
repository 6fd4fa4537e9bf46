package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/mig-cli/mig/scripts/lab/internal/host"
	"github.com/mig-cli/mig/scripts/lab/internal/process"
)

// Postgres is the image of PostgreSQL from Debian's packages, on the least of Debian that they need.
type Postgres struct {
	Reference string
	// UID of the user postgres and its group: Debian would give whichever is free, and volumes keep the number.
	UID   int
	Owner string // the lab's directory, to mark processes with
}

const (
	suite    = "bookworm" // the Debian release with PostgreSQL 15
	packages = "postgresql-15,postgresql-contrib"
	programs = "/usr/lib/postgresql/15/bin"
)

// left is what a server does not need: what people read, what apt and debconf keep, a cluster with another machine's
// secrets, and the compiler of queries, which is a third of everything.
var left = regexp.MustCompile(`^(` + strings.Join([]string{
	`usr/share/(doc|man|info|locale|lintian|bug|perl|perl5/Debconf|zoneinfo/right)/.+`,
	`var/(cache|log)/.+`,
	`var/lib/(apt|dpkg/info)/.+`,
	`var/lib/postgresql/.+`,
	`usr/lib/[^/]+/(libLLVM|libz3|perl|gconv/).*`,
	`usr/lib/postgresql/15/lib/(bitcode/.+|llvmjit.*)`,
	`(dev|proc|sys|run|tmp|debootstrap)/.+`,
	`etc/ssl/private/.+`,
}, "|") + `)$`)

// dpkgOptions let dpkg not wait for the disk after every file, and not unpack what is left out anyway.
const dpkgOptions = `force-unsafe-io
path-exclude=/usr/share/doc/*
path-exclude=/usr/share/man/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/locale/*
`

// recipe stands for how the image is made, in its key.
func (p Postgres) recipe() string {
	return fmt.Sprint("1 ", suite, packages, p.UID, left)
}

func (p Postgres) write(ctx context.Context, work, archive string) error {
	mirror, err := debianMirror(ctx)
	if err != nil {
		return err
	}
	root := filepath.Join(work, "postgres")
	defer host.RemoveAll(root) //nolint:errcheck // the next command empties the directory
	if err := process.WriteFile(filepath.Join(root, "etc/dpkg/dpkg.cfg.d/lab"), []byte(dpkgOptions), 0o644); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "debootstrap", "--variant=minbase", "--include="+packages, suite, root, mirror)
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", process.Builder+"="+p.Owner)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("install PostgreSQL into a directory: debootstrap: %w\n%s", err, lastLines(output, 15))
	}
	layer := root + ".layer"
	defer os.Remove(layer)
	if err := p.writeLayer(layer, root); err != nil {
		return fmt.Errorf("image %s: %w", p.Reference, err)
	}
	user := strconv.Itoa(p.UID)
	return write(archive, p.Reference, layer, Config{
		Command: []string{"postgres"},
		User:    user + ":" + user,
		Env:     []string{"PATH=" + programs + ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG=C.UTF-8"},
	})
}

// debianMirror is where this machine's apt gets Debian from.
func debianMirror(ctx context.Context) (string, error) {
	output, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)", "Created-By: Packages").Output()
	if err != nil {
		return "", fmt.Errorf("where apt gets Debian from: apt-get indextargets: %w", err)
	}
	if mirror := mirrorOf(string(output)); mirror != "" {
		return mirror, nil
	}
	return "", fmt.Errorf("apt on this machine has no source for Debian %s (component main), which the PostgreSQL image is made from: add one and call `apt-get update`", suite)
}

func mirrorOf(targets string) string {
	for line := range strings.Lines(targets) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[1] == suite && fields[2] == "main" {
			return fields[0]
		}
	}
	return ""
}

func (p Postgres) writeLayer(file, root string) error {
	passwd, err := os.ReadFile(filepath.Join(root, "etc/passwd"))
	if err != nil {
		return err
	}
	uid, gid, err := idsOf(string(passwd), "postgres")
	if err != nil {
		return err
	}
	to, err := os.Create(file)
	if err != nil {
		return err
	}
	defer to.Close()
	tree := tree{root: root, uid: uid, gid: gid, fixed: p.UID, tar: tar.NewWriter(to), seen: map[uint64]string{}}
	if err := filepath.WalkDir(root, tree.add); err != nil {
		return err
	}
	return errors.Join(tree.tar.Close(), to.Close())
}

// tree writes a directory as a layer, with another owner in the place of postgres.
type tree struct {
	root            string
	uid, gid, fixed int
	tar             *tar.Writer
	seen            map[uint64]string // by inode, for hard links
}

func (t tree) add(path string, entry fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	name, err := filepath.Rel(t.root, path)
	if err != nil || name == "." || left.MatchString(name) {
		return err
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	if info.Mode()&(fs.ModeDevice|fs.ModeSocket|fs.ModeNamedPipe) != 0 {
		return nil
	}
	header, err := t.header(path, name, info)
	if err != nil {
		return err
	}
	content, err := t.content(path, name, header)
	if err != nil {
		return err
	}
	if err := t.tar.WriteHeader(header); err != nil || content == nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(t.tar, content)
	return err
}

func (t tree) header(path, name string, info fs.FileInfo) (*tar.Header, error) {
	target := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		var err error
		if target, err = os.Readlink(path); err != nil {
			return nil, err
		}
	}
	header, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return nil, err
	}
	header.Name, header.Format, header.Uname, header.Gname = name, tar.FormatPAX, "", ""
	if info.IsDir() {
		header.Name += "/"
	}
	if header.Uid == t.uid {
		header.Uid = t.fixed
	}
	if header.Gid == t.gid {
		header.Gid = t.fixed
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() && stat.Nlink > 1 {
		if first, found := t.seen[stat.Ino]; found {
			header.Typeflag, header.Linkname, header.Size = tar.TypeLink, first, 0
		} else {
			t.seen[stat.Ino] = name
		}
	}
	return header, nil
}

// content opens a file that has content, with the user's new number in those that name users.
func (t tree) content(path, name string, header *tar.Header) (io.ReadCloser, error) {
	if header.Typeflag != tar.TypeReg {
		return nil, nil
	}
	if name != "etc/passwd" && name != "etc/group" {
		return os.Open(path)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	content = []byte(renumber(string(content), t.uid, t.gid, t.fixed))
	header.Size = int64(len(content))
	return io.NopCloser(bytes.NewReader(content)), nil
}

func idsOf(passwd, user string) (uid, gid int, err error) {
	for line := range strings.Lines(passwd) {
		fields := strings.Split(line, ":")
		if len(fields) < 4 || fields[0] != user {
			continue
		}
		uid, uidErr := strconv.Atoi(fields[2])
		gid, gidErr := strconv.Atoi(fields[3])
		return uid, gid, errors.Join(uidErr, gidErr)
	}
	return 0, 0, fmt.Errorf("the packages made no user %s", user)
}

// renumber gives postgres its fixed number in a passwd or a group file.
func renumber(content string, uid, gid, fixed int) string {
	user := regexp.MustCompile(fmt.Sprintf(`(?m)^(postgres:[^:]*):%d:%d:`, uid, gid))
	group := regexp.MustCompile(fmt.Sprintf(`(?m)^(postgres:[^:]*):%d:([^:]*)$`, gid))
	content = user.ReplaceAllString(content, fmt.Sprintf("$1:%d:%d:", fixed, fixed))
	return group.ReplaceAllString(content, fmt.Sprintf("$1:%d:$2", fixed))
}

func lastLines(output []byte, count int) string {
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}
