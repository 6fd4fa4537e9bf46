package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/plan"
)

// Names of the demo. Nobody else uses them, so it may clear them away.
const (
	planName = "shop"
	from     = "shop"
	to       = "shop-prod"
	scale    = 5 // of pgbench: 500,000 accounts, about 75 MB
)

type demo struct {
	lab     *labtest.Lab
	mig     string
	tree    string // where manifests are
	dir     string // where the plan is
	planUID string
	move    *labtest.Move
	proved  []line
	times   []line
	failed  bool
}

// line is a line of the table at the end.
type line struct{ what, how string }

func newDemo(ctx context.Context) (*demo, error) {
	lab, err := labtest.Find()
	if err != nil {
		return nil, err
	}
	if err := lab.Hold(func() { say("Waiting for others who use the lab …") }); err != nil {
		return nil, err
	}
	mig, err := lab.Mig(ctx)
	if err != nil {
		return nil, err
	}
	tree, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mig-demo-")
	return &demo{lab: lab, mig: mig, tree: tree, dir: dir}, err
}

// end removes the demo's directory, unless something in it may explain a failure.
func (d *demo) end() {
	if !d.failed {
		_ = os.RemoveAll(d.dir)
	}
}

// clearAway removes what an earlier demo has left, however it ended.
func (d *demo) clearAway(ctx context.Context) error {
	return d.timed("clear away what an earlier demo left", func() error {
		if err := labtest.RemoveNamespaces(ctx, d.lab.Destination.Cluster, to); err != nil {
			return err
		}
		if err := labtest.RemoveNamespaces(ctx, d.lab.Source.Cluster, from); err != nil {
			return err
		}
		return d.lab.ForgetPlan(ctx, planName)
	})
}

func (d *demo) deploy(ctx context.Context) error {
	say("A shop on the source: PostgreSQL with a client that writes all the time, a web server, and an archive that no pod mounts.")
	return d.timed("deploy the shop and fill its volumes", func() error {
		if err := d.shell(ctx, d.tree, "kubectl --context src create namespace "+from); err != nil {
			return err
		}
		if err := d.shell(ctx, d.tree, "kubectl --context src -n "+from+" apply -f internal/labtest/shop.yaml -f internal/labtest/archive.yaml"); err != nil {
			return err
		}
		say("Filling it: pgbench's tables, an archive, and files that copiers get wrong (owners, modes, links, holes, odd names) …")
		if err := d.lab.ShopIn(d.lab.Source.Cluster, from).Stock(ctx, scale); err != nil {
			return err
		}
		return d.shell(ctx, d.tree, "kubectl --context src -n "+from+" get statefulsets,deployments,cronjobs,services,persistentvolumeclaims")
	})
}

func (d *demo) plan(ctx context.Context) error {
	if err := d.shell(ctx, d.dir, "mig plan create "+planName+" --src src --dst dst --namespaces "+from+":"+to); err != nil {
		return err
	}
	p, err := plan.Load(filepath.Join(d.dir, planName+".yaml"))
	if err != nil {
		return err
	}
	d.planUID = p.Metadata.UID
	if err := d.shell(ctx, d.dir, "mig plan validate"); err != nil {
		return err
	}
	return d.shell(ctx, d.dir, "mig pv discover")
}

func (d *demo) migrate(ctx context.Context) error {
	var err error
	if d.move, err = d.lab.Remember(ctx, d.planUID, from, to); err != nil {
		return err
	}
	d.move.Watch(ctx, limit)
	err = d.timed("mig migrate", func() error { return d.shell(ctx, d.dir, "mig migrate --watch") })
	if err != nil {
		return err
	}
	if err := d.shell(ctx, d.dir, "kubectl --context dst -n "+to+" get statefulsets,deployments,cronjobs,services,persistentvolumeclaims"); err != nil {
		return err
	}
	return d.prove(ctx, d.move.Moved())
}

func (d *demo) rollback(ctx context.Context) error {
	err := d.timed("mig rollback", func() error { return d.shell(ctx, d.dir, "mig rollback --yes") })
	if err != nil {
		return err
	}
	return d.prove(ctx, d.move.TakenBack())
}

// shell shows a command as if it had been typed, and runs it on this terminal.
func (d *demo) shell(ctx context.Context, dir, command string) error {
	fmt.Printf("\n$ %s\n", command)
	args := strings.Fields(command)
	if args[0] == "mig" {
		args[0] = d.mig
	}
	code, err := d.lab.Attach(ctx, dir, os.Stdin, os.Stdout, os.Stderr, args...)
	if err != nil {
		return err
	}
	if code != 0 {
		d.failed = true
		return fmt.Errorf("%s: exit %d (its plan is in %s)", command, code, d.dir)
	}
	return nil
}

// prove tries all proofs, for the third may explain the first.
func (d *demo) prove(ctx context.Context, proofs []labtest.Proof) error {
	fmt.Println()
	bad := 0
	for _, p := range proofs {
		how, err := p.Prove(ctx)
		if err != nil {
			bad++
			d.failed = true
			fmt.Printf("NOT PROVED: %s\n  %v\n", p.What, err)
			d.proved = append(d.proved, line{p.What, "NOT PROVED"})
			continue
		}
		fmt.Printf("proved: %s%s\n", p.What, inBrackets(how))
		d.proved = append(d.proved, line{p.What, how})
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d things could not be proved", bad, len(proofs))
	}
	return nil
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

func (d *demo) timed(what string, do func() error) error {
	began := time.Now()
	err := do()
	d.times = append(d.times, line{what, time.Since(began).Round(time.Second / 10).String()})
	return err
}

func say(text string) { fmt.Println("\n# " + text) }

// table is what was proved, and what took how long: steps as the Events tell.
func (d *demo) table(ctx context.Context) {
	fmt.Println("\nWhat was proved")
	for i, p := range d.proved {
		fmt.Printf("%4d  %s%s\n", i+1, p.what, inBrackets(p.how))
	}
	fmt.Println("\nWhat took how long")
	for _, t := range d.times {
		fmt.Printf("%10s  %s\n", t.how, t.what)
	}
	if d.planUID == "" {
		return
	}
	events, err := labtest.Events(ctx, d.lab.Source.Cluster, d.planUID)
	if err != nil {
		fmt.Println("  steps are not known:", err)
		return
	}
	fmt.Println("\nSteps, by the Events on the source")
	for _, s := range labtest.StepTimes(events) {
		fmt.Printf("%10s  %s\n", s.Took, s.Reason)
	}
}
