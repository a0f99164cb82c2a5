package runtime_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/ident"
)

// simulated is a System on a seeded dispatcher and a simulated clock.
type simulated struct {
	*runtime.System
	clock *runtime.SimClock
	run   *runtime.Seeded
	send  *runtime.Runner
}

func newSimulated(seed uint64) *simulated {
	clock := runtime.NewSimClock(1_700_000_000_000)
	run := runtime.NewSeeded(seed, clock)
	sys := runtime.NewSystem(runtime.Options{Clock: clock, Dispatcher: run})
	return &simulated{System: sys, clock: clock, run: run, send: runtime.NewRunner(sys)}
}

func (s *simulated) mustSend(tb testing.TB, to *runtime.Ref, m runtime.Message) {
	tb.Helper()
	if err := s.send.Send(to, m); err != nil {
		tb.Fatal(err)
	}
	s.send.Run()
}

// bomb goes off in the turn that handles it.
type bomb struct{ note }

func (b *bomb) Bytes() int { return 1 }

var errBoom = errors.New("boom")

func explosive(log *journal) func(*runtime.Turn, runtime.Message) {
	return func(_ *runtime.Turn, m runtime.Message) {
		switch m := m.(type) {
		case *bomb:
			panic(errBoom)
		case *note:
			log.add("%s", m.text)
		}
	}
}

func TestARestartLosesTheMessageThatKilledAndNoOther(t *testing.T) {
	for seed := range uint64(50) {
		sim := newSimulated(seed)
		var log journal
		instances := 0
		ref := spawn(t, sim.System, nil, runtime.Spec{
			Name: "a", Kind: "test",
			OnBug: runtime.Policy{OnBug: runtime.Restart, Then: runtime.Exit},
			New: func() runtime.Behaviour {
				instances++
				return &script{onMessage: explosive(&log)}
			},
		})
		poison := &bomb{}
		for _, m := range []runtime.Message{&note{text: "1"}, &note{text: "2"}, poison, &note{text: "3"}, &note{text: "4"}} {
			sim.mustSend(t, ref, m)
		}
		if !sim.run.Drain() {
			t.Fatal(sim.run.Err())
		}
		if got := log.String(); got != "1 2" {
			t.Fatalf("seed %d: handled %q before the restart", seed, got)
		}
		var bug *runtime.BugError
		if why := poison.why.Load(); why == nil || !errors.As(*why, &bug) || bug.Actor != "a" {
			t.Fatalf("seed %d: the poison was answered with %v", seed, poison.why.Load())
		}
		sim.clock.Advance(100 * time.Millisecond)
		if !sim.run.Drain() {
			t.Fatal(sim.run.Err())
		}
		if got := log.String(); got != "1 2 3 4" || instances != 2 {
			t.Fatalf("seed %d: handled %q with %d instances", seed, got, instances)
		}
		b := sim.run.Blames()[0]
		if !errors.Is(b, errBoom) || b.Actor != "a" || b.Message != "*runtime_test.bomb" || b.Decision != runtime.Restart || !strings.Contains(b.Stack, "explosive") {
			t.Fatalf("blame %+v", b)
		}
	}
}

