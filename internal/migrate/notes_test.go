package migrate

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mig-cli/mig/internal/preflight"
	"github.com/mig-cli/mig/internal/progress"
)

func TestOfALongCauseTheEndIsCutAndNeverTheStateOfTheClusters(t *testing.T) {
	n := finished{Why: "MigrationFailed", Cause: errors.New(strings.Repeat("because ", 500)), Say: "the source is down"}
	text := progress.Within(n, 1024)
	if len(text) > 1024 || !strings.HasSuffix(text, "…; the source is down") {
		t.Errorf("%d bytes: …%s", len(text), text[len(text)-60:])
	}
}

func TestAWarningNamesFewerObjectsWhereThereIsLessRoom(t *testing.T) {
	var objects []string
	for i := range 5000 {
		objects = append(objects, fmt.Sprintf("shop/%s-%d", strings.Repeat("c", 240), i))
	}
	n := warning{preflight.Condition{Type: "Odd", Objects: objects, Message: "odd: " + strings.Join(objects[:10], ", ") + " and 4990 more: they are left out"}}
	text := progress.Within(n, 1024)
	if len(text) > 1024 || !strings.HasSuffix(text, " and 4,997 more: they are left out") || !strings.HasPrefix(text, "odd: "+objects[0]+", ") {
		t.Errorf("%d bytes: …%s", len(text), text[len(text)-60:])
	}
}

// longest are notes of a run with the longest names that there may be.
func longest() []progress.Note {
	long, names := strings.Repeat("x", 400), []string{}
	for i := range 100 {
		names = append(names, fmt.Sprintf("Condition%040d", i))
	}
	on := veleroOn{Namespace: strings.Repeat("n", 63), Version: long, Ready: 1, Wanted: 1}
	return []progress.Note{
		started{Kind: Cutover, Plan: long, From: long, To: long, Who: "anna", Namespaces: 500, Volumes: 5000},
		validationFailed{Plan: strings.Repeat("p", 253), Unseen: names},
		readiness{Plan: strings.Repeat("p", 253), Blocking: names, Gained: names, Solved: names},
		classesUpdated{Gained: names, Gone: names},
		veleroState{Source: on, Destination: on},
	}
}

func TestThatEventsAreNotTakenSaysWhyAndWhatToDo(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "events.k8s.io", Resource: "events"}, "", errors.New("no create"))
	refused := fmt.Errorf("send Events: %w", &url.Error{Op: "Post", URL: "https://10.0.0.1:6443/apis", Err: syscall.ECONNREFUSED})
	for err, want := range map[error]string{
		refused:             "Events wait until the destination (context dst) takes them: connection refused; the run record holds the same",
		forbidden:           `Events cannot be written on the destination (context dst); the run record holds the same: events.events.k8s.io is forbidden: no create; what to grant says: mig cluster check dst --as destination --print-role`,
		errors.New("wrong"): "Events cannot be written on the destination (context dst); the run record holds the same: wrong",
	} {
		if got := noEvents(progress.OnDestination, "dst", err); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestTheLongestNotesOfARunFitAnEvent(t *testing.T) {
	for _, n := range longest() {
		if text := progress.Within(n, 1024); len(text) > 1024 || strings.HasSuffix(text, "…") {
			t.Errorf("%T: %d bytes: …%s", n, len(text), text[len(text)-60:])
		}
	}
}
