package plan

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func parse(t *testing.T, file string) *Plan {
	t.Helper()
	p, err := Parse("p.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestValidateTellsWhatCannotBe(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"no name":                        {"name: shop, uid", "uid", `p.yaml:3:1: metadata.name: is missing`},
		"a name with capitals":           {"name: shop, uid", "name: Shop, uid", `p.yaml:3:12: metadata.name: "Shop": a lowercase RFC 1123 subdomain`},
		"no uid":                         {", uid: 5f0c3d9e-27b1", "", `p.yaml:3:1: metadata.uid: is missing`},
		"a uid that no label can hold":   {"5f0c3d9e-27b1", "5F 0c", `p.yaml:3:24: metadata.uid: "5F 0c": want 8 to 63 of a-z, 0-9 and -`},
		"no context":                     {"source: {context: src}", "source: {}", `p.yaml:5:3: spec.source.context: is missing`},
		"one context for both":           {"context: dst", "context: src", `p.yaml:6:17: spec.destination.context: is the source's too (src)`},
		"a tilde":                        {"context: dst", "context: dst, kubeconfig: ~/x", `p.yaml:6:31: spec.destination.kubeconfig: ~/x: a shell expands ~`},
		"no location":                    {"storage: {location: default}", "storage: {}", `p.yaml:7:3: spec.storage.location: is missing`},
		"a namespace with dots":          {"name: other", "name: o.t", `p.yaml:10:5: spec.namespaces[1].name: "o.t": must not contain dots`},
		"a source twice":                 {"name: other", "name: shop", `p.yaml:10:5: spec.namespaces[1].name: namespace shop is there twice; the first is spec.namespaces[0]`},
		"two into one":                   {"name: other", "name: other\n    destination: shop-prod", `p.yaml:11:5: spec.namespaces[1].destination: shop and other would both become shop-prod`},
		"one into another's own name":    {"name: other", "name: shop-prod", `p.yaml:10:5: spec.namespaces[1].destination: shop and shop-prod would both become shop-prod`},
		"a namespace of the system":      {"name: other", "name: kube-system", `p.yaml:10:5: spec.namespaces[1].name: kube-system belongs to the cluster itself`},
		"Velero's own namespace":         {"name: other", "name: velero", `p.yaml:10:5: spec.namespaces[1].name: velero belongs to the cluster itself or to Velero`},
		"a claim without its namespace":  {"claim: shop/data", "claim: data", `p.yaml:12:5: spec.volumes[0].claim: "data": want NAMESPACE/NAME`},
		"a claim of another namespace":   {"claim: shop/data", "claim: x/data", `p.yaml:12:5: spec.volumes[0].claim: claim x/data: its namespace is not in spec.namespaces`},
		"a claim twice":                  {"claim: other/cache", "claim: shop/data", `p.yaml:15:5: spec.volumes[1].claim: claim shop/data is there twice`},
		"move":                           {"action: copy", "action: move", `p.yaml:14:5: spec.volumes[0].action: move is not built yet; use copy or skip`},
		"an unknown action":              {"action: copy", "action: teleport", `p.yaml:14:5: spec.volumes[0].action: "teleport": want copy or skip`},
		"snapshots":                      {"action: copy", "action: copy\n    copyMethod: snapshot", `p.yaml:15:5: spec.volumes[0].copyMethod: snapshot is not built yet; use filesystem`},
		"block copies":                   {"action: copy", "action: copy\n    copyMethod: block", `p.yaml:15:5: spec.volumes[0].copyMethod: block is not built yet`},
		"an unknown access mode":         {"action: copy", "action: copy\n    destination: {accessModes: [RWX]}", `p.yaml:15:33: spec.volumes[0].destination.accessModes[0]: "RWX": want one of ReadWriteOnce`},
		"a size that is none":            {"action: copy", "action: copy\n    destination: {size: big}", `p.yaml:15:19: spec.volumes[0].destination.size: "big": want a size such as 10Gi`},
		"a size of nothing":              {"action: copy", "action: copy\n    destination: {size: \"0\"}", `p.yaml:15:19: spec.volumes[0].destination.size: "0": want a size such as 10Gi, a byte at least`},
		"a class that is no name":        {"gp2: fast", "gp2: Fast!", `p.yaml:17:20: spec.storageClasses[gp2]: "Fast!": a lowercase RFC 1123 subdomain`},
		"a class without a destination":  {"gp2: fast", "gp2: ''", `p.yaml:17:20: spec.storageClasses[gp2]: is missing`},
		"except without namespace":       {"storageClasses:", "quiesce: {except: [web]}\n  storageClasses:", `p.yaml:17:22: spec.quiesce.except[0]: "web": want KIND/NAMESPACE/NAME`},
		"except of an unknown kind":      {"storageClasses:", "quiesce: {except: [Pod/shop/web]}\n  storageClasses:", `p.yaml:17:22: spec.quiesce.except[0]: "Pod": want one of the kinds CronJob`},
		"except in another namespace":    {"storageClasses:", "quiesce: {except: [Job/x/web]}\n  storageClasses:", `p.yaml:17:22: spec.quiesce.except[0]: Job/x/web: its namespace is not in spec.namespaces`},
		"accepting without saying why":   {"storageClasses:", "accept: [{type: BarePods, object: '*'}]\n  storageClasses:", `p.yaml:17:12: spec.accept[0].why: is missing`},
		"a duration that is none":        {"storageClasses:", "limits: {timeouts: {Prepare: soon}}\n  storageClasses:", `p.yaml:17:23: spec.limits.timeouts[Prepare]: "soon": want a duration such as 30m`},
		"a size in thousandths":          {"action: copy", "action: copy\n    destination: {size: 100m}", `p.yaml:15:19: spec.volumes[0].destination.size: "100m": want a size such as 10Gi, a byte at least`},
		"a negative size":                {"action: copy", "action: copy\n    destination: {size: -1Gi}", `p.yaml:15:19: spec.volumes[0].destination.size: "-1Gi": want a size such as 10Gi`},
		"a negative capacity":            {"action: copy", "action: copy\n    capacity: -1Gi", `p.yaml:15:5: spec.volumes[0].capacity: "-1Gi": want a size such as 10Gi`},
		"a used size in words":           {"action: copy", "action: copy\n    used: much", `p.yaml:15:5: spec.volumes[0].used: "much": want a size such as 10Gi`},
		"an access mode twice":           {"action: copy", "action: copy\n    accessModes: [ReadWriteOnce, ReadWriteOnce]", `p.yaml:15:34: spec.volumes[0].accessModes[1]: ReadWriteOnce is there twice`},
		"an access mode without a name":  {"action: copy", "action: copy\n    destination: {accessModes: ['']}", `p.yaml:15:33: spec.volumes[0].destination.accessModes[0]: "": want one of ReadWriteOnce`},
		"a list with nothing in it":      {"- name: other", "- ~", `p.yaml:10:5: spec.namespaces[1].name: is missing`},
		"a volume without a claim":       {"claim: other/cache\n    action: skip", "action: skip", `p.yaml:15:5: spec.volumes[1].claim: is missing: want NAMESPACE/NAME`},
		"a claim in too many parts":      {"claim: shop/data", "claim: shop/a/b", `p.yaml:12:5: spec.volumes[0].claim: "shop/a/b": want NAMESPACE/NAME`},
		"a volume mode that is none":     {"action: copy", "action: copy\n    volumeMode: block", `p.yaml:15:5: spec.volumes[0].volumeMode: "block": want Filesystem or Block`},
		"an action that is not possible": {"action: copy", "action: copy\n    supported: [copy, fly]", `p.yaml:15:23: spec.volumes[0].supported[1]: "fly": want copy, move or skip`},
		"verifying":                      {"action: copy", "action: copy\n    verify: true", `p.yaml:15:5: spec.volumes[0].verify: needs spec.helperImage`},
		"a class without a name":         {"gp2: fast", "'': fast", `p.yaml:17:20: spec.storageClasses[]: a class without a name`},
		"a mover without its image":      {"storageClasses:", "mover: mig\n  storageClasses:", `p.yaml:17:3: spec.mover: mig needs spec.helperImage, the image of mig-mover`},
		"less than no volume at once":    {"storageClasses:", "limits: {parallelism: -1}\n  storageClasses:", `p.yaml:17:12: spec.limits.parallelism: -1: want a number above 0`},
		"a mover that is none":           {"storageClasses:", "mover: rsync\n  storageClasses:", `p.yaml:17:3: spec.mover: "rsync": want auto, mig or velero`},
		"an unknown step":                {"storageClasses:", "limits: {timeouts: {Lunch: 1h}}\n  storageClasses:", `p.yaml:17:23: spec.limits.timeouts[Lunch]: no run has a step "Lunch": see mig migrate --dry-run`},
		"a step with a slip":             {"storageClasses:", "limits: {timeouts: {ensureQuiesced: 1h}}\n  storageClasses:", `p.yaml:17:23: spec.limits.timeouts[ensureQuiesced]: no run has a step "ensureQuiesced"; did you mean EnsureQuiesced?`},
		"a step without a limit":         {"storageClasses:", "limits: {timeouts: {Prepare: }}\n  storageClasses:", `p.yaml:17:23: spec.limits.timeouts[Prepare]: is missing`},
		"a limit of nothing":             {"storageClasses:", "limits: {timeouts: {Prepare: 0s}}\n  storageClasses:", `p.yaml:17:23: spec.limits.timeouts[Prepare]: "0s": want a duration such as 30m`},
		"a limit in the past":            {"storageClasses:", "limits: {timeouts: {Prepare: -5m}}\n  storageClasses:", `p.yaml:17:23: spec.limits.timeouts[Prepare]: "-5m": want a duration such as 30m`},
		"a reason of blanks":             {"storageClasses:", "accept: [{type: BarePods, object: a, why: ' '}]\n  storageClasses:", `p.yaml:17:40: spec.accept[0].why: is missing`},
		"accepting twice":                {"storageClasses:", "accept: [{type: A, object: a, why: x}, {type: A, object: a, why: y}]\n  storageClasses:", `p.yaml:17:42: spec.accept[1]: is there twice; the first is spec.accept[0]`},
		"except twice":                   {"storageClasses:", "quiesce: {except: [Job/shop/web, Job/shop/web]}\n  storageClasses:", `p.yaml:17:36: spec.quiesce.except[1]: Job/shop/web is there twice`},
		"a context of blanks":            {"source: {context: src}", "source: {context: ' '}", `p.yaml:5:12: spec.source.context: is missing`},
		"a downtime that is none":        {"storageClasses:", "limits: {maxDowntime: 0s}\n  storageClasses:", `p.yaml:17:12: spec.limits.maxDowntime: "0s": want a duration such as 30m`},
		"a negative duration for a step": {"storageClasses:", "limits: {timeouts: {Prepare: -1m}}\n  storageClasses:", `p.yaml:17:23: spec.limits.timeouts[Prepare]: "-1m": want a duration`},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := parse(t, strings.Replace(sound, c.old, c.new, 1)).Validate()
			for _, p := range problems {
				if strings.HasPrefix(p.String(), c.want) {
					return
				}
			}
			t.Errorf("got  %v\nwant %s…", problems, c.want)
		})
	}
}

