//go:build e2e

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dustin/go-humanize"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
)

const moverImage = "registry.test/mig-mover:1"

// movedBy makes mig-mover restore the plan's volumes, with an image.
func movedBy(mover, image string) func(*plan.Plan) {
	return func(p *plan.Plan) { p.Spec.Mover, p.Spec.HelperImage = mover, image }
}

func TestWhatAStageBroughtIsBroughtUpToDateInPlace(t *testing.T) {
	t.Parallel()
	s := newScenario(t, "e2e-mover")
	ctx := t.Context()
	s.deployNotes(notesMegabytes)
	s.must(s.lab.Apply(ctx, s.src(), s.name, idleYAML))
	src, err := labtest.VolumeDir(ctx, s.src(), s.name, labtest.NotesClaim)
	s.must(err)
	s.must(labtest.WriteOddFiles(src))
	s.must(errors.Join(
		os.WriteFile(filepath.Join(src, "deleted later"), []byte("x"), 0o600), os.WriteFile(filepath.Join(src, "rewritten"), []byte("10 apples"), 0o600),
		os.WriteFile(filepath.Join(src, "only its mode changes"), []byte("x"), 0o600), os.MkdirAll(filepath.Join(src, "directory, then file", "with", "more"), 0o755),
		os.WriteFile(filepath.Join(src, "file, then directory"), nil, 0o600),
	))
	before, err := labtest.ObjectsOf(ctx, s.src(), s.name)
	s.must(err)
	pod := s.notesPod()
	s.makePlan(nil)

	t.Run("an image that cannot be pulled is named", func(t *testing.T) {
		on := s.on(t)
		on.must(labtest.EditPlan(s.planFile(), movedBy(plan.MoverMig, "registry.test/nowhere:1")))
		r := on.run("stage")
		on.ended(r, failed)
		on.says(r, "mig-mover cannot be used", "registry.test/nowhere:1", "ImagePullBackOff")
		on.untouched(pod, before)
		on.noHelperIsLeft()
	})
	t.Run("or Velero does it, where the plan leaves it open", func(t *testing.T) {
		on := s.on(t)
		on.must(labtest.EditPlan(s.planFile(), movedBy(plan.MoverAuto, "registry.test/nowhere:1")))
		r := on.succeeds("stage")
		on.says(r, "Velero restores the volumes as a whole at the cutover", "ImagePullBackOff")
		toldOnce(t, on.reasonsOfLastRun(s.dst()), "MoverUnusable")
		on.noHelperIsLeft()
		if claims := on.claimsThere(); len(claims) > 0 {
			t.Errorf("claims are left on the destination: %q", claims)
		}
	})

	s.must(labtest.EditPlan(s.planFile(), movedBy(plan.MoverAuto, moverImage)))
	s.cutOff("stage")
	s.succeeds("stage") // goes on with it
	s.untouched(pod, before)
	s.noHelperIsLeft()
	if claims := s.claimsThere(); !slices.Equal(claims, []string{"idle", labtest.NotesClaim}) {
		t.Fatalf("claims on the destination after a stage: %q", claims)
	}
	if n := s.written(); n < notesMegabytes<<20 {
		t.Errorf("the first stage wrote %d bytes", n)
	}

	dst, err := labtest.VolumeDir(ctx, s.dst(), s.dest, labtest.NotesClaim)
	s.must(err)
	s.must(errors.Join(os.WriteFile(filepath.Join(dst, "stray"), []byte("nobody's"), 0o600), flip(filepath.Join(dst, "index.html"))))
	s.must(errors.Join(
		os.Chtimes(filepath.Join(dst, "index.html"), time.Now(), time.Now()), // and a time that the source's does not have
		os.Remove(filepath.Join(src, "deleted later")), os.WriteFile(filepath.Join(src, "rewritten"), []byte("11 apples"), 0o600),
		os.Chmod(filepath.Join(src, "only its mode changes"), 0o640), os.RemoveAll(filepath.Join(src, "directory, then file")),
		os.WriteFile(filepath.Join(src, "directory, then file"), []byte("x"), 0o600), os.Remove(filepath.Join(src, "file, then directory")),
		os.MkdirAll(filepath.Join(src, "file, then directory", "with", "more"), 0o700), labtest.WriteNoise(filepath.Join(src, "later"), 1<<20),
	))
	s.succeeds("migrate")
	t.Run("every file is there as it was at the quiesce, and no other", func(t *testing.T) {
		if _, err := s.lab.Arrived(ctx, s.name, s.dest, labtest.NotesWriting); err != nil {
			t.Error(err)
		}
	})
	t.Run("no more was written than what has changed", func(t *testing.T) {
		if n := s.on(t).written(); n < 1<<20 || n > 4<<20 {
			t.Errorf("%d bytes were written at the cutover", n)
		}
	})
	s.noHelperIsLeft()
	t.Run("what somebody changes on the destination since is found", func(t *testing.T) {
		on := s.on(t)
		on.succeeds("verify")
		_, err := s.lab.Kubectl(ctx, s.dst(), "", "-n", s.dest, "annotate", "deployment", "notes", "team=red")
		on.must(err)
		r := on.run("verify")
		on.ended(r, incomplete)
		on.says(r, "Deployment "+s.dest+"/notes", "metadata.annotations", "red")
	})
	s.succeeds("rollback", "--yes")
	s.must(s.lab.GoneFromDestination(ctx, s.planUID, s.dest))
	s.sourceIsUp(before)
}

