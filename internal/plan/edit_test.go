package plan

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// written is a plan as a person has made it theirs: comments everywhere,
// fields in another order, lists in both forms.
const written = `# our shop, see ticket 12
apiVersion: mig/v1alpha1
kind: MigrationPlan
metadata: {name: shop, uid: 5f0c3d9e-27b1} # do not touch
spec:
  destination: {context: dst}
  source: {context: src}   # the old one
  storage: {location: default}

  namespaces: [{name: shop}]
  # The volumes, as agreed with Zoë.
  volumes:
  # the database
  - claim: shop/data   # 10 years of orders
    capacity: 10Gi
    action: ""         # choose: copy or skip
    # next to it

  - action: skip # it fills itself again
    claim: "shop/cache"
    destination:
      # bigger
      size: '5Gi' # was 1
      accessModes:
      - ReadWriteOnce # one
      # or more
      - ReadOnlyMany
  - {claim: shop/ü, action: 'copy', destination: {size: 1Gi}}

  storageClasses: {} # none yet
# the end
`

func TestAnEditChangesNothingButWhatIsWanted(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*Plan)
		old, new string
	}{
		"nothing": {func(*Plan) {}, "", ""},
		"empty lists and mappings for none": {
			func(p *Plan) {
				p.Spec.StorageClasses, p.Spec.Accept, p.Spec.Volumes[0].AccessModes = map[string]string{}, []Accept{}, []string{}
			}, "", "",
		},
		"a choice takes its mark off": {
			func(p *Plan) { p.Spec.Volumes[0].Action = Copy },
			`    action: ""         # choose: copy or skip`, `    action: copy`,
		},
		"a value keeps the comment behind it": {
			func(p *Plan) { p.Spec.Volumes[1].Action = Copy },
			`action: skip # it fills`, `action: copy # it fills`,
		},
		"a new field goes where it would stand": {
			func(p *Plan) { p.Spec.Volumes[0].StorageClass = "gp2" },
			"    capacity: 10Gi\n", "    capacity: 10Gi\n    storageClass: gp2\n",
		},
		"a new group of fields": {
			func(p *Plan) {
				p.Spec.Volumes[0].Destination = VolumeDestination{StorageClass: "fast", AccessModes: []string{"ReadWriteMany"}}
			},
			"# choose: copy or skip\n", "# choose: copy or skip\n    destination:\n      storageClass: fast\n      accessModes: [ReadWriteMany]\n",
		},
		"a field between brackets": {
			func(p *Plan) {
				p.Spec.Volumes[2].Destination.StorageClass = "fast"
				p.Spec.Volumes[2].CopyMethod = "filesystem"
			},
			"action: 'copy', destination: {size: 1Gi}", "action: 'copy', copyMethod: filesystem, destination: {size: 1Gi, storageClass: fast}",
		},
		"a value between brackets": {
			func(p *Plan) { p.Spec.Volumes[2].Destination.Size = "2Gi" }, "size: 1Gi", "size: 2Gi",
		},
		"a group that goes from between brackets": {
			func(p *Plan) { p.Spec.Volumes[2].Destination = VolumeDestination{} }, ", destination: {size: 1Gi}", "",
		},
		"a field that goes takes its line": {
			func(p *Plan) { p.Spec.Volumes[1].Destination.Size = "" }, "      size: '5Gi' # was 1\n", "",
		},
		"a group that goes takes its lines": {
			func(p *Plan) { p.Spec.Volumes[1].Destination = VolumeDestination{} },
			"    destination:\n      # bigger\n      size: '5Gi' # was 1\n      accessModes:\n      - ReadWriteOnce # one\n      # or more\n      - ReadOnlyMany\n", "",
		},
		"a list with a line an item": {
			func(p *Plan) { p.Spec.Volumes[1].Destination.AccessModes = []string{"ReadWriteMany"} },
			"      - ReadWriteOnce # one\n      # or more\n      - ReadOnlyMany\n", "      - ReadWriteMany\n",
		},
		"new items go behind the last": {
			func(p *Plan) {
				p.Spec.Volumes = append(p.Spec.Volumes, Volume{Claim: "shop/new", Supported: []Action{Skip}}, Volume{Claim: "shop/more", Action: Copy})
			},
			"destination: {size: 1Gi}}\n", "destination: {size: 1Gi}}\n  - claim: shop/new\n    supported: [skip]\n    action: \"\" # choose: skip\n  - claim: shop/more\n    action: copy\n",
		},
		"new items between brackets": {
			func(p *Plan) { p.Spec.Namespaces = append(p.Spec.Namespaces, Namespace{Name: "b", Destination: "c"}) },
			"[{name: shop}]", "[{name: shop}, {name: b, destination: c}]",
		},
		"the first entry of an empty mapping": {
			func(p *Plan) { p.Spec.StorageClasses = map[string]string{"gp2": "fast", "1": "x"} },
			"  storageClasses: {} # none yet\n", "  storageClasses: # none yet\n    \"1\": x\n    gp2: fast\n",
		},
		"fields that were not there": {
			func(p *Plan) { p.Spec.Quiesce.Except = []string{"Job/shop/x"}; p.Spec.Mover = "auto" },
			"{} # none yet\n", "{} # none yet\n  mover: auto\n  quiesce:\n    except:\n      - Job/shop/x\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for eol, text := range map[string]string{"unix": written, "dos": byteOrderMark + strings.ReplaceAll(written, "\n", "\r\n")} {
				p := parse(t, text)
				c.change(p)
				got, err := Edit("p.yaml", []byte(text), p)
				if err != nil {
					t.Fatal(err)
				}
				want := strings.Replace(written, c.old, c.new, 1)
				if eol == "dos" {
					want = byteOrderMark + strings.ReplaceAll(want, "\n", "\r\n")
				}
				if string(got) != want {
					t.Errorf("%s: got\n%s", eol, got)
				}
			}
		})
	}
}

