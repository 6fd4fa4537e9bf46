package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/plan"
)

func TestExplainSaysWhatAFieldMeans(t *testing.T) {
	b := newBench(t)
	code := b.mig("explain", "plan.spec.volumes.destination")
	b.wants(t, code, 0, `KIND:       MigrationPlan
VERSION:    mig/v1alpha1

FIELD: destination	<VolumeDestination>

DESCRIPTION:
    The claim there: storageClass, accessModes, size; what is left out stays as
    on the source.

FIELDS:
  storageClass	<string>
    Its class. Wants a name as Kubernetes allows it (a-z, 0-9, - and .).
    Default: what spec.storageClasses says for the source's class, else the
    class of that name.

  accessModes	<[]string>
  enum: ReadWriteOnce, ReadOnlyMany, ReadWriteMany, ReadWriteOncePod
    Its access modes. Default: those of the source.

  size	<string>
    Its size. Wants a size such as 10Gi. Default: that of the source.

  name	<string> -not built yet-
    Its name. Not built yet and refused. Until then: the claim keeps its name.
`, "")
	code = b.mig("explain", "spec.volumes[3].action")
	b.wants(t, code, 0, "ENUM:\n    copy\n    skip\n", "")
	code = b.mig("explain")
	b.wants(t, code, 0, "\nFIELDS:\n  apiVersion\t<string> -required-\n", "")
	code = b.mig("explain", "plan.spec", "--recursive")
	b.wants(t, code, 0, "\nFIELDS:\n  source\t<Cluster> -required-\n    context\t<string> -required-\n    kubeconfig\t<string>\n", "")
}

func TestExplainAsJSONHoldsTheSame(t *testing.T) {
	b := newBench(t)
	code := b.mig("explain", "plan", "-o", "json")
	var got plan.Field
	if err := json.Unmarshal(b.out.Bytes(), &got); err != nil || code != 0 || len(got.Fields) != 4 || got.Fields[3].Fields[0].Brief == "" {
		t.Errorf("exit %d, %v: %s", code, err, b.out.String())
	}
}

func TestExplainNamesTheFieldThatWasMeant(t *testing.T) {
	b := newBench(t)
	code := b.mig("explain", "plan.spec.volume")
	b.wants(t, code, 2, "", "a plan has no field plan.spec.volume; there are: source, destination")
	if !strings.Contains(b.err.String(), "hint: did you mean plan.spec.volumes? see all fields with: mig explain plan --recursive") {
		t.Error(b.err.String())
	}
	code = b.mig("explain", "pod.spec")
	b.wants(t, code, 2, "", "a plan has no field plan.pod; there are: apiVersion, kind, metadata, spec")
}

func TestExplainCompletesPaths(t *testing.T) {
	for typed, want := range map[string]string{
		"":                  "plan",
		"pl":                "plan",
		"plan.":             "plan.apiVersion",
		"plan.spec.vol":     "plan.spec.volumes",
		"spec.volumes[0].a": "spec.volumes[0].action",
		"plan.none.x":       "",
	} {
		got, directive := completeFields(nil, nil, typed)
		found := want == "" && len(got) == 0
		for _, g := range got {
			word, _, _ := strings.Cut(g, "\t")
			found = found || word == want
		}
		if !found || directive&cobra.ShellCompDirectiveNoFileComp == 0 {
			t.Errorf("%q: got %q, want %q among them", typed, got, want)
		}
	}
}

func TestPlansNameTheSchemaWhereItIsBesideThem(t *testing.T) {
	for schema, want := range map[string]string{string(plan.Schema()): "# yaml-language-server: $schema=plan.schema.json\n# A plan", "{}": "# A plan", "": "# A plan"} {
		b := newBench(t)
		b.proposes(proposal(), nil)
		if schema != "" {
			writePlan(t, "plan.schema.json", schema)
		}
		if code := b.mig("plan", "create", "shop", "--src", "src", "--dst", "dst"); code != 0 {
			t.Fatal(b.err.String())
		}
		if got := read(t, "shop.yaml"); !strings.HasPrefix(got, want) {
			t.Errorf("got %.80s, want %s", got, want)
		}
		if _, err := plan.LoadValid("shop.yaml"); err != nil {
			t.Error(err)
		}
	}
	b := newBench(t)
	code := b.mig("plan", "schema")
	b.wants(t, code, 0, string(plan.Schema()), "")
}
