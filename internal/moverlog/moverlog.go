// Package moverlog is what mig-mover says on its standard output while it
// restores a volume: the words that the program and mig share. It knows neither
// file systems nor clusters.
package moverlog

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/mig-cli/mig/internal/manifest"
)

// Types of the lines: one of progress each second, and a summary at the end.
const (
	TypeProgress = "progress"
	TypeSummary  = "summary"
)

// Progress is how far a restore is.
type Progress struct {
	// Phase is scan, remove, check, write, attributes or sync, in this order.
	Phase string `json:"phase"`
	// Files and Bytes were written or read to be checked, of the totals; these grow where a check finds what is to be written.
	Files      int64 `json:"files"`
	TotalFiles int64 `json:"totalFiles"`
	Bytes      int64 `json:"bytes"`
	TotalBytes int64 `json:"totalBytes"`
	// Rate is bytes a second since the last report.
	Rate int64 `json:"bytesPerSecond"`
}

// Result is what was done, and what is not as it should be.
type Result struct {
	// Entries and Bytes are what the volume holds now; each content counts once.
	Entries int64 `json:"entries"`
	Bytes   int64 `json:"bytes"`
	// FilesWritten and BytesWritten were fetched from the repository.
	FilesWritten int64 `json:"filesWritten"`
	BytesWritten int64 `json:"bytesWritten"`
	// FilesKept were there, and FilesRead of them were read to see that their content is right.
	FilesKept int64 `json:"filesKept"`
	FilesRead int64 `json:"filesRead"`
	// Made are directories, symlinks and special files, Linked names of files that have others.
	Made   int64 `json:"made"`
	Linked int64 `json:"linked"`
	// Removed are the topmost of what was removed.
	Removed int64 `json:"removed"`
	// Changed are entries that were there and got another owner, mode, attribute or time.
	Changed int64 `json:"changed"`
	// Disagreements is in how many ways snapshot and manifest disagree, and what a snapshot alone is known to lack.
	Disagreements int64 `json:"disagreements"`
	// First are the first of these.
	First []manifest.Difference `json:"first,omitempty"`
}

// Line is a line of progress.
type Line struct {
	Type string `json:"type"`
	Progress
}

// Summary is the last line.
type Summary struct {
	Type     string    `json:"type"`
	Snapshot string    `json:"snapshot"`
	Source   string    `json:"source"`
	Taken    time.Time `json:"taken"`
	// Proved is what the contents of files that were there are known by: "time", which is size and time, or "content".
	Proved  string  `json:"proved"`
	Seconds float64 `json:"seconds"`
	Result
}

// Within is the summary as JSON of at most limit bytes: it names fewer of the
// disagreements, which are all counted. A kubelet keeps 4,096 bytes of what a
// container leaves.
func (s Summary) Within(limit int) ([]byte, error) {
	for {
		line, err := json.Marshal(s)
		if err != nil || len(line) <= limit || len(s.First) == 0 {
			return line, err
		}
		s.First = s.First[:len(s.First)-1]
	}
}

// ReadSummary reads what Within has written. Errors: it is none, or not whole.
func ReadSummary(line string) (Summary, error) {
	var s Summary
	if err := json.Unmarshal([]byte(line), &s); err != nil || s.Type != TypeSummary {
		return s, fmt.Errorf("no summary of a restore: %q", line)
	}
	return s, nil
}

// ReadProgress reads a line of progress; false for any other line.
func ReadProgress(line []byte) (Progress, bool) {
	var l Line
	if err := json.Unmarshal(line, &l); err != nil || l.Type != TypeProgress {
		return Progress{}, false
	}
	return l.Progress, true
}
