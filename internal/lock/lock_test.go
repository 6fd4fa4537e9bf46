package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
)

// server is a cluster that can be made to fail by process: each has its door.
type server struct{ client.WithWatch }

func newServer() server {
	scheme := runtime.NewScheme()
	utilruntime.Must(coordinationv1.AddToScheme(scheme))
	return server{fake.NewClientBuilder().WithScheme(scheme).Build()}
}

// door is a process's way to the cluster; broken says why it is shut.
type door struct {
	*cluster.Cluster
	broken error
}

func (s server) door() *door {
	d := &door{}
	update := func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
		if d.broken != nil {
			return d.broken
		}
		return c.Update(ctx, o, opts...)
	}
	d.Cluster = &cluster.Cluster{
		Client:          interceptor.NewClient(s.WithWatch, interceptor.Funcs{Update: update}),
		VeleroNamespace: "velero",
	}
	return d
}

func locker(plan, run, user string) Locker {
	return Locker{Holder: Holder{Owner: naming.Owner{PlanName: plan, PlanUID: "uid-of-" + plan, RunUID: run}, User: user, Host: user + "s-laptop", PID: 7}}
}

func take(t *testing.T, l Locker, d *door, namespaces ...string) (context.Context, *Held) {
	t.Helper()
	ctx, held, err := l.AcquireAll(t.Context(), source(d.Cluster, namespaces...))
	if err != nil {
		t.Fatal(err)
	}
	return ctx, held
}

func release(t *testing.T, h *Held) {
	t.Helper()
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// kill ends a holder as kill -9 does: nothing is renewed and nothing given back.
func kill(all *Held) {
	for _, h := range all.on {
		h.end()
	}
}

func source(c *cluster.Cluster, namespaces ...string) Place {
	return Place{Cluster: c, Side: "source", Namespaces: namespaces}
}

func (s server) leases(t *testing.T) []coordinationv1.Lease {
	t.Helper()
	var all coordinationv1.LeaseList
	if err := s.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	return all.Items
}

func TestASecondRunOfAPlanIsToldWhoHoldsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		began := time.Now()
		_, first := take(t, locker("shop", "run-1", "jane"), s.door(), "shop")
		time.Sleep(7 * time.Minute)
		_, _, err := locker("shop", "run-2", "joe").AcquireAll(t.Context(), source(s.door().Cluster, "shop"))
		var held *HeldError
		if !errors.As(err, &held) {
			t.Fatalf("got %v", err)
		}
		if held.What != "plan shop on the source" || held.Holder != "jane (plan shop, run run-1)" || held.Host != "janes-laptop, process 7" || !held.Since.Equal(began) {
			t.Errorf("got %+v", held)
		}
		release(t, first)
		_, second := take(t, locker("shop", "run-2", "joe"), s.door(), "shop")
		release(t, second)
	})
}

func TestALivingHolderIsKnownWithinOneRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		_, first := take(t, locker("shop", "run-1", "jane"), s.door(), "shop")
		start := time.Now()
		_, _, err := locker("store", "run-2", "joe").AcquireAll(t.Context(), source(s.door().Cluster, "shop"))
		if took := time.Since(start); err == nil || took > Renew+2*retryIn {
			t.Errorf("got %v after %s", err, took)
		}
		release(t, first)
	})
}

func TestPlansThatShareANamespaceExcludeEachOtherAndOthersDoNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		_, shop := take(t, locker("shop", "run-1", "jane"), s.door(), "a", "b")
		_, store := take(t, locker("store", "run-2", "joe"), s.door(), "c", "d")
		_, _, err := locker("both", "run-3", "ann").AcquireAll(t.Context(), source(s.door().Cluster, "e", "a"))
		var held *HeldError
		if !errors.As(err, &held) || held.What != "namespace a on the source" {
			t.Errorf("got %v", err)
		}
		if n := len(s.leases(t)); n != 6 {
			t.Errorf("%d leases, want the 6 of the two runs: who got not all must keep none", n)
		}
		release(t, shop)
		release(t, store)
		if n := len(s.leases(t)); n != 0 {
			t.Errorf("%d leases are left", n)
		}
	})
}

