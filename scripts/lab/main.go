// lab brings up two real Kubernetes clusters with real Velero and an S3 server on this machine; see README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/mig-cli/mig/scripts/lab/internal/host"
	"github.com/mig-cli/mig/scripts/lab/internal/lab"
	"github.com/mig-cli/mig/scripts/lab/internal/place"
	"github.com/mig-cli/mig/scripts/lab/internal/process"
)

const usage = `usage: lab COMMAND [FLAGS]

  up      bring up what is not up, build what is not built
  down    end everything and remove its state; what is built stays
  status  say what is up and how much memory it takes
  build   build programs and images, start nothing
  env     print export lines for a shell: PATH, KUBECONFIG

Flags of up and build:
  --parts control-plane|nodes|velero   how much; each includes what is before it (default velero)
  --clusters src,dst                   which clusters (default both)
  --dst-kubernetes VERSION             another version of Kubernetes for dst, like 1.37.2

Everything is kept in $MIG_LAB, or mig-lab in the user's cache directory.

EXIT STATUS: 0 done, or all up; 1 failed, or not all up; 2 wrong command line.
`

// errNotUp is the answer of status, which has said the rest already.
var errNotUp = errors.New("not everything is up")

// usageError is a mistake on the command line.
type usageError struct{ error }

func main() {
	if len(os.Args) == 3 && os.Args[1] == process.Shim {
		// Only a failure returns.
		fmt.Fprintln(os.Stderr, "lab:", process.Become(os.Args[2]))
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	var misused usageError
	switch {
	case err == nil:
	case errors.As(err, &misused):
		fmt.Fprintf(os.Stderr, "lab: %v\n%s", err, usage)
		os.Exit(2)
	default:
		fmt.Fprintf(os.Stderr, "lab: error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return usageError{errors.New("which command?")}
	}
	dir, err := place.New()
	if err != nil {
		return err
	}
	begin := time.Now()
	l := lab.Lab{Place: dir, Say: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%6.1fs %s\n", time.Since(begin).Seconds(), fmt.Sprintf(format, args...))
	}}
	command, args := args[0], args[1:]
	if command == "help" || command == "-h" || command == "--help" {
		fmt.Print(usage)
		return nil
	}
	want, err := parse(command, args)
	if err != nil {
		return usageError{err}
	}
	if command == "env" {
		printEnv(dir)
		return nil
	}
	if err := host.CheckRoot(); err != nil {
		return err
	}
	if command == "status" {
		return status(ctx, l)
	}
	unlock, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	switch command {
	case "up":
		if err := l.Up(ctx, want); err != nil {
			return err
		}
		l.Say("up: %s of %s", want.Parts, strings.Join(want.Clusters, ", "))
		fmt.Println(dir.Kubeconfig())
		return nil
	case "build":
		return l.Build(ctx, want)
	default:
		return l.Down(ctx)
	}
}

func parse(command string, args []string) (lab.Want, error) {
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.Usage = func() {}
	flags.SetOutput(discard{})
	parts, clusters, dstKubernetes := "velero", "src,dst", ""
	switch command {
	case "up", "build":
		flags.StringVar(&parts, "parts", parts, "")
		flags.StringVar(&clusters, "clusters", clusters, "")
		flags.StringVar(&dstKubernetes, "dst-kubernetes", dstKubernetes, "")
	case "down", "status", "env":
	default:
		return lab.Want{}, fmt.Errorf("no command %q", command)
	}
	if err := flags.Parse(args); err != nil {
		return lab.Want{}, err
	}
	if flags.NArg() > 0 {
		return lab.Want{}, fmt.Errorf("%s takes no argument %q", command, flags.Arg(0))
	}
	want := lab.Want{Clusters: strings.Split(clusters, ",")}
	if dstKubernetes != "" {
		want.Kubernetes = map[string]string{"dst": dstKubernetes}
	}
	var err error
	want.Parts, err = lab.ParseParts(parts)
	return want, err
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func printEnv(dir place.Dir) {
	fmt.Printf("export MIG_LAB=%q\nexport KUBECONFIG=%q\nexport PATH=%q:\"$PATH\"\n", string(dir), dir.Kubeconfig(), dir.Bin())
}

func status(ctx context.Context, l lab.Lab) error {
	now, err := l.Status(ctx)
	if err != nil {
		return err
	}
	if err := now.Print(os.Stdout); err != nil {
		return err
	}
	if !now.IsUp() {
		return errNotUp
	}
	return nil
}
