package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// bench is what is measured.
type bench struct {
	mig    string
	dir    string
	rounds int
	size   size
	all    *pair // the source has all namespaces
	alone  *pair // the source has the first few only
}

// exitBlocked is validate's code of a plan that cannot run: there is no Velero.
const exitBlocked = 10

// plan makes a plan of the first n namespaces; 0: of all, unnamed.
func (b *bench) plan(ctx context.Context, p *pair, n int) (cost, error) {
	file := fmt.Sprintf("plan-%d.yaml", n)
	args := []string{"plan", "create", "all", "--src", "src", "--dst", "dst", "--force", "-f", file}
	if n > 0 {
		names := make([]string, 0, n)
		for i := range n {
			names = append(names, namespaceName(i))
		}
		args = append(args, "--namespaces", strings.Join(names, ","))
	}
	return p.run(ctx, b.dir, nil, b.mig, args...)
}

// best is the least of some rounds.
func (b *bench) best(round func() (cost, error)) (cost, error) {
	var least cost
	for i := range b.rounds {
		c, err := round()
		if err != nil {
			return c, err
		}
		if i == 0 || c.took < least.took {
			least.took = c.took
		}
		least.memory = max(least.memory, c.memory)
	}
	return least, nil
}

// beside measures a command of mig beside kubectl that lists the same kinds, in
// turns.
func (b *bench) beside(ctx context.Context, name string, command func() (cost, error)) error {
	asked, err := b.all.asked(ctx, func() error { _, err := command(); return err })
	if err != nil {
		return err
	}
	kinds := listed(asked)
	least := time.Duration(0)
	c, err := b.best(func() (cost, error) {
		took, err := b.all.kubectl(ctx, kinds)
		if err != nil {
			return cost{}, err
		}
		if least == 0 || took < least {
			least = took
		}
		return command()
	})
	if err != nil {
		return err
	}
	figure(name, c.took.Seconds(), "s", least.Seconds())
	figure(name+"-memory", float64(c.memory)/1e6, "MB", 0)
	figure(name+"-requests", float64(sum(asked)), "requests", 0)
	tell(asked)
	return nil
}

// tell says what was asked, the most first.
func tell(asked map[question]int) {
	const most = 25
	questions := slices.SortedFunc(maps.Keys(asked), func(a, b question) int { return asked[b] - asked[a] })
	for i, q := range questions {
		if i == most {
			fmt.Printf("  and %d more\n", len(questions)-most)
			return
		}
		fmt.Printf("  %d %s %s (%s)\n", asked[q], q.verb, q.resource, q.scope)
	}
}

// create measures plan create of everything.
func (b *bench) create(ctx context.Context) error {
	fmt.Printf("source: %s\n", b.size)
	return b.beside(ctx, "plan-create-large", func() (cost, error) { return b.plan(ctx, b.all, 0) })
}

// validate measures plan validate of that plan.
func (b *bench) validate(ctx context.Context) error {
	return b.beside(ctx, "validate-large", func() (cost, error) {
		return b.all.run(ctx, b.dir, []int{exitBlocked}, b.mig, "plan", "validate", filepath.Join(b.dir, "plan-0.yaml"))
	})
}

// createFive measures plans of five namespaces, of the large cluster and of
// one that has no others.
func (b *bench) createFive(ctx context.Context) error {
	var here, alone cost
	_, err := b.best(func() (cost, error) {
		h, err := b.plan(ctx, b.all, few)
		if err != nil {
			return h, err
		}
		a, err := b.plan(ctx, b.alone, few)
		if here.took == 0 || h.took < here.took {
			here = h
		}
		if alone.took == 0 || a.took < alone.took {
			alone = a
		}
		return a, err
	})
	if err != nil {
		return err
	}
	figure("plan-create-five", here.took.Seconds(), "s", alone.took.Seconds())
	figure("plan-create-five-memory", float64(here.memory)/1e6, "MB", float64(alone.memory)/1e6)
	asked, err := b.all.asked(ctx, func() error { _, err := b.plan(ctx, b.all, few); return err })
	if err != nil {
		return err
	}
	askedAlone, err := b.alone.asked(ctx, func() error { _, err := b.plan(ctx, b.alone, few); return err })
	if err != nil {
		return err
	}
	figure("plan-create-five-requests", float64(sum(asked)), "requests", float64(sum(askedAlone)))
	tell(asked)
	return nil
}

// growth measures plans of ever more of the namespaces.
func (b *bench) growth(ctx context.Context) error {
	for n := 10; n <= b.size.Namespaces; n *= 10 {
		asked, err := b.all.asked(ctx, func() error { _, err := b.plan(ctx, b.all, n); return err })
		if err != nil {
			return err
		}
		c, err := b.best(func() (cost, error) { return b.plan(ctx, b.all, n) })
		if err != nil {
			return err
		}
		name := fmt.Sprintf("plan-create-of-%d", n)
		figure(name, c.took.Seconds(), "s", 0)
		figure(name+"-memory", float64(c.memory)/1e6, "MB", 0)
		figure(name+"-requests", float64(sum(asked)), "requests", 0)
		validate := func() (cost, error) {
			return b.all.run(ctx, b.dir, []int{exitBlocked}, b.mig, "plan", "validate", filepath.Join(b.dir, fmt.Sprintf("plan-%d.yaml", n)))
		}
		if c, err = b.best(validate); err != nil {
			return err
		}
		figure(fmt.Sprintf("validate-of-%d", n), c.took.Seconds(), "s", 0)
	}
	return nil
}
