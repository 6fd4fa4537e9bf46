// Package compare says in what an object on the destination differs from the
// one on the source that it was made from, but for what must differ: by rules,
// each of which is a line in rules.go. It knows no clusters.
package compare

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mig-cli/mig/internal/progress"
)

// Difference is one field that is otherwise on the destination. What a Secret
// holds is never told.
type Difference struct {
	Path        string `json:"path"`                  // spec.ports[0].port
	Source      string `json:"source,omitempty"`      // empty: it is not there
	Destination string `json:"destination,omitempty"` // the same
}

// Mapping is what the plan changes on objects.
type Mapping struct {
	Namespaces map[string]string // of the source → of the destination
	Classes    map[string]string // storage classes of the source → of the destination
}

// Differences are the fields in which an object differs that nothing explains,
// in order of their paths. A source workload that mig has stopped is to be given
// as it was before (quiesce.AsBefore). Neither object is changed.
func Differences(source, destination *unstructured.Unstructured, m Mapping) []Difference {
	want, have := source.DeepCopy(), destination.DeepCopy()
	m.apply(want)
	for _, o := range []*unstructured.Unstructured{want, have} {
		forget(o)
	}
	forgetPairs(want, have)
	w := walk{hidden: source.GetKind() == "Secret"}
	w.compare("", want.Object, have.Object)
	return w.found
}

// walk gathers the differences of two trees.
type walk struct {
	hidden bool
	found  []Difference
}

func (w *walk) compare(path string, want, have any) {
	wantMap, isMap := want.(map[string]any)
	haveMap, areMaps := have.(map[string]any)
	if isMap && areMaps {
		w.compareMaps(path, wantMap, haveMap)
		return
	}
	wantList, isList := want.([]any)
	haveList, areLists := have.([]any)
	if isList && areLists {
		for i := range max(len(wantList), len(haveList)) {
			w.compare(fmt.Sprintf("%s[%d]", path, i), at(wantList, i), at(haveList, i))
		}
		return
	}
	if !isEmpty(want) || !isEmpty(have) {
		if !reflect.DeepEqual(want, have) {
			w.found = append(w.found, Difference{Path: path, Source: w.shown(want), Destination: w.shown(have)})
		}
	}
}

func (w *walk) compareMaps(path string, want, have map[string]any) {
	keys := slices.Collect(maps.Keys(want))
	for key := range have {
		if _, both := want[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		below := key
		if path != "" {
			below = path + "." + key
		}
		w.compare(below, want[key], have[key])
	}
}

func at(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// isEmpty says whether a field might as well not be there.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return false
	}
}

// valueBytes is how much of a value is told.
const valueBytes = 200

func (w *walk) shown(v any) string {
	switch {
	case isEmpty(v):
		return ""
	case w.hidden:
		return progress.Hidden
	default:
		return progress.Cut(progress.Redact(fmt.Sprint(v)), valueBytes)
	}
}
