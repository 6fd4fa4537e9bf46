//go:build e2e

package migrate

import (
	"testing"

	"github.com/mig-cli/mig/internal/eventtest"
	"github.com/mig-cli/mig/internal/progress"
)

func TestARealAPIServerTakesTheLongestNotesOfARunWhole(t *testing.T) {
	eventtest.ReadBack(t, longest(), progress.Happened, progress.Warning)
}
