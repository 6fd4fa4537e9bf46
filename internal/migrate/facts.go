package migrate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/preflight"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/record"
)

// planCreated is a plan of which the clusters had no record before.
type planCreated struct{ Name, UID, Digest string }

// Reason is PlanCreated.
func (n planCreated) Reason() string { return "PlanCreated" }

// Text says which plan it is.
func (n planCreated) Text() string {
	return fmt.Sprintf("plan %s (uid %s, %s) has its first run", n.Name, n.UID, n.Digest)
}

// Regarding is the run.
func (n planCreated) Regarding() progress.Ref { return progress.Ref{} }

// readiness is what a look at both clusters says of the plan, and what has
// changed since the look before.
type readiness struct {
	Plan           string
	Blocking       []string // types of conditions
	Warnings       int
	Gained, Solved []string // types that were not there the last time; that are gone
}

// Reason is Ready or NotReady.
func (n readiness) Reason() string {
	if len(n.Blocking) > 0 {
		return "NotReady"
	}
	return "Ready"
}

// Text names what blocks and what has changed.
func (n readiness) Text() string {
	text := fmt.Sprintf("plan %s is ready, with %s", n.Plan, english.Plural(n.Warnings, "warning", ""))
	if len(n.Blocking) > 0 {
		text = fmt.Sprintf("plan %s is not ready: %s", n.Plan, progress.Several(n.Blocking, ", ", listBytes))
	}
	if len(n.Gained) > 0 {
		text += "; new since the last look: " + progress.Several(n.Gained, ", ", listBytes)
	}
	if len(n.Solved) > 0 {
		text += "; gone since the last look: " + progress.Several(n.Solved, ", ", listBytes)
	}
	return text
}

// Regarding is the run.
func (n readiness) Regarding() progress.Ref { return progress.Ref{} }

// readinessOf compares what was found with what the record says of the last
// look; before is empty where there was none.
func readinessOf(name string, now []preflight.Condition, before []record.Condition) readiness {
	n := readiness{Plan: name}
	var wrong []string
	for _, c := range now {
		switch {
		case c.Type == preflight.ReadyType:
			continue
		case c.Blocks():
			n.Blocking = append(n.Blocking, c.Type)
		case c.Category == preflight.Warn:
			n.Warnings++
		}
		if isWrong(string(c.Category), string(c.Status)) {
			wrong = append(wrong, c.Type)
		}
	}
	n.Blocking = unique(n.Blocking)
	if len(before) == 0 {
		return n
	}
	var was []string
	for _, c := range before {
		if c.Type != preflight.ReadyType && isWrong(c.Category, c.Status) {
			was = append(was, c.Type)
		}
	}
	n.Gained, n.Solved = without(wrong, was), without(was, wrong)
	return n
}

// isWrong says whether a condition is not as it should be; what only informs
// comes and goes.
func isWrong(category, status string) bool {
	switch preflight.Category(category) {
	case preflight.Advisory:
		return false
	case preflight.Required:
		return preflight.Status(status) != preflight.True
	default:
		return preflight.Status(status) != preflight.False
	}
}

func without(all, these []string) []string {
	return unique(slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(these, s) }))
}

