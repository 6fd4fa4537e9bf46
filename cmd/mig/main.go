// Command mig moves Kubernetes namespaces, with the data in their volumes,
// from one cluster to another.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/mig-cli/mig/internal/cli"
)

func main() {
	ctx, stop := interrupts()
	os.Exit(cli.Run(ctx, cli.NewFactory(os.Stdin, os.Stdout, os.Stderr, stop), os.Args[1:]))
}

// interrupts closes stop at the first signal, so that a run ends at its next
// safe point, and ends the context at the second. A third has its default
// effect: it kills.
func interrupts() (context.Context, <-chan struct{}) {
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := make(chan struct{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		close(stop)
		<-signals
		signal.Stop(signals)
		cancel(cli.ErrInterrupted)
	}()
	return ctx, stop
}
