package step

import (
	"fmt"
	"strings"
	"testing"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/mig-cli/mig/internal/progress"
)

func TestAStorageLocationIsMissedWhenItIsGoneOrUnavailableAndNotWhileItIsNew(t *testing.T) {
	for _, c := range []struct {
		found          bool
		phase          velerov1.BackupStorageLocationPhase
		message        string
		cause, missing string
	}{
		{true, velerov1.BackupStorageLocationPhaseAvailable, "", "", ""},
		{true, "", "", "", ""},
		{false, "", "", "gone", "storage location default on the source is not there any more"},
		{
			true, velerov1.BackupStorageLocationPhaseUnavailable, "no such bucket, RequestID: 17F3, HostID: dd90=, is it?",
			"Unavailable no such bucket, , , is it?", "storage location default on the source is Unavailable: no such bucket, , , is it?",
		},
	} {
		l := velerov1.BackupStorageLocation{}
		l.Name, l.Status.Phase, l.Status.Message = "default", c.phase, c.message
		n := locationNeed(progress.OnSource, &l, c.found)
		if n.Cause != c.cause || n.Missing != c.missing {
			t.Errorf("%v %s: got %q, %q", c.found, c.phase, n.Cause, n.Missing)
		}
	}
}

func TestANodeAgentIsMissedWhereItIsNotReadyAndACountIsNoOtherCause(t *testing.T) {
	for _, c := range []struct {
		found         bool
		ready, wanted int32
		cause         string
	}{
		{false, 0, 0, "gone"},
		{true, 0, 0, "no node"},
		{true, 0, 3, "not ready"},
		{true, 1, 3, "not on every node"},
		{true, 2, 3, "not on every node"},
		{true, 3, 3, ""},
	} {
		ds := appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{NumberReady: c.ready, DesiredNumberScheduled: c.wanted}}
		n := agentNeed(progress.OnDestination, &ds, c.found)
		if n.Cause != c.cause || (n.Missing == "") != (c.cause == "") {
			t.Errorf("%v %d/%d: got %q, %q", c.found, c.ready, c.wanted, n.Cause, n.Missing)
		}
		if c.ready == 1 && !strings.Contains(n.Missing, "1 of its 3 nodes") {
			t.Errorf("got %q", n.Missing)
		}
	}
}

func TestPartsAreLookedAtOnBothClustersAndWhatIsNotThereIsMissed(t *testing.T) {
	const location = `
apiVersion: velero.io/v1
kind: BackupStorageLocation
metadata: {name: default, namespace: velero}
status: {phase: Available}
`
	r := bed(t, location, location+`
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: node-agent, namespace: velero}
status: {numberReady: 2, desiredNumberScheduled: 2}
`)
	var got []string
	for _, n := range r.Parts(t.Context()) {
		got = append(got, fmt.Sprintf("%s %s %q", n.On.Side, n.Lost, n.Cause))
	}
	want := `source StorageLocationUnavailable ""; source NodeAgentMissing "gone"; destination StorageLocationUnavailable ""; destination NodeAgentMissing ""`
	if strings.Join(got, "; ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), want)
	}
}
