// mig-mover works next to a volume: it says what is in it, and makes it equal to a backup of another.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/mig-cli/mig/cmd/mig-mover/internal/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	code := command.Run(ctx, os.Args[1:], command.Streams{Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}
