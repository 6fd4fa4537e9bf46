package preflight

import "k8s.io/apimachinery/pkg/api/resource"

// quantity reads a quantity; nil where there is none to be read.
func quantity(s string) *resource.Quantity {
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return nil
	}
	return &q
}

// isSmaller compares two quantities; what cannot be read is not smaller.
func isSmaller(size, than string) bool {
	a, b := quantity(size), quantity(than)
	return a != nil && b != nil && a.Cmp(*b) < 0
}
