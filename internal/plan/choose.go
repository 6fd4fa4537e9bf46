package plan

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Choice is what a person decides about a volume. What is nil stays as it is;
// an empty text takes the field out of the plan.
type Choice struct {
	Action       *Action
	CopyMethod   *string
	StorageClass *string   // on the destination
	AccessModes  *[]string // on the destination, also as kubectl shortens them
	Size         *string   // on the destination
	Verify       *bool
}

// Change is a field of a volume that a choice has changed.
type Change struct {
	Claim string `json:"claim"`
	Field string `json:"field"` // below the volume: destination.size
	From  string `json:"from"`  // empty: it was not there
	To    string `json:"to"`    // empty: it is no longer there
}

// ClaimError is a claim of a command line that the plan does not know, or
// knows more than one of.
type ClaimError struct {
	Arg   string
	Near  string   // the claim that was probably meant
	Among []string // several are called so
}

func (e *ClaimError) Error() string {
	switch {
	case len(e.Among) > 0:
		return fmt.Sprintf("claim %q is not the only one of this name: %s", e.Arg, few(e.Among))
	case e.Near != "":
		return fmt.Sprintf("the plan has no claim %q; did you mean %s?", e.Arg, e.Near)
	case isPattern(e.Arg):
		return fmt.Sprintf("no claim of the plan is like %q", e.Arg)
	default:
		return fmt.Sprintf("the plan has no claim %q: see mig pv discover", e.Arg)
	}
}

// few names the first ten and counts the rest.
func few(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// ChoiceError is a choice that the plan would refuse.
type ChoiceError struct{ Why []string }

func (e *ChoiceError) Error() string { return strings.Join(e.Why, "\n") }

// Volumes are the indexes of the claims that were named: NAMESPACE/NAME, a
// NAME that only one has, or a pattern such as 'shop/*'. Errors: *ClaimError.
func (p *Plan) Volumes(args []string) ([]int, error) {
	var out []int
	for _, arg := range args {
		found := p.like(arg)
		switch {
		case len(found) == 0:
			return nil, &ClaimError{Arg: arg, Near: p.nearClaim(arg)}
		case len(found) > 1 && !isPattern(arg):
			return nil, &ClaimError{Arg: arg, Among: p.claims(found)}
		}
		out = append(out, found...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func isPattern(arg string) bool { return strings.ContainsAny(arg, "*?[") }

func (p *Plan) like(arg string) []int {
	var out []int
	for i, v := range p.Spec.Volumes {
		of := v.Claim
		if !strings.Contains(arg, "/") {
			of = v.Name()
		}
		if is, err := path.Match(arg, of); err == nil && is || arg == of {
			out = append(out, i)
		}
	}
	return out
}

func (p *Plan) claims(which []int) []string {
	out := make([]string, 0, len(which))
	for _, i := range which {
		out = append(out, p.Spec.Volumes[i].Claim)
	}
	return out
}

func (p *Plan) nearClaim(arg string) string {
	var claims, names []string
	for _, v := range p.Spec.Volumes {
		claims, names = append(claims, v.Claim), append(names, v.Name())
	}
	if isPattern(arg) {
		return ""
	}
	if strings.Contains(arg, "/") {
		return meant(arg, claims)
	}
	if name := meant(arg, names); name != "" {
		return claims[slices.Index(names, name)]
	}
	return ""
}

// Choose is a copy of the plan in which a choice is made for some of its
// volumes, with what that changes. What the plan would refuse is a
// *ChoiceError. The plan itself must be a valid one.
func (p *Plan) Choose(which []int, c Choice) (*Plan, []Change, error) {
	out := *p
	out.Spec.Volumes = slices.Clone(p.Spec.Volumes)
	var changes []Change
	var why []string
	for _, i := range which {
		v := &out.Spec.Volumes[i]
		if c.Action != nil && *c.Action != "" && len(v.Supported) > 0 && !slices.Contains(v.Supported, *c.Action) && slices.Contains([]Action{Copy, Skip}, *c.Action) {
			why = append(why, fmt.Sprintf("claim %s: %s is not possible, only %s is", v.Claim, *c.Action, orOf(v.Supported)))
		}
		c.apply(v)
		changes = append(changes, changesOf(p.Spec.Volumes[i], *v)...)
	}
	_, problems := out.Validate()
	for _, problem := range problems {
		said := withoutIndexes(problem.Field)
		said = strings.TrimPrefix(said, "spec.volumes.") + ": " + problem.Message
		if !slices.Contains(why, said) { // the same for every claim
			why = append(why, said)
		}
	}
	if len(why) > 0 {
		return nil, nil, &ChoiceError{Why: why}
	}
	return &out, changes, nil
}

func orOf(actions []Action) string {
	words := make([]string, 0, len(actions))
	for _, a := range actions {
		words = append(words, string(a))
	}
	return strings.Join(words, " or ")
}

func (c Choice) apply(v *Volume) {
	set(&v.Action, c.Action)
	set(&v.CopyMethod, c.CopyMethod)
	set(&v.Verify, c.Verify)
	set(&v.Destination.StorageClass, c.StorageClass)
	set(&v.Destination.Size, c.Size)
	if c.AccessModes != nil {
		v.Destination.AccessModes = longModes(*c.AccessModes)
	}
}

func set[T any](field, to *T) {
	if to != nil {
		*field = *to
	}
}

func longModes(modes []string) []string {
	long := map[string]string{"RWO": "ReadWriteOnce", "ROX": "ReadOnlyMany", "RWX": "ReadWriteMany", "RWOP": "ReadWriteOncePod"}
	var out []string
	for _, m := range modes {
		if l, ok := long[strings.ToUpper(m)]; ok {
			m = l
		}
		out = append(out, m)
	}
	return out
}

func changesOf(was, is Volume) []Change {
	var out []Change
	for _, f := range []struct{ name, from, to string }{
		{"action", string(was.Action), string(is.Action)},
		{"copyMethod", was.CopyMethod, is.CopyMethod},
		{"destination.storageClass", was.Destination.StorageClass, is.Destination.StorageClass},
		{"destination.accessModes", strings.Join(was.Destination.AccessModes, ","), strings.Join(is.Destination.AccessModes, ",")},
		{"destination.size", was.Destination.Size, is.Destination.Size},
		{"verify", yes(was.Verify), yes(is.Verify)},
	} {
		if f.from != f.to {
			out = append(out, Change{Claim: is.Claim, Field: f.name, From: f.from, To: f.to})
		}
	}
	return out
}

func yes(b bool) string {
	if !b {
		return ""
	}
	return strconv.FormatBool(b)
}
