package plan

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// seeds are files that a fuzzer begins with.
func seeds(f *testing.F) {
	f.Helper()
	for _, seed := range []string{
		sound, written, strings.ReplaceAll(written, "\n", "\r\n"), byteOrderMark + sound,
		"", "a: &a [*a]", "? a\n: b", "- - -", "kind: MigrationPlan\nspec: {volumes: [{claim: a/b, verify: true}]}", "x: |\n  y\n", "\"", "<<: *a", "!!str a",
	} {
		f.Add([]byte(seed))
	}
}

// parsed is a fuzzed file as a plan; nil where it is none, and that was told
// as it should be.
func parsed(t *testing.T, data []byte) *Plan {
	t.Helper()
	p, err := Parse("fuzz.yaml", data)
	if err == nil {
		return p
	}
	var loadErr *LoadError
	if !errors.As(err, &loadErr) || len(loadErr.Problems) == 0 {
		t.Fatalf("got %T %v, want a LoadError with problems", err, err)
	}
	for _, problem := range loadErr.Problems {
		if problem.Message == "" || problem.Pos.File == "" {
			t.Fatalf("a problem that says nothing: %+v", problem)
		}
	}
	return nil
}

func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		p := parsed(t, data)
		if p == nil || p.APIVersion == "" || p.Kind == "" { // Validate tells
			return
		}
		text := Marshal(p)
		again, err := Parse("again.yaml", text)
		if err != nil {
			t.Fatalf("what Marshal wrote does not parse: %v\n%s", err, text)
		}
		if string(Marshal(again)) != string(text) || !same(reflect.ValueOf(again.Spec.Volumes), reflect.ValueOf(p.Spec.Volumes)) {
			t.Fatalf("a plan changed on its way through Marshal and Parse:\n%s\n%s", text, Marshal(again))
		}
	})
}

// FuzzEdit changes a plan in the ways of pv set and pv discover --update. What
// comes out must say what was wanted, or nothing may come out.
func FuzzEdit(f *testing.F) {
	for _, seed := range []string{sound, written, strings.ReplaceAll(written, "\n", "\r\n"), byteOrderMark + sound} {
		f.Add([]byte(seed), "skip", "fast", "10Gi", "ReadWriteMany", "shop/new")
	}
	f.Fuzz(func(t *testing.T, data []byte, action, class, size, mode, claim string) {
		p := parsed(t, data)
		if p == nil || p.APIVersion == "" || p.Kind == "" {
			return
		}
		want := *p
		want.Spec.Volumes = append([]Volume{}, p.Spec.Volumes...)
		if len(want.Spec.Volumes) > 0 {
			v := &want.Spec.Volumes[0]
			v.Action, v.Capacity, v.Destination.StorageClass, v.Destination.Size = Action(action), size, class, size
			v.Destination.AccessModes = []string{mode}
		}
		want.Spec.Volumes = append(want.Spec.Volumes, Volume{Claim: claim, Action: Action(action)})
		want.Spec.StorageClasses = map[string]string{class: class, "gp2": class}
		text, err := Edit("fuzz.yaml", data, &want)
		if err != nil {
			if _, ok := errors.AsType[*EditError](err); !ok {
				t.Fatalf("got %T %v, want an EditError", err, err)
			}
			return
		}
		again := parse(t, string(text))
		if !again.equal(&want) {
			t.Fatalf("the edit says something else:\n%s\nthan was wanted:\n%s", text, Marshal(&want))
		}
		marked := MarkGone("fuzz.yaml", text, []string{claim})
		if p, err := Parse("fuzz.yaml", marked); err != nil || !p.equal(&want) {
			t.Fatalf("the mark changed the plan: %v\n%s", err, marked)
		}
	})
}

// FuzzClaims names claims on a command line.
func FuzzClaims(f *testing.F) {
	for _, seed := range []string{"shop/data", "data", "*", "*/*", "shop/[a-", "[", "\\", "", "shop/", "/", "sh?p/d*"} {
		f.Add(seed)
	}
	p, err := Parse("p.yaml", []byte(sound))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		which, err := p.Volumes([]string{arg})
		var claimErr *ClaimError
		if err != nil && !errors.As(err, &claimErr) {
			t.Fatalf("got %T %v, want a ClaimError", err, err)
		}
		if err == nil && len(which) == 0 {
			t.Fatalf("%q means nothing, and that is no error", arg)
		}
		if err == nil && !isPattern(arg) && p.Spec.Volumes[which[0]].Claim != arg && p.Spec.Volumes[which[0]].Name() != arg {
			t.Fatalf("%q means %v", arg, which)
		}
	})
}
