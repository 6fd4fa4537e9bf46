package labtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mig-cli/mig/internal/cluster"
)

// Result is what a program left behind.
type Result struct {
	Args   []string
	Stdout string
	Stderr string
	Code   int // -1: ended by a signal
	Took   time.Duration
}

// String is all of it, for a failed test to show.
func (r Result) String() string {
	return fmt.Sprintf("$ %s\n%s%s(exit %d after %s)", strings.Join(r.Args, " "), r.Stdout, r.Stderr, r.Code, r.Took.Round(time.Millisecond))
}

// Process is a program that runs.
type Process struct {
	cmd            *exec.Cmd
	stdout, stderr lockedBuffer
	began          time.Time
	ended          chan struct{}
	err            error
}

// Start starts a program in dir, with the lab's environment. It is killed when
// ctx ends.
func (l *Lab) Start(ctx context.Context, dir string, args ...string) (*Process, error) {
	p := &Process{cmd: exec.CommandContext(ctx, l.find(args[0]), args[1:]...), began: time.Now(), ended: make(chan struct{})}
	p.cmd.Args[0] = args[0]
	p.cmd.Dir, p.cmd.Env = dir, l.Environ()
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Attach runs a program in dir on the given streams, which may be a terminal,
// and says its exit code.
func (l *Lab) Attach(ctx context.Context, dir string, in io.Reader, out, errs io.Writer, args ...string) (int, error) {
	cmd := exec.CommandContext(ctx, l.find(args[0]), args[1:]...)
	cmd.Dir, cmd.Env = dir, l.Environ()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	return codeOf(cmd.Run())
}

// find takes a program of the lab before one of this machine: exec itself
// looks only in the path of this process.
func (l *Lab) find(name string) string {
	if own := filepath.Join(l.Home, "bin", name); !strings.ContainsRune(name, filepath.Separator) {
		if _, err := os.Stat(own); err == nil {
			return own
		}
	}
	return name
}

// Kill ends the process at once, as a power cut would: no handler runs.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended
	return nil
}

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Running says whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Wait waits for the end. An exit code is no error.
func (p *Process) Wait() (Result, error) {
	<-p.ended
	code, err := codeOf(p.err)
	return Result{Args: p.cmd.Args, Stdout: p.stdout.String(), Stderr: p.stderr.String(), Code: code, Took: time.Since(p.began)}, err
}

// Run runs a program to its end. An exit code is no error.
func (l *Lab) Run(ctx context.Context, dir string, args ...string) (Result, error) {
	p, err := l.Start(ctx, dir, args...)
	if err != nil {
		return Result{}, err
	}
	return p.Wait()
}

func codeOf(err error) (int, error) {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// Mig is the program to be tested: $MIG, else built now from this tree.
func (l *Lab) Mig(ctx context.Context) (string, error) {
	if mig := os.Getenv("MIG"); mig != "" {
		return filepath.Abs(mig)
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	mig := filepath.Join(l.Home, "mig-under-test")
	build := exec.CommandContext(ctx, "go", "build", "-o", mig, "./cmd/mig")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/mig: %w\n%s", err, out)
	}
	return mig, nil
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir = parent
			continue
		}
		return "", errors.New("no go.mod here or above: run this inside mig's tree, or set MIG to the program")
	}
}

// Kubectl runs the lab's kubectl on a cluster, with stdin where it is not
// empty, and gives what it wrote.
func (l *Lab) Kubectl(ctx context.Context, c *cluster.Cluster, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, l.find("kubectl"), append([]string{"--context", c.Access.Context}, args...)...)
	cmd.Env, cmd.Stdin = l.Environ(), strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl --context %s %s: %w: %s", c.Access.Context, strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// Exec runs a command in a pod and gives what it wrote.
func (l *Lab) Exec(ctx context.Context, c *cluster.Cluster, namespace, pod string, command ...string) (string, error) {
	return l.Kubectl(ctx, c, "", append([]string{"-n", namespace, "exec", pod, "--"}, command...)...)
}

// lockedBuffer is written by the process and may be read while it runs.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