// cutOff takes the pods in which mig-mover is at work away, in the middle, and
// kills mig.
func (s *scenario) cutOff(command ...string) {
	s.t.Helper()
	ctx := s.t.Context()
	var once sync.Once
	fired := false
	wire, err := s.lab.NewWire(s.t.TempDir(), func(r labtest.Request) labtest.Fate {
		fate := labtest.Pass
		if r.Side == labtest.DestinationContext && strings.Contains(r.Path, "/pods/mig-restore-") && strings.HasSuffix(r.Path, "/log") {
			once.Do(func() {
				fired, fate = true, labtest.KillAfter
				if err := s.dst().DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(labtest.VeleroNamespace),
					client.MatchingLabels{naming.LabelPlan: s.planUID}, client.GracePeriodSeconds(0)); err != nil {
					s.t.Error(err)
				}
			})
		}
		return fate
	})
	s.must(err)
	defer func() { s.must(wire.Close()) }()
	if _, _, err = wire.Run(ctx, s.dir, append([]string{s.mig}, command...)...); err != nil {
		s.t.Fatal(err)
	}
	if !fired {
		s.t.Error("mig-mover was never seen at work")
	}
}

// noHelperIsLeft wants no pod of the plan's runs on either cluster.
func (s *scenario) noHelperIsLeft() {
	s.t.Helper()
	for _, c := range s.lab.Both() {
		var pods corev1.PodList
		s.must(c.List(s.t.Context(), &pods, client.MatchingLabels{naming.LabelPlan: s.planUID}))
		for _, p := range pods.Items {
			s.t.Errorf("%s: pod %s/%s is left", c.Access.Context, p.Namespace, p.Name)
		}
	}
}

// claimsThere are the names of the claims in the namespace of the destination.
func (s *scenario) claimsThere() []string {
	s.t.Helper()
	var list corev1.PersistentVolumeClaimList
	s.must(s.dst().List(s.t.Context(), &list, client.InNamespace(s.dest)))
	var out []string
	for _, c := range list.Items {
		out = append(out, c.Name)
	}
	slices.Sort(out)
	return out
}

var writtenText = regexp.MustCompile(`, ([0-9.]+ [KMG]?i?B) of it written,`)

// written is how many bytes mig-mover wrote in the last run, as its Events say.
func (s *scenario) written() uint64 {
	s.t.Helper()
	events, err := labtest.Events(s.t.Context(), s.dst(), s.planUID)
	s.must(err)
	var sum uint64
	for _, e := range events {
		if e.Reason == "Started" {
			sum = 0
		}
		if found := writtenText.FindStringSubmatch(e.Text); e.Reason == "VolumeRestored" && found != nil {
			n, err := humanize.ParseBytes(found[1])
			s.must(err)
			sum += n
		}
	}
	return sum
}
