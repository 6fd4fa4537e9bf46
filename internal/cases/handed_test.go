//go:build e2e

package cases

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/plan"
)

// handed is a scenario that lies elsewhere: a directory with given-src.yaml,
// given-dst.yaml and expect.md, which has a list of facts under its title and
// the commands under When.
type handed struct {
	scenario
	dir      string
	commands []string
	src, dst []*unstructured.Unstructured

	results    []labtest.Result
	validation validation
	discovery  discovery
}

// commandLimit is how long one command may take where nothing is copied.
const commandLimit = time.Minute

func TestHandedCases(t *testing.T) {
	root := os.Getenv("MIG_CASES")
	if root == "" {
		t.Skip("MIG_CASES names no directory of scenarios")
	}
	texts, err := filepath.Glob(filepath.Join(root, "*", "expect.md"))
	if err != nil {
		t.Fatal(err)
	}
	if len(texts) == 0 {
		t.Fatalf("no scenario in %s: want directories with expect.md, given-src.yaml and given-dst.yaml", root)
	}
	for _, text := range texts {
		h, err := readHanded(filepath.Dir(text))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(h.id, func(t *testing.T) { h.test(t) })
	}
}

func readHanded(dir string) (*handed, error) {
	text, err := os.ReadFile(filepath.Join(dir, "expect.md"))
	if err != nil {
		return nil, err
	}
	h := &handed{dir: dir, scenario: scenario{id: filepath.Base(dir), kind: factOf(text, "kind"), needs: factOf(text, "needs")}}
	_, when, _ := strings.Cut(string(text), "\n## When\n")
	when, _, _ = strings.Cut(when, "\n## ")
	for line := range strings.SplitSeq(when, "\n") {
		if strings.HasPrefix(line, "    ") {
			h.commands = append(h.commands, strings.TrimSpace(line))
		}
	}
	h.src, err = readObjects(filepath.Join(dir, "given-src.yaml"))
	if err != nil {
		return nil, err
	}
	h.dst, err = readObjects(filepath.Join(dir, "given-dst.yaml"))
	return h, err
}

// factOf is what the list under the title says of a thing.
func factOf(text []byte, what string) string {
	m := regexp.MustCompile(`(?m)^- ` + what + `: (\S+)`).FindSubmatch(text)
	if m == nil {
		return ""
	}
	return string(m[1])
}

func readObjects(path string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var out []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
}

// test gives both clusters what the scenario says, runs its commands, and
// judges what came of them where something is expected of its id.
func (h *handed) test(t *testing.T) {
	t.Helper()
	expected, known := expectations[h.id]
	if h.needs == velero || h.needs == node {
		known = false // what they leave on the lab is judged by a person
	}
	p := open(t, h.scenario)
	if h.needs == cli {
		h.kubeconfigs(p)
	} else {
		h.clear(p)
		h.give(p)
		if expected.user != "" {
			p.asUser(expected.user)
		}
	}
	before := h.sourceObjects(p)
	h.runAll(p)
	if h.needs == api {
		p.must(before.SameAs(h.sourceObjects(p)))
	}
	if !known {
		t.Skip("nothing is expected of it here: judge it by its output")
	}
	expected.want(p, h)
}

// clear sees to it that on the lab nothing is left of what its commands made,
// now and at the end.
func (h *handed) clear(p *place) {
	p.t.Helper()
	if h.needs == api {
		return
	}
	var namespaces []string
	for _, m := range regexp.MustCompile(`--namespaces (\S+)`).FindAllStringSubmatch(strings.Join(h.commands, "\n"), -1) {
		namespaces = append(namespaces, strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ':' })...)
	}
	clear := func(ctx context.Context) error {
		for _, c := range p.lab.Both() {
			if err := labtest.RemoveNamespaces(ctx, c, namespaces...); err != nil {
				return err
			}
		}
		if len(namespaces) == 0 {
			return nil
		}
		return p.lab.ForgetPlan(ctx, namespaces[0])
	}
	p.must(clear(p.t.Context()))
	p.t.Cleanup(func() {
		if err := clear(context.WithoutCancel(p.t.Context())); err != nil {
			p.t.Errorf("clearing up: %v", err)
		}
	})
}

func (h *handed) give(p *place) {
	p.t.Helper()
	p.apply(p.src(), h.src)
	p.apply(p.dst(), h.dst)
	for _, ns := range namesOf(h.src, "Namespace") {
		p.must(settled(p.t.Context(), p.src(), ns))
	}
}

// sourceObjects are those of the scenario's namespaces on the source.
func (h *handed) sourceObjects(p *place) labtest.Objects {
	p.t.Helper()
	if h.needs != api {
		return nil
	}
	// A broken API of the scenario's own must not keep the others from being compared.
	objects, err := labtest.ObjectsOf(p.t.Context(), p.src(), namesOf(h.src, "Namespace")...)
	if err != nil {
		p.t.Logf("objects of the source: %v", err)
	}
	return objects
}

// namesOf are the names of the objects of a kind, with their namespace where
// they have one.
func namesOf(objects []*unstructured.Unstructured, kind string) []string {
	var out []string
	for _, o := range objects {
		if o.GetKind() == kind {
			out = append(out, strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))
		}
	}
	return out
}

