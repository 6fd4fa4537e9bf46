package render

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mig-cli/mig/internal/progress"
)

func TestACIFoldsWhatAStepSaysAndShowsItsEndAndItsWarnings(t *testing.T) {
	utc(t)
	for _, groups := range []Groups{GroupsGitHub, GroupsGitLab} {
		t.Run(string(groups), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				l := NewLines(&out, LinesOptions{Heartbeat: 30 * time.Second, Groups: groups})
				play(l, nil)
				l.Close()
				golden(t, "lines-"+string(groups)+".golden", out.String())
				begun, ended := "::group::", "::endgroup::"
				if groups == GroupsGitLab {
					begun, ended = "section_start:", "section_end:"
				}
				if a, b := strings.Count(out.String(), begun), strings.Count(out.String(), ended); a == 0 || a != b {
					t.Errorf("%d groups begin, %d end", a, b)
				}
			})
		})
	}
}

func TestWhatAClusterSaysIsNoCommandOfTheCI(t *testing.T) {
	var out bytes.Buffer
	l := NewLines(&out, LinesOptions{Groups: GroupsGitHub})
	l.Emit(progress.Update{Run: "migrate", Step: "X", Number: 1, Of: 1, State: progress.Failed, Note: remark("X", "100%\n::add-mask::me\r\n::endgroup::", progress.Ref{})})
	if n := strings.Count(out.String(), "\n"); n != 1 || !strings.Contains(out.String(), "100%25%0A::add-mask::me") {
		t.Errorf("got %d lines:\n%s", n, out.String())
	}
}

func TestHeartbeatsComeAsOftenAsAskedFor(t *testing.T) {
	for beat, want := range map[time.Duration]int{0: 0, time.Second: 60, 30 * time.Second: 2, 10 * time.Minute: 1} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			l := NewLines(&out, LinesOptions{Heartbeat: beat})
			l.Emit(progress.Update{Step: "X", Number: 1, Of: 1, State: progress.Started, Note: remark("X", "waits", progress.Ref{}), Time: time.Now()})
			time.Sleep(time.Minute)
			synctest.Wait()
			l.Close()
			if got := strings.Count(out.String(), "waits"); got != want {
				t.Errorf("every %s: heard %d times in a minute, want %d", beat, got, want)
			}
		})
	}
}
