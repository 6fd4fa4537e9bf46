//go:build e2e

package step

import (
	"testing"

	"github.com/mig-cli/mig/internal/eventtest"
	"github.com/mig-cli/mig/internal/progress"
)

func TestARealAPIServerTakesTheLongestNotesOfStepsWhole(t *testing.T) {
	eventtest.ReadBack(t, longest(), progress.Happened, progress.Warning, progress.Stalled, progress.Failed, progress.Done)
}
