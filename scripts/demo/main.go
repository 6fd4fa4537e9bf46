// Demo moves a running PostgreSQL with all that belongs to it from one of the
// lab's clusters to the other and back, with the commands that a person would
// type, and proves after each way that nothing was lost. It ends with 0 only if
// all of it is true.
package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "demo: "+err.Error())
		os.Exit(1)
	}
}

// limit is when the demo gives up as a whole.
const limit = 30 * time.Minute

func run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	d, err := newDemo(ctx)
	if err != nil {
		return err
	}
	defer d.end()
	for _, part := range []func(context.Context) error{
		d.clearAway, d.deploy, d.plan, d.migrate, d.rollback,
	} {
		if err := part(ctx); err != nil {
			d.table(ctx)
			return err
		}
	}
	d.table(ctx)
	return nil
}