func TestOfTwoThatCameAtOnceTheFirstToTakeTheSharedNamespaceGetsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		slow := s.door()
		var winner *Held
		slow.Client = interceptor.NewClient(s.WithWatch, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if o.GetName() == naming.NamespaceLease("b") && winner == nil {
					_, winner = take(t, locker("store", "run-2", "joe"), s.door(), "b")
				}
				return c.Create(ctx, o, opts...)
			},
		})
		_, _, err := locker("shop", "run-1", "jane").AcquireAll(t.Context(), source(slow.Cluster, "a", "b"))
		var held *HeldError
		if !errors.As(err, &held) || !strings.HasPrefix(held.Holder, "joe") {
			t.Errorf("got %v", err)
		}
		for _, l := range s.leases(t) {
			if strings.Contains(deref(l.Spec.HolderIdentity), "run-1") {
				t.Errorf("the loser kept %s", l.Name)
			}
		}
		release(t, winner)
	})
}

func TestADeadRunIsWaitedOutOnceWithAWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		_, dead := take(t, locker("shop", "run-1", "jane"), s.door(), "a", "b", "c")
		kill(dead)
		time.Sleep(time.Hour) // however long it has been dead: clocks are not compared
		var told []string
		l := locker("shop", "run-1", "jane") // the same run is taken up again
		l.Waiting = func(what string, holder *HeldError) { told = append(told, what+" "+holder.Host) }
		start := time.Now()
		_, held, err := l.AcquireAll(t.Context(), source(s.door().Cluster, "a", "b", "c"))
		if took := time.Since(start); err != nil || took < Duration || took > Duration+2*retryIn {
			t.Errorf("got %v after %s, want %s", err, took, Duration)
		}
		if len(told) != 1 || told[0] != "plan shop on the source janes-laptop, process 7" {
			t.Errorf("told %q", told)
		}
		release(t, held)
	})
}

func TestADeadRunCostsOneWaitForBothClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, dst := newServer(), newServer()
		both := func() []Place {
			return []Place{source(src.door().Cluster, "a"), {Cluster: dst.door().Cluster, Side: "destination", Namespaces: []string{"b"}}}
		}
		_, dead, err := locker("shop", "run-1", "jane").AcquireAll(t.Context(), both()...)
		if err != nil {
			t.Fatal(err)
		}
		kill(dead)
		start := time.Now()
		_, held, err := locker("shop", "run-1", "jane").AcquireAll(t.Context(), both()...)
		if took := time.Since(start); err != nil || took > Duration+2*retryIn {
			t.Errorf("got %v after %s", err, took)
		}
		release(t, held)
	})
}

func TestWhoGetsOnlyOneClusterKeepsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, dst := newServer(), newServer()
		_, other := take(t, locker("store", "run-2", "joe"), dst.door(), "b")
		_, _, err := locker("shop", "run-1", "jane").AcquireAll(t.Context(),
			source(src.door().Cluster, "a"), Place{Cluster: dst.door().Cluster, Side: "destination", Namespaces: []string{"b"}})
		var held *HeldError
		if !errors.As(err, &held) || held.What != "namespace b on the destination" {
			t.Errorf("got %v", err)
		}
		if n := len(src.leases(t)); n != 0 {
			t.Errorf("%d leases on the source", n)
		}
		release(t, other)
	})
}

func TestADeadRunOfAnotherPlanIsWaitedOutToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		_, dead := take(t, locker("shop", "run-1", "jane"), s.door(), "a", "b")
		kill(dead)
		start := time.Now()
		_, held := take(t, locker("store", "run-2", "joe"), s.door(), "b", "c")
		if took := time.Since(start); took < Duration {
			t.Errorf("taken after %s, when its holder could still live", took)
		}
		release(t, held)
	})
}

func TestAHolderWhoseClockIsWrongLives(t *testing.T) {
	for _, skew := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			d := s.door()
			d.Client = interceptor.NewClient(s.WithWatch, interceptor.Funcs{
				Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
					l := o.(*coordinationv1.Lease)
					l.Spec.RenewTime.Time = l.Spec.RenewTime.Add(skew)
					return c.Update(ctx, o, opts...)
				},
			})
			_, first := take(t, locker("shop", "run-1", "jane"), d, "a")
			time.Sleep(time.Minute)
			var held *HeldError
			if _, _, err := locker("store", "run-2", "joe").AcquireAll(t.Context(), source(s.door().Cluster, "a")); !errors.As(err, &held) {
				t.Errorf("clock off by %s: got %v", skew, err)
			}
			release(t, first)
		})
	}
}