func unique(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// classesUpdated is a list of the destination's storage classes that is not the
// one that the plan's last run knew.
type classesUpdated struct{ Gained, Gone []string }

// Reason is StorageClassListUpdated.
func (n classesUpdated) Reason() string { return "StorageClassListUpdated" }

// Text names what came and went.
func (n classesUpdated) Text() string {
	text := "the destination's storage classes are others than at the last look"
	if len(n.Gained) > 0 {
		text += "; new: " + progress.Several(n.Gained, ", ", listBytes)
	}
	if len(n.Gone) > 0 {
		text += "; gone: " + progress.Several(n.Gone, ", ", listBytes)
	}
	return text
}

// Regarding is the run.
func (n classesUpdated) Regarding() progress.Ref { return progress.Ref{} }

// classesOf are the names of a cluster's storage classes; nil where they could
// not be looked at.
func classesOf(f discover.Facts) []string {
	if f.HasGap(discover.PartStorageClasses) {
		return nil
	}
	var out []string
	for _, c := range f.StorageClasses {
		out = append(out, c.Name)
	}
	return unique(out)
}

// classesChanged compares two looks; one that saw nothing says nothing.
func classesChanged(before, now []string) (classesUpdated, bool) {
	if len(before) == 0 || len(now) == 0 {
		return classesUpdated{}, false
	}
	n := classesUpdated{Gained: without(now, before), Gone: without(before, now)}
	return n, len(n.Gained)+len(n.Gone) > 0
}

// veleroState is whether Velero's server runs on both clusters.
type veleroState struct {
	Source, Destination veleroOn
}

// veleroOn is one cluster's Velero.
type veleroOn struct {
	Namespace, Version string
	Ready, Wanted      int32
}

func veleroOf(f discover.Facts) veleroOn {
	v := f.Velero
	return veleroOn{Namespace: v.Namespace, Version: v.Server.Version, Ready: v.Server.Ready, Wanted: v.Server.Wanted}
}

func (v veleroOn) text() string {
	version := cmp.Or(v.Version, "of unknown version")
	return fmt.Sprintf("%s in namespace %s, %d of %d pods ready", progress.Cut(version, 100), v.Namespace, v.Ready, v.Wanted)
}

func (n veleroState) isReady() bool { return n.Source.Ready > 0 && n.Destination.Ready > 0 }

// Reason is VeleroReady or VeleroNotReady.
func (n veleroState) Reason() string {
	if n.isReady() {
		return "VeleroReady"
	}
	return "VeleroNotReady"
}

// Text tells of both.
func (n veleroState) Text() string {
	return "Velero on the source: " + n.Source.text() + "; on the destination: " + n.Destination.text()
}

// Regarding is the run.
func (n veleroState) Regarding() progress.Ref { return progress.Ref{} }

// tellVelero tells of both sides' Velero, where both were seen.
func (d *driver) tellVelero(ctx context.Context, src, dst discover.Facts) error {
	for _, f := range []discover.Facts{src, dst} {
		if f.Reach != discover.Reached || f.HasGap(discover.PartVelero) {
			return nil
		}
	}
	n := veleroState{Source: veleroOf(src), Destination: veleroOf(dst)}
	state := progress.Happened
	if !n.isReady() {
		state = progress.Warning
	}
	return d.tell(ctx, state, n)
}

// volumesFound counts the claims of a plan.
type volumesFound struct{ Copied, Skipped int }

// Reason is PvsDiscovered.
func (n volumesFound) Reason() string { return "PvsDiscovered" }

// Text is the numbers.
func (n volumesFound) Text() string {
	return fmt.Sprintf("%s: %d to copy, %d to skip", english.Plural(n.Copied+n.Skipped, "claim", ""), n.Copied, n.Skipped)
}

// Regarding is the run.
func (n volumesFound) Regarding() progress.Ref { return progress.Ref{} }

// volumeSkipped is a claim whose data stays behind.
type volumeSkipped struct{ Claim progress.Ref }

// Reason is VolumeSkipped.
func (n volumeSkipped) Reason() string { return "VolumeSkipped" }

// Text says by whose wish.
func (n volumeSkipped) Text() string { return "its data stays behind, as the plan says" }

// Regarding is the claim.
func (n volumeSkipped) Regarding() progress.Ref { return n.Claim }

// validationFailed is a look that could not see all that a plan's readiness
// hangs on: it is not known whether the plan could run.
type validationFailed struct {
	Plan   string
	Unseen []string // what could not be looked at, and why
}

// Reason is ValidationFailed.
func (n validationFailed) Reason() string { return "ValidationFailed" }

// Text says what could not be seen.
func (n validationFailed) Text() string { return n.before() + strings.Join(n.Unseen, "; ") }

// Fit names less of it.
func (n validationFailed) Fit(limit int) string {
	return n.before() + progress.Several(n.Unseen, "; ", max(limit-len(n.before()), 0))
}

func (n validationFailed) before() string {
	return fmt.Sprintf("plan %s could not be validated: ", n.Plan)
}

// Regarding is the run.
func (n validationFailed) Regarding() progress.Ref { return progress.Ref{} }

// unseenOf are the messages of conditions that block because nothing is known,
// not because something is wrong.
func unseenOf(conditions []preflight.Condition) []string {
	var out []string
	for _, c := range conditions {
		unseen := c.Status == preflight.Unknown ||
			slices.Contains([]string{preflight.LookIncomplete, preflight.SourceReachable, preflight.DestinationReachable}, c.Type)
		if unseen && c.Blocks() {
			out = append(out, c.Message)
		}
	}
	return out
}

// tellFindings tells of the plan's readiness and its volumes, each once: what
// is told again in the same words is not kept twice.
func (d *driver) tellFindings(ctx context.Context, conditions []preflight.Condition, before []record.Condition) error {
	if unseen := unseenOf(conditions); len(unseen) > 0 {
		if err := d.tell(ctx, progress.Warning, validationFailed{Plan: d.owner.PlanName, Unseen: unseen}); err != nil {
			return err
		}
	}
	ready := readinessOf(d.owner.PlanName, conditions, before)
	state := progress.Happened
	if len(ready.Blocking) > 0 {
		state = progress.Warning
	}
	if err := d.tell(ctx, state, ready); err != nil || len(ready.Blocking) > 0 {
		return err
	}
	skipped := skippedOf(d.o.Plan)
	if err := d.tell(ctx, progress.Happened, volumesFound{Copied: len(d.o.Plan.Copied()), Skipped: len(skipped)}); err != nil {
		return err
	}
	for _, n := range skipped {
		if err := d.tell(ctx, progress.Happened, n); err != nil {
			return err
		}
	}
	return nil
}

func skippedOf(v plan.Valid) []volumeSkipped {
	var out []volumeSkipped
	for _, volume := range v.Plan().Spec.Volumes {
		if volume.Action != plan.Skip {
			continue
		}
		namespace, name, _ := strings.Cut(volume.Claim, "/")
		out = append(out, volumeSkipped{progress.Ref{
			Side: progress.OnSource, APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: name,
		}})
	}
	return out
}
