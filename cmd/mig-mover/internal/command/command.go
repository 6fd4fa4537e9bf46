// Package command is the mover's program without the process: arguments, what is printed, and exit codes.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
)

// The exit codes, which are those of mig.
const (
	exitDone      = 0
	exitFailed    = 1
	exitUsage     = 2
	exitDiffers   = 3 // it came to its end, and two volumes differ or something could not be restored
	exitCancelled = 130
)

// Streams are where data and talk go.
type Streams struct{ Out, Err io.Writer }

const usage = `mig-mover works next to a volume.

  mig-mover manifest --root DIR [--hash] [--encoding plain|gzip|base64] [--out FILE]
        says what is in the volume
  mig-mover compare [--limit N] [--ignore KIND,…] SOURCE DESTINATION
        says in what two manifests differ
  mig-mover restore --snapshot ID --root DIR [--manifest FILE] [--paranoid] STORAGE…
        makes the volume equal to a snapshot in a repository of Velero's

Each command says more with --help.

EXIT STATUS
  0    done; with compare: nothing differs
  1    failed
  2    wrong command line
  3    compare: the volumes differ; restore: done, and the snapshot is not all that the source has
  130  cancelled; restore can be run again
`

// errUsage is a wrong command line, and what is wrong with it has been said.
var errUsage = errors.New("wrong command line")

// errDiffers is what a command that came to its end has found.
var errDiffers = errors.New("differs")

// Run runs the program and returns its exit code.
func Run(ctx context.Context, args []string, streams Streams) int {
	err := dispatch(ctx, args, streams)
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errDiffers):
		return exitDiffers
	case errors.Is(err, errUsage):
		return exitUsage
	case ctx.Err() != nil:
		fmt.Fprintln(streams.Err, "mig-mover: cancelled")
		return exitCancelled
	default:
		fmt.Fprintf(streams.Err, "mig-mover: error: %v\n", err)
		return exitFailed
	}
}

func dispatch(ctx context.Context, args []string, streams Streams) error {
	if len(args) == 0 {
		fmt.Fprint(streams.Err, usage)
		return errUsage
	}
	switch args[0] {
	case "manifest":
		return runManifest(ctx, args[1:], streams)
	case "compare":
		return runCompare(args[1:], streams)
	case "restore":
		return runRestore(ctx, args[1:], streams)
	case "help", "-h", "-help", "--help":
		fmt.Fprint(streams.Out, usage)
		return nil
	default:
		fmt.Fprintf(streams.Err, "mig-mover: unknown command %q\n\n%s", args[0], usage)
		return errUsage
	}
}

// parse parses a command's flags, and takes so many arguments after them.
func parse(flags *flag.FlagSet, args []string, count int, streams Streams) error {
	flags.SetOutput(streams.Err)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
		return errUsage
	case flags.NArg() != count:
		return wrong(streams, flags.Name(), "takes %d arguments and has %d", count, flags.NArg())
	}
	return nil
}

func wrong(streams Streams, name, format string, args ...any) error {
	fmt.Fprintf(streams.Err, "mig-mover %s: %s\n", name, fmt.Sprintf(format, args...))
	return errUsage
}
