package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func imported(t *testing.T, data []byte) (*Plan, []string, error) {
	t.Helper()
	return Import("m.yaml", data, Plan{
		Metadata: Metadata{UID: "0123456789abcdef"}, Spec: Spec{Source: Cluster{Context: "src"}, Destination: Cluster{Context: "dst"}},
	})
}

func TestAMigPlanBecomesAPlanAndWhatIsLostIsNamed(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "migplan.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p, notes, err := imported(t, data)
	if err != nil {
		t.Fatal(err)
	}
	text := string(Marshal(p))
	for _, want := range []string{
		"  name: shop\n  uid: \"0123456789abcdef\" ",
		"    - name: shop\n      destination: shop-prod\n    - name: blog\n    - name: same\n",
		"    - claim: shop/data\n      volume: pvc-1\n      capacity: 10Gi\n      used: unknown\n      storageClass: gp2\n      accessModes: [ReadWriteOnce]\n" +
			"      volumeMode: Filesystem\n      supported: [skip, copy, move]\n      action: copy\n      copyMethod: filesystem\n      destination:\n" +
			"        storageClass: fast\n        accessModes: [ReadWriteMany]\n        size: 12Gi\n",
		"    - claim: blog/media\n      volume: pvc-2\n      capacity: 1Gi\n      used: unknown\n      accessModes: [ReadWriteOnce]\n      supported: [skip, copy]\n      action: copy\n    - claim",
		"    - claim: blog/nfs\n      volume: pvc-3\n      used: unknown\n      supported: [skip, copy, move]\n      action: \"\" # choose: ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks\n%s\nin\n%s", want, text)
		}
	}
	want := []string{
		"claim shop/data is not verified file by file: mig does not do that yet",
		"claim blog/media keeps its name: mig does not rename claims yet (the MigPlan: media-new)",
		"claim blog/media is copied by files: mig has no copy method snapshot yet",
		"claim blog/media keeps its access modes: mig knows no mode auto",
		"choose an action for claim blog/nfs: mig does not move volumes yet",
		"claim gone/x was left out: its namespace is not in the MigPlan's namespaces",
		"MigCluster old is taken to be context src, and host context dst: be sure that they are",
		"MigStorage minio is not carried over: both clusters need a BackupStorageLocation default with the same bucket",
		"MigPlan shop is closed; the new plan is not",
		"hook flush (PreBackup) is not carried over: mig runs no hooks yet; run it yourself",
		"labelSelector is not carried over: mig migrates whole namespaces, more than the MigPlan did",
		"includedResources is not carried over: mig migrates whole namespaces, more than the MigPlan did",
		"liveMigrate is not carried over: mig stops the workloads for the last copy",
		"volumes are copied through the object store (the MigPlan: from cluster to cluster)",
		"spec.somethingNew is not carried over: mig does not know it",
	}
	if !slices.Equal(notes, want) {
		t.Errorf("notes:\n%s\nwant:\n%s", strings.Join(notes, "\n"), strings.Join(want, "\n"))
	}
	list := "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(string(data)), "\n", "\n  ")
	again, _, err := imported(t, []byte(list))
	if err != nil || string(Marshal(again)) != text {
		t.Errorf("of a list: %v", err)
	}
}

func TestWhatIsNoMigPlanIsSaidToBeNone(t *testing.T) {
	const head = "apiVersion: migration.openshift.io/v1alpha1\nkind: MigPlan\nmetadata: {name: shop}\n"
	for data, want := range map[string]string{
		"":                      `m.yaml: want one MigPlan of migration.openshift.io/v1alpha1, as oc get migplan NAME -o yaml prints it; got kind "" of ""`,
		"kind: Pod":             `got kind "Pod" of ""`,
		sound:                   `got kind "MigrationPlan" of "mig/v1alpha1"`,
		"kind: List\nitems: []": `got kind "List"`,
		"a: [":                  `m.yaml: `,
		head + "spec: 1":        `m.yaml: `,
		head:                    `m.yaml: spec.namespaces: is empty`,
		head + "spec: {namespaces: [kube-system]}": `m.yaml: spec.namespaces[0].name: kube-system belongs to the cluster itself`,
		head + "spec: {namespaces: ['a:b:c']}":     `m.yaml: spec.namespaces[0].destination: "b:c"`,
		head + "spec: {namespaces: [a:c, 'b:c']}":  `would both become c`,
		head + "spec: {namespaces: [a], persistentVolumes: [{pvc: {namespace: a, name: x}, selection: {action: fly}}]}": `m.yaml: spec.volumes[0].action: "fly": want copy or skip`,
	} {
		if _, _, err := imported(t, []byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", data, err, want)
		}
	}
}
