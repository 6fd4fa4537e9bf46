package cli

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/plan"
)

// FuzzNamespaces reads the argument of --namespaces: what it takes is what was
// written, and a plan takes it too, but for what concerns several of them.
func FuzzNamespaces(f *testing.F) {
	for _, seed := range []string{"", "shop", "shop:shop-prod,other", "a:b:c", ",", ":", "a,,b", " a , b:c ", "Ä:b", "a\nb", "a:", "kube-system"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		got, err := parseNamespaces(arg)
		if err != nil {
			var argErr *discover.NamespaceArgError
			if !errors.As(err, &argErr) || len(got) > 0 {
				t.Fatalf("got %v, %T %v, want a NamespaceArgError alone", got, err, err)
			}
			return
		}
		if arg == "" {
			if got != nil {
				t.Fatalf("nothing means %v", got)
			}
			return
		}
		var written []string
		for _, n := range got {
			word := n.Name
			if n.Destination != "" {
				word += ":" + n.Destination
			}
			written = append(written, word)
		}
		said := strings.Split(arg, ",")
		for i := range said {
			said[i] = strings.TrimSpace(said[i])
		}
		if !slices.Equal(written, said) {
			t.Fatalf("%q was read as %v", arg, written)
		}
	})
}

// FuzzPVSetFlags reads the flags of pv set: a value that was given is chosen as
// it stands or refused, and what was not given stays.
func FuzzPVSetFlags(f *testing.F) {
	f.Add("copy", "fast", "RWO,RWX", "filesystem", "10Gi", "", uint8(31))
	f.Add("", "", "", "", "", "size,action", uint8(0))
	f.Add("move", "F!", ",", "snapshot", "-1", "x", uint8(63))
	p, err := plan.Parse("shop.yaml", []byte(lovedPlan))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, action, class, modes, method, size, unset string, given uint8) {
		g := pvSetFlags{action: action, storageClass: class, accessMode: modes, copyMethod: method, size: size, unset: strings.Split(unset, ",")}
		if unset == "" {
			g.unset = nil
		}
		isGiven := func(name string) bool { return given&(1<<slices.Index(unsettable(), name)) != 0 }
		c, err := g.choice(isGiven)
		if err != nil {
			return
		}
		want, changes, err := p.Choose([]int{0}, c)
		if err != nil {
			var choiceErr *plan.ChoiceError
			if !errors.As(err, &choiceErr) || len(choiceErr.Why) == 0 {
				t.Fatalf("got %T %v, want a ChoiceError with reasons", err, err)
			}
			return
		}
		v, was := want.Spec.Volumes[0], p.Spec.Volumes[0]
		if isGiven("action") && string(v.Action) != action || !isGiven("action") && !slices.Contains(g.unset, "action") && v.Action != was.Action {
			t.Fatalf("action %q was taken as %q", action, v.Action)
		}
		if isGiven("size") && v.Destination.Size != size || isGiven("storage-class") && v.Destination.StorageClass != class {
			t.Fatalf("size %q and class %q were taken as %+v", size, class, v.Destination)
		}
		text, err := plan.Edit("shop.yaml", []byte(lovedPlan), want)
		if err != nil {
			t.Fatalf("a choice that the plan takes cannot be written: %v (%v)", err, changes)
		}
		if (len(changes) == 0) != (string(text) == lovedPlan) {
			t.Fatalf("%d changes were told of\n%s", len(changes), text)
		}
	})
}
