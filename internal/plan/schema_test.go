package plan

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the files that the tests compare with")

func TestTheSchemaInExamplesIsThisOne(t *testing.T) {
	path := filepath.Join("..", "..", "examples", "plan.schema.json")
	if *update {
		if err := os.WriteFile(path, Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != string(Schema()) {
		t.Errorf("%s is not what mig plan schema prints (%v); make it so with: go test ./internal/plan -update", path, err)
	}
}

// byTheSchema says what the schema finds wrong with a plan file.
func byTheSchema(t *testing.T, file []byte) []error {
	t.Helper()
	var schema spec.Schema
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	var value any
	if err := yaml.Unmarshal(file, &value); err != nil {
		return []error{err}
	}
	return validate.NewSchemaValidator(&schema, nil, "", strfmt.Default).Validate(value).Errors
}

func TestTheSchemaTakesEverythingThatMigTakes(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if errs := byTheSchema(t, data); len(errs) > 0 {
			t.Errorf("%s: %v", file, errs)
		}
		p, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		p.Spec.Volumes[0].Action = ""
		if errs := byTheSchema(t, Marshal(p)); len(errs) > 0 {
			t.Errorf("%s as mig writes it: %v", file, errs)
		}
	}
	for _, c := range [][2]string{
		{"action: copy", `action: ""`},
		{"action: copy", "copyMethod: ''"},
		{"action: copy", "capacity: 1500M\n    used: unknown\n    accessModes:\n    destination: {size: \"+1.5e3\"}"},
		{"storageClasses: {gp2: fast}", "storageClasses:"},
		{"storageClasses: {gp2: fast}", "limits: {timeouts: {Prepare: 1h5.5s}}"},
		{"storageClasses: {gp2: fast}", "mover: auto\n  accept: []\n  quiesce: {except: [Job/shop/a.b]}"},
		{"destination: shop-prod", `destination: ""`},
	} {
		file := strings.Replace(sound, c[0], c[1], 1)
		if p := parse(t, file); p != nil {
			if _, problems := p.Validate(); len(problems) > 0 {
				t.Fatal(problems)
			}
		}
		if errs := byTheSchema(t, []byte(file)); len(errs) > 0 {
			t.Errorf("%s: %v", c[1], errs)
		}
	}
}

func TestTheSchemaFindsWhatAnEditorCanKnow(t *testing.T) {
	for _, c := range [][2]string{
		{"action: copy", "acton: copy"},
		{"action: copy", "action: move"},
		{"action: copy", "action: [copy]"},
		{"action: copy", "action: copy\n    copyMethod: snapshot"},
		{"action: copy", "action: copy\n    destination: {name: x}"},
		{"action: copy", "action: copy\n    destination: {size: -1Gi}"},
		{"action: copy", "action: copy\n    destination: {accessModes: [RWX]}"},
		{"claim: shop/data", "claim: data"},
		{"storageClasses:", "hooks: []\n  storageClasses:"},
		{"storageClasses:", "limits: {timeouts: {Prepar: 1m}}\n  storageClasses:"},
		{"storageClasses:", "limits: {timeouts: {Prepare: soon}}\n  storageClasses:"},
		{"storageClasses:", "quiesce: {except: [Pod/shop/x]}\n  storageClasses:"},
		{"storageClasses:", "accept: [{type: x}]\n  storageClasses:"},
		{"name: other", "name: 12"},
		{"location: default", "loc: default"},
		{"kind: MigrationPlan", "kind: Plan"},
	} {
		if errs := byTheSchema(t, []byte(strings.Replace(sound, c[0], c[1], 1))); len(errs) == 0 {
			t.Errorf("takes %s", c[1])
		}
	}
	if errs := byTheSchema(t, []byte(sound)); len(errs) > 0 {
		t.Error(errs)
	}
}
