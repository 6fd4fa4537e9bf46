package image

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestSmallImage(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!"), 0o600); err != nil {
		t.Fatal(err)
	}
	small := Small{
		Name: "x", Reference: "registry.test/x:1",
		Config:   Config{Entrypoint: []string{"/bin/x"}, User: "7:7"},
		Programs: map[string]string{"/bin/x": program},
		Links:    map[string]string{"/bin/y": "x"},
	}
	archive := filepath.Join(dir, "x.tar")
	if err := small.write(dir, archive); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(small.Reference)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.Entrypoint[0] != "/bin/x" || config.Config.User != "7:7" || config.OS != "linux" {
		t.Errorf("got config %+v", config)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("got %d layers, %v, want 1", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	headers := readHeaders(t, content)
	if got := headers["bin/x"]; got.Mode != 0o755 || got.Uid != 0 || got.Size != 2 {
		t.Errorf("program: got %+v", got)
	}
	if got := headers["bin/y"]; got.Linkname != "x" || got.Typeflag != tar.TypeSymlink {
		t.Errorf("link: got %+v", got)
	}
	if got := headers["tmp/"]; got.Mode != 0o1777 {
		t.Errorf("/tmp: got %+v", got)
	}
}

func TestAKeyFollowsTheProgramsContent(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	key := func(content string) string {
		t.Helper()
		if err := os.WriteFile(program, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Small{Name: "x", Programs: map[string]string{"/x": program}}.key()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first, other, again := key("a"), key("b"), key("a")
	if first == other || first != again {
		t.Errorf("got %s for a, %s for b, %s for a again", first, other, again)
	}
}

func TestAppletLinks(t *testing.T) {
	links := appletLinks("busybox\nsh\n[\nls\n")
	if len(links) != 3 || links["/bin/sh"] != "busybox" || links["/bin/["] != "busybox" {
		t.Errorf("got %v", links)
	}
}

func TestMirrorOf(t *testing.T) {
	const targets = `http://mirror.test/security/ bookworm-security main
http://mirror.test/debian/ bookworm contrib
http://mirror.test/debian/ bookworm main
http://other.test/debian/ bookworm main
`
	if got := mirrorOf(targets); got != "http://mirror.test/debian/" {
		t.Errorf("got %q", got)
	}
	if got := mirrorOf("http://mirror.test/debian/ trixie main\n"); got != "" {
		t.Errorf("another release: got %q", got)
	}
}

func TestRenumber(t *testing.T) {
	const passwd = "root:x:0:0:root:/root:/bin/sh\npostgres:x:101:104:PostgreSQL,,,:/var/lib/postgresql:/bin/bash\nx:x:1010:1040::/:/bin/sh\n"
	const wantPasswd = "root:x:0:0:root:/root:/bin/sh\npostgres:x:999:999:PostgreSQL,,,:/var/lib/postgresql:/bin/bash\nx:x:1010:1040::/:/bin/sh\n"
	if got := renumber(passwd, 101, 104, 999); got != wantPasswd {
		t.Errorf("passwd: got %q", got)
	}
	const group = "ssl-cert:x:103:postgres\npostgres:x:104:\n"
	if got := renumber(group, 101, 104, 999); got != "ssl-cert:x:103:postgres\npostgres:x:999:\n" {
		t.Errorf("group: got %q", got)
	}
	if uid, gid, err := idsOf(passwd, "postgres"); uid != 101 || gid != 104 || err != nil {
		t.Errorf("ids: got %d, %d, %v", uid, gid, err)
	}
	if _, _, err := idsOf(passwd, "nobody"); err == nil {
		t.Error("no error for a user that is not there")
	}
}

func TestWhatIsLeftOutOfPostgres(t *testing.T) {
	for name, want := range map[string]bool{
		"usr/share/doc/postgresql-15/copyright":             true,
		"usr/share/doc":                                     false,
		"var/lib/apt/lists/x":                               true,
		"usr/lib/x86_64-linux-gnu/libLLVM-14.so.1":          true,
		"usr/lib/postgresql/15/lib/llvmjit.so":              true,
		"usr/lib/postgresql/15/lib/amcheck.so":              false,
		"usr/lib/postgresql/15/bin/pgbench":                 false,
		"usr/share/postgresql/15/extension/amcheck.control": false,
		"var/lib/postgresql/15/main/PG_VERSION":             true,
		"usr/lib/x86_64-linux-gnu/libpq.so.5":               false,
		"dev/null":                                          true,
	} {
		if got := left.MatchString(name); got != want {
			t.Errorf("%s: left out %t, want %t", name, got, want)
		}
	}
}

func readHeaders(t *testing.T, content io.Reader) map[string]*tar.Header {
	t.Helper()
	headers := map[string]*tar.Header{}
	reader := tar.NewReader(content)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return headers
		}
		if err != nil {
			t.Fatal(err)
		}
		headers[header.Name] = header
	}
}