func TestAHolderThatWasThoughtDeadStopsWhenItComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		away := s.door()
		work, first := take(t, locker("shop", "run-1", "jane"), away, "a")
		away.broken = apierrors.NewServiceUnavailable("cut off")
		time.Sleep(Renew + time.Second)
		_, second := take(t, locker("store", "run-2", "joe"), s.door(), "a")
		if work.Err() != nil {
			t.Errorf("lost before it could know: %v", context.Cause(work))
		}
		away.broken = nil
		time.Sleep(Renew)
		if err := context.Cause(work); !errors.Is(err, ErrLost) {
			t.Errorf("it works on beside another: %v", err)
		}
		release(t, first)
		if n := len(s.leases(t)); n != 2 {
			t.Errorf("%d leases, want the second's two", n)
		}
		release(t, second)
	})
}

func TestAHolderWhosePlanAnotherProcessTookIsToldWhose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		away := s.door()
		work, first := take(t, locker("shop", "run-1", "jane"), away, "a")
		time.Sleep(3*Renew + time.Second)
		away.broken = apierrors.NewServiceUnavailable("cut off")
		time.Sleep(Renew + time.Second)
		_, second := take(t, locker("shop", "run-1", "joe"), s.door(), "a")
		away.broken = nil
		time.Sleep(Renew)
		if err := context.Cause(work); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "by joe") {
			t.Errorf("got %v", err)
		}
		release(t, first)
		if n := len(s.leases(t)); n != 2 {
			t.Errorf("%d leases: the loser gave back what was not its own", n)
		}
		release(t, second)
	})
}

func TestAClusterThatDoesNotAnswerForAWhileLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		d := s.door()
		work, held := take(t, locker("shop", "run-1", "jane"), d, "a")
		d.broken = apierrors.NewServiceUnavailable("restarting")
		time.Sleep(defaultPatience - Renew)
		d.broken = nil
		time.Sleep(time.Minute)
		if work.Err() != nil {
			t.Errorf("got %v", context.Cause(work))
		}
		d.broken = apierrors.NewServiceUnavailable("gone")
		time.Sleep(defaultPatience + 2*Renew)
		if err := context.Cause(work); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "could not be renewed") {
			t.Errorf("got %v", err)
		}
		release(t, held)
	})
}

func TestALeaseThatSomeoneDeletedOrLabelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		work, held := take(t, locker("shop", "run-1", "jane"), s.door(), "a")
		key := client.ObjectKey{Namespace: "velero", Name: held.on[0].run.name}
		var l coordinationv1.Lease
		if err := s.Get(t.Context(), key, &l); err != nil {
			t.Fatal(err)
		}
		l.Labels["team"] = "blue"
		if err := s.Update(t.Context(), &l); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if work.Err() != nil {
			t.Errorf("a label lost it: %v", context.Cause(work))
		}
		if err := s.Delete(t.Context(), &l); err != nil {
			t.Fatal(err)
		}
		time.Sleep(Renew)
		if err := context.Cause(work); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "is gone") {
			t.Errorf("got %v", err)
		}
		release(t, held)
	})
}

func TestTheLockIsHeldAfterTheWorkWasStoppedUntilItIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		ctx, stop := context.WithCancel(t.Context())
		work, held, err := locker("shop", "run-1", "jane").AcquireAll(ctx, source(s.door().Cluster, "a"))
		if err != nil {
			t.Fatal(err)
		}
		stop()
		time.Sleep(time.Minute) // putting back what was changed
		if errors.Is(context.Cause(work), ErrLost) {
			t.Error("lost by a stop")
		}
		var other *HeldError
		if _, _, err := locker("store", "run-2", "joe").AcquireAll(t.Context(), source(s.door().Cluster, "a")); !errors.As(err, &other) {
			t.Errorf("got %v", err)
		}
		release(t, held)
		release(t, held) // twice is as once
		if n := len(s.leases(t)); n != 0 {
			t.Errorf("%d leases are left", n)
		}
	})
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		_, dead := take(t, locker("shop", "run-1", "jane"), s.door(), "a")
		kill(dead)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, _, err := locker("shop", "run-2", "joe").AcquireAll(ctx, source(s.door().Cluster, "a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAThousandNamespacesCostNoMoreRenewalsThanOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		d, updates := s.door(), 0
		d.Client = interceptor.NewClient(s.WithWatch, interceptor.Funcs{
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				updates++
				return c.Update(ctx, o, opts...)
			},
		})
		var many []string
		for i := range 1000 {
			many = append(many, fmt.Sprintf("ns-%d", i))
		}
		_, held := take(t, locker("shop", "run-1", "jane"), d, many...)
		time.Sleep(time.Minute + time.Second)
		if updates != 12 {
			t.Errorf("%d renewals in a minute", updates)
		}
		release(t, held)
	})
}
