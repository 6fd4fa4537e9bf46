package render

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/mig-cli/mig/internal/progress"
)

// JSON shows a run as one JSON object a line. The first field of each is its
// type: "progress" (ProgressLine) or "message" (MessageLine). Fields are added
// over time, never renamed or removed.
type JSON struct {
	mu  sync.Mutex
	enc *json.Encoder
}

// ProgressLine is a moment of a run as scripts read it.
type ProgressLine struct {
	Type           string            `json:"type"` // progress
	Time           time.Time         `json:"time"`
	Run            string            `json:"run"`              // migrate, rollback
	Step           string            `json:"step,omitempty"`   // none: about the run as a whole
	Number         int               `json:"number,omitempty"` // of the step, from 1
	Of             int               `json:"of,omitempty"`     // number of steps
	State          progress.State    `json:"state"`
	Reason         string            `json:"reason"`
	Message        string            `json:"message"`
	Object         *progress.Ref     `json:"object,omitempty"`
	Volumes        []progress.Amount `json:"volumes,omitempty"`
	ElapsedSeconds float64           `json:"elapsedSeconds,omitempty"` // since the step started
}

// MessageLine is a sentence beside the run's progress.
type MessageLine struct {
	Type    string    `json:"type"` // message
	Time    time.Time `json:"time"`
	Message string    `json:"message"`
}

// NewJSON starts a view that writes to w.
func NewJSON(w io.Writer) *JSON {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &JSON{enc: enc}
}

// Emit writes the update's object.
func (j *JSON) Emit(u progress.Update) {
	l := ProgressLine{
		Type: "progress", Time: u.Time.UTC(), Run: u.Run, Step: u.Step, Number: u.Number, Of: u.Of, State: u.State,
		Reason: u.Note.Reason(), Message: said(u.Note), Volumes: u.Amounts,
		ElapsedSeconds: u.Elapsed.Round(time.Millisecond).Seconds(),
	}
	if on := u.Note.Regarding(); on != (progress.Ref{}) {
		l.Object = &on
	}
	j.Line(l)
}

// Say writes a message object.
func (j *JSON) Say(text string) {
	j.Line(MessageLine{Type: "message", Time: time.Now().UTC(), Message: text})
}

// Line writes any object as a line of its own, such as the summary at the end.
func (j *JSON) Line(v any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.enc.Encode(v) // a reader that went away must not stop a run that moves data
}

// Close does nothing: every line is complete.
func (j *JSON) Close() {}
