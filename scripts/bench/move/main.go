// Move measures how long an application stands still when mig moves it after a
// stage, by the size of its volume, and how long a move of a small namespace
// takes, on the lab's two clusters with real bytes. It ends with 0 whatever the
// figures are: they are for people to judge.
//
// With -baseline PROGRAM, which is called with a name and a namespace and moves
// it by hand with Velero's own commands, telling "MILLISECONDS ms ready" as its
// last line and "… ms backup", "… ms synced" before it, each figure stands beside
// that program's on the same data in the same run.
//
// Its lines are those of scripts/bench.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/labtest"
)

func main() {
	b := &bench{}
	sizes := flag.String("sizes", "1,4,8", "sizes of the volume in GiB, with commas; empty: none")
	files := flag.Int("files", 0, "measure a volume of so many small files too")
	small := flag.Int("small", 0, "how often to move a small namespace")
	flag.StringVar(&b.mig, "mig", "bin/mig", "the `program` to measure")
	flag.StringVar(&b.baseline, "baseline", "", "the `program` that moves by hand")
	flag.StringVar(&b.mover, "mover", "registry.test/mig-mover:1", "the `image` of mig-mover; empty: Velero restores")
	flag.BoolVar(&b.verify, "verify", true, "have volumes of a small namespace compared")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := b.run(ctx, *sizes, *files, *small); err != nil {
		fmt.Fprintln(os.Stderr, "bench: "+err.Error())
		os.Exit(1)
	}
}

type bench struct {
	lab                  *labtest.Lab
	mig, baseline, mover string
	verify               bool
	dir                  string
}

func (b *bench) run(ctx context.Context, sizes string, files, small int) (err error) {
	cluster.SilenceClients()
	for _, program := range []*string{&b.mig, &b.baseline} {
		if *program != "" {
			if *program, err = filepath.Abs(*program); err != nil {
				return err
			}
		}
	}
	if b.lab, err = labtest.Find(); err != nil {
		return err
	}
	if err := b.lab.Hold(func() { fmt.Fprintln(os.Stderr, "waiting for others who use the lab") }); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "mig-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if small > 0 {
		if err := b.small(ctx, small); err != nil {
			return err
		}
	}
	if sizes != "" {
		if err := b.growth(ctx, strings.Split(sizes, ",")); err != nil {
			return err
		}
	}
	if files > 0 {
		return b.files(ctx, files)
	}
	return nil
}

// say tells a figure, beside another where there is one.
func say(name string, value float64, unit string, beside float64) {
	fmt.Printf("bench %s value=%.2f unit=%s", name, value, unit)
	if beside > 0 {
		fmt.Printf(" vs=%.2f ratio=%.3f", beside, value/beside)
	}
	fmt.Println()
}

// growth measures volumes of 1 MiB files by size, and the seconds for each
// further GiB.
func (b *bench) growth(ctx context.Context, sizes []string) error {
	var from, to point
	for i, text := range sizes {
		gib, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("-sizes: %w", err)
		}
		p, err := b.staged(ctx, shape{name: fmt.Sprintf("bench-%dg", gib), files: gib << 10, bytes: 1 << 20})
		if err != nil {
			return err
		}
		p.gib = float64(gib)
		say(fmt.Sprintf("downtime-%dgb", gib), p.mig, "s", p.byHand)
		if i == 0 {
			from = p
		}
		to = p
	}
	if further := to.gib - from.gib; further > 0 {
		say("downtime-per-gb", (to.mig-from.mig)/further, "s/GiB", (to.byHand-from.byHand)/further)
	}
	return nil
}

func (b *bench) files(ctx context.Context, files int) error {
	p, err := b.staged(ctx, shape{name: "bench-files", files: files, bytes: 200})
	if err == nil {
		say(fmt.Sprintf("downtime-%d-files", files), p.mig, "s", p.byHand)
	}
	return err
}
