package cli

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/plan"
)

// lovedPlan is a plan that a person has made theirs.
const lovedPlan = `# ours
apiVersion: mig/v1alpha1
kind: MigrationPlan
metadata: {name: shop, uid: 0123456789abcdef}
spec:
  source: {context: src}
  destination: {context: dst}
  storage: {location: default}
  namespaces:
  - name: shop # all of it
  - name: blog
  volumes:
  # the database
  - claim: shop/data
    capacity: 1Gi # for now
    storageClass: gp2
    action: "" # choose: copy or skip
  - {claim: shop/cache, supported: [skip], action: skip}
  - claim: blog/data
    action: copy
`

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestPVSetWritesAChoiceAndNothingElse(t *testing.T) {
	b := newBench(t)
	writePlan(t, "shop.yaml", lovedPlan)
	code := b.mig("pv", "set", "shop/data", "--action", "copy", "--storage-class", "fast", "--access-mode", "rwx,RWO", "--size", "2Gi")
	b.wants(t, code, 0, "shop/data   destination.accessModes    -     ReadWriteMany,ReadWriteOnce\n",
		"\n4 changes in shop.yaml: mig plan validate shop says what the clusters make of it.\n")
	want := strings.Replace(lovedPlan, `action: "" # choose: copy or skip`,
		"action: copy\n    destination:\n      storageClass: fast\n      accessModes: [ReadWriteMany, ReadWriteOnce]\n      size: 2Gi", 1)
	if got := read(t, "shop.yaml"); got != want {
		t.Errorf("the file now:\n%s", got)
	}
	if len(b.connected) > 0 {
		t.Errorf("asked a cluster: %v", b.connected)
	}
	code = b.mig("pv", "set", "shop/data", "--size", "2Gi")
	b.wants(t, code, 0, "", "Nothing to change: shop.yaml says so already.\n")
	code = b.mig("pv", "set", "shop/data", "--unset", "size,storage-class,access-mode,action")
	b.wants(t, code, 0, "shop/data   action                     copy                          -\n", "4 changes")
	if got := read(t, "shop.yaml"); got != lovedPlan {
		t.Errorf("the file now:\n%s", got)
	}
}

func TestPVSetNamesClaimsInManyWays(t *testing.T) {
	for args, want := range map[string][]string{
		"cache":                   {"shop/cache"},
		"shop/data":               {"shop/data"},
		"shop/*":                  {"shop/data", "shop/cache"},
		"*/data":                  {"shop/data", "blog/data"},
		"d*":                      {"shop/data", "blog/data"},
		"--all":                   {"shop/data", "shop/cache", "blog/data"},
		"cache cache c*":          {"shop/cache"},
		"blog/data cach?":         {"shop/cache", "blog/data"},
		"[b]log/data":             {"blog/data"},
		"cache --plan p":          {"shop/cache"},
		"--plan p.yaml sh*/cache": {"shop/cache"},
	} {
		b := newBench(t)
		writePlan(t, "p.yaml", lovedPlan)
		args := append([]string{"pv", "set", "--size", "9Gi", "-o", "json"}, strings.Fields(args)...)
		code := b.mig(args...)
		var got setChoice
		if err := json.Unmarshal(b.out.Bytes(), &got); err != nil || code != 0 || !got.Written || got.File != "p.yaml" || got.Plan != "shop" {
			t.Errorf("%v: exit %d, %v: %s%s", args, code, err, b.out.String(), b.err.String())
			continue
		}
		var claims []string
		for _, c := range got.Changes {
			claims = append(claims, c.Claim)
		}
		if strings.Join(claims, " ") != strings.Join(want, " ") {
			t.Errorf("%v: changed %v, want %v", args, claims, want)
		}
	}
}

