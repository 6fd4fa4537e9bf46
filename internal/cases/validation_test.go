//go:build e2e

package cases

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mig-cli/mig/internal/labtest"
)

// condition is what mig plan validate -o json prints of one finding.
type condition struct {
	Type, Category, Status, Reason, Message, Hint string
	Objects                                       []string
	Accepted, RisksData                           bool
}

// blocks says whether the plan cannot run because of it, by what mig help says
// of the categories.
func (c condition) blocks() bool {
	switch c.Category {
	case "Critical", "Error":
		return c.Status != "False"
	case "Required":
		return c.Status != "True"
	default:
		return c.RisksData && !c.Accepted
	}
}

// names says whether the finding names a thing, in its objects or its words.
func (c condition) names(what string) bool {
	return strings.Contains(c.Message, what) || strings.Contains(c.Hint, what) ||
		slices.ContainsFunc(c.Objects, func(o string) bool { return strings.Contains(o, what) })
}

// validation is what mig plan validate -o json prints.
type validation struct {
	Ready      bool
	Conditions []condition
}

// validated runs mig plan validate and wants its exit code to say what its
// output says.
func (p *place) validated(name ...string) validation {
	p.t.Helper()
	r := p.run(append([]string{"plan", "validate", "-o", "json"}, name...)...)
	v, err := validationOf(r)
	if err != nil {
		p.t.Fatalf("%v\n%s", err, r)
	}
	if v.Ready != (r.Code == done) {
		p.t.Errorf("ready is %t, and the exit code:\n%s", v.Ready, r)
	}
	return v
}

func validationOf(r labtest.Result) (validation, error) {
	var v validation
	err := json.Unmarshal([]byte(r.Stdout), &v)
	return v, err
}

// of are the findings of a type.
func (v validation) of(kind string) []condition {
	return slices.DeleteFunc(slices.Clone(v.Conditions), func(c condition) bool { return c.Type != kind })
}

// blockers are the types of those that block, without Ready, which only sums up.
func (v validation) blockers() []string {
	var out []string
	for _, c := range v.Conditions {
		if c.blocks() && c.Type != "Ready" {
			out = append(out, c.Type)
		}
	}
	return out
}

// wantBlocked wants a finding that blocks and names all of it, and no other.
func (p *place) wantBlocked(v validation, kind string, names ...string) condition {
	p.t.Helper()
	if got := v.blockers(); !slices.Equal(got, []string{kind}) {
		p.t.Errorf("want %s alone to block, got %v", kind, got)
	}
	return p.wantFound(v, kind, names...)
}

// wantFound wants a finding that names all of it.
func (p *place) wantFound(v validation, kind string, names ...string) condition {
	p.t.Helper()
	found := v.of(kind)
	if len(found) == 0 {
		p.t.Errorf("no condition %s", kind)
		return condition{}
	}
	for _, name := range names {
		if !slices.ContainsFunc(found, func(c condition) bool { return c.names(name) }) {
			p.t.Errorf("%s does not name %s: %+v", kind, name, found)
		}
	}
	return found[0]
}

// wantReady wants nothing to block.
func (p *place) wantReady(v validation) {
	p.t.Helper()
	if !v.Ready {
		p.t.Errorf("blocked by %v", v.blockers())
	}
}

// claim is what mig pv discover -o json prints of one claim.
type claimRow struct {
	Claim, Phase, StorageClass, VolumeMode, Backend, Action, DestinationClass, Why, State string
	Supported, MountedBy                                                                  []string
}

// discovery is what mig pv discover -o json prints.
type discovery struct {
	Claims []claimRow
	Notes  []string
}

func (p *place) discovered() discovery {
	p.t.Helper()
	r := p.exits(done, "pv", "discover", "-o", "json")
	var d discovery
	if err := json.Unmarshal([]byte(r.Stdout), &d); err != nil {
		p.t.Fatalf("%v\n%s", err, r)
	}
	return d
}

// of is the row of a claim.
func (d discovery) of(claim string) claimRow {
	for _, row := range d.Claims {
		if row.Claim == claim {
			return row
		}
	}
	return claimRow{}
}
