package plan

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// hand writes a plan as some person might: lists and groups of fields in both
// forms, texts in all quotes, comments and blank lines anywhere.
type hand struct {
	r *rand.Rand
	n int // comments so far
}

func (h *hand) maybe(percent int) bool { return h.r.IntN(100) < percent }

func (h *hand) text(s string) string {
	switch {
	case h.maybe(20):
		return `"` + s + `"`
	case h.maybe(20):
		return "'" + s + "'"
	default:
		return text(s)
	}
}

// rest ends a line.
func (h *hand) rest() string {
	if !h.maybe(25) {
		return "\n"
	}
	h.n++
	return fmt.Sprintf("%s# note %d: ü, {[\n", strings.Repeat(" ", 1+h.r.IntN(3)), h.n)
}

// above is what stands between two lines.
func (h *hand) above(indent int) string {
	if !h.maybe(15) {
		return ""
	}
	h.n++
	return []string{"\n", fmt.Sprintf("%s# line %d\n", strings.Repeat(" ", indent), h.n), fmt.Sprintf("# line %d\n", h.n)}[h.r.IntN(3)]
}

// group writes the fields of a struct, a line each, in any order; the first
// one's indentation is the caller's.
func (h *hand) group(v reflect.Value, indent int) string {
	var out strings.Builder
	first := true
	for _, i := range h.r.Perm(v.NumField()) {
		name := nameOf(v.Type().Field(i))
		if name == "" || isNothing(v.Field(i)) && (!h.maybe(10) || docOf(v.Type(), name).Instead != "") {
			continue
		}
		if !first {
			out.WriteString(h.above(indent) + strings.Repeat(" ", indent))
		}
		first = false
		out.WriteString(name + ":" + h.value(v.Field(i), indent))
	}
	return out.String()
}

func (h *hand) value(v reflect.Value, indent int) string {
	if isNothing(v) && v.Kind() != reflect.Bool {
		return []string{"", " null", " ~"}[h.r.IntN(3)] + h.rest()
	}
	if h.maybe(30) || v.Kind() == reflect.Bool {
		return " " + h.flow(v) + h.rest()
	}
	deeper := indent + 1 + h.r.IntN(3)
	switch v.Kind() {
	case reflect.Struct:
		return h.rest() + strings.Repeat(" ", deeper) + h.group(v, deeper)
	case reflect.Map:
		var out strings.Builder
		for _, key := range sortedKeys(v.Interface().(map[string]string)) {
			out.WriteString(strings.Repeat(" ", deeper) + h.text(key) + ": " + h.text(v.MapIndex(reflect.ValueOf(key)).String()) + h.rest())
		}
		return h.rest() + out.String()
	case reflect.Slice:
		return h.rest() + h.list(v, indent+h.r.IntN(3))
	default:
		return " " + h.text(v.String()) + h.rest()
	}
}

func (h *hand) list(v reflect.Value, indent int) string {
	var out strings.Builder
	for i := range v.Len() {
		out.WriteString(h.above(indent) + strings.Repeat(" ", indent) + "-" + strings.Repeat(" ", 1))
		switch {
		case v.Index(i).Kind() != reflect.Struct, h.maybe(25):
			out.WriteString(h.flow(v.Index(i)) + h.rest())
		default:
			out.WriteString(h.group(v.Index(i), indent+2))
		}
	}
	return out.String()
}

