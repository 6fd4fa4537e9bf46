// Bench measures mig on clusters as large as those of many teams: how long it
// looks, how much memory it takes and how many questions it asks, beside
// kubectl that lists the same on the same API server at the same time. It
// starts all that it needs, and ends with 0 whatever the figures are: they are
// for people to judge.
//
// Its lines are
//
//	bench NAME value=NUMBER unit=UNIT [vs=NUMBER ratio=NUMBER]
//
// where vs is what the value is compared with, and ratio is value / vs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/mig-cli/mig/internal/apitest"
	"github.com/mig-cli/mig/internal/cluster"
)

func main() {
	scale := flag.Float64("scale", 1, "the size of the large cluster: 1 is 1,000 namespaces")
	rounds := flag.Int("rounds", 3, "how often each figure is taken; the least counts")
	mig := flag.String("mig", "bin/mig", "the `program` to measure")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *mig, *scale, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench: "+err.Error())
		os.Exit(1)
	}
}

// few is how many namespaces a plan of few has.
const few = 5

func run(ctx context.Context, mig string, scale float64, rounds int) (err error) {
	cluster.SilenceClients()
	mig, err = filepath.Abs(mig)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mig-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := large(scale)
	all, err := start(ctx, filepath.Join(dir, "large"), s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, all.Stop()) }()
	alone, err := start(ctx, filepath.Join(dir, "five"), s.first(few))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, alone.Stop()) }()
	b := &bench{mig: mig, dir: dir, rounds: rounds, size: s, all: all, alone: alone}
	for _, part := range []func(context.Context) error{b.create, b.validate, b.createFive, b.growth} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// start starts a pair whose source is of a size, and waits until it is quiet:
// with many kinds an API server has much to do at first.
func start(ctx context.Context, dir string, s size) (*pair, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	kept, err := data(ctx, dir, s)
	if err != nil {
		return nil, err
	}
	p, err := apitest.Start(dir, apitest.Options{SourceData: kept})
	if err != nil {
		return nil, err
	}
	out := &pair{Pair: p}
	if err := out.settle(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return out, nil
}
