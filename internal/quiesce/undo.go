package quiesce

import (
	"encoding/json"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mig-cli/mig/internal/naming"
)

// Undo is the JSON merge patch that makes of a workload that was written down
// while the plan had it stopped what it was before, without any mark; nil where
// the plan has not marked it. It names no resource version: it is for a copy,
// not for the object in its cluster. Errors: *RecordLostError.
func Undo(w Workload, o naming.Owner) ([]byte, error) {
	if !w.ours(o) {
		return nil, nil
	}
	patch := map[string]any{"metadata": map[string]any{"annotations": forget(w)}}
	if w.dependent() { // its marks are copies of its owner's; its owner scales it
		return json.Marshal(patch)
	}
	spec, err := (&Change{}).back(w)
	if err != nil {
		return nil, err
	}
	if len(spec) > 0 {
		patch["spec"] = spec
	}
	return json.Marshal(patch)
}

// AsBefore is the workload as it was before the plan stopped it.
// Errors: *RecordLostError.
func AsBefore(w Workload, o naming.Owner) (Workload, error) {
	patch, err := Undo(w, o)
	if err != nil || patch == nil {
		return w, err
	}
	raw, err := w.MarshalJSON()
	if err != nil {
		return w, err
	}
	merged, err := jsonpatch.MergePatch(raw, patch)
	if err != nil {
		return w, err
	}
	before := &unstructured.Unstructured{}
	return Workload{before}, before.UnmarshalJSON(merged)
}
