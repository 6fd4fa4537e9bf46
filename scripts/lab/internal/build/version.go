package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/mig-cli/mig/scripts/lab/internal/host"
	"github.com/mig-cli/mig/scripts/lab/internal/process"
)

// KubernetesVersion is the module of the same programs in another version of Kubernetes. It is made in the lab's
// directory: our sources, and a go.mod with that version's own requirements.
func (b Builder) KubernetesVersion(ctx context.Context, source Source, version string) (Module, error) {
	if !regexp.MustCompile(`^1\.\d+\.\d+$`).MatchString(version) {
		return Module{}, fmt.Errorf("%q is no version of Kubernetes: like 1.37.2", version)
	}
	name := KubernetesProgram(version)
	dir := filepath.Join(b.Place.Modules(), name)
	from := filepath.Join(string(source), "kubernetes")
	// The sums are asked for once and are then part of the key.
	if _, err := os.Stat(filepath.Join(dir, "go.sum")); errors.Is(err, fs.ErrNotExist) {
		if err := b.makeVersion(ctx, from, dir, version); err != nil {
			return Module{}, fmt.Errorf("module of Kubernetes %s: %w", version, err)
		}
	}
	if err := copySources(from, dir); err != nil {
		return Module{}, err
	}
	return kubernetesModule(dir, name)
}

// makeVersion makes the module in a directory for half-made things, and moves it to its place when it is whole.
func (b Builder) makeVersion(ctx context.Context, from, dir, version string) error {
	b.Say("making the module of Kubernetes %s", version)
	work := filepath.Join(b.Place.Work(), filepath.Base(dir))
	if err := errors.Join(copySources(from, work), os.MkdirAll(filepath.Dir(dir), 0o755), host.RemoveAll(dir)); err != nil {
		return err
	}
	output, err := goCommand(ctx, from, b.Place, "mod", "download", "-json", k8sPath+"@v"+version)
	if err != nil {
		return err
	}
	var downloaded struct{ GoMod string }
	if err := json.Unmarshal([]byte(output), &downloaded); err != nil {
		return err
	}
	upstream, err := os.ReadFile(downloaded.GoMod)
	if err != nil {
		return err
	}
	ours := Module{Dir: from}
	if err := os.WriteFile(filepath.Join(work, "go.mod"), []byte(renderVersion(string(upstream), modulePath(ours), version)), 0o644); err != nil {
		return err
	}
	// Only this writes go.sum for what is really built. `go mod tidy` would also raise what tests of others want.
	if _, err := goCommand(ctx, work, b.Place, "list", "-mod=mod", "-deps", "."); err != nil {
		return err
	}
	return os.Rename(work, dir)
}

func modulePath(module Module) string {
	content, _ := os.ReadFile(filepath.Join(module.Dir, "go.mod"))
	first, _, _ := strings.Cut(string(content), "\n")
	return strings.TrimPrefix(first, "module ")
}

// renderVersion makes a go.mod out of Kubernetes' own: what it requires, as it requires it, and its staging modules, which
// are directories there, in the versions that they are published as.
func renderVersion(upstream, path, version string) string {
	_, minor, _ := strings.Cut(version, ".")
	var head, requires, replaces strings.Builder
	var inRequire bool
	for line := range strings.Lines(upstream) {
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "go ") || strings.HasPrefix(line, "godebug "):
			head.WriteString(line)
		case strings.HasPrefix(line, "require ("):
			inRequire = true
			requires.WriteString(line)
		case inRequire:
			requires.WriteString(line)
			inRequire = !strings.HasPrefix(line, ")")
		}
		if len(fields) >= 3 && strings.Contains(line, "=> ./staging/") {
			module := fields[0]
			if module == "replace" {
				module = fields[1]
			}
			fmt.Fprintf(&replaces, "\t%s => %s v0.%s\n", module, module, minor)
		}
	}
	return "module " + path + "\n\n" + head.String() + "\nrequire " + k8sPath + " v" + version + "\n\n" +
		requires.String() + "\nreplace (\n" + replaces.String() + ")\n"
}

func copySources(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		return process.WriteFile(filepath.Join(to, relative), content, 0o644)
	})
}
