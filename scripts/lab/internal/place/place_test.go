package place

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWhatIsBeingRemovedIsNoLongerALab(t *testing.T) {
	dir := Dir(t.TempDir())
	for _, path := range []string{dir.Run("src", "images", "pause"), filepath.Join(dir.gone(), "src", "left by one that was killed")} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := dir.RemoveRun(); err != nil {
			t.Fatal(err)
		}
		if left, _ := filepath.Glob(string(dir) + "/*"); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	}
}
