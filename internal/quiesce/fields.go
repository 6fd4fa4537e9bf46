package quiesce

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sets says whether a manager owns the field.
func sets(e metav1.ManagedFieldsEntry, path []string) bool {
	if e.FieldsV1 == nil {
		return false
	}
	var fields map[string]any
	if json.Unmarshal(e.FieldsV1.Raw, &fields) != nil {
		return false
	}
	for _, p := range path {
		next, ok := fields["f:"+p].(map[string]any)
		if !ok {
			return false
		}
		fields = next
	}
	return true
}
