package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kopia/kopia/repo/blob/s3"

	"github.com/mig-cli/mig/cmd/mig-mover/internal/command"
	"github.com/mig-cli/mig/cmd/mig-mover/internal/repotest"
	"github.com/mig-cli/mig/internal/moverlog"
)

// mover runs the program and returns its last line on the standard output, all of it, and all that it said.
func mover(t *testing.T, wantCode int, args ...string) (last map[string]any, out, said string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := command.Run(t.Context(), args, command.Streams{Out: &stdout, Err: &stderr})
	if code != wantCode {
		t.Fatalf("mig-mover %q: exit code %d, want %d\n%s%s", args, code, wantCode, stdout.String(), stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	if strings.HasPrefix(lines[len(lines)-1], "{") {
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
			t.Fatal(err)
		}
	}
	return last, stdout.String(), stderr.String()
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The whole way: a manifest of the source, a restore with it, a manifest of the destination, and the comparison of the two.
func TestStageAndVerify(t *testing.T) {
	source, target, work := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, source, map[string]string{"a": "hello", "dir/b": "world"})
	write(t, target, map[string]string{"a": "old", "extra": "file"})
	repo := repotest.New(t)
	id := repo.Snapshot(t, source)
	write(t, work, map[string]string{"password": repotest.Password + "\n"})
	in, out, password := filepath.Join(work, "source"), filepath.Join(work, "target"), filepath.Join(work, "password")

	mover(t, 0, "manifest", "--root", source, "--hash", "--encoding", "base64", "--out", in)
	restore := []string{"restore", "--snapshot", id, "--root", target, "--manifest", in, "--path", repo.Path, "--password-file", password, "--work", work}
	summary, _, _ := mover(t, 0, restore...)
	if summary["type"] != "summary" || summary["snapshot"] != id || summary["filesWritten"] != 2.0 || summary["removed"] != 1.0 ||
		summary["proved"] != "content" || summary["disagreements"] != 0.0 || summary["source"] != "default@default:snapshot-pod-volume/kopia/shop/pod/data" {
		t.Errorf("got %v", summary)
	}
	mover(t, 0, "manifest", "--root", target, "--hash", "--out", out)
	if verdict, _, _ := mover(t, 0, "compare", in, out); verdict["equal"] != true || verdict["entries"] != 4.0 || verdict["contentsCompared"] != 2.0 {
		t.Errorf("got %v", verdict)
	}

	write(t, target, map[string]string{"dir/b": "World"})
	mover(t, 0, "manifest", "--root", target, "--hash", "--out", out)
	verdict, told, _ := mover(t, 3, "compare", "--ignore", "mtime", in, out)
	if !strings.Contains(told, `"path":"dir/b","kind":"content"`) || verdict["equal"] != false {
		t.Errorf("got %s", told)
	}
	if left, err := filepath.Glob(filepath.Join(work, "mig-mover-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// A volume that held nothing has no snapshot: what a stage brought before must go all the same.
func TestAVolumeThatHeldNothingIsEmptiedAndKeepsItsOwnMode(t *testing.T) {
	pods, summary := t.TempDir(), filepath.Join(t.TempDir(), "termination-log")
	root := filepath.Join(pods, "1234/volumes/kubernetes.io~csi/pvc-1/mount")
	write(t, root, map[string]string{"a": "hello", "dir/b": "world", "lost+found/c": "the file system's own"})
	if err := os.Chmod(root, 0o2770); err != nil { //nolint:gosec // as volumes have it
		t.Fatal(err)
	}
	mover(t, 0, "restore", "--empty", "--root", filepath.Join(pods, "*/volumes/*/pvc-1/mount"), "--summary", summary)
	left, err := os.ReadDir(root)
	if err != nil || len(left) != 1 || left[0].Name() != "lost+found" {
		t.Errorf("left: %v, %v", left, err)
	}
	if info, err := os.Stat(root); err != nil || info.Mode().Perm() != 0o770 {
		t.Errorf("the volume's mode is %v, %v", info.Mode(), err)
	}
	content, err := os.ReadFile(summary)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := moverlog.ReadSummary(string(content)); err != nil || got.Removed != 2 {
		t.Errorf("got %s, %v", content, err)
	}
	mover(t, 2, "restore", "--empty", "--snapshot", "abc", "--root", root)
}

func TestTheLastLineIsWrittenWhereAKubeletLooks(t *testing.T) {
	pods, work := t.TempDir(), t.TempDir()
	write(t, pods, map[string]string{"1234/volumes/kubernetes.io~csi/pvc-1/mount/a": "hello", "1234/volumes/kubernetes.io~empty-dir/tmp/b": "world"})
	summary := filepath.Join(work, "termination-log")
	write(t, work, map[string]string{"termination-log": strings.Repeat("what was there before ", 100)})
	mover(t, 0, "manifest", "--hash", "--encoding", "base64", "--summary", summary, "--root", filepath.Join(pods, "1234/volumes/*/pvc-1/mount"))
	content, err := os.ReadFile(summary)
	if err != nil {
		t.Fatal(err)
	}
	var last struct {
		End                       bool
		Entries                   int
		Digest, Carried, Timeless []byte
	}
	if err := json.Unmarshal(content, &last); err != nil || !last.End || last.Entries != 2 || len(last.Digest) == 0 || len(last.Carried) == 0 || len(last.Timeless) == 0 {
		t.Errorf("got %s, %v", content, err)
	}
	for _, pattern := range []string{"1234/volumes/*/*", "1234/volumes/*/pvc-2"} {
		_, _, said := mover(t, 1, "manifest", "--root", filepath.Join(pods, pattern))
		if !strings.Contains(said, "directories match, want one") {
			t.Errorf("%s: said %q", pattern, said)
		}
	}
}

func TestWrongCommandLines(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"move"},
		{"manifest"},
		{"manifest", "--root", "x", "--encoding", "zip"},
		{"manifest", "--root", "x", "surplus"},
		{"compare", "one"},
		{"compare", "--ignore", "colour", "one", "two"},
		{"restore", "--root", "x", "--snapshot", "y"},
		{"restore", "--root", "x", "--snapshot", "y", "--password-file", "p"},
		{"restore", "--root", "x", "--snapshot", "y", "--password-file", "p", "--bucket", "b", "--path", "d"},
		{"restore", "--root", "x", "--snapshot", "y", "--password-file", "p", "--path", "d", "--parallel", "0"},
		{"restore", "--nonsense"},
	} {
		if _, out, said := mover(t, 2, args...); out != "" || said == "" {
			t.Errorf("%q: out %q, said %q", args, out, said)
		}
	}
	if _, out, _ := mover(t, 0, "help"); !strings.Contains(out, "EXIT STATUS") {
		t.Errorf("help says %q", out)
	}
}

func TestWhatIsNotThereIsAnError(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"password": repotest.Password, "wrong": "wrong", "empty": "\n", "no-manifest": "text\n"})
	file := func(name string) string { return filepath.Join(dir, name) }
	repo := repotest.New(t)
	restore := func(more ...string) []string {
		return append([]string{"restore", "--root", dir, "--snapshot", "none"}, more...)
	}
	for name, args := range map[string][]string{
		"no such volume":     {"manifest", "--root", file("missing")},
		"no such manifest":   {"compare", file("missing"), file("missing")},
		"no manifest":        {"compare", file("no-manifest"), file("no-manifest")},
		"no such repository": restore("--path", file("missing"), "--password-file", file("password")),
		"no such snapshot":   restore("--path", repo.Path, "--password-file", file("password")),
		"a wrong password":   restore("--path", repo.Path, "--password-file", file("wrong")),
		"an empty password":  restore("--path", repo.Path, "--password-file", file("empty")),
		"a cut-off manifest": restore("--path", repo.Path, "--password-file", file("password"), "--manifest", file("no-manifest")),
	} {
		if _, _, said := mover(t, 1, args...); !strings.Contains(said, "error:") || strings.Contains(said, repotest.Password) {
			t.Errorf("%s: said %q", name, said)
		}
	}
}

