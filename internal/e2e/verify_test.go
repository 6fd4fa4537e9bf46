//go:build e2e

package e2e

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
)

// verifying makes every volume of the plan be compared, with Velero's own
// restore, which is not looked after by anything else.
func verifying(p *plan.Plan) {
	p.Spec.HelperImage, p.Spec.Mover = moverImage, plan.MoverVelero
	for i := range p.Spec.Volumes {
		p.Spec.Volumes[i].Verify = true
	}
}

// atTheFirstReader does something once, before mig makes the first pod that
// reads a volume on the destination: everything is restored then.
func (s *scenario) atTheFirstReader(do func(), command ...string) labtest.Result {
	s.t.Helper()
	var once sync.Once
	wire, err := s.lab.NewWire(s.t.TempDir(), func(r labtest.Request) labtest.Fate {
		if r.Side == labtest.DestinationContext && r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/namespaces/"+labtest.VeleroNamespace+"/pods") {
			once.Do(do)
		}
		return labtest.Pass
	})
	s.must(err)
	defer func() { s.must(wire.Close()) }()
	r, _, err := wire.Run(s.t.Context(), s.dir, append([]string{s.mig}, command...)...)
	s.must(err)
	return r
}

func TestOneFlippedByteOneModeOneFileTooManyAreFoundBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	s := newScenario(t, "e2e-verify")
	ctx := t.Context()
	s.deployNotes(5)
	src, err := labtest.VolumeDir(ctx, s.src(), s.name, labtest.NotesClaim)
	s.must(err)
	s.must(labtest.WriteOddFiles(src))
	s.must(os.WriteFile(filepath.Join(src, "ledger"), []byte("10 apples"), 0o600))
	s.must(os.WriteFile(filepath.Join(src, "mode"), nil, 0o600))
	s.must(unix.Mkfifo(filepath.Join(src, "pipe"), 0o600))
	before, err := labtest.ObjectsOf(ctx, s.src(), s.name)
	s.must(err)
	s.makePlan(verifying)

	t.Run("what differs is named, and the source comes up again", func(t *testing.T) {
		on := s.on(t)
		r := on.atTheFirstReader(func() {
			dir, err := labtest.VolumeDir(ctx, s.dst(), s.dest, labtest.NotesClaim)
			if err == nil {
				err = errors.Join(flip(filepath.Join(dir, "ledger")), os.Chmod(filepath.Join(dir, "mode"), 0o644), os.WriteFile(filepath.Join(dir, "stray"), nil, 0o600))
			}
			if err != nil {
				t.Error(err)
			}
		}, "migrate")
		on.ended(r, failed)
		on.says(r, s.name+"/"+labtest.NotesClaim+" differs on the destination", `"ledger" has another content`,
			`"mode": mode is 0644, on the source 0600`, `"stray" is there and not on the source`, "the source runs again as before")
		on.must(on.lab.WorkloadsReady(ctx, s.src(), s.name, patience))
		on.must(on.lab.SourceAsBefore(ctx, before, s.name))
		on.succeeds("rollback", "--yes")
	})
	t.Run("what a copy drops is named as left out, all else is proved", func(t *testing.T) {
		on := s.on(t)
		r := on.run("migrate")
		on.ended(r, incomplete)
		on.says(r, "equal on both sides, every file read", "what Velero's copier does not carry", `"pipe" is missing (fifo)`)
		toldOnce(t, on.reasonsOfLastRun(s.dst()), "VolumeVerified", "VolumesVerified")
		on.succeeds("rollback", "--yes")
		on.must(on.lab.SourceAsBefore(ctx, before, s.name))
	})
	t.Run("no pod that reads is left", func(t *testing.T) {
		for _, c := range s.lab.Both() {
			var pods corev1.PodList
			s.on(t).must(c.List(ctx, &pods, client.MatchingLabels{naming.LabelPlan: s.planUID}))
			if len(pods.Items) > 0 {
				t.Errorf("%s: %d pods are left", c.Access.Context, len(pods.Items))
			}
		}
	})
}

// flip changes a byte, and the file's time not: nothing but its content tells.
func flip(path string) error {
	was, err := os.Stat(path)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	content[0] ^= 1
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(content, 0); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Chtimes(path, was.ModTime(), was.ModTime())
}
