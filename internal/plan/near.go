package plan

import (
	"strings"

	"github.com/mig-cli/mig/internal/naming"
)

// meant is the name that a word was probably meant to be; empty where none is
// near.
func meant(word string, names []string) string {
	for _, name := range names {
		if strings.EqualFold(name, word) {
			return name
		}
	}
	return naming.Nearest(word, names)
}