func TestRestartsBackOffAndEnd(t *testing.T) {
	for _, then := range []runtime.Decision{runtime.Exit, runtime.Stop, runtime.Quarantine} {
		t.Run(then.String(), func(t *testing.T) {
			sim := newSimulated(1)
			var log journal
			ref := spawn(t, sim.System, nil, runtime.Spec{
				Name: "a", Kind: "test", New: func() runtime.Behaviour { return &script{onMessage: explosive(&log)} },
				OnBug: runtime.Policy{
					OnBug: runtime.Restart, RestartsMax: 3, RestartsWithin: time.Minute,
					BackoffMin: time.Second, BackoffMax: 3 * time.Second, Then: then, QuarantineFor: time.Hour,
				},
			})
			for i, pause := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second} {
				sim.mustSend(t, ref, &bomb{})
				sim.mustSend(t, ref, &note{text: name("n", i)})
				sim.run.Drain()
				sim.clock.Advance(pause - 10*time.Millisecond)
				sim.run.Drain()
				if strings.Contains(log.String(), name("n", i)) {
					t.Fatalf("restart %d came too early", i+1)
				}
				sim.clock.Advance(10 * time.Millisecond)
				sim.run.Drain()
				if !strings.Contains(log.String(), name("n", i)) {
					t.Fatalf("restart %d did not come", i+1)
				}
			}
			queued := &note{text: "queued"}
			sim.mustSend(t, ref, &bomb{})
			sim.mustSend(t, ref, queued)
			sim.run.Drain()
			late := &note{text: "late"}
			err := sim.send.Send(ref, late)
			sim.send.Run()
			switch then {
			case runtime.Restart:
				t.Fatal("no end")
			case runtime.Exit:
				if b := (*runtime.Blame)(nil); !errors.As(sim.run.Err(), &b) || b.Decision != runtime.Exit || b.Failures != 4 {
					t.Fatalf("the run ended with %v", sim.run.Err())
				}
			case runtime.Stop:
				if !ref.Stopped() || !errors.Is(err, runtime.ErrStopped) || !queued.rejectedWith(runtime.ErrStopped) || !late.rejectedWith(runtime.ErrStopped) {
					t.Fatalf("stopped %v, send %v", ref.Stopped(), err)
				}
			case runtime.Quarantine:
				if !errors.Is(err, runtime.ErrQuarantined) || !queued.rejectedWith(runtime.ErrQuarantined) {
					t.Fatalf("send in quarantine: %v", err)
				}
				if a := sim.Actors()[0]; !a.Quarantined || !a.Suspended {
					t.Fatalf("stats in quarantine: %+v", a)
				}
				sim.clock.Advance(time.Hour)
				sim.run.Drain()
				sim.mustSend(t, ref, &note{text: "after"})
				sim.run.Drain()
				if !strings.HasSuffix(log.String(), "after") {
					t.Fatalf("after the quarantine: %s", log.String())
				}
			}
		})
	}
}

func TestOldFailuresAreForgiven(t *testing.T) {
	sim := newSimulated(1)
	ref := spawn(t, sim.System, nil, runtime.Spec{
		Name: "a", Kind: "test", New: func() runtime.Behaviour { return &script{onMessage: explosive(&journal{})} },
		OnBug: runtime.Policy{OnBug: runtime.Restart, RestartsMax: 1, RestartsWithin: time.Minute, Then: runtime.Exit},
	})
	for range 20 {
		sim.mustSend(t, ref, &bomb{})
		sim.run.Drain()
		sim.clock.Advance(61 * time.Second)
		if !sim.run.Drain() {
			t.Fatal(sim.run.Err())
		}
	}
}

func TestABugIsBlamedOnTheActorWhereverItRan(t *testing.T) {
	blames := make(chan *runtime.Blame, 10)
	sys := runtime.NewSystem(runtime.Options{OnBug: func(b *runtime.Blame) { blames <- b }})
	defer shutdown(t, sys)
	root := spawnReady(t, sys, nil, runtime.Spec{Name: "root", Kind: "core.root", Behaviour: &script{}})
	stop := runtime.Policy{OnBug: runtime.Stop}
	victim := spawnReady(t, sys, root, runtime.Spec{Name: "victim", Kind: "core.victim", OnBug: stop, Behaviour: &script{onMessage: explosive(&journal{})}})
	session := spawnReady(t, sys, root, runtime.Spec{Name: "session", Kind: "core.session", OnBug: stop, Behaviour: &script{onMessage: func(turn *runtime.Turn, m runtime.Message) {
		if err := turn.Send(victim, m); err != nil {
			t.Error(err)
		}
	}}})
	r := runtime.NewRunner(sys)
	poison := &bomb{}
	if err := r.Send(session, poison); err != nil {
		t.Fatal(err)
	}
	r.Run()
	b := <-blames
	if b.Actor != "root/victim" || b.Kind != "core.victim" || b.Decision != runtime.Stop || b.Fault != nil || !errors.Is(b, errBoom) {
		t.Errorf("blame %+v", b)
	}
	<-victim.Done()
	if poison.rejected.Load() != 1 {
		t.Error("the message was not answered")
	}
	ok := &note{}
	if err := r.Send(root, ok); err != nil {
		t.Fatal(err)
	}
	r.Run()
	waitIdle(t, sys, root)
	if session.Stopped() || ok.handled.Load() != 1 {
		t.Error("a bug of one actor harmed another")
	}
}

// The process that ends is a copy of this test.
func TestWithoutAHookAnExitEndsTheProcessLoudly(t *testing.T) {
	if os.Getenv("TROUPE_TEST_EXIT") != "" {
		sys := runtime.NewSystem(runtime.Options{})
		ref := spawnReady(t, sys, nil, runtime.Spec{Name: "a", Kind: "test", Behaviour: &script{onMessage: explosive(&journal{})}})
		if err := ref.Post(&bomb{}); err != nil {
			t.Fatal(err)
		}
		<-ref.Done()
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "TROUPE_TEST_EXIT=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "panic: ") || !strings.Contains(string(out), "bug in actor a (test)") {
		t.Errorf("the panic became silence: %v\n%s", err, out)
	}
}

