//go:build lab

package main

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mig-cli/mig/scripts/lab/internal/cluster"
	"github.com/mig-cli/mig/scripts/lab/internal/place"
	"github.com/mig-cli/mig/scripts/lab/internal/process"
)

// The lab of this machine is the one that is tortured: there can be no second.
func TestTheLabComesUpOverWhateverAKillLeft(t *testing.T) {
	l := newLab(t)
	l.must("down")
	t.Run("up was killed, again and again", func(t *testing.T) {
		for range l.rounds {
			l.killedUp(t, time.Duration(l.random.IntN(60_000))*time.Millisecond)
		}
		l.on(t).isUpAgain()
	})
	t.Run("some of its processes were killed", func(t *testing.T) {
		for range l.rounds {
			l.killSome(t, 3)
			l.on(t).isUpAgain()
		}
	})
	t.Run("all of its processes were killed at once", func(t *testing.T) {
		l.killSome(t, 1)
		l.on(t).isUpAgain()
	})
	t.Run("down was killed", func(t *testing.T) {
		l.killed(t, time.Duration(l.random.IntN(3_000))*time.Millisecond, "down")
		l.on(t).isUpAgain()
	})
	t.Run("down leaves nothing", func(t *testing.T) {
		l.on(t).must("down")
		l.on(t).hasLeftNothing()
	})
}

type tortured struct {
	t       *testing.T
	program string
	dir     place.Dir
	random  *rand.Rand
	rounds  int
}

func newLab(t *testing.T) *tortured {
	t.Helper()
	dir, err := place.New()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "lab")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	seed, rounds := number(t, "SEED", int(time.Now().UnixNano()%1_000_000)), number(t, "KILLS", 3)
	t.Logf("SEED=%d repeats this", seed)
	return &tortured{t: t, program: program, dir: dir, random: rand.New(rand.NewPCG(uint64(seed), 0)), rounds: rounds}
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	if os.Getenv(name) == "" {
		return otherwise
	}
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func (l *tortured) on(t *testing.T) *tortured {
	t.Helper()
	of := *l
	of.t = t
	return &of
}

func (l *tortured) must(args ...string) {
	l.t.Helper()
	began := time.Now()
	out, err := exec.CommandContext(l.t.Context(), l.program, args...).CombinedOutput()
	if err != nil {
		l.t.Fatalf("lab %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	l.t.Logf("lab %s took %s", strings.Join(args, " "), time.Since(began).Round(time.Second))
}

// isUpAgain wants one more `up` to do it, and the clusters to work.
func (l *tortured) isUpAgain() {
	l.t.Helper()
	l.must("up")
	l.must("status")
	for _, name := range []string{"src", "dst"} {
		// A pod that is made now needs the API, the scheduler, a kubelet, containerd and the network.
		l.kubectl(name, "delete", "pod", "alive", "--ignore-not-found")
		l.kubectl(name, "run", "alive", "--image=registry.test/toolbox:1", "--restart=Never", "--command", "--", "sleep", "infinity")
		l.kubectl(name, "wait", "--for=condition=Ready", "--timeout=2m", "pod/alive")
		l.kubectl(name, "delete", "pod", "alive", "--grace-period=1")
		l.kubectl(name, "-n", "velero", "wait", "--for=jsonpath={.status.phase}=Available", "--timeout=2m", "backupstoragelocation/default")
	}
}

func (l *tortured) kubectl(cluster string, args ...string) {
	l.t.Helper()
	args = append([]string{"--kubeconfig", l.dir.Kubeconfig(), "--context", cluster}, args...)
	if out, err := exec.CommandContext(l.t.Context(), filepath.Join(l.dir.Bin(), "kubectl"), args...).CombinedOutput(); err != nil {
		l.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (l *tortured) killedUp(t *testing.T, after time.Duration) {
	t.Helper()
	l.killed(t, after, "up")
}

// killed runs the lab and kills it, and it alone, after a while.
func (l *tortured) killed(t *testing.T, after time.Duration, command string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	err := exec.CommandContext(ctx, l.program, command).Run() // killed when the time is up
	t.Logf("lab %s killed after %s: %v", command, after.Round(time.Millisecond), err)
}

// killSome kills one in n of the lab's processes, drawn at random.
func (l *tortured) killSome(t *testing.T, n int) {
	t.Helper()
	pids := process.Marked(cluster.Marker(l.dir))
	l.random.Shuffle(len(pids), func(i, j int) { pids[i], pids[j] = pids[j], pids[i] })
	var names []string
	for _, pid := range pids[:(len(pids)+n-1)/n] {
		name, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
		names = append(names, strings.TrimSpace(string(name)))
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Logf("%d: %v", pid, err)
		}
	}
	slices.Sort(names)
	t.Logf("killed %d of %d: %s", len(names), len(pids), strings.Join(names, " "))
}

func (l *tortured) hasLeftNothing() {
	l.t.Helper()
	if owners := process.Owners(); len(owners) > 0 {
		l.t.Errorf("processes of %v are left", owners)
	}
	if mounts, _ := os.ReadFile("/proc/self/mountinfo"); strings.Contains(string(mounts), l.dir.Run()) {
		l.t.Errorf("mounts are left below %s", l.dir.Run())
	}
	for _, pattern := range []string{l.dir.Run() + "*", l.dir.Kubeconfig(), "/sys/fs/cgroup/*/miglab-*", "/sys/fs/cgroup/miglab-*", "/var/run/netns/*", "/var/lib/cni/results/*"} {
		if left, _ := filepath.Glob(pattern); len(left) > 0 {
			l.t.Errorf("left: %v", left)
		}
	}
	links, err := exec.CommandContext(l.t.Context(), "ip", "-brief", "link").Output()
	if err != nil {
		l.t.Fatal(err)
	}
	for line := range strings.Lines(string(links)) {
		if name := strings.Fields(line)[0]; strings.Contains(name, "lab") || strings.HasPrefix(name, "veth") {
			l.t.Errorf("link %s is left", name)
		}
	}
}