func TestValidateTellsEverythingAtOnce(t *testing.T) {
	file := strings.NewReplacer("context: dst", "context: src", "location: default", "", "action: copy", "action: move", "action: skip", "action: move").Replace(sound)
	if _, problems := parse(t, file).Validate(); len(problems) != 4 {
		t.Errorf("got %d problems, want 4: %v", len(problems), problems)
	}
}

func TestValidateLetsNamespacesSwap(t *testing.T) {
	file := strings.NewReplacer("destination: shop-prod", "destination: other", "- name: other", "- {name: other, destination: shop}").Replace(sound)
	v, problems := parse(t, file).Validate()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if v.DestinationNamespace("shop") != "other" || v.DestinationNamespace("other") != "shop" {
		t.Errorf("got %v, want shop and other swapped", v.NamespaceMapping())
	}
}

func TestWhatIsUnusualAndRightIsTaken(t *testing.T) {
	for name, c := range map[string][2]string{
		"a namespace that keeps its name":  {"name: other", "name: other\n    destination: other"},
		"an empty destination":             {"name: other", "name: other\n    destination: ''"},
		"a class that keeps its name":      {"{gp2: fast}", "{gp2: gp2}"},
		"no classes":                       {"{gp2: fast}", ""},
		"a size without a unit":            {"action: copy", "action: copy\n    destination: {size: '1073741824'}"},
		"quiesce that is off":              {"storageClasses:", "quiesce: {enabled: false}\n  storageClasses:"},
		"a mover":                          {"storageClasses:", "mover: velero\n  storageClasses:"},
		"one finding on two objects":       {"storageClasses:", "accept: [{type: A, object: a, why: x}, {type: A, object: b, why: x}]\n  storageClasses:"},
		"a claim with dots in its name":    {"claim: shop/data", "claim: shop/data.0"},
		"verify that is off":               {"action: copy", "action: copy\n    verify: false"},
		"a fact that mig does not know of": {"action: copy", "action: copy\n    used: unknown"},
	} {
		if _, problems := parse(t, strings.Replace(sound, c[0], c[1], 1)).Validate(); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

func TestValidateFillsTheDefaultsOfACopy(t *testing.T) {
	p := parse(t, sound)
	v, problems := p.Validate()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got := v.Plan().Spec
	if got.Source.VeleroNamespace != "velero" || got.Namespaces[1].Destination != "other" || got.Volumes[0].CopyMethod != "filesystem" || !*got.Quiesce.Enabled {
		t.Errorf("defaults are missing: %+v", got)
	}
	if !reflect.DeepEqual(p, parse(t, sound)) {
		t.Error("Validate changed the plan it was given")
	}
}

func TestAnActionNotChosenYetIsNoMistake(t *testing.T) {
	for _, none := range []string{`action: ""`, "action:"} {
		v, problems := parse(t, strings.Replace(sound, "action: copy", none, 1)).Validate()
		if len(problems) > 0 || v.Plan().Spec.Volumes[0].Action != "" {
			t.Errorf("%s: got %v", none, problems)
		}
	}
}

func TestDestinationClassIsTheVolumesElseThePlansElseTheSources(t *testing.T) {
	v, problems := parse(t, sound).Validate()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, c := range []struct {
		volume Volume
		want   string
	}{
		{Volume{StorageClass: "gp2", Destination: VolumeDestination{StorageClass: "own"}}, "own"},
		{Volume{StorageClass: "gp2"}, "fast"},
		{Volume{StorageClass: "same"}, "same"},
		{Volume{}, ""},
	} {
		if got := v.DestinationClass(c.volume); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.volume, got, c.want)
		}
	}
}

func TestExamplesAreSoundPlans(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "*.yaml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("found %v, %v; want the examples", files, err)
	}
	for _, file := range files {
		if _, err := LoadValid(file); err != nil {
			t.Error(err)
		}
	}
}

func TestLoadValidTellsWhatValidateFound(t *testing.T) {
	path := writePlan(t, t.TempDir(), "p.yaml", strings.Replace(sound, "action: copy", "action: move", 1))
	_, err := LoadValid(path)
	if err == nil || !strings.Contains(err.Error(), path+":14:5: spec.volumes[0].action: move is not built yet") {
		t.Errorf("got %v", err)
	}
}
