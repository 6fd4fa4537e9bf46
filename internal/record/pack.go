package record

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// A ConfigMap holds at most 1 MiB. The head of a run stays far below by
// construction: each of its lists keeps at most inlineLimit of JSON, what is
// beyond goes to parts, packed.
const (
	inlineLimit = 96 << 10
	partLimit   = 700 << 10
)

// Keys of a head's data. The others are for eyes.
const (
	keyRun  = "run.json"
	keyPlan = "plan.yaml"
	keyPart = "data.gz" // of a part's binary data
)

// The sections that may be kept in parts. Events and changes only ever grow:
// their parts are written once and the head holds what came since. The others
// are kept whole, in the head or in parts.
const (
	sectionPlan       = "plan"
	sectionEvents     = "events"
	sectionChanges    = "changes"
	sectionVolumes    = "volumes"
	sectionConditions = "conditions"
	sectionAccepted   = "accepted"
)

// part is one ConfigMap beside the head. Its name tells its content.
type part struct {
	Section string `json:"section"`
	Name    string `json:"name"`
	Items   int    `json:"items,omitempty"` // of a growing section
}

// head is what run.json holds.
type head struct {
	Run
	Parts []part `json:"parts,omitempty"`
}

// packer turns a run into a head and parts, again and again as it grows,
// without packing anew what has not changed.
type packer struct {
	name  func(section, digest string) string
	parts []part            // as of the last pack
	data  map[string][]byte // of the parts that this process knows, by name
	last  map[string]any    // the lists that were last kept whole, by section
	plan  string            // that was last packed
}

func newPacker(name func(section, digest string) string, parts []part) *packer {
	return &packer{name: name, parts: slices.Clone(parts), data: map[string][]byte{}, last: map[string]any{}}
}

// pack makes the head of a run, whose parts are then p.parts.
func (p *packer) pack(r Run) (head, error) {
	h := head{Run: r}
	err := errors.Join(
		p.packPlan(r.Plan.YAML),
		grow(p, sectionEvents, r.Events, &h.Events),
		grow(p, sectionChanges, r.Changes, &h.Changes),
		keepWhole(p, sectionVolumes, r.Volumes, &h.Volumes),
		keepWhole(p, sectionConditions, r.Conditions, &h.Conditions),
		keepWhole(p, sectionAccepted, r.Accepted, &h.Accepted),
	)
	h.Parts = slices.Clone(p.parts)
	return h, err
}

// planInHead says whether the frozen plan stays readable in the head.
func planInHead(text string) bool { return len(text) <= inlineLimit }

func (p *packer) packPlan(text string) error {
	if planInHead(text) || text == p.plan {
		return nil
	}
	p.plan = text
	p.drop(sectionPlan)
	return p.add(sectionPlan, []byte(text), 0)
}

// grow leaves in the head what came since the last part was written, and
// writes a part when that is too much.
func grow[T any](p *packer, section string, all []T, rest *[]T) error {
	kept := 0
	for _, part := range p.parts {
		if part.Section == section {
			kept += part.Items
		}
	}
	*rest = all[kept:]
	for {
		n, lines, err := fill(*rest)
		if err != nil || n == len(*rest) {
			return err
		}
		if err := p.add(section, lines, n); err != nil {
			return err
		}
		*rest = (*rest)[n:]
	}
}

// keepWhole leaves a list in the head, or puts all of it into parts. Thousands
// of items must not be packed anew at every transition.
func keepWhole[T comparable](p *packer, section string, all []T, inHead *[]T) error {
	if last, ok := p.last[section].([]T); !ok || !slices.Equal(last, all) {
		p.drop(section)
		if err := packWhole(p, section, all); err != nil {
			return err
		}
		p.last[section] = slices.Clone(all)
	}
	if p.has(section) {
		*inHead = nil
	}
	return nil
}

func packWhole[T any](p *packer, section string, all []T) error {
	n, lines, err := fill(all)
	if err != nil || n == len(all) {
		return err
	}
	for rest := all[n:]; len(rest) > 0; rest = rest[n:] {
		var more []byte
		if n, more, err = fill(rest); err != nil {
			return err
		}
		lines = append(lines, more...)
	}
	return p.add(section, lines, 0)
}

// fill writes the first n items as lines of JSON, as many as one list of the
// head may hold; at least one.
func fill[T any](items []T) (n int, lines []byte, err error) {
	for _, item := range items {
		line, err := json.Marshal(item)
		if err != nil {
			return 0, nil, err
		}
		if n > 0 && len(lines)+len(line) >= inlineLimit {
			return n, lines, nil
		}
		lines = append(append(lines, line...), '\n')
		n++
	}
	return n, lines, nil
}

func (p *packer) drop(section string) {
	p.parts = slices.DeleteFunc(p.parts, func(x part) bool { return x.Section == section })
}

func (p *packer) has(section string) bool {
	return slices.ContainsFunc(p.parts, func(x part) bool { return x.Section == section })
}

// add packs content into as many parts as it takes. The items are counted on
// the first.
func (p *packer) add(section string, content []byte, items int) error {
	packed, err := zip(content)
	if err != nil {
		return err
	}
	for piece := range slices.Chunk(packed, partLimit) {
		// The place is told too: two pieces may be equal.
		name := p.name(section, fmt.Sprintf("%d %s", len(p.parts), digest(piece)))
		p.parts = append(p.parts, part{Section: section, Name: name, Items: items})
		p.data[name] = piece
		items = 0
	}
	return nil
}

// unpack puts a run together again. content is what its parts hold, by name.
func unpack(h head, planText string, content map[string][]byte) (Run, error) {
	r := h.Run
	r.Plan.YAML = planText
	text, err := unzip(h.Parts, sectionPlan, content)
	if err != nil {
		return r, err
	}
	if len(text) > 0 {
		r.Plan.YAML = string(text)
	}
	if FrozenPlan("", "", r.Plan.YAML).Digest != r.Plan.Digest {
		return r, errors.New("the frozen plan does not have the recorded digest")
	}
	return r, errors.Join(
		join(h.Parts, sectionEvents, content, &r.Events), join(h.Parts, sectionChanges, content, &r.Changes),
		join(h.Parts, sectionVolumes, content, &r.Volumes), join(h.Parts, sectionConditions, content, &r.Conditions),
		join(h.Parts, sectionAccepted, content, &r.Accepted),
	)
}

// join puts what a section's parts hold before what the head holds.
func join[T any](parts []part, section string, content map[string][]byte, list *[]T) error {
	lines, err := unzip(parts, section, content)
	if err != nil || len(lines) == 0 {
		return err
	}
	var all []T
	for d := json.NewDecoder(bytes.NewReader(lines)); ; {
		var item T
		switch err := d.Decode(&item); {
		case errors.Is(err, io.EOF):
			*list = append(all, *list...)
			return nil
		case err != nil:
			return fmt.Errorf("section %s: %w", section, err)
		}
		all = append(all, item)
	}
}

func unzip(parts []part, section string, content map[string][]byte) ([]byte, error) {
	var packed []byte
	for _, p := range parts {
		if p.Section != section {
			continue
		}
		piece, ok := content[p.Name]
		if !ok {
			return nil, fmt.Errorf("its part %s is missing", p.Name)
		}
		packed = append(packed, piece...)
	}
	if len(packed) == 0 {
		return nil, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(packed)) // reads one packed part after the other
	if err != nil {
		return nil, fmt.Errorf("section %s: %w", section, err)
	}
	return io.ReadAll(r)
}

func zip(content []byte) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
