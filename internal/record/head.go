package record

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/progress"
)

// linesLimit bounds, in bytes, what a list for eyes takes of the head.
const linesLimit = 48 << 10

// buildHead writes a head as a ConfigMap: run.json for mig, the other keys for
// whoever looks with kubectl describe.
func buildHead(o naming.Owner, namespace string, h head) (*corev1.ConfigMap, error) {
	state, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	data := map[string]string{
		keyRun:       string(state),
		"status":     statusLines(h.Run),
		"steps":      lines(h.Steps, Step.line),
		"conditions": lines(h.Conditions, Condition.line),
		"events":     lines(h.Events, Event.line),
	}
	if n := countIn(h.Parts, sectionEvents); n > 0 {
		data["events"] = fmt.Sprintf("(%d earlier ones are in parts of this record)\n", n) + data["events"]
	}
	if planInHead(h.Plan.YAML) {
		data[keyPlan] = h.Plan.YAML
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: o.RunRecord(), Namespace: namespace,
			Labels: o.RecordLabels(naming.RecordRun), Annotations: o.Annotations(),
		},
		Data: data,
	}, nil
}

func buildPart(o naming.Owner, namespace string, p part, content []byte) *corev1.ConfigMap {
	immutable := true
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: p.Name, Namespace: namespace,
			Labels: o.RecordLabels(naming.RecordPart), Annotations: o.Annotations(),
		},
		Data:       map[string]string{"about": fmt.Sprintf("%s of run record %s, gzip", p.Section, o.RunRecord())},
		BinaryData: map[string][]byte{keyPart: content},
		Immutable:  &immutable,
	}
}

func countIn(parts []part, section string) int {
	n := 0
	for _, p := range parts {
		if p.Section == section {
			n += p.Items
		}
	}
	return n
}

func statusLines(r Run) string {
	rows := [][2]string{
		{"Plan", fmt.Sprintf("%s (%s)", r.Plan.Name, r.Plan.UID)},
		{"Digest", r.Plan.Digest},
		{"Run", fmt.Sprintf("%s %s", r.Kind, r.UID)},
		{"State", string(r.State)},
		{"Message", r.Message},
		{"Step", currentLine(r)},
		{"Namespaces", namespacesLine(r.Plan.Namespaces)},
		{"Started", stamp(r.Started)},
		{"Ended", stamp(r.Ended)},
		{"By", r.Who},
		{"From", r.Host},
		{"Version", r.Version},
		{"Attempts", fmt.Sprint(r.Attempts)},
		{"Source", pick(r.SourceDown, "stopped by this run", "not stopped by this run")},
		{"Destination", pick(r.DestinationStarted, "workloads may have started", "nothing started")},
	}
	var b strings.Builder
	for _, row := range rows {
		if row[1] != "" {
			fmt.Fprintf(&b, "%-12s %s\n", row[0]+":", row[1])
		}
	}
	for _, a := range r.Accepted[:min(len(r.Accepted), 100)] {
		fmt.Fprintf(&b, "%-12s %s on %s: %s\n", "Accepted:", a.Type, a.Object, a.Why)
	}
	return b.String()
}

func pick(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

func currentLine(r Run) string {
	s, ok := r.Current()
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d of %d, %s: %s", s.Number, len(r.Steps), s.Name, s.State)
}

func namespacesLine(all []Namespace) string {
	const most = 20
	var names []string
	for _, n := range all[:min(len(all), most)] {
		if n.Source == n.Destination {
			names = append(names, n.Source)
			continue
		}
		names = append(names, n.Source+" → "+n.Destination)
	}
	if more := len(all) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// lines are the newest items that fit, one a line, oldest first.
func lines[T any](items []T, line func(T) string) string {
	var out []string
	size := 0
	for _, item := range slices.Backward(items) {
		l := line(item)
		if size += len(l) + 1; size > linesLimit {
			out = append(out, fmt.Sprintf("(%d earlier ones are in %s)", len(items)-len(out), keyRun))
			break
		}
		out = append(out, l)
	}
	slices.Reverse(out)
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, "\n") + "\n"
}

func (s Step) line() string {
	state := s.State
	if state == StepPending {
		state = "-"
	}
	l := fmt.Sprintf("%2d %-32s %-8s", s.Number, s.Name, state)
	if !s.Started.IsZero() {
		l += fmt.Sprintf(" %s %8s", stamp(s.Started), s.Took.Round(time.Second/10))
	}
	if s.Attempts > 1 {
		l += fmt.Sprintf(" attempt %d", s.Attempts)
	}
	return strings.TrimRight(l+"  "+oneLine(s.Note), " ")
}

func (c Condition) line() string {
	return strings.TrimRight(fmt.Sprintf("%-32s %-9s %-7s %-24s %s  %s", c.Type, c.Category, c.Status, c.Reason, stamp(c.Since), oneLine(c.Message)), " ")
}

func (e Event) line() string {
	kind := "Normal"
	if e.IsWarning() {
		kind = "Warning"
	}
	l := fmt.Sprintf("%s %-7s %s", stamp(e.Time), kind, e.Reason)
	if e.Step != "" && (e.Step != e.Reason || e.State != progress.Done) {
		l += " " + fmt.Sprintf("[%s %s]", e.Step, e.State)
	}
	if e.Object.Name != "" {
		l += " " + objectName(e.Object)
	}
	return l + ": " + oneLine(e.Text)
}

func objectName(r progress.Ref) string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s %s", r.Side, r.Kind, name)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
