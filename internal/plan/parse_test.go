package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sound is a plan without a mistake; tests change one thing of it.
const sound = `apiVersion: mig/v1alpha1
kind: MigrationPlan
metadata: {name: shop, uid: 5f0c3d9e-27b1}
spec:
  source: {context: src}
  destination: {context: dst}
  storage: {location: default}
  namespaces:
  - {name: shop, destination: shop-prod}
  - name: other
  volumes:
  - claim: shop/data
    storageClass: gp2
    action: copy
  - claim: other/cache
    action: skip
  storageClasses: {gp2: fast}
`

func TestParseReadsEveryField(t *testing.T) {
	p, err := Load(filepath.Join("..", "..", "examples", "two-kubeconfigs.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"mig/v1alpha1","kind":"MigrationPlan",` +
		`"metadata":{"name":"two-kubeconfigs","uid":"0b9a1c7e-4f3d-4a6b-8e21-6d5c4b3a2f10"},` +
		`"spec":{"source":{"context":"admin","kubeconfig":"kubeconfigs/old.yaml"},` +
		`"destination":{"context":"admin","kubeconfig":"kubeconfigs/new.yaml","veleroNamespace":"openshift-adp"},` +
		`"storage":{"location":"default"},` +
		`"namespaces":[{"name":"shop"},{"name":"shop-jobs"},{"name":"blue","destination":"green"},{"name":"green","destination":"blue"}],` +
		`"volumes":[{"claim":"shop/data-db-0","action":"copy"},` +
		`{"claim":"shop/uploads","action":"copy","destination":{"accessModes":["ReadWriteMany"],"size":"200Gi"}}],` +
		`"storageClasses":{"gp2":"fast-rwo"},"mover":"velero","quiesce":{"enabled":true,"except":["Deployment/shop/status-page"]},` +
		`"accept":[{"type":"BarePods","object":"shop/toolbox","why":"a shell that someone left open; nothing is lost with it"}],` +
		`"limits":{"timeouts":{"EnsureQuiesced":"10m"},"maxDowntime":"30m"}}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestParseTellsMistakesWithTheirPlace(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"an unknown field names the one meant": {"action: copy", "acton: copy", `p.yaml:14:5: spec.volumes[0].acton: unknown field; did you mean action?`},
		"a field in the wrong case":            {"storageClass: gp2", "storageclass: gp2", `p.yaml:13:5: spec.volumes[0].storageclass: unknown field; did you mean storageClass?`},
		"an unknown field that is near none":   {"storage: {location: default}", "storage: {location: default, colour: red}", `p.yaml:7:32: spec.storage.colour: unknown field; here may stand: location`},
		"a field twice":                        {"action: copy", "action: copy\n    action: skip", `p.yaml:15:5: spec.volumes[0].action: is there twice; the first is in line 14`},
		"a storage class twice":                {"{gp2: fast}", "{gp2: fast, gp2: slow}", `p.yaml:17:31: spec.storageClasses[gp2]: is there twice; the first is in line 17`},
		"a number for a text":                  {"name: other", "name: 12", `p.yaml:10:11: spec.namespaces[1].name: want a text, got the number 12: put it in quotes`},
		"a text for a truth value":             {"action: copy", "action: copy\n    verify: \"yes\"", `p.yaml:15:13: spec.volumes[0].verify: want true or false, got the text "yes"`},
		"words for a number":                   {"  storageClasses:", "  limits: {parallelism: two}\n  storageClasses:", `p.yaml:17:25: spec.limits.parallelism: want a whole number, got the text "two"`},
		"a text for a list":                    {"action: copy", "action: copy\n    accessModes: ReadWriteOnce", `p.yaml:15:18: spec.volumes[0].accessModes: want a list, got the text "ReadWriteOnce"`},
		"a list for fields":                    {"source: {context: src}", "source: [src]", `p.yaml:5:11: spec.source: want fields (context, kubeconfig, veleroNamespace), got a list`},
		"fields for a text":                    {"name: other", "name: {other: x}", `p.yaml:10:11: spec.namespaces[1].name: want a text, got fields`},
		"hooks are refused by name":            {"storageClasses:", "hooks: []\n  storageClasses:", `p.yaml:17:3: spec.hooks: is not built yet; remove it (run hooks yourself before and after mig migrate)`},
		"a claim cannot be renamed yet":        {"action: copy", "action: copy\n    destination: {name: x}", `p.yaml:15:19: spec.volumes[0].destination.name: is not built yet; remove it (the claim keeps its name)`},
		"another kind":                         {"kind: MigrationPlan", "kind: Deployment", `p.yaml:2:7: kind: want MigrationPlan, got "Deployment"`},
		"another version":                      {"mig/v1alpha1", "mig/v2", `p.yaml:1:13: apiVersion: want mig/v1alpha1, got "mig/v2"`},
		"two plans in one file":                {"storageClasses: {gp2: fast}\n", "storageClasses: {}\n---\nkind: MigrationPlan\n", `p.yaml:19:1: a second document: a plan file holds one plan`},
		"a tab":                                {"  - name: other", "\t- name: other", `p.yaml:10:1: not YAML: found character '\t' that cannot start any token`},
		"an alias without its anchor":          {"name: other", "name: *x", `p.yaml:10:11: spec.namespaces[1].name: alias *x: no such anchor before it`},
		"merge keys":                           {"name: other", "<<: {name: other}", `p.yaml:10:5: spec.namespaces[1].<<: merge keys are not read; write the fields out`},
	} {
		t.Run(name, func(t *testing.T) {
			file := strings.Replace(sound, c.old, c.new, 1)
			_, err := Parse("p.yaml", []byte(file))
			if _, ok := errors.AsType[*LoadError](err); !ok {
				t.Fatalf("got %v, want a LoadError", err)
			}
			if err.Error() != c.want {
				t.Errorf("got  %v\nwant %v", err, c.want)
			}
		})
	}
}

func TestParseTellsAllMistakesInTheOrderOfTheFile(t *testing.T) {
	file := strings.NewReplacer("context: src", "contxt: src", "name: other", "name: 1", "action: skip", "action: [skip]").Replace(sound)
	_, err := Parse("p.yaml", []byte(file))
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{"spec.source.contxt", "spec.namespaces[1].name", "spec.volumes[1].action"}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Fatalf("got %d mistakes, want %d:\n%v", len(lines), len(want), err)
	}
	for i, field := range want {
		if !strings.Contains(lines[i], field+":") {
			t.Errorf("mistake %d: got %q, want it about %s", i, lines[i], field)
		}
	}
}

func TestParseFollowsAliases(t *testing.T) {
	file := strings.NewReplacer("name: other", "name: &o other", "storage: {location: default}", "storage: &s {location: default}",
		"claim: other/cache", "claim: other/cache\n    storageClass: *o").Replace(sound)
	p, err := Parse("p.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if p.Spec.Namespaces[1].Name != "other" || p.Spec.Volumes[1].StorageClass != "other" {
		t.Errorf("got namespace %q and class %q, want other for both", p.Spec.Namespaces[1].Name, p.Spec.Volumes[1].StorageClass)
	}
}

func TestParseRefusesBombs(t *testing.T) {
	laughs := "kind: MigrationPlan\nspec:\n  namespaces:\n  - &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 12 {
		laughs += fmt.Sprintf("  - &a%d [*a%[2]d,*a%[2]d,*a%[2]d,*a%[2]d,*a%[2]d,*a%[2]d,*a%[2]d,*a%[2]d,*a%[2]d,*a%[2]d]\n", i+1, i)
	}
	for name, file := range map[string]string{
		"aliases of aliases":       laughs,
		"brackets without end":     "spec: " + strings.Repeat("[", 1_000_000),
		"braces without end":       "spec: " + strings.Repeat("{a: ", 1_000_000),
		"dashes without end":       strings.Repeat("- ", 1_000_000),
		"question marks":           strings.Repeat("? ", 1_000_000),
		"anchors without end":      "spec: " + strings.Repeat("&a ", 1_000_000) + "x",
		"tags without end":         "spec: " + strings.Repeat("!!map ", 1_000_000) + "x",
		"many lines of dashes":     strings.Repeat(strings.Repeat("- ", 2000)+"\n", 1000),
		"many lines of anchors":    strings.Repeat("a: "+strings.Repeat("&a ", 1300)+"\n", 1000),
		"many lines of brackets":   "spec: " + strings.Repeat("[\n", 100_000),
		"blocks within blocks":     steps(1400),
		"one long list many times": "kind: MigrationPlan\nspec:\n  volumes:\n  - accessModes: &m [" + strings.Repeat("x,", 1900) + "x]\n" + strings.Repeat("  - accessModes: *m\n", 5000),
		"an anchor within itself":  "kind: MigrationPlan\nspec: &a {namespaces: [*a]}",
		"zero bytes":               "kind: \x00",
		"nothing":                  "",
		"only a comment":           "# later\n",
		"a text":                   "hello",
		"broken characters":        "kind: \xff\xfe",
		"a list of plans":          "- kind: MigrationPlan",
		"quotes that do not close": `kind: "MigrationPlan`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("p.yaml", []byte(file))
			if _, ok := errors.AsType[*LoadError](err); !ok {
				t.Errorf("got %v, want a LoadError", err)
			}
		})
	}
}

// steps is a mapping n levels deep.
func steps(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func TestLoadRefusesWhatIsNoPlanFile(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big.yaml")
	if err := os.WriteFile(big, make([]byte, MaxSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none.yaml"): "no such file or directory",
		dir:                             "is a directory",
		big:                             "larger than 10 MiB",
	} {
		_, err := Load(path)
		var loadErr *LoadError
		if !errors.As(err, &loadErr) || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), path) != 1 {
			t.Errorf("got %v, want a LoadError that names the file once and says %q", err, want)
		}
	}
}

func TestAFileFromWindowsHasTheSamePlaces(t *testing.T) {
	file := byteOrderMark + strings.ReplaceAll(strings.Replace(sound, "action: copy", "acton: copy", 1), "\n", "\r\n")
	_, err := Parse("p.yaml", []byte(file))
	if err == nil || err.Error() != "p.yaml:14:5: spec.volumes[0].acton: unknown field; did you mean action?" {
		t.Errorf("got %v", err)
	}
}