// flow is a value between brackets.
func (h *hand) flow(v reflect.Value) string {
	var parts []string
	switch v.Kind() {
	case reflect.Struct:
		for _, i := range h.r.Perm(v.NumField()) {
			if name := nameOf(v.Type().Field(i)); name != "" && !isNothing(v.Field(i)) {
				parts = append(parts, name+": "+h.flow(v.Field(i)))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.Map:
		for _, key := range sortedKeys(v.Interface().(map[string]string)) {
			parts = append(parts, h.text(key)+": "+h.text(v.MapIndex(reflect.ValueOf(key)).String()))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.Slice:
		for i := range v.Len() {
			parts = append(parts, h.flow(v.Index(i)))
		}
		return "[" + strings.Join(parts, []string{", ", " , ", ","}[h.r.IntN(3)]) + "]"
	case reflect.String:
		return h.text(v.String())
	default:
		return flow(v)
	}
}

// somePlan is a plan with more or less in it.
func (h *hand) somePlan() *Plan {
	p := &Plan{APIVersion: APIVersion, Kind: Kind, Metadata: Metadata{Name: "shop", UID: "a2345678"}, Spec: Spec{
		Source: Cluster{Context: "a"}, Destination: Cluster{Context: "b"}, Storage: Storage{Location: "c"},
		Namespaces: []Namespace{{Name: "shop", Destination: "x"}, {Name: "blog"}},
	}}
	for i := range h.r.IntN(4) {
		v := Volume{Claim: fmt.Sprintf("shop/data-%d", i)}
		h.touch(&v)
		p.Spec.Volumes = append(p.Spec.Volumes, v)
	}
	if h.maybe(60) {
		p.Spec.StorageClasses = map[string]string{"gp2": "fast"}
	}
	return p
}

// touch changes some fields of a volume.
func (h *hand) touch(v *Volume) {
	pick := func(to *string, words ...string) {
		if h.maybe(40) {
			*to = words[h.r.IntN(len(words))]
		}
	}
	action := string(v.Action)
	pick(&action, "copy", "skip", "")
	v.Action = Action(action)
	pick(&v.Capacity, "1Gi", "10", "")
	pick(&v.Volume, "pvc-1", "pvc-ü", "")
	pick(&v.StorageClass, "gp2", "")
	pick(&v.CopyMethod, "filesystem", "")
	pick(&v.Destination.StorageClass, "fast", "yes", "")
	pick(&v.Destination.Size, "5Gi", "")
	if h.maybe(30) {
		v.AccessModes = [][]string{nil, {"ReadWriteOnce"}, {"ReadWriteOnce", "ReadOnlyMany"}}[h.r.IntN(3)]
		v.Destination.AccessModes = [][]string{nil, {"ReadWriteMany"}, {"a", "b"}}[h.r.IntN(3)]
	}
	if h.maybe(20) {
		v.Supported = [][]Action{nil, {Skip}, {Copy, Skip}}[h.r.IntN(3)]
	}
}

func TestEditsOfPlansInAnyHandSayWhatWasWanted(t *testing.T) {
	for seed := range uint64(300) {
		h := &hand{r: rand.New(rand.NewPCG(seed, 1))}
		p := h.somePlan()
		file := h.group(reflect.ValueOf(*p), 0)
		if h.maybe(20) {
			file = strings.TrimRight(file, "\n")
		}
		have, err := Parse("p.yaml", []byte(file))
		if err != nil || !have.equal(p) {
			t.Fatalf("seed %d: the test writes wrongly: %v\n%s", seed, err, file)
		}
		want := *have
		want.Spec.Volumes = append([]Volume{}, have.Spec.Volumes...)
		for i := range want.Spec.Volumes {
			h.touch(&want.Spec.Volumes[i])
		}
		for i := range h.r.IntN(3) {
			v := Volume{Claim: fmt.Sprintf("blog/new-%d", i)}
			h.touch(&v)
			want.Spec.Volumes = append(want.Spec.Volumes, v)
		}
		if h.maybe(30) {
			want.Spec.StorageClasses = map[string]string{"gp2": "slow", "gp3": "fast"}
		}
		got, err := Edit("p.yaml", []byte(file), &want)
		if err != nil {
			t.Errorf("seed %d: %v\n%s\nwanted:\n%s", seed, err, file, Marshal(&want))
			return
		}
		if same, err := Edit("p.yaml", got, &want); err != nil || string(same) != string(got) {
			t.Errorf("seed %d: an edit of nothing changed the file: %v", seed, err)
		}
	}
}
