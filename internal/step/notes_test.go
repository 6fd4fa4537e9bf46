package step

import (
	"fmt"
	"strings"
	"testing"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/velero"
)

// eventBytes is what an Event takes, without the number of the step that
// stands before the text.
const eventBytes = 960

// longest are notes with the longest names and the most objects that there may be.
func longest() []progress.Note {
	const many = 5000
	ns, name := strings.Repeat("n", 63), strings.Repeat("c", 249)
	claims := make([]string, 0, many)
	captures := make([]velero.Capture, 0, many)
	lost := make([]velero.Capture, 0, many)
	for i := range many {
		claim := fmt.Sprintf("%s/%s%04d", ns, name, i)
		claims = append(claims, claim)
		c := back(claim, velerov1.PodVolumeRestorePhasePrepared)
		c.Restore.Namespace, c.Restore.Status.Node = ns, fmt.Sprintf("%s%04d", name, i)
		captures = append(captures, c)
		lost = append(lost, volume(claim, velerov1.PodVolumeBackupPhaseFailed))
	}
	running := &velerov1.Restore{Status: velerov1.RestoreStatus{Phase: velerov1.RestorePhaseInProgress}}
	running.Name = strings.Repeat("r", 63)
	restored := running.DeepCopy()
	restored.Status.Phase = velerov1.RestorePhaseCompleted
	missing := make([]velero.Capture, 0, many)
	for _, c := range claims {
		missing = append(missing, velero.Capture{Claim: c})
	}
	on := progress.Ref{Side: progress.OnSource, Kind: "Deployment", Namespace: ns, Name: name}
	return []progress.Note{
		decideStageBackup(backupIn(velerov1.BackupPhaseInProgress), lost).Note,
		decideStageBackup(backupIn(velerov1.BackupPhaseCompleted), missing).Note,
		decideStageRestore(stageState{restore: running, captures: captures}).Stall,
		decideStageRestore(stageState{restore: restored, captures: missing}).Note,
		decideStagePods(nil, claims).Note,
		decideCurrent(backupIn(velerov1.BackupPhaseCompleted), claims, true, 0).Facts[0],
		NotReady(Findings{Blocking: claims}),
		progress.Remark{Why: "EnsureQuiesced", Say: "these can still write to what is copied: " + few(claims)},
		SourceScaledUp{On: on, Size: "replicas 3", Owner: "Cluster " + claims[0], By: strings.Repeat("m", 128)},
	}
}

func TestTheLongestNotesFitAnEventWithoutASentenceCutOff(t *testing.T) {
	for _, n := range longest() {
		text := progress.Within(n, eventBytes)
		if len(text) > eventBytes || strings.HasSuffix(text, "…") {
			t.Errorf("%s (%T): %d bytes: …%s", n.Reason(), n, len(text), text[max(0, len(text)-60):])
		}
	}
}

func TestANoteThatNamesFewerCountsTheOthers(t *testing.T) {
	claims := make([]string, 0, 5000)
	for i := range 5000 {
		claims = append(claims, fmt.Sprintf("shop/data-%d", i))
	}
	text := progress.Within(decideStagePods(nil, claims).Note, 100)
	if text != "stage pods are gone, of shop/data-0, shop/data-1, shop/data-2, shop/data-3 and 4,996 more" {
		t.Errorf("got %q", text)
	}
	d := pipeline.Decision{Note: NotReady(Findings{Blocking: []string{"one", "two"}})}
	if got := d.Note.Text(); got != "the plan is not ready: one; two" {
		t.Errorf("got %q", got)
	}
}
