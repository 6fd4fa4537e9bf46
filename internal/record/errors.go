package record

import (
	"errors"
	"fmt"
)

// ErrNoRun says that the plan has no run of which there is a record.
var ErrNoRun = errors.New("there is no run of this plan")

// NewerError is a record that a newer mig wrote in a way that this one must
// not guess at.
type NewerError struct {
	Name    string // namespace/name of the ConfigMap
	Schema  int
	Version string // of the mig that wrote it
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("run record %s was written by mig %s in format %d, and this mig knows up to %d: use that version or a newer one",
		e.Name, e.Version, e.Schema, Schema)
}

// EndedError is a run that another process ended or took over while this one
// was at it.
type EndedError struct {
	Name  string // namespace/name of the ConfigMap
	State State
	Host  string // that took it
}

func (e *EndedError) Error() string {
	if e.State == Running {
		return fmt.Sprintf("run record %s: another mig, on %s, has taken this run over", e.Name, e.Host)
	}
	return fmt.Sprintf("run record %s: another mig, on %s, has ended this run as %s", e.Name, e.Host, e.State)
}

// BrokenError is a record that cannot be read.
type BrokenError struct {
	Name string // namespace/name of the ConfigMap
	Err  error
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("run record %s is damaged: %v", e.Name, e.Err)
}

func (e *BrokenError) Unwrap() error { return e.Err }