func TestPVSetRefusesWhatThePlanWouldAndLeavesTheFile(t *testing.T) {
	for args, want := range map[string]string{
		"shop/dat --action copy":                 `the plan has no claim "shop/dat"; did you mean shop/data?`,
		"cach --action skip":                     `the plan has no claim "cach"; did you mean shop/cache?`,
		"data --action copy":                     `claim "data" is not the only one of this name: shop/data, blog/data`,
		"x/* --action copy":                      `no claim of the plan is like "x/*"`,
		"something --action copy":                `the plan has no claim "something"`,
		"shop/data --action move":                `action: move is not built yet; use copy or skip`,
		"shop/data --action teleport":            `action: "teleport": want copy or skip`,
		"shop/cache --action copy":               `claim shop/cache: copy is not possible, only skip is`,
		"shop/data --copy-method snapshot":       `copyMethod: snapshot is not built yet; use filesystem`,
		"shop/data --verify":                     `verify: needs spec.helperImage`,
		"shop/data --size -1Gi":                  `destination.size: "-1Gi": want a size such as 10Gi`,
		"shop/data --size 0":                     `destination.size: "0": want a size such as 10Gi, a byte at least`,
		"shop/data --storage-class Fast!":        `destination.storageClass: "Fast!": a lowercase RFC 1123 subdomain`,
		"shop/data --access-mode RWX,":           `destination.accessModes: "": want one of ReadWriteOnce`,
		"shop/data --access-mode ReadWrite":      `"ReadWrite": want one of ReadWriteOnce`,
		"shop/data":                              `nothing is chosen: say --action`,
		"--action copy":                          `no claim is named`,
		"shop/data --all --action copy":          `claims and --all: choose one`,
		"shop/data --size=":                      `--size is empty; to take it out of the plan say --unset size`,
		"shop/data --size 1Gi --unset size":      `--size is set and unset at once`,
		"shop/data --unset colour":               `--unset knows no "colour"; there are: action, storage-class`,
		"shop/data --acton copy":                 `did you mean --action?`,
		"shop/data --action copy --plan no.yaml": `there is no plan "no.yaml"`,
		"--all --action copy --size 0":           `claim shop/cache: copy is not possible, only skip is`,
	} {
		b := newBench(t)
		writePlan(t, "shop.yaml", lovedPlan)
		code := b.mig(append([]string{"pv", "set"}, strings.Fields(args)...)...)
		b.wants(t, code, 2, "", want)
		if got := read(t, "shop.yaml"); got != lovedPlan {
			t.Errorf("%s: the file was changed:\n%s", args, got)
		}
	}
}

func TestPVSetDryRunPrintsAPatchAndWritesNothing(t *testing.T) {
	b := newBench(t)
	writePlan(t, "shop.yaml", lovedPlan)
	code := b.mig("pv", "set", "blog/data", "--action", "skip", "--dry-run")
	b.wants(t, code, 0, "--- a/shop.yaml\n+++ b/shop.yaml\n@@ -17,4 +17,4 @@\n", "\nNothing was written. Without --dry-run this changes shop.yaml.\n")
	if out := b.out.String(); !strings.Contains(out, "-    action: copy\n+    action: skip\n") {
		t.Errorf("got\n%s", out)
	}
	code = b.mig("pv", "set", "blog/data", "--action", "skip", "--dry-run", "-o", "json")
	b.wants(t, code, 0, `"written": false`, "")
	if got := read(t, "shop.yaml"); got != lovedPlan {
		t.Errorf("the file was changed:\n%s", got)
	}
}

func TestPVDiscoverUpdateKeepsWhatAPersonWrote(t *testing.T) {
	b := newBench(t)
	b.Refresh = func(_ context.Context, _ cluster.Source, _ cluster.Destination, p *plan.Plan) (*discover.Proposal, error) {
		got := *p
		got.Spec.Volumes = append(append([]plan.Volume{}, p.Spec.Volumes...), plan.Volume{Claim: "shop/new", Supported: []plan.Action{plan.Skip}})
		got.Spec.Volumes[0].Capacity, got.Spec.Volumes[0].Volume = "2Gi", "pvc-1"
		got.Spec.StorageClasses = map[string]string{"gp2": "fast"}
		rows := []discover.Row{{Claim: "shop/data", State: discover.Planned}, {Claim: "shop/cache", State: discover.Vanished}, {Claim: "shop/new", State: discover.New}}
		return &discover.Proposal{Plan: &got, Claims: rows}, nil
	}
	writePlan(t, "shop.yaml", lovedPlan)
	code := b.mig("pv", "discover", "--update", "--dry-run")
	b.wants(t, code, 0, "+    volume: pvc-1\n+    capacity: 2Gi # for now\n", "Nothing was written.")
	if read(t, "shop.yaml") != lovedPlan {
		t.Error("a dry run changed the file")
	}
	code = b.mig("pv", "discover", "shop", "--update")
	b.wants(t, code, 0, "shop/new", "shop.yaml is up to date now.\n")
	want := strings.NewReplacer(
		"    capacity: 1Gi # for now\n", "    volume: pvc-1\n    capacity: 2Gi # for now\n",
		"  - {claim: shop/cache", "  # gone: mig found this claim no longer on the source; take it out of the plan, or find out who deleted it\n  - {claim: shop/cache",
	).Replace(lovedPlan) + "  - claim: shop/new\n    supported: [skip]\n    action: \"\" # choose: skip\n  storageClasses:\n    gp2: fast\n"
	if got := read(t, "shop.yaml"); got != want {
		t.Errorf("the file now:\n%s", got)
	}
	if code := b.mig("pv", "discover", "--dry-run"); code != 2 {
		t.Errorf("--dry-run alone: exit %d", code)
	}
}
