package migrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/mig-cli/mig/internal/lock"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/record"
)

// queueEvery is how often a run that waits behind another looks again.
const queueEvery = 5 * time.Second

// lock takes the plan and its namespaces on both clusters. The context ends
// when one of them is lost. Nothing has been done yet, so an interrupt ends it
// at once. Errors: *lock.HeldError, *pipeline.InterruptedError.
func (d *driver) lock(ctx context.Context) (context.Context, func(), error) {
	who, err := record.Who(ctx, d.o.Source.Cluster)
	if err != nil {
		return nil, nil, err
	}
	d.who = who
	ctx, cancel := context.WithCancelCause(ctx)
	taken := make(chan struct{})
	defer close(taken)
	go func() {
		select {
		case <-d.o.Stop:
			cancel(&pipeline.InterruptedError{Step: "Lock"})
		case <-taken:
		}
	}()
	work, held, err := d.queue(ctx)
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	d.held = held
	return work, func() { d.giveBack(ctx, held); cancel(nil) }, nil
}

// queue takes the locks, or waits for as long as it was asked to while others
// hold them.
func (d *driver) queue(ctx context.Context) (context.Context, *lock.Held, error) {
	until := time.Now().Add(d.o.Wait)
	var told string
	for {
		work, held, err := d.take(ctx)
		var other *lock.HeldError
		if !errors.As(err, &other) || !time.Now().Before(until) {
			return work, held, err
		}
		if said := other.Error(); said != told {
			told = said
			d.o.Say(fmt.Sprintf("waiting until %s at the latest: %s", until.Format(time.TimeOnly), said))
		}
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-time.After(min(queueEvery, time.Until(until))):
		}
	}
}

func (d *driver) take(ctx context.Context) (context.Context, *lock.Held, error) {
	locker := lock.Locker{
		Holder: lock.Holder{Owner: d.owner, User: d.who, Host: hostname(), PID: os.Getpid()},
		Waiting: func(what string, holder *lock.HeldError) {
			d.o.Say(fmt.Sprintf("waiting for the lease of a run that has ended to run out: %s, %s", what, holder.Host))
		},
	}
	var from, to []string
	for _, ns := range d.namespaces() {
		from, to = append(from, ns.Source), append(to, ns.Destination)
	}
	places := []lock.Place{{Cluster: d.o.Source.Cluster, Side: string(progress.OnSource), Namespaces: from}}
	if !d.o.SourceOnly {
		places = append(places, lock.Place{Cluster: d.o.Destination.Cluster, Side: string(progress.OnDestination), Namespaces: to})
	}
	return locker.AcquireAll(ctx, places...)
}

// giveBack releases the locks, also after ctx has ended.
func (d *driver) giveBack(ctx context.Context, held *lock.Held) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	if err := held.Release(ctx); err != nil {
		d.o.Say("a lease could not be given back and runs out by itself: " + err.Error())
	}
}

// turn is the run's turn with the Velero of the clusters that it gives work: a
// stage restores nothing.
type turn struct{ d *driver }

func (t turn) sides() []string {
	if t.d.o.Kind == Stage {
		return []string{string(progress.OnSource)}
	}
	return []string{string(progress.OnSource), string(progress.OnDestination)}
}

func (t turn) Has() bool { return t.d.held.HasTurn(t.sides()...) }

func (t turn) Take(ctx context.Context) (string, error) {
	err := t.d.held.TakeTurn(ctx, t.sides()...)
	if other, ok := errors.AsType[*lock.HeldError](err); ok {
		return other.Error(), nil
	}
	return "", err
}

func (t turn) Give(ctx context.Context) {
	if err := t.d.held.GiveTurn(ctx); err != nil {
		t.d.o.Say("the turn with Velero could not be given back and ends with the run: " + err.Error())
	}
}
