package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// helperDir is the environment variable that makes the test binary a login
// helper: what it does is in the files of that directory.
const helperDir = "MIG_TEST_LOGIN_HELPER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		os.Exit(beHelper(dir))
	}
	SilenceClients()
	os.Exit(m.Run())
}

// beHelper notes that it was asked, and what for; says what is in the file
// says; answers what is in the file answer, or fails where there is none.
func beHelper(dir string) int {
	asked, err := os.OpenFile(filepath.Join(dir, "asked"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 9
	}
	_, _ = fmt.Fprintln(asked, os.Getenv("KUBERNETES_EXEC_INFO"))
	if err := asked.Close(); err != nil {
		return 9
	}
	says, _ := os.ReadFile(filepath.Join(dir, "says"))
	_, _ = os.Stderr.Write(says)
	for { // it hangs as long as the test wants it to
		if _, err := os.Stat(filepath.Join(dir, "hangs")); err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	answer, err := os.ReadFile(filepath.Join(dir, "answer"))
	if err != nil {
		return 3
	}
	_, _ = os.Stdout.Write(answer)
	return 0
}

// helper is a login helper that a test tells what to do.
type helper struct {
	t   *testing.T
	dir string
}

func newHelper(t *testing.T) *helper {
	t.Helper()
	return &helper{t: t, dir: t.TempDir()}
}

// exec is the kubeconfig's entry of it.
func (h *helper) exec() *clientcmdapi.ExecConfig {
	return &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: os.Args[0], InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode,
		Env: []clientcmdapi.ExecEnvVar{{Name: helperDir, Value: h.dir}},
	}
}

func (h *helper) write(file, content string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, file), []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// gives makes the helper answer with a token; until is when it says that the
// token expires, empty for never.
func (h *helper) gives(token, until string) {
	h.t.Helper()
	status := fmt.Sprintf(`"token":%q`, token)
	if until != "" {
		status += fmt.Sprintf(`,"expirationTimestamp":%q`, until)
	}
	h.write("answer", `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{`+status+`}}`)
}

func (h *helper) fails(saying string) {
	h.t.Helper()
	h.write("says", saying)
	if err := os.Remove(filepath.Join(h.dir, "answer")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.t.Fatal(err)
	}
}

// asked is what it was asked for, each time.
func (h *helper) asked() []string {
	h.t.Helper()
	content, err := os.ReadFile(filepath.Join(h.dir, "asked"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")[:strings.Count(string(content), "\n")]
}
