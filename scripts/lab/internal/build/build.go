// Package build makes the lab's programs from the modules below scripts/lab, and knows when they need not be made again.
package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mig-cli/mig/scripts/lab/internal/place"
	"github.com/mig-cli/mig/scripts/lab/internal/process"
)

// Module is a directory with a go.mod and what is built from it.
type Module struct {
	Name string // of its key, and of its directory below scripts/lab
	Dir  string
	// Sources are directories beside Dir that it is built from too.
	Sources []string
	// Programs are the packages to build, by the name of the program.
	Programs map[string]string
	// Variables are set by the linker. In their values, {PATH} is the version of the module PATH in go.mod.
	Variables map[string]string
}

// Builder builds modules into the lab's directory.
type Builder struct {
	Place place.Dir
	Say   func(string, ...any)
}

// flags are the same for all, so that modules share what they compile.
var flags = []string{"build", "-trimpath", "-buildvcs=false"}

// Ensure builds the module's programs unless they are there, made from the same. It returns the key of what they are made from.
func (b Builder) Ensure(ctx context.Context, module Module) (string, error) {
	version, err := goVersion(ctx, module.Dir)
	if err != nil {
		return "", err
	}
	key, err := module.key(version)
	if err != nil {
		return "", err
	}
	if b.fresh(module, key) {
		return key, nil
	}
	b.Say("building %s: minutes, unless Go's build cache has it", module.Name)
	if err := b.build(ctx, module); err != nil {
		return "", fmt.Errorf("build %s: %w", module.Name, err)
	}
	return key, process.WriteFile(b.keyFile(module), []byte(key), 0o644)
}

func (b Builder) keyFile(module Module) string { return filepath.Join(b.Place.Keys(), module.Name) }

func (b Builder) fresh(module Module, key string) bool {
	written, err := os.ReadFile(b.keyFile(module))
	if err != nil || string(written) != key {
		return false
	}
	for name := range module.Programs {
		if _, err := os.Stat(b.Place.Program(name)); err != nil {
			return false
		}
	}
	return true
}

// build builds beside the programs in use and renames: what runs keeps its file, and a killed build leaves nothing half.
func (b Builder) build(ctx context.Context, module Module) error {
	linker, err := module.linkerFlags()
	if err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(b.Place.Work(), 0o755), os.MkdirAll(b.Place.Bin(), 0o755)); err != nil {
		return err
	}
	work, err := os.MkdirTemp(b.Place.Work(), module.Name+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	args := append(slices.Clip(flags), "-ldflags", linker, "-o", work+"/")
	if len(module.Programs) == 1 {
		args[len(args)-1] += module.Name
	}
	// One call for all packages, which compiles what they share once; each program's file has its package's last name.
	for _, name := range sortedKeys(module.Programs) {
		args = append(args, module.Programs[name])
	}
	if _, err := goCommand(ctx, module.Dir, b.Place, args...); err != nil {
		return err
	}
	for name, pkg := range module.Programs {
		file := filepath.Base(pkg)
		if len(module.Programs) == 1 {
			file = module.Name
		}
		if err := os.Rename(filepath.Join(work, file), b.Place.Program(name)); err != nil {
			return err
		}
	}
	return nil
}

func (m Module) linkerFlags() (string, error) {
	linker := []string{"-s", "-w"}
	for _, variable := range sortedKeys(m.Variables) {
		value := m.Variables[variable]
		if strings.HasPrefix(value, "{") {
			version, err := m.Version(strings.Trim(value, "{}"))
			if err != nil {
				return "", err
			}
			value = version
		}
		linker = append(linker, "-X", variable+"="+value)
	}
	return strings.Join(linker, " "), nil
}

// Version is the version of another module that this one requires.
func (m Module) Version(path string) (string, error) {
	content, err := os.ReadFile(filepath.Join(m.Dir, "go.mod"))
	if err != nil {
		return "", err
	}
	return requiredVersion(string(content), path)
}

func requiredVersion(gomod, path string) (string, error) {
	required := regexp.MustCompile(`(?m)^(?:require)?\s+` + regexp.QuoteMeta(path) + `\s+(v\S+)`)
	found := required.FindStringSubmatch(gomod)
	if found == nil {
		return "", fmt.Errorf("go.mod does not require %s", path)
	}
	return found[1], nil
}

// key stands for everything that the programs are made from: the sources, the versions in go.mod, the compiler.
func (m Module) key(goVersion string) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, goVersion, flags)
	for _, name := range sortedKeys(m.Programs) {
		fmt.Fprintln(sum, name, m.Programs[name])
	}
	for _, name := range sortedKeys(m.Variables) {
		fmt.Fprintln(sum, name, m.Variables[name])
	}
	for _, dir := range append([]string{m.Dir}, m.Sources...) {
		if err := hashDir(sum, dir, m.Dir); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// hashDir adds the sources in a directory, by their paths from the module's.
func hashDir(sum io.Writer, dir, from string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".md") {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		fmt.Fprintf(sum, "%s %d\n%s", relative, len(content), content)
		return err
	})
}

func goVersion(ctx context.Context, dir string) (string, error) {
	output, err := goCommand(ctx, dir, "", "env", "GOVERSION", "GOARCH")
	return strings.Join(strings.Fields(output), " "), err
}

// goCommand calls go without what the user's environment says about builds: the programs are to be the same for everyone.
func goCommand(ctx context.Context, dir string, owner place.Dir, args ...string) (string, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", errors.New("the lab builds its programs with Go and finds no `go`: install Go, or add it to PATH")
	}
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS=linux", process.Builder+"="+string(owner))
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}
