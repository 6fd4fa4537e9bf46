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
		"a size of nothing":              {"action: copy", "action: copy\n    destination: {size: \"0\"}", `p.yaml:15:19: spec.volumes[0].destination.size: "0": want a size such as 10Gi, more than nothing`},
		"a class that is no name":        {"gp2: fast", "gp2: Fast!", `p.yaml:17:20: spec.storageClasses[gp2]: "Fast!": a lowercase RFC 1123 subdomain`},
		"a class without a destination":  {"gp2: fast", "gp2: ''", `p.yaml:17:20: spec.storageClasses[gp2]: is missing`},
		"except without namespace":       {"storageClasses:", "quiesce: {except: [web]}\n  storageClasses:", `p.yaml:17:22: spec.quiesce.except[0]: "web": want KIND/NAMESPACE/NAME`},
		"except of an unknown kind":      {"storageClasses:", "quiesce: {except: [Pod/shop/web]}\n  storageClasses:", `p.yaml:17:22: spec.quiesce.except[0]: "Pod": want one of the kinds CronJob`},
		"except in another namespace":    {"storageClasses:", "quiesce: {except: [Job/x/web]}\n  storageClasses:", `p.yaml:17:22: spec.quiesce.except[0]: Job/x/web: its namespace is not in spec.namespaces`},
		"accepting without saying why":   {"storageClasses:", "accept: [{type: BarePods, object: '*'}]\n  storageClasses:", `p.yaml:17:12: spec.accept[0].why: is missing`},
		"a duration that is none":        {"storageClasses:", "limits: {timeouts: {Prepare: soon}}\n  storageClasses:", `p.yaml:17:23: spec.limits.timeouts[Prepare]: "soon": want a duration such as 30m`},
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