// runAll runs the commands, and between them what makes their result readable:
// the conditions and claims as JSON.
func (h *handed) runAll(p *place) {
	p.t.Helper()
	var env []string
	for _, line := range h.commands {
		command, note, _ := strings.Cut(line, "   ")
		if more, ok := strings.CutPrefix(command, "export "); ok {
			env = append(env, more)
			continue
		}
		if h.validation.Ready && h.needs == api && changesClusters(command) {
			p.t.Logf("$ %s\n(not run: Velero does not work on this bed)", command)
			continue
		}
		r := h.runOne(p, env, strings.Fields(command))
		h.results = append(h.results, r)
		if strings.HasPrefix(command, "mig plan create") && r.Code == done && h.needs != cli {
			h.planMade(p, note)
		}
	}
}

// changesClusters says whether a command is one of those that only a Velero
// that works lets come to an end.
func changesClusters(command string) bool {
	return strings.HasPrefix(command, "mig stage") || strings.HasPrefix(command, "mig migrate") || strings.HasPrefix(command, "mig rollback")
}

func (h *handed) runOne(p *place, env, args []string) labtest.Result {
	p.t.Helper()
	if args[0] == "mig" {
		args[0] = p.mig
	}
	limit := commandLimit
	if h.needs == velero || h.needs == node {
		limit = 10 * patience
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), limit)
	defer cancel()
	r, err := p.lab.Run(ctx, p.dir, slices.Concat([]string{"env"}, env, args)...)
	p.must(err)
	p.t.Log(r)
	return r
}

var classNote = regexp.MustCompile(`map class (\S+) -> (\S+)\)`)

// planMade does to a new plan what the scenario says beside the command, and
// looks at what mig makes of it.
func (h *handed) planMade(p *place, note string) {
	p.t.Helper()
	if m := classNote.FindStringSubmatch(note); m != nil {
		plans, err := filepath.Glob(p.file("*.yaml"))
		p.must(err)
		p.must(labtest.EditPlan(plans[0], func(p *plan.Plan) {
			p.Spec.StorageClasses = map[string]string{m[1]: strings.TrimSuffix(m[2], ")")}
		}))
	}
	h.validation = p.validated()
	h.discovery = p.discovered()
}

// result is that of the first command that begins so.
func (h *handed) result(p *place, command string) labtest.Result {
	p.t.Helper()
	for _, r := range h.results {
		if strings.Contains(strings.Join(r.Args, " ")+" ", " "+command+" ") {
			return r
		}
	}
	p.t.Errorf("the scenario has no command mig %s", command)
	return labtest.Result{}
}

// exits wants an exit code of a command.
func (h *handed) exits(p *place, code int, command string) {
	p.t.Helper()
	if r := h.result(p, command); r.Code != code {
		p.t.Errorf("want exit %d:\n%s", code, r)
	}
}

// blocks wants one finding that blocks and names all of it.
func (h *handed) blocks(p *place, names ...string) {
	p.t.Helper()
	h.finds(p, "blocking", condition.blocks, names...)
}

// warns wants one finding that names all of it.
func (h *handed) warns(p *place, names ...string) {
	p.t.Helper()
	h.finds(p, "warning", func(c condition) bool { return c.blocks() || c.Category == "Warn" }, names...)
}

func (h *handed) finds(p *place, what string, is func(condition) bool, names ...string) {
	p.t.Helper()
	for _, c := range h.validation.Conditions {
		if is(c) && !slices.ContainsFunc(names, func(n string) bool { return !c.names(n) }) {
			return
		}
	}
	p.t.Errorf("no %s condition names %s", what, strings.Join(names, " and "))
}

// kubeconfigs writes the scenario's kubeconfigs where its commands look for
// them.
func (h *handed) kubeconfigs(p *place) {
	p.t.Helper()
	said := strings.Join(h.commands, " ")
	for side, objects := range map[string][]*unstructured.Unstructured{"src": h.src, "dst": h.dst} {
		for _, o := range objects {
			if o.GetKind() != "Config" {
				continue
			}
			name := side + ".yaml"
			if m := regexp.MustCompile(`[\w./-]*/` + name).FindString(said); m != "" {
				name = m
			}
			content, err := o.MarshalJSON()
			p.must(err)
			p.write(name, string(content), 0o600)
			p.certificates(filepath.Dir(name))
		}
	}
	p.lab.Kubeconfig = strings.Join([]string{p.file("src.yaml"), p.file("dst.yaml")}, string(os.PathListSeparator))
}

// apply makes the objects of one side, as the scenarios mean them: what status
// says, what is to be deleted again, whose uids are to be those of real ones.
func (p *place) apply(c *cluster.Cluster, objects []*unstructured.Unstructured) {
	p.t.Helper()
	a := &applying{p: p, c: c}
	p.t.Cleanup(func() { p.allGone(c, namesOf(a.made, "Namespace")) }) // when all else is taken away
	// A volume that names its claim's uid can only be made after the claim.
	late := func(o *unstructured.Unstructured) bool { return o.GetKind() == "PersistentVolume" && hasMadeUpUID(o) }
	for _, o := range objects {
		if !late(o) {
			a.one(o)
		}
	}
	for _, o := range objects {
		if late(o) {
			a.one(o)
		}
	}
	a.deleteMarked()
}
