package plan

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func writePlan(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhatIsWrittenReadsBackTheSame(t *testing.T) {
	enabled := false
	odd := &Plan{APIVersion: APIVersion, Kind: Kind, Metadata: Metadata{Name: "1e3", UID: "12345678"}, Spec: Spec{
		Source:         Cluster{Context: "arn:aws:eks:eu-1:1:cluster/a", Kubeconfig: `C:\kube "x"`},
		Destination:    Cluster{Context: "yes", VeleroNamespace: "0x10"},
		Storage:        Storage{Location: "null"},
		Namespaces:     []Namespace{{Name: "123", Destination: "on"}, {Name: "true"}},
		Volumes:        []Volume{{Claim: "123/0", Capacity: "10", Used: "1.5Gi", Action: "", Supported: []Action{Copy, Skip}}},
		StorageClasses: map[string]string{"n": "~", "1.0": "- x"}, Mover: "auto",
		Quiesce: Quiesce{Enabled: &enabled, Except: []string{"Job/123/x"}},
		Accept:  []Accept{{Type: "BarePods", Object: "*", Why: "a # no comment: 'really'\nand \"more\"\tÄ 🙂"}},
		Limits:  LimitsSpec{MaxDowntime: "1h", Timeouts: map[string]string{"Prepare": "5m"}},
	}}
	for _, p := range []*Plan{odd, parse(t, sound)} {
		again, err := Parse("again.yaml", Marshal(p))
		if err != nil {
			t.Fatalf("%v\n%s", err, Marshal(p))
		}
		if !reflect.DeepEqual(again.Spec, p.Spec) || again.Metadata != p.Metadata {
			t.Errorf("got  %+v\nwant %+v\n%s", again.Spec, p.Spec, Marshal(p))
		}
	}
}

func TestTheFileSaysWhatMustStillBeChosen(t *testing.T) {
	p := parse(t, strings.Replace(sound, "action: copy", "action:", 1))
	if got := string(Marshal(p)); !strings.Contains(got, `action: "" # choose: copy or skip`) {
		t.Errorf("the choice is not marked:\n%s", got)
	}
	p.Spec.Volumes[0].Supported = []Action{Skip}
	if got := string(Marshal(p)); !strings.Contains(got, `action: "" # choose: skip`+"\n") {
		t.Errorf("what cannot be is offered:\n%s", got)
	}
}

func TestWriteKeepsAnExistingFile(t *testing.T) {
	path := writePlan(t, t.TempDir(), "shop.yaml", "mine")
	if err := Write(path, parse(t, sound), false); !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v, want that the file exists", err)
	}
	if data, _ := os.ReadFile(path); string(data) != "mine" {
		t.Errorf("the file was changed to %q", data)
	}
	if err := Write(path, parse(t, sound), true); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadValid(path); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestFindTellsWhichFileIsMeant(t *testing.T) {
	dir := t.TempDir()
	writePlan(t, dir, "values.yaml", "kind: Deployment\n")
	writePlan(t, dir, "notes.txt", "kind: MigrationPlan\n")
	if _, err := FindIn(dir, ""); err == nil || !strings.Contains(err.Error(), "no plan file in "+dir) {
		t.Errorf("without a plan: got %v", err)
	}

	shop := writePlan(t, dir, "shop.plan.yaml", "kind: MigrationPlan # broken: [\n")
	for _, arg := range []string{"", "shop", "shop.plan.yaml", shop} {
		if got, err := FindIn(dir, arg); err != nil || got != shop {
			t.Errorf("%q: got %q, %v, want %q", arg, got, err, shop)
		}
	}

	other := writePlan(t, dir, "other.yaml", "apiVersion: mig/v1alpha1\nkind: \"MigrationPlan\"\n")
	if got, err := FindIn(dir, "other"); err != nil || got != other {
		t.Errorf("got %q, %v, want %q", got, err, other)
	}
	if _, err := FindIn(dir, ""); err == nil || !strings.Contains(err.Error(), "name one of them: other.yaml, shop.plan.yaml") {
		t.Errorf("with two plans: got %v", err)
	}
	if _, err := FindIn(dir, "lost"); err == nil || !strings.Contains(err.Error(), `there is no plan "lost": no file lost, lost.yaml`) {
		t.Errorf("a name without a file: got %v", err)
	}
}
