//go:build e2e

package cases

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/plan"
)

func TestANameThatNoPlanCanHaveIsRefusedWithTheLimit(t *testing.T) {
	p := open(t, scenario{"L01", "naming", cli})
	p.twoThatNeverAnswer()
	for name, says := range map[string]string{
		strings.Repeat("n", 254): "253",
		"Orchard_1":              "lower case",
	} {
		r := p.run("plan", "create", name, "--src", "src", "--dst", "dst", "--namespaces", "plum")
		if r.Code != usage || !strings.Contains(r.Stderr, says) {
			t.Errorf("want exit %d, and %q told:\n%s", usage, says, r)
		}
	}
}

func TestNamesAtTheLimitMakeAPlanThatIsReady(t *testing.T) {
	p := open(t, scenario{"L01", "naming", api})
	long := "a-house-with-many-rooms-and-a-name-that-will-not-end-before-00"
	for _, last := range []string{"1", "2"} {
		name := long + last
		p.given(p.src(), namespace(name), configMap(name, "room"))
		p.exits(done, "plan", "create", name, "--src", "src", "--dst", "dst", "--namespaces", name)
		p.wantReady(p.validated(name))
	}
}

func TestOneBrokenNamespaceOfManyIsNamedAndTheOthersStayUsable(t *testing.T) {
	p := open(t, scenario{"L04", "naming", api})
	const many, objects = 40, 10
	var names []string
	for i := range many {
		name := fmt.Sprintf("hive-%02d", i)
		names = append(names, name)
		cells := []client.Object{namespace(name)}
		for j := range objects {
			cells = append(cells, configMap(name, fmt.Sprintf("cell-%02d", j)))
		}
		p.given(p.src(), cells...)
	}
	p.given(p.src(), storageClass("wax", "bees.example"))
	p.given(p.src(), claim("hive-07", "honey", "wax"))
	p.must(settled(t.Context(), p.src(), "hive-07"))
	p.planned(strings.Join(names, ","))

	v := p.validated()
	p.wantBlocked(v, "StorageClassMissing", "hive-07/honey", "wax")
	if c := p.wantFound(v, "NamespacesFound"); c.Status != "True" {
		t.Errorf("all namespaces are there: %+v", c)
	}
	p.editPlan(names[0], func(p *plan.Plan) {
		p.Spec.Namespaces = slices.DeleteFunc(p.Spec.Namespaces, func(n plan.Namespace) bool { return n.Name == "hive-07" })
		p.Spec.Volumes = nil
	})
	p.wantReady(p.validated())
}