// The repository as Velero has it: in a bucket, below a prefix, with keys in a file.
func TestARepositoryInS3(t *testing.T) {
	address := startS3(t)
	storage, err := s3.New(t.Context(), &s3.Options{
		BucketName: "mig", Prefix: "velero/kopia/shop/", Endpoint: address, DoNotUseTLS: true, Region: "us-east-1",
		AccessKeyID: "testkey", SecretAccessKey: "testsecret",
	}, true)
	if err != nil {
		t.Fatal(err)
	}
	source, target, work := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, source, map[string]string{"a": "hello", "dir/b": "world"})
	id := repotest.In(t, storage).Snapshot(t, source)
	write(t, work, map[string]string{
		"password": repotest.Password,
		"cloud":    "[default]\naws_access_key_id = testkey\naws_secret_access_key = testsecret\n[other]\naws_access_key_id=x\naws_secret_access_key=wrongsecret\n",
	})
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(work, "cloud"))
	args := []string{
		"restore", "--snapshot", id, "--root", target, "--password-file", filepath.Join(work, "password"), "--work", work,
		"--bucket", "mig", "--prefix", "velero/kopia/shop/", "--s3-url", "http://" + address, "--region", "us-east-1",
	}
	if summary, _, _ := mover(t, 0, args...); summary["filesWritten"] != 2.0 {
		t.Errorf("got %v", summary)
	}
	if _, _, said := mover(t, 1, append(args, "--profile", "other")...); strings.Contains(said, "secret") {
		t.Errorf("a secret was told: %s", said)
	}
}

// startS3 starts the object store that the lab is made with, and of it only that.
func startS3(t *testing.T) (address string) {
	t.Helper()
	lab := os.Getenv("MIG_LAB")
	if cache, err := os.UserCacheDir(); lab == "" && err == nil {
		lab = filepath.Join(cache, "mig-lab")
	}
	program := filepath.Join(lab, "bin", "s3")
	if _, err := os.Stat(program); err != nil {
		t.Skip("the lab's object store is not built: `make lab-build`")
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	data, metadata := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(data, "mig"), 0o755); err != nil {
		t.Fatal(err)
	}
	// It outlives the repository that is closed when the test ends.
	server := exec.CommandContext(context.WithoutCancel(t.Context()), program, "-address", address, "-data", data, "-metadata", metadata)
	server.Env = append(os.Environ(), "ROOT_ACCESS_KEY=testkey", "ROOT_SECRET_KEY=testsecret")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = server.Process.Kill(), server.Wait() })
	for {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/health", nil)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
			return address
		}
		select { // until the test's own time is over
		case <-t.Context().Done():
			t.Fatal("the object store does not answer")
		case <-time.After(10 * time.Millisecond):
		}
	}
}
