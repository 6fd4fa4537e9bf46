package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Doc is what a field of a plan means, for people and editors.
type Doc struct {
	Brief    string   `json:"description"`       // what it is, in a line: also the comment in a plan file
	More     string   `json:"more,omitempty"`    // what else is worth knowing
	Form     Form     `json:"form,omitempty"`    // of its text, or of each text in it; empty: any
	Values   []string `json:"values,omitempty"`  // all that may stand there; empty: anything
	Keys     []string `json:"keys,omitempty"`    // of a map: all names that may stand there; empty: any
	Unbuilt  []string `json:"unbuilt,omitempty"` // values that plans will have, refused by name until they are built
	Default  string   `json:"default,omitempty"` // what holds where it is left out, in words
	Required bool     `json:"required,omitempty"`
	Fact     bool     `json:"fact,omitempty"`    // written by discovery
	Instead  string   `json:"instead,omitempty"` // set: it is refused until it is built, and this is what to do until then

	Choice  bool `json:"-"` // of a volume, for a person to make
	Comment bool `json:"-"` // Brief stands behind it in a plan file
	Shown   bool `json:"-"` // it stands in a plan file also where it is empty
	Lines   bool `json:"-"` // a list with a line an item
}

// Field is a field of a plan with all that is below it.
type Field struct {
	Path string `json:"path"` // metadata.name; of the fields of a list's items spec.volumes.claim
	Name string `json:"name"`
	Type string `json:"type"` // string, boolean, integer, []string, map[string]string, or the name of a group of fields, such as Volume, []Volume
	Doc
	Fields []Field `json:"fields,omitempty"`
}

// Fields is the form of a plan: the plan itself as a field, named plan.
func Fields() Field {
	return Field{
		Name: "plan", Type: "Plan", Fields: fieldsOf("", reflect.TypeFor[Plan]()),
		Doc: Doc{
			Brief: "A plan says which namespaces and volumes go from which cluster to which, and how.",
			More:  "mig plan create makes it, you read and edit it. It never changes by itself; every run keeps a copy of what it began with.",
		},
	}
}

func fieldsOf(path string, t reflect.Type) []Field {
	var out []Field
	for _, f := range jsonFields(t) {
		name := nameOf(f)
		field := Field{Path: join(path, name), Name: name, Type: typeName(f.Type), Doc: docOf(t, name)}
		if inner := structOf(f.Type); inner != nil {
			field.Fields = fieldsOf(field.Path, inner)
		}
		out = append(out, field)
	}
	return out
}

// documented are the types of a plan that have fields.
type documented interface{ docs() map[string]Doc }

func docOf(t reflect.Type, name string) Doc {
	return reflect.Zero(t).Interface().(documented).docs()[name]
}

func jsonFields(t reflect.Type) []reflect.StructField {
	var out []reflect.StructField
	for f := range t.Fields() {
		if nameOf(f) != "" {
			out = append(out, f)
		}
	}
	return out
}

func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func fieldNames(t reflect.Type) []string {
	fields := jsonFields(t)
	names := make([]string, 0, len(fields))
	for _, f := range fields {
		names = append(names, nameOf(f))
	}
	return names
}

// structOf is the type with fields that a field holds, one or a list of them.
func structOf(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		return t
	}
	return nil
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct:
		return t.Name()
	case reflect.Slice:
		return "[]" + typeName(t.Elem())
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.Map:
		return fmt.Sprintf("map[%s]%s", typeName(t.Key()), typeName(t.Elem()))
	case reflect.Bool:
		return "boolean"
	case reflect.Int:
		return "integer"
	default:
		return "string"
	}
}

// NoFieldError is a path that leads to no field of a plan.
type NoFieldError struct {
	Path string   // as far as it was understood, and the word that was not
	Near string   // the path that was probably meant; empty: none is near
	Here []string // the fields that there are
}

func (e *NoFieldError) Error() string {
	if len(e.Here) == 0 {
		return fmt.Sprintf("a plan has no field %s: there is nothing below it", e.Path)
	}
	return fmt.Sprintf("a plan has no field %s; there are: %s", e.Path, strings.Join(e.Here, ", "))
}

// Lookup finds a field by its path, as it is said (plan.spec.volumes) or as
// errors write it (spec.volumes[3].action). Errors: *NoFieldError.
func Lookup(path string) (Field, error) {
	words := strings.Split(strings.TrimSuffix(withoutIndexes(path), "."), ".")
	if words[0] == "plan" {
		words = words[1:]
	}
	at, said := Fields(), "plan"
	for _, word := range words {
		i := slices.IndexFunc(at.Fields, func(f Field) bool { return f.Name == word })
		if i < 0 {
			return Field{}, at.noField(said, word)
		}
		at, said = at.Fields[i], said+"."+word
	}
	return at, nil
}

func (f Field) noField(said, word string) *NoFieldError {
	e := &NoFieldError{Path: said + "." + word}
	for _, below := range f.Fields {
		e.Here = append(e.Here, below.Name)
	}
	if near := meant(word, e.Here); near != "" {
		e.Near = said + "." + near
	}
	return e
}

func withoutIndexes(path string) string {
	var b strings.Builder
	in := false
	for _, r := range path {
		switch r {
		case '[':
			in = true
		case ']':
			in = false
		default:
			if !in {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}
