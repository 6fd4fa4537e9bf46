package build

import (
	"maps"
	"slices"
)

func sortedKeys(values map[string]string) []string { return slices.Sorted(maps.Keys(values)) }
