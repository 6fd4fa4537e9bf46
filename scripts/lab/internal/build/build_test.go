package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeyStandsForWhatAProgramIsMadeFrom(t *testing.T) {
	write := func(dir, name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	key := func(change func(dir string, module *Module)) string {
		t.Helper()
		dir := t.TempDir()
		write(dir, "go.mod", "module x\n")
		write(dir, "main.go", "package main\n")
		module := Module{Name: "x", Dir: dir, Programs: map[string]string{"x": "."}}
		change(dir, &module)
		got, err := module.key("go1 amd64")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	base := key(func(string, *Module) {})
	same := map[string]func(string, *Module){
		"in another directory": func(string, *Module) {},
		"with tests":           func(dir string, _ *Module) { write(dir, "main_test.go", "package main\n") },
		"with a README":        func(dir string, _ *Module) { write(dir, "README.md", "x") },
	}
	for name, change := range same {
		if key(change) != base {
			t.Errorf("%s: another key", name)
		}
	}
	other := map[string]func(string, *Module){
		"another version":  func(dir string, _ *Module) { write(dir, "go.mod", "module x\nrequire y v1.0.0\n") },
		"another source":   func(dir string, _ *Module) { write(dir, "main.go", "package main // x\n") },
		"one more file":    func(dir string, _ *Module) { write(dir, "go.sum", "") },
		"one more program": func(_ string, m *Module) { m.Programs["y"] = "y" },
		"a variable":       func(_ string, m *Module) { m.Variables = map[string]string{"a": "b"} },
	}
	for name, change := range other {
		if key(change) == base {
			t.Errorf("%s: the same key", name)
		}
	}
}

func TestRequiredVersion(t *testing.T) {
	const gomod = "module x\n\nrequire k8s.io/kubernetes v1.34.4\n\nrequire (\n\tk8s.io/api v0.34.4\n\tk8s.io/api/x v0.1.0 // indirect\n)\n"
	for path, want := range map[string]string{"k8s.io/kubernetes": "v1.34.4", "k8s.io/api": "v0.34.4", "k8s.io/api/x": "v0.1.0", "k8s.io": ""} {
		got, err := requiredVersion(gomod, path)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s: got %q, %v, want %q", path, got, err, want)
		}
	}
}

// The modules are read here as a build would read them, so a wrong path or version shows without a build.
func TestModulesOfTheRepository(t *testing.T) {
	source, err := FindSource()
	if err != nil {
		t.Fatal(err)
	}
	kubernetes, err := source.Kubernetes()
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range []Module{kubernetes, source.Velero(), source.CoreDNS(), source.S3(), source.Pause()} {
		if _, err := module.linkerFlags(); err != nil {
			t.Errorf("%s: %v", module.Name, err)
		}
		if _, err := module.key(""); err != nil {
			t.Errorf("%s: %v", module.Name, err)
		}
	}
	flags, err := source.Velero().linkerFlags()
	if err != nil || !strings.Contains(flags, "buildinfo.Version=v1.18") {
		t.Errorf("Velero does not know its version: %q, %v", flags, err)
	}
}

func TestRenderVersion(t *testing.T) {
	const upstream = `module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require (
	go.etcd.io/etcd/server/v3 v3.7.0
	k8s.io/api v0.0.0
)

require (
	a.test/indirect v1.0.0 // indirect
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
)
`
	const want = `module lab

go 1.26.0
godebug default=go1.26

require k8s.io/kubernetes v1.37.2

require (
	go.etcd.io/etcd/server/v3 v3.7.0
	k8s.io/api v0.0.0
)
require (
	a.test/indirect v1.0.0 // indirect
)

replace (
	k8s.io/api => k8s.io/api v0.37.2
)
`
	if got := renderVersion(upstream, "lab", "1.37.2"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
