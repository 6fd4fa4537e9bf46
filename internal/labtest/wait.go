package labtest

import (
	"context"
	"fmt"
	"time"
)

const poll = 200 * time.Millisecond

// NotYet is why something is not so yet; the empty one means that it is.
type NotYet string

// Until looks again and again until it is so, and fails at the limit with what
// was still missing. An error of the look itself, such as a broken connection,
// counts as not yet: the lab's clusters are busy, and may be restarting.
func Until(ctx context.Context, limit time.Duration, what string, look func(context.Context) (NotYet, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	last := NotYet("never looked")
	for {
		why, err := look(ctx)
		switch {
		case err == nil && why == "":
			return nil
		case err == nil:
			last = why
		case ctx.Err() == nil:
			last = NotYet(err.Error())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %s: %s", what, limit, last)
		case <-ticker.C:
		}
	}
}
