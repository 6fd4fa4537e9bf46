// Package render shows a run to a person or a script, and prints objects: bars
// on a terminal, plain lines, one JSON object a line, tables. It knows nothing
// of the work; it is handed values.
package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mig-cli/mig/internal/progress"
)

// View shows a run while it goes on. It may be used from several goroutines.
type View interface {
	progress.Sink
	// Say shows a sentence that is not part of the run's progress, such as that
	// an interrupt was seen.
	Say(text string)
	// Close shows what is left to show and gives the terminal back. Nothing may
	// be sent afterwards.
	Close()
}

// clock is how times are shown in lines: the day is the reader's.
const clock = "15:04:05"

// Took is a duration in a few characters, as kubectl shows an age: 41s, 2m13s, 3h.
func Took(d time.Duration) string { return duration.HumanDuration(d) }

// Size is a number of bytes in a few characters: 38 MiB.
func Size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// sum adds up amounts and counts those that are complete.
func sum(amounts []progress.Amount) (done, total int64, complete int) {
	for _, a := range amounts {
		done += a.Done
		total += a.Total
		if a.Total > 0 && a.Done >= a.Total {
			complete++
		}
	}
	return done, total, complete
}

// amountsText is how far all volumes are, in one phrase; empty without volumes.
func amountsText(amounts []progress.Amount) string {
	if len(amounts) == 0 {
		return ""
	}
	done, total, complete := sum(amounts)
	if total == 0 {
		return fmt.Sprintf("%d of %d volumes", complete, len(amounts))
	}
	return fmt.Sprintf("%d of %d volumes, %s of %s", complete, len(amounts), Size(done), Size(total))
}

// about is a note with its reason in front, unless the reason is the step's
// name, which stands there already, and with its object, unless the text names
// it: an Event stands beside its object, a line does not.
func about(step string, n progress.Note) string {
	text := said(n)
	if on := n.Regarding(); on.Name != "" && !strings.Contains(text, on.Name) {
		text = object(on) + ": " + text
	}
	if n.Reason() == "" || n.Reason() == step {
		return text
	}
	return n.Reason() + ": " + text
}

func object(on progress.Ref) string {
	name := on.Name
	if on.Namespace != "" {
		name = on.Namespace + "/" + name
	}
	return strings.TrimSpace(on.Kind + " " + name)
}

// said is a note's text without what looks like a secret: screens are filmed
// and logs are kept.
func said(n progress.Note) string { return progress.Redact(n.Text()) }
