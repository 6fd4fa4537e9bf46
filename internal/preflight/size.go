package preflight

import "k8s.io/apimachinery/pkg/api/resource"

// isSmaller compares two quantities; what cannot be read is not smaller.
func isSmaller(size, than string) bool {
	a, err := resource.ParseQuantity(size)
	if err != nil {
		return false
	}
	b, err := resource.ParseQuantity(than)
	return err == nil && a.Cmp(b) < 0
}
