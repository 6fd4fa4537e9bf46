package step

import (
	"strings"

	"github.com/mig-cli/mig/internal/progress"
)

// What a note's parts may have, in bytes, so that its text fits what an Event
// takes (1,024 bytes) with the number of its step before it.
const (
	nameBytes   = 120 // a name that stands among other words
	reasonBytes = 640 // what others say in their own words
)

// wholeBytes is how much of a list is told where there is room.
const wholeBytes = 4000

// list is a sentence that ends in names. It fits where it must, by naming fewer
// of them and counting the others.
type list struct {
	Say     string // what comes before the names
	Names   []string
	Between string // two names; empty: ", "
}

// Text names as many as a person or a record takes.
func (l list) Text() string { return l.Fit(wholeBytes) }

// Fit says it in at most limit bytes.
func (l list) Fit(limit int) string {
	between := l.Between
	if between == "" {
		between = ", "
	}
	if len(l.Names) == 0 {
		return progress.Cut(l.Say, limit)
	}
	// What others said before the names does not take their place.
	say := progress.Cut(l.Say, max(limit/3, limit-len(strings.Join(l.Names, between))))
	return say + progress.Several(l.Names, between, limit-len(say))
}

// remark is a progress.Remark whose sentence ends in names.
type remark struct {
	Why string
	On  progress.Ref
	list
}

func (n remark) Reason() string          { return n.Why }
func (n remark) Regarding() progress.Ref { return n.On }
