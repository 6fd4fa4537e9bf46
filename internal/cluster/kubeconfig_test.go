package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestContextsAreThoseOfTheKubeconfigInOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	const content = `apiVersion: v1
kind: Config
contexts:
- {name: src, context: {cluster: a, user: a}}
- {name: dst, context: {cluster: b, user: b}}
`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := Contexts(path); !slices.Equal(got, []string{"dst", "src"}) {
		t.Errorf("got %v, want dst and src", got)
	}
}

func TestAKubeconfigThatCannotBeReadHasNoContexts(t *testing.T) {
	if got := Contexts(filepath.Join(t.TempDir(), "none")); len(got) > 0 {
		t.Errorf("got %v, want none", got)
	}
}