func TestAHookThatFailsIsABugToo(t *testing.T) {
	fail := func(*runtime.Turn) { panic(errBoom) }
	for _, c := range []struct {
		hook     string
		s        *script
		decision runtime.Decision
	}{
		{"Started", &script{onStart: fail}, runtime.Restart},
		{"Restarting", &script{onMessage: explosive(&journal{}), onRestart: fail}, runtime.Stop},
		{"Stopping", &script{onStopping: fail}, runtime.Stop},
		{"Stopped", &script{onStopped: fail}, runtime.Stop},
		{"Terminated", &script{onTerminate: func(*runtime.Turn, *runtime.Ref) { panic(errBoom) }}, runtime.Restart},
		{"New", nil, runtime.Restart},
	} {
		t.Run(c.hook, func(t *testing.T) {
			sim := newSimulated(7)
			first := true
			ref := spawn(t, sim.System, nil, runtime.Spec{
				Name: "a", Kind: "test", OnBug: runtime.Policy{OnBug: runtime.Restart, Then: runtime.Stop},
				New: func() runtime.Behaviour {
					if !first {
						return &script{onMessage: explosive(&journal{})}
					}
					first = false
					if c.s == nil {
						panic(errBoom)
					}
					return c.s
				},
			})
			child := spawn(t, sim.System, ref, runtime.Spec{Name: "child", Kind: "test", Behaviour: &script{}})
			sim.run.Drain()
			if c.hook == "Restarting" {
				sim.mustSend(t, ref, &bomb{})
			}
			child.Stop()
			sim.run.Drain()
			sim.clock.Advance(time.Second)
			sim.run.Drain()
			if c.decision == runtime.Restart || c.hook == "Restarting" {
				ok := &note{}
				sim.mustSend(t, ref, ok)
				sim.run.Drain()
				if ok.handled.Load() != 1 {
					t.Error("no new instance")
				}
			}
			ref.Stop()
			sim.run.Drain()
			if !ref.Stopped() {
				t.Error("did not stop")
			}
			found := false
			for _, b := range sim.run.Blames() {
				if b.Message == c.hook && b.Decision == c.decision && errors.Is(b, errBoom) {
					found = true
				}
			}
			if !found {
				t.Errorf("blames %v", sim.run.Blames())
			}
		})
	}
}

