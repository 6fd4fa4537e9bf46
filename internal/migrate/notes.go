package migrate

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/mig-cli/mig/internal/progress"
)

// What a note's parts may have, in bytes, so that its text fits what an Event
// takes (1,024 bytes).
const (
	listBytes = 220 // a list of names
	nameBytes = 120 // a name that others have chosen

	messageBytes = 4000 // why a run ended, in its record
)

// started is a run that began, or was taken up again.
type started struct {
	Again      bool
	Kind       Kind
	Plan       string
	Namespaces int
	Volumes    int
	From, To   string // contexts
	Who        string
}

// Reason is Started or Resumed.
func (n started) Reason() string {
	if n.Again {
		return "Resumed"
	}
	return "Started"
}

// Text says what the run is to do.
func (n started) Text() string {
	return fmt.Sprintf("%s of plan %s: %s, %s, from %s to %s, by %s",
		n.Kind, n.Plan, english.Plural(n.Namespaces, "namespace", ""), english.Plural(n.Volumes, "volume", ""), n.From, n.To, n.Who)
}

// Fit shortens the names that others have chosen.
func (n started) Fit(int) string {
	n.Plan, n.From, n.To, n.Who = progress.Cut(n.Plan, nameBytes), progress.Cut(n.From, nameBytes), progress.Cut(n.To, nameBytes), progress.Cut(n.Who, nameBytes)
	return n.Text()
}

// Regarding is the run.
func (n started) Regarding() progress.Ref { return progress.Ref{} }

// finished is a run that came to an end.
type finished struct {
	Why   string // Completed, RolledBack, MigrationFailed, Interrupted
	Cause error  // nil where it came to its end as it should
	Say   string // in what state the clusters are
}

// Reason is how it ended.
func (n finished) Reason() string { return n.Why }

// Text says why it ended, and in what state the clusters are.
func (n finished) Text() string {
	if n.Cause == nil {
		return n.Say
	}
	return n.Cause.Error() + "; " + n.Say
}

// Fit shortens the cause: the state of the clusters is what a person must know.
func (n finished) Fit(limit int) string {
	after := "; " + n.Say
	if n.Cause == nil || len(after) >= limit {
		return progress.Cut(n.Say, limit)
	}
	return progress.Cut(n.Cause.Error(), limit-len(after)) + after
}

// Regarding is the run.
func (n finished) Regarding() progress.Ref { return progress.Ref{} }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
