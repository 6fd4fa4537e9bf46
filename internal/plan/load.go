package plan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// MaxSize is the size in bytes above which a file is not read as a plan:
// 20,000 volumes take half of it.
const MaxSize = 10 << 20

// Position is a place in a plan file. Lines and columns count from 1; 0 means
// that the place is not known.
type Position struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// String is the position as editors and compilers write it.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Problem is one thing that is wrong with a plan file, whatever the clusters hold.
type Problem struct {
	Field   string   `json:"field,omitempty"` // spec.volumes[3].action; empty for the file as a whole
	Pos     Position `json:"position"`
	Message string   `json:"message"`
}

// String is the problem in one line: position, field, message.
func (p Problem) String() string {
	parts := make([]string, 0, 3)
	if pos := p.Pos.String(); pos != "" {
		parts = append(parts, pos)
	}
	if p.Field != "" {
		parts = append(parts, p.Field)
	}
	return strings.Join(append(parts, p.Message), ": ")
}

// LoadError is a plan file that cannot be used: not there, not readable, not
// YAML, or with fields that a plan cannot have. It holds every problem found,
// in the order of the file.
type LoadError struct {
	File     string
	Problems []Problem
	Err      error // of reading the file; nil where the content is at fault
}

func (e *LoadError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("plan file %s: %v", e.File, bare(e.Err))
	}
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

func (e *LoadError) Unwrap() error { return e.Err }

// bare takes the path off an error of the operating system: the message that
// it ends up in names the file already.
func bare(err error) error {
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		return pathErr.Err
	}
	return err
}

var errTooBig = fmt.Errorf("larger than %d MiB, which no plan is", MaxSize>>20)

// Load reads a plan file. It is not validated yet. Errors: *LoadError.
func Load(path string) (*Plan, error) {
	data, err := read(path)
	if err != nil {
		return nil, &LoadError{File: path, Err: err}
	}
	return Parse(path, data)
}

// LoadValid reads a plan file and validates it. Errors: *LoadError with
// everything that is wrong.
func LoadValid(path string) (Valid, error) {
	p, err := Load(path)
	if err != nil {
		return Valid{}, err
	}
	v, problems := p.Validate()
	if len(problems) > 0 {
		return Valid{}, &LoadError{File: path, Problems: problems}
	}
	return v, nil
}

// Thaw reads a plan as another mig may have frozen it into a run's record, to
// take that run back. It was valid then: what this mig does not know or no
// longer takes is passed over, as none of it matters on the way back. Errors:
// *LoadError where it does not even name its namespaces.
func Thaw(name string, data []byte) (Valid, error) {
	var p Plan
	if err := yaml.Unmarshal(data, &p); err != nil {
		return Valid{}, &LoadError{File: name, Err: err}
	}
	c := &checker{plan: &p}
	c.namespaces()
	if len(c.problems) > 0 {
		return Valid{}, &LoadError{File: name, Problems: c.problems}
	}
	return Valid{plan: p.withDefaults()}, nil
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// One byte more than allowed tells a file that is too big, also one whose
	// size the system does not know (a pipe, a device).
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxSize {
		return nil, errTooBig
	}
	return data, nil
}

// FindError is a plan that cannot be told from what was asked for.
type FindError struct {
	Arg   string   // as given; empty: none was
	Dir   string   // where it was looked for
	Found []string // several plan files: one must be named
}

func (e *FindError) Error() string {
	switch {
	case e.Arg != "":
		return fmt.Sprintf("there is no plan %[1]q: no file %[1]s, %[1]s.yaml or %[1]s.plan.yaml in %[2]s", e.Arg, e.Dir)
	case len(e.Found) == 0:
		return fmt.Sprintf("no plan file in %s: name one, or make one with: mig plan create", e.Dir)
	default:
		return fmt.Sprintf("several plan files in %s, name one of them: %s", e.Dir, strings.Join(e.Found, ", "))
	}
}

// Find tells which file is meant by PLAN on a command line: a path, or a name
// whose file NAME.yaml or NAME.plan.yaml is in the working directory; with no
// argument the only plan file there. Errors: *FindError.
func Find(arg string) (string, error) { return FindIn(".", arg) }

// FindIn is Find in a directory.
func FindIn(dir, arg string) (string, error) {
	if arg == "" {
		return findOnly(dir)
	}
	for _, name := range []string{arg, arg + ".yaml", arg + ".plan.yaml", arg + ".yml"} {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path, nil
		}
	}
	return "", &FindError{Arg: arg, Dir: shown(dir)}
}

func findOnly(dir string) (string, error) {
	found, err := planFiles(dir)
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", &FindError{Dir: shown(dir), Found: found}
	}
	return filepath.Join(dir, found[0]), nil
}

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// isPlanFile looks for the kind in a line of its own, so that a plan file with
// a mistake in it is found too, and its mistake told.
func isPlanFile(path string) bool {
	data, err := read(path)
	if err != nil {
		return false
	}
	for line := range bytes.Lines(data) {
		field, value, ok := strings.Cut(string(line), ":")
		value, _, _ = strings.Cut(value, "#")
		if ok && strings.Trim(field, `"'`) == "kind" && strings.Trim(strings.TrimSpace(value), `"'`) == Kind {
			return true
		}
	}
	return false
}

func shown(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// Listed is a plan file of a directory.
type Listed struct {
	File string
	Plan *Plan      // nil where it cannot be read
	Err  *LoadError // what is wrong with it
}

// FilesIn are the plan files of a directory by their names, also those with
// mistakes. Errors: *LoadError.
func FilesIn(dir string) ([]Listed, error) {
	names, err := planFiles(dir)
	if err != nil {
		return nil, err
	}
	out := make([]Listed, 0, len(names))
	for _, name := range names {
		l := Listed{File: name}
		p, err := Load(filepath.Join(dir, name))
		if err == nil {
			l.Plan = p
			if _, problems := p.Validate(); len(problems) > 0 {
				err = &LoadError{File: name, Problems: problems}
			}
		}
		if loadErr, ok := errors.AsType[*LoadError](err); ok {
			l.Err = loadErr
		}
		out = append(out, l)
	}
	return out, nil
}

func planFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, &LoadError{File: shown(dir), Err: err}
	}
	var found []string
	for _, e := range entries {
		if e.Type().IsRegular() && isYAML(e.Name()) && isPlanFile(filepath.Join(dir, e.Name())) {
			found = append(found, e.Name())
		}
	}
	return found, nil
}
