package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mig-cli/mig/internal/plan"
)

const migPlan = `apiVersion: migration.openshift.io/v1alpha1
kind: MigPlan
metadata: {name: shop}
spec:
  srcMigClusterRef: {name: old}
  destMigClusterRef: {name: host}
  migStorageRef: {name: minio}
  indirectVolumeMigration: true
  namespaces: [shop:shop-prod]
`

func TestPlanImportWritesAPlanAndNamesWhatIsLost(t *testing.T) {
	b := newBench(t)
	writePlan(t, "m.yaml", migPlan)
	code := b.mig("plan", "import", "m.yaml", "--src", "a", "--dst", "b")
	b.wants(t, code, 0, "", `Plan shop is in shop.yaml: 1 namespace, 0 claims.
- MigCluster old is taken to be context a, and host context b: be sure that they are
- MigStorage minio is not carried over: both clusters need a BackupStorageLocation default with the same bucket
Compare it with what the clusters hold now: mig pv discover shop --update
`)
	v, err := plan.LoadValid("shop.yaml")
	if err != nil || v.DestinationNamespace("shop") != "shop-prod" || len(b.connected) > 0 {
		t.Errorf("%v, asked %v", err, b.connected)
	}
	code = b.mig("plan", "import", "m.yaml", "--src", "a", "--dst", "b")
	b.wants(t, code, 2, "", "plan file shop.yaml is there already")
	code = b.mig("plan", "import", "m.yaml", "--src", "a", "--dst", "b", "--name", "x", "-o", "json")
	var got importedPlan
	if err := json.Unmarshal(b.out.Bytes(), &got); err != nil || code != 0 || got.File != "x.yaml" || len(got.Notes) != 2 {
		t.Errorf("exit %d, %v: %s", code, err, b.out.String())
	}
	code = b.mig("plan", "import", "m.yaml", "--src", "a", "--dst", "b", "-f", "-")
	b.wants(t, code, 0, "kind: MigrationPlan\n", "- MigCluster old")
}

func TestPlanImportRefusesWhatItCannotMean(t *testing.T) {
	b := newBench(t)
	writePlan(t, "m.yaml", migPlan)
	writePlan(t, "pod.yaml", "kind: Pod\n")
	for _, c := range [][2]string{
		{"plan import", "wants one file with a MigPlan"},
		{"plan import m.yaml --dst b", "--src is missing"},
		{"plan import m.yaml --src b", "--dst is missing"},
		{"plan import m.yaml --src b --dst b", "a migration needs two clusters"},
		{"plan import none.yaml --src a --dst b", "no such file"},
		{"plan import pod.yaml --src a --dst b", `pod.yaml: want one MigPlan`},
	} {
		code := b.mig(strings.Fields(c[0])...)
		b.wants(t, code, 2, "", c[1])
	}
}
