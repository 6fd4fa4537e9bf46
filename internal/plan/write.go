package plan

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// Marshal is the plan as a file for people: the same plan always gives the same
// bytes, every field has its place, and comments say what may be written there.
// Parse reads it back to the same plan.
func Marshal(p *Plan) []byte {
	w := &writer{comments: true}
	w.line(0, "# A plan of mig. Look it over, choose what is marked, then run: mig plan validate %s", p.Metadata.Name)
	w.line(0, "# What the fields mean: mig explain plan --recursive")
	w.fields(0, reflect.ValueOf(*p))
	return []byte(w.b.String())
}

// writer writes YAML in one fixed form.
type writer struct {
	b        strings.Builder
	comments bool // what the fields mean stands behind them
}

func (w *writer) line(indent int, format string, args ...any) {
	w.indent(indent)
	fmt.Fprintf(&w.b, format, args...)
	w.b.WriteByte('\n')
}

func (w *writer) indent(columns int) { w.b.WriteString(strings.Repeat(" ", columns)) }

// fields writes those of a struct that are set, and those that are always
// there, each on a line of its own. Comments below the items of a list would
// be said again for each.
func (w *writer) fields(indent int, v reflect.Value) {
	for i, name := range fieldNames(v.Type()) {
		doc, value := docOf(v.Type(), name), v.Field(i)
		if isNothing(value) && !doc.Required && !doc.Shown && name != keyAction {
			continue
		}
		comment := ""
		if doc.Comment && w.comments {
			comment = " # " + doc.Brief
		}
		if name == keyAction && value.IsZero() {
			comment = " # " + choose + possible(v.FieldByName("Supported"))
		}
		if w.comments && isList(value.Type()) && value.Len() > 0 {
			w.choices(indent, value.Type().Elem(), doc)
		}
		w.entry(indent, name, value, comment, doc.Lines)
	}
}

// choose begins the mark of an action that a person must choose.
const choose = "choose: "

func possible(supported reflect.Value) string {
	if actions := supported.Interface().([]Action); len(actions) > 0 {
		return orOf(actions)
	}
	return "copy or skip"
}

// choices says above a list once what may be chosen in each of its items.
func (w *writer) choices(indent int, item reflect.Type, list Doc) {
	var found, chosen []string
	for _, name := range fieldNames(item) {
		switch doc := docOf(item, name); {
		case doc.Fact:
			found = append(found, name)
		case doc.Choice:
			chosen = append(chosen, fmt.Sprintf("#   %s: %s", name, doc.Brief))
		}
	}
	if len(chosen) == 0 {
		return
	}
	w.line(indent, "# %s%s. As they were found:", strings.ToUpper(list.Brief[:1]), list.Brief[1:])
	w.line(indent, "#   %s", strings.Join(found, ", "))
	w.line(indent, "# Yours to choose, here or with mig pv set:")
	for _, l := range chosen {
		w.line(indent, "%s", l)
	}
}

// entry writes a key with its value.
func (w *writer) entry(indent int, key string, v reflect.Value, comment string, lines bool) {
	w.indent(indent)
	w.b.WriteString(key + ":")
	if v.Kind() == reflect.Struct || isGroup(v.Type()) && !isNothing(v) || lines && v.Len() > 0 {
		w.b.WriteString(comment + "\n")
		w.items(indent+2, v)
		return
	}
	w.b.WriteString(" " + flow(v) + comment + "\n")
}

// items writes what is below a key, a line an item.
func (w *writer) items(indent int, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		w.fields(indent, v)
	case reflect.Map:
		for _, key := range sortedKeys(v.Interface().(map[string]string)) {
			w.line(indent, "%s: %s", text(key), text(v.MapIndex(reflect.ValueOf(key)).String()))
		}
	default:
		for i := range v.Len() {
			w.item(indent, v.Index(i))
		}
	}
}

func (w *writer) item(indent int, v reflect.Value) {
	if v.Kind() != reflect.Struct {
		w.line(indent, "- %s", flow(v))
		return
	}
	inner := &writer{}
	inner.fields(indent+2, v)
	w.indent(indent)
	w.b.WriteString("- " + inner.b.String()[indent+2:])
}

// isNothing says whether a value need not be written: empty lists are as none.
func isNothing(v reflect.Value) bool {
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
		return v.Len() == 0
	}
	return v.IsZero()
}

// isList says whether a type is a list of groups of fields.
func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct
}

// isGroup says whether a value of the type is written below its key.
func isGroup(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Map || isList(t)
}

// block is a value with a line an item, as it stands below its key.
func block(v reflect.Value, indent int) string {
	w := &writer{}
	w.items(indent, v)
	return w.b.String()
}

// blockEntry is a key with its value, on as many lines as it takes.
func blockEntry(key string, v reflect.Value, indent int) string {
	w := &writer{}
	w.entry(indent, key, v, "", false)
	return w.b.String()
}

// flow is a value on one line.
func flow(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Struct:
		var parts []string
		for i, name := range fieldNames(v.Type()) {
			if f := v.Field(i); !isNothing(f) || name == keyAction {
				parts = append(parts, name+": "+flow(f))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.Map:
		var parts []string
		for _, key := range sortedKeys(v.Interface().(map[string]string)) {
			parts = append(parts, text(key)+": "+text(v.MapIndex(reflect.ValueOf(key)).String()))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.Slice:
		parts := make([]string, 0, v.Len())
		for i := range v.Len() {
			parts = append(parts, flow(v.Index(i)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.Pointer:
		if v.IsNil() {
			return "null"
		}
		return flow(v.Elem())
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Int:
		return strconv.FormatInt(v.Int(), 10)
	default:
		return text(v.String())
	}
}

// plain needs no quotes in YAML, and no reader takes it for a number, a truth
// value or nothing.
var plain = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9._/-]*[A-Za-z0-9])?$|^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei)$`)

// notPlain are words that some reader of YAML takes for something else than a text.
var notPlain = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null|nan|inf)$`)

func text(s string) string {
	if plain.MatchString(s) && !notPlain.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}
