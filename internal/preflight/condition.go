// Package preflight says of a plan and of what was seen of both clusters
// whether the plan can run: every finding at once, as conditions. It is pure:
// it knows no client, and the same facts always give the same conditions.
package preflight

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/plan"
)

// Category says how grave a condition is.
type Category string

// The categories. Critical and Error block. Required must be True. Warn blocks
// until accepted where it risks data. Advisory informs.
const (
	Critical Category = "Critical"
	Error    Category = "Error"
	Warn     Category = "Warn"
	Required Category = "Required"
	Advisory Category = "Advisory"
)

// Status of a condition.
type Status string

// The statuses, as of a Kubernetes condition.
const (
	True    Status = "True"
	False   Status = "False"
	Unknown Status = "Unknown"
)

// Condition is one finding. A Required one is always there, True or not;
// the others are there (True) only when they hold.
type Condition struct {
	Type     string   `json:"type"`
	Category Category `json:"category"`
	Status   Status   `json:"status"`
	Reason   string   `json:"reason"`
	Message  string   `json:"message"`           // names the first ten objects
	Objects  []string `json:"objects,omitempty"` // all of them
	Hint     string   `json:"hint,omitempty"`    // what to do next
	Accepted bool     `json:"accepted,omitempty"`
	// RisksData: a Warn that blocks until the plan accepts it.
	RisksData bool `json:"risksData,omitempty"`
}

// Blocks says whether the plan cannot run because of the condition.
func (c Condition) Blocks() bool {
	switch c.Category {
	case Critical, Error:
		return c.Status != False
	case Required:
		return c.Status != True
	case Warn:
		return c.RisksData && !c.Accepted
	default:
		return false
	}
}

// IsHeld says that another run works on the plan's namespaces, or has died at
// it. Which of the two, only its lease tells: a run leaves it to the lock, and
// looks again under it.
func (c Condition) IsHeld() bool { return c.Type == PlanConflict && c.Reason == runNotEnded }

// look is what every check is given.
type look struct {
	plan plan.Valid
	spec plan.Spec
	src  discover.SourceFacts
	dst  discover.DestinationFacts

	sides  []side                    // both, source first
	claims map[string]discover.Claim // of the source, by namespace/name
	copied []discover.Claim          // those of them whose data the plan copies

	planned []onDestination // the same as they will be on the destination
}

func newLook(v plan.Valid, src discover.SourceFacts, dst discover.DestinationFacts) look {
	l := look{plan: v, spec: v.Plan().Spec, src: src, dst: dst, claims: map[string]discover.Claim{}}
	l.sides = []side{{"source", src.Facts}, {"destination", dst.Facts}}
	for _, c := range src.Claims {
		l.claims[c.Key()] = c
	}
	for _, vol := range v.Copied() {
		if c, ok := l.claims[vol.Claim]; ok {
			l.copied = append(l.copied, c)
		}
	}
	l.planned = plannedVolumes(l)
	return l
}

// check is one question to the facts: all the conditions that it finds.
type check func(look) []Condition

// checks are asked in this order, and their conditions are told in it.
func checks() []check {
	return slices.Concat(connectionChecks(), rightsChecks(), veleroChecks(), namespaceChecks(), volumeChecks(), workloadChecks(),
		schedulingChecks(), networkChecks(), admissionChecks(), kindChecks(), gapChecks())
}

// Check gives every condition of a plan, in a fixed order; the last one is Ready.
func Check(v plan.Valid, src discover.SourceFacts, dst discover.DestinationFacts) []Condition {
	l := newLook(v, src, dst)
	var out []Condition
	for _, check := range checks() {
		for _, c := range check(l) {
			c.Accepted = c.Category == Warn && isAccepted(v, c)
			out = append(out, c)
		}
	}
	return append(out, ready(out))
}

// isAccepted says whether the plan accepts a condition on each of its objects.
func isAccepted(v plan.Valid, c Condition) bool {
	if len(c.Objects) == 0 {
		return v.Accepts(c.Type, plan.AllObjects)
	}
	return !slices.ContainsFunc(c.Objects, func(o string) bool { return !v.Accepts(c.Type, o) })
}

// Ready says whether the plan can run.
func Ready(conditions []Condition) bool { return len(conditions) > 0 && len(Blocking(conditions)) == 0 }

// Blocking are the conditions that keep the plan from running.
func Blocking(conditions []Condition) []Condition {
	var out []Condition
	for _, c := range conditions {
		if c.Blocks() && c.Type != ReadyType {
			out = append(out, c)
		}
	}
	return out
}

// ReadyType is the condition that tells whether the plan can run; it is
// computed from all others, once.
const ReadyType = "Ready"

func ready(others []Condition) Condition {
	blocking := Blocking(others)
	if len(blocking) == 0 {
		return Condition{Type: ReadyType, Category: Required, Status: True, Reason: "NothingBlocks", Message: "the plan can run"}
	}
	types := make([]string, 0, len(blocking))
	for _, c := range blocking {
		types = append(types, c.Type)
	}
	slices.Sort(types)
	types = slices.Compact(types)
	return Condition{
		Type: ReadyType, Category: Required, Status: False, Reason: "Blocked",
		Message: "the plan cannot run: " + few(types), Objects: types,
	}
}

// required is a condition that is always told: True with good, or False with
// what is wrong.
func required(kind, good string, wrong ...problem) Condition {
	c := Condition{Type: kind, Category: Required, Status: True, Reason: "AsItShouldBe", Message: good}
	if len(wrong) == 0 {
		return c
	}
	c.Status, c.Reason, c.Hint = wrong[0].status, wrong[0].reason, wrong[0].hint
	if c.Status == "" {
		c.Status = False
	}
	messages := make([]string, 0, len(wrong))
	for _, p := range wrong {
		messages = append(messages, p.message)
		c.Objects = append(c.Objects, objectsOf(p.objects)...)
	}
	c.Message = strings.Join(messages, "; ")
	return c
}

// problem is why a required condition is not True.
type problem struct {
	status  Status // empty: False
	reason  string
	message string
	objects []string
	hint    string
}

// found is a condition that is there because it holds of objects; none if
// there are no objects. Each is given as it is shown, with what there is to say
// about it in brackets: NAME (more). The message takes them as they are.
func found(category Category, kind, reason string, shown []string, message, hint string) []Condition {
	if len(shown) == 0 {
		return nil
	}
	return []Condition{{
		Type: kind, Category: category, Status: True, Reason: reason, Objects: objectsOf(shown),
		Message: fmt.Sprintf(message, few(shown)), Hint: hint,
	}}
}

// objectsOf takes off what is said in brackets: what is left can be accepted
// by name.
func objectsOf(shown []string) []string {
	out := make([]string, 0, len(shown))
	for _, s := range shown {
		name, _, _ := strings.Cut(s, " (")
		out = append(out, name)
	}
	return slices.Compact(out)
}

// risk is a warning that blocks until the plan accepts it.
func risk(kind, reason string, shown []string, message, hint string) []Condition {
	out := found(Warn, kind, reason, shown, message, "")
	for i := range out {
		out[i].RisksData = true
		accept := fmt.Sprintf("if that is meant so, add to the plan's accept: {type: %s, object: %s, why: …}", kind, out[i].Objects[0])
		out[i].Hint = strings.TrimPrefix(hint+"; "+accept, "; ")
	}
	return out
}

// few names the first ten and counts the rest.
func few(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// inOrder goes through a map by its keys.
func inOrder[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, key := range sortedKeys(m) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}