func TestAnEditWorksInEveryFormOfEmptiness(t *testing.T) {
	head := "apiVersion: mig/v1alpha1\nkind: MigrationPlan\nmetadata: {name: a, uid: a2345678}\nspec:\n  source: {context: a}\n  destination: {context: b}\n  storage: {location: c}\n  namespaces: [{name: a}]"
	for _, rest := range []string{
		"", "\n", "\n  volumes:", "\n  volumes: []", "\n  volumes: [] # none\n", "\n  volumes: ~\n", "\n  volumes: # none\n", "\n  volumes: null # none\n  accept: []\n", "\n# end", "\n  volumes:\n  - claim: a/b", "\n  volumes: [{claim: a/b}]",
		"\n  volumes: [\n    {claim: a/b},\n  ]\n", "\n  volumes:\n    - {claim: a/b} # one\n", "\n  storageClasses: {a: b}\n", "\n  storageClasses:\n    a: b", "\n  storageClasses: &x {a: b}\n",
	} {
		p := parse(t, head+rest)
		p.Spec.Volumes = append(p.Spec.Volumes, Volume{Claim: "a/c", Capacity: "1Gi", Action: Copy}, Volume{Claim: "a/d"})
		if p.Spec.StorageClasses == nil {
			p.Spec.StorageClasses = map[string]string{}
		}
		p.Spec.StorageClasses["gp2"] = "fast"
		got, err := Edit("p.yaml", []byte(head+rest), p)
		if err != nil {
			t.Errorf("%q: %v", rest, err)
		}
		if !strings.HasPrefix(string(got), head) {
			t.Errorf("%q: what was not to change has changed:\n%s", rest, got)
		}
	}
}

func TestWhatOnlyAPersonShouldTouchIsAnErrorWithItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		old, new string
		change   func(*Plan)
		want     string
	}{
		"a text of several lines": {
			"action: copy", "action: |-\n      copy", func(p *Plan) { p.Spec.Volumes[0].Action = Skip }, "p.yaml:14:13: spec.volumes[0].action: a text of several lines; change it by hand",
		},
		"a value that others mean too": {
			"gp2: fast}", "gp2: &c fast, gp3: *c}", func(p *Plan) { p.Spec.StorageClasses["gp2"] = "slow" }, "p.yaml: the file is written in a way that cannot be edited",
		},
		"a list that becomes shorter": {
			"", "", func(p *Plan) { p.Spec.Volumes = p.Spec.Volumes[:1] }, "p.yaml:12:3: spec.volumes: a list that would become shorter",
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(sound, c.old, c.new, 1)
			p := parse(t, text)
			c.change(p)
			got, err := Edit("p.yaml", []byte(text), p)
			var editErr *EditError
			if !errors.As(err, &editErr) || !strings.HasPrefix(err.Error(), c.want) || got != nil {
				t.Errorf("got %v\n%s", err, got)
			}
		})
	}
}

func TestClaimsThatAreGoneAreMarkedUntilTheyAreBack(t *testing.T) {
	gone := MarkGone("p.yaml", []byte(written), []string{"shop/cache", "shop/ü"})
	for _, want := range []string{"    # next to it\n\n  # gone: ", "\n  - action: skip", "\n  # gone: ", "\n  - {claim: shop/ü"} {
		if !strings.Contains(string(gone), want) {
			t.Errorf("lacks %q:\n%s", want, gone)
		}
	}
	if again := MarkGone("p.yaml", gone, []string{"shop/cache", "shop/ü"}); string(again) != string(gone) {
		t.Errorf("marked twice:\n%s", again)
	}
	if back := MarkGone("p.yaml", gone, nil); string(back) != written {
		t.Errorf("the mark of a claim that is back stays:\n%s", back)
	}
}

func TestAFileThatWasChangedMeanwhileIsNotOverwritten(t *testing.T) {
	dir := t.TempDir()
	path := writePlan(t, dir, "shop.yaml", sound)
	link := filepath.Join(dir, "link.yaml")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := Replace(link, []byte(sound), []byte("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file's mode is now %v, %v", info.Mode(), err)
	}
	if target, err := os.Readlink(link); err != nil || target != path {
		t.Errorf("the link is gone: %v", err)
	}
	var changed *ChangedError
	if err := Replace(path, []byte(sound), []byte("newer")); !errors.As(err, &changed) {
		t.Errorf("got %v, want that it was changed meanwhile", err)
	}
	if data, _ := os.ReadFile(path); string(data) != "new" {
		t.Errorf("it was overwritten all the same: %q", data)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("left behind: %v", entries)
	}
}