func TestARestartStopsTheChildrenFirst(t *testing.T) {
	sim := newSimulated(3)
	var log journal
	gen := 0
	parent := spawn(t, sim.System, nil, runtime.Spec{
		Name: "p", Kind: "test", OnBug: runtime.Policy{OnBug: runtime.Restart, Then: runtime.Stop},
		New: func() runtime.Behaviour {
			gen++
			s := teller(&log, fmt.Sprintf("p%d", gen))
			s.onMessage = explosive(&log)
			return s
		},
	})
	child := spawn(t, sim.System, parent, runtime.Spec{Name: "c", Kind: "test", Behaviour: teller(&log, "c")})
	sim.run.Drain()
	sim.mustSend(t, parent, &bomb{})
	sim.run.Drain()
	// Asked for while the parent is down: adopted by the next instance.
	second := spawn(t, sim.System, parent, runtime.Spec{Name: "c2", Kind: "test", Behaviour: teller(&log, "c2")})
	sim.clock.Advance(time.Second)
	sim.run.Drain()
	if !child.Stopped() {
		t.Error("the child outlived the instance that spawned it")
	}
	sim.mustSend(t, second, &note{})
	sim.run.Drain()
	if got, want := log.String(), "start:p1 start:c stopping:c stopped:c start:p2 start:c2"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestARestartStormHarmsNobodyElse(t *testing.T) {
	var bugs atomic.Int64
	sys := runtime.NewSystem(runtime.Options{OnBug: func(*runtime.Blame) { bugs.Add(1) }})
	defer shutdown(t, sys)
	root := spawnReady(t, sys, nil, runtime.Spec{Name: "root", Kind: "test", Behaviour: &script{}})
	policy := runtime.Policy{OnBug: runtime.Restart, RestartsMax: 1 << 30, BackoffMin: time.Microsecond, BackoffMax: 50 * time.Microsecond, Then: runtime.Stop}
	stormy := spawnReady(t, sys, root, runtime.Spec{Name: "stormy", Kind: "test", OnBug: policy, CountMax: 64, New: func() runtime.Behaviour {
		return &script{onMessage: explosive(&journal{})}
	}})
	calm := spawnReady(t, sys, root, runtime.Spec{Name: "calm", Kind: "test", CountMax: 1 << 20, Behaviour: &script{}})
	const senders, each = 4, 1500
	type sent interface {
		runtime.Message
		answers() (handled, rejected int32)
	}
	all := make([][]sent, senders)
	var group sync.WaitGroup
	for s := range senders {
		group.Go(func() {
			r := runtime.NewRunner(sys)
			for i := range each {
				var m sent = &note{}
				if i%7 == 0 {
					m = &bomb{}
				}
				all[s] = append(all[s], m)
				if err := r.Send(stormy, m); err != nil && !errors.Is(err, runtime.ErrFull) {
					t.Error(err)
				}
				quiet := &note{}
				all[s] = append(all[s], quiet)
				if err := r.Send(calm, quiet); err != nil {
					t.Error(err)
				}
				r.Run()
			}
		})
	}
	group.Wait()
	eventually(t, "the storm is over", func() bool { return runtime.Idle(calm) })
	stormy.Stop()
	<-stormy.Done()
	for s := range all {
		for i, m := range all[s] {
			if h, r := m.answers(); h+r != 1 {
				t.Fatalf("sender %d, message %d (%T): handled %d times, rejected %d times", s, i, m, h, r)
			}
		}
	}
	if bugs.Load() == 0 {
		t.Error("no storm")
	}
}

func (n *note) answers() (handled, rejected int32) { return n.handled.Load(), n.rejected.Load() }

func TestAStopWinsOverARestart(t *testing.T) {
	sim := newSimulated(5)
	ref := spawn(t, sim.System, nil, runtime.Spec{
		Name: "a", Kind: "test", OnBug: runtime.Policy{OnBug: runtime.Restart, Then: runtime.Stop, BackoffMin: time.Second},
		New: func() runtime.Behaviour { return &script{onMessage: explosive(&journal{})} },
	})
	child := spawn(t, sim.System, ref, runtime.Spec{Name: "c", Kind: "test", Behaviour: &script{}})
	sim.mustSend(t, ref, &bomb{})
	for sim.run.Ready() > 0 && len(sim.run.Blames()) == 0 {
		sim.run.Step()
	}
	ref.Stop()
	sim.clock.Advance(time.Minute) // the restart comes while it stops
	sim.run.Drain()
	if !ref.Stopped() || !child.Stopped() {
		t.Error("the restart brought it back to life")
	}
}

func TestATurnThatEndsItsGoroutineIsABug(t *testing.T) {
	for _, hook := range []bool{false, true} {
		blames := make(chan *runtime.Blame, 10)
		sys := runtime.NewSystem(runtime.Options{OnBug: func(b *runtime.Blame) { blames <- b }})
		for _, blocking := range []bool{false, true} {
			s := &script{onMessage: func(*runtime.Turn, runtime.Message) { goruntime.Goexit() }}
			if hook {
				s = &script{onStart: func(*runtime.Turn) { goruntime.Goexit() }}
			}
			ref := spawn(t, sys, nil, runtime.Spec{Name: fmt.Sprint("a", blocking), Kind: "test", Blocking: blocking, OnBug: runtime.Policy{OnBug: runtime.Stop}, Behaviour: s})
			n := &note{}
			if err := ref.Post(n); err != nil && !errors.Is(err, runtime.ErrStopped) {
				t.Fatal(err)
			}
			if b := <-blames; !strings.Contains(b.Error(), "Goexit") {
				t.Error(b)
			}
			<-ref.Done()
			if n.rejected.Load() != 1 {
				t.Error("the message was not answered")
			}
		}
		shutdown(t, sys)
	}
}

func TestBlameCarriesTheTime(t *testing.T) {
	sim := newSimulated(1)
	ref := spawn(t, sim.System, nil, runtime.Spec{Name: "a", Kind: "test", Behaviour: &script{onMessage: explosive(&journal{})}})
	sim.clock.Advance(time.Second)
	sim.mustSend(t, ref, &bomb{})
	for sim.run.Step() {
	}
	b := (*runtime.Blame)(nil)
	if !errors.As(sim.run.Err(), &b) || b.At < ident.Instant(time.Second) || b.Decision != runtime.Exit {
		t.Errorf("the run ended with %v", sim.run.Err())
	}
	if sim.run.Step() {
		t.Error("a run that has ended goes on")
	}
}
