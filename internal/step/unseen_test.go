package step

import (
	"strings"
	"testing"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/pipeline"
)

func TestWhatVeleroHadNotSeenYetIsAskedForAgainAndNothingElse(t *testing.T) {
	const refused = `{apiVersion: velero.io/v1, kind: Restore, metadata: {namespace: velero, name: mig-shop-run1-final, labels: {` + ourLabels + `}}, spec: {backupName: b},
  status: {phase: FailedValidation, validationErrors: ["failed to get resource modifiers configmap velero/x"]}}`
	phase := func(r Run) velerov1.RestorePhase {
		var got velerov1.Restore
		if err := r.Destination.Get(t.Context(), client.ObjectKey{Namespace: "velero", Name: "mig-shop-run1-final"}, &got); err != nil {
			t.Fatal(err)
		}
		return got.Status.Phase
	}
	r := bed(t, "", refused)
	d := settle(t, FinalRestoreCreated(r))
	if d.Verdict != pipeline.Wait || phase(r) != velerov1.RestorePhaseNew {
		t.Errorf("verdict %v, %q; the restore is %s", d.Verdict, d.Note.Text(), phase(r))
	}
	for name, errors := range map[string]string{
		"another reason":     `"The BSL default is unavailable"`,
		"another beside it":  `"failed to get resource modifiers configmap velero/x", "no such namespace"`,
		"without any reason": ``,
	} {
		r := bed(t, "", strings.Replace(refused, `"failed to get resource modifiers configmap velero/x"`, errors, 1))
		if d := settle(t, FinalRestoreCreated(r)); d.Verdict != pipeline.Failed || phase(r) != velerov1.RestorePhaseFailedValidation {
			t.Errorf("%s: verdict %v, %q; the restore is %s", name, d.Verdict, d.Note.Text(), phase(r))
		}
	}
}
