package plan

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// everyField calls f with each field of a plan.
func everyField(of Field, f func(Field)) {
	for _, below := range of.Fields {
		f(below)
		everyField(below, f)
	}
}

func TestEveryFieldIsDocumentedOnceAndNothingElseIs(t *testing.T) {
	everyField(Fields(), func(f Field) {
		switch {
		case f.Brief == "":
			t.Errorf("%s: says nothing", f.Path)
		case strings.HasSuffix(f.Brief, "."), strings.Contains(f.Brief, "\n"), len(f.Brief) > 110:
			t.Errorf("%s: not a comment of one line: %s", f.Path, f.Brief)
		case f.Form != "" && (f.Form.Text() == "" || f.Form.pattern() == ""):
			t.Errorf("%s: the form %s says nothing", f.Path, f.Form)
		case f.Instead != "" && f.Required:
			t.Errorf("%s: a field that must be there is refused", f.Path)
		}
	})
	for _, of := range typesOf(reflect.TypeFor[Plan]()) {
		for name := range reflect.Zero(of).Interface().(documented).docs() {
			if !slices.Contains(fieldNames(of), name) {
				t.Errorf("%s: documents %s, which it has not", of, name)
			}
		}
	}
}

func typesOf(t reflect.Type) []reflect.Type {
	out := []reflect.Type{t}
	for _, f := range jsonFields(t) {
		if inner := structOf(f.Type); inner != nil {
			out = append(out, typesOf(inner)...)
		}
	}
	return out
}

func TestWhatIsNotBuiltYetIsRefusedByNameWithItsPlace(t *testing.T) {
	refused := 0
	everyField(Fields(), func(f Field) {
		if f.Instead == "" {
			return
		}
		refused++
		parent, name := f.Path[:strings.LastIndex(f.Path, ".")], f.Name
		if up, err := Lookup(parent); err != nil || up.Instead != "" {
			return // what is around it is refused
		}
		old, new := "storageClasses:", name+": 1\n  storageClasses:"
		switch parent {
		case "spec":
		case "spec.storage":
			old, new = "location: default", "location: default, "+name+": 1"
		case "spec.volumes.destination":
			old, new = "action: copy", "action: copy\n    destination: {"+name+": 1}"
		case "spec.limits":
			old, new = "storageClasses:", "limits: {"+name+": 1}\n  storageClasses:"
		default:
			t.Fatalf("no test for what is below %s", parent)
		}
		_, err := Parse("p.yaml", []byte(strings.Replace(sound, old, new, 1)))
		if err == nil || !strings.Contains(err.Error(), name+": is not built yet; remove it ("+f.Instead+")") || !strings.HasPrefix(err.Error(), "p.yaml:") {
			t.Errorf("%s: got %v", f.Path, err)
		}
	})
	if refused < 10 {
		t.Errorf("only %d fields are refused", refused)
	}
}

func TestLookupFindsAFieldHoweverItIsWritten(t *testing.T) {
	for _, path := range []string{"plan.spec.volumes.action", "spec.volumes.action", "spec.volumes[3].action", "plan.spec.volumes.action."} {
		if f, err := Lookup(path); err != nil || f.Path != "spec.volumes.action" || f.Type != "string" {
			t.Errorf("%s: got %+v, %v", path, f.Path, err)
		}
	}
	if f, err := Lookup("plan"); err != nil || len(f.Fields) != 4 {
		t.Errorf("got %+v, %v", f, err)
	}
	if f, err := Lookup("spec.volumes"); err != nil || f.Type != "[]Volume" || len(f.Fields) < 10 {
		t.Errorf("got %+v, %v", f, err)
	}
}

func TestLookupNamesWhatIsNear(t *testing.T) {
	for path, want := range map[string]string{
		"plan.spec.volume":          "plan.spec.volumes",
		"spec.Volumes":              "plan.spec.volumes",
		"plan.spec.volumes.acton":   "plan.spec.volumes.action",
		"plan.spec.colour":          "",
		"plan.spec.volumes.claim.x": "",
		"":                          "",
	} {
		_, err := Lookup(path)
		var none *NoFieldError
		if !errors.As(err, &none) || none.Near != want {
			t.Errorf("%q: got %v", path, err)
		}
	}
}
