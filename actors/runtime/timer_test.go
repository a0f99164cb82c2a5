package runtime_test

import (
	"testing"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/ident"
)

func TestATimerSendsWhenItsTimeHasCome(t *testing.T) {
	sim := newSimulated(1)
	var log journal
	spawn(t, sim.System, nil, runtime.Spec{Name: "a", Kind: "test", Behaviour: &script{
		onStart: func(turn *runtime.Turn) {
			turn.After(2*time.Second, &note{text: "two"})
			turn.After(time.Second, &note{text: "one"})
			turn.After(0, &note{text: "zero"})
			turn.After(time.Second, &note{text: "called off"}).Stop()
		},
		onMessage: explosive(&log),
	}})
	sim.run.Drain()
	for _, want := range []string{"zero", "zero one", "zero one two", "zero one two"} {
		if got := log.String(); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		sim.clock.Advance(time.Second)
		sim.run.Drain()
	}
}

// A timer that was called off after it fired, but before its message was handled,
// stays silent.
func TestCallingOffReachesIntoTheMailbox(t *testing.T) {
	sim := newSimulated(1)
	var log journal
	var timer *runtime.Timer
	ref := spawn(t, sim.System, nil, runtime.Spec{Name: "a", Kind: "test", BatchMax: 1, Behaviour: &script{
		onStart: func(turn *runtime.Turn) { timer = turn.NewTimer(&note{text: "tick"}) },
		onMessage: func(turn *runtime.Turn, m runtime.Message) {
			switch text := m.(*note).text; text {
			case "arm":
				timer.Reset(time.Second)
			case "stop":
				timer.Stop()
			default:
				log.add("%s", text)
			}
		},
	}})
	say := func(text string) { sim.mustSend(t, ref, &note{text: text}) }
	pass := func(d time.Duration) { sim.clock.Advance(d) }
	say("arm")
	sim.run.Drain()
	say("stop")
	pass(time.Second) // queued behind "stop"
	sim.run.Drain()
	if got := log.String(); got != "" {
		t.Fatalf("after stop: %q", got)
	}
	say("arm")
	sim.run.Drain()
	say("arm")
	pass(time.Second) // queued behind the second "arm"
	sim.run.Drain()
	if got := log.String(); got != "" {
		t.Fatalf("after rearming: %q", got)
	}
	pass(time.Second)
	sim.run.Drain()
	if got := log.String(); got != "tick" {
		t.Fatalf("in the end: %q", got)
	}
}

func TestTimersEndWithTheirInstance(t *testing.T) {
	sim := newSimulated(1)
	var log journal
	gen := 0
	ref := spawn(t, sim.System, nil, runtime.Spec{
		Name: "a", Kind: "test", OnBug: runtime.Policy{OnBug: runtime.Restart, Then: runtime.Stop},
		New: func() runtime.Behaviour {
			gen++
			return &script{
				onStart:   func(turn *runtime.Turn) { turn.After(time.Minute, &note{text: name("tick", gen)}) },
				onMessage: explosive(&log),
			}
		},
	})
	sim.run.Drain()
	sim.mustSend(t, ref, &bomb{})
	sim.run.Drain()
	sim.clock.Advance(10 * time.Minute)
	sim.run.Drain()
	sim.clock.Advance(10 * time.Minute)
	sim.run.Drain()
	if got := log.String(); got != "tick2" {
		t.Fatalf("got %q", got)
	}
	ref.Stop()
	sim.run.Drain()
	if sim.clock.Next() {
		t.Error("an alarm of a dead actor is still set")
	}
}

func TestTimersComeThroughAFullMailbox(t *testing.T) {
	sim := newSimulated(1)
	var log journal
	ref := spawn(t, sim.System, nil, runtime.Spec{Name: "a", Kind: "test", CountMax: 1, Behaviour: &script{
		onStart:   func(turn *runtime.Turn) { turn.After(time.Second, &note{text: "tick"}) },
		onMessage: explosive(&log),
	}})
	sim.run.Drain()
	sim.mustSend(t, ref, &note{text: "full"})
	sim.clock.Advance(time.Second)
	sim.run.Drain()
	if got := log.String(); got != "full tick" {
		t.Fatalf("got %q", got)
	}
}

func TestRealTimersFire(t *testing.T) {
	sys := newSystem(t)
	fired := make(chan time.Duration, 3)
	var from ident.Instant
	spawn(t, sys, nil, runtime.Spec{Name: "a", Kind: "test", Behaviour: &script{
		onStart: func(turn *runtime.Turn) {
			from, _ = turn.Now()
			turn.After(time.Millisecond, &note{})
			late := turn.NewTimer(&note{})
			late.Reset(time.Hour)
			late.Reset(2 * time.Millisecond)
			turn.After(time.Millisecond, &note{}).Stop()
		},
		onMessage: func(turn *runtime.Turn, _ runtime.Message) {
			now, _ := turn.Now()
			fired <- time.Duration(now - from)
		},
	}})
	for _, least := range []time.Duration{time.Millisecond, 2 * time.Millisecond} {
		if after := <-fired; after < least {
			t.Errorf("fired after %v, want at least %v", after, least)
		}
	}
}

func TestRearmingDoesNotAllocate(t *testing.T) {
	sys := newSystem(t)
	ref := spawnReady(t, sys, nil, runtime.Spec{Name: "a", Kind: "test", Behaviour: &rearmer{}})
	r := runtime.NewRunner(sys)
	m := &amount{}
	n := testing.AllocsPerRun(1000, func() {
		if err := r.Send(ref, m); err != nil {
			t.Fatal(err)
		}
		r.Run()
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTheRealClockOnlyGoesForward(t *testing.T) {
	c := runtime.NewRealClock()
	before, wall := c.Now()
	if before <= 0 {
		t.Errorf("the clock starts at %d", before)
	}
	if diff := time.Now().UnixMilli() - int64(wall); diff < 0 || diff > 5000 {
		t.Errorf("wall clock is %d ms off", diff)
	}
	for range 1000 {
		now, _ := c.Now()
		if now < before {
			t.Fatalf("%d after %d", now, before)
		}
		before = now
	}
}

func TestTheSimulatedClockFiresInOrder(t *testing.T) {
	c := runtime.NewSimClock(1000)
	var log journal
	note := func(s string) runtime.Alarm {
		return c.NewAlarm(func() {
			mono, wall := c.Now()
			log.add("%s@%d/%d", s, (mono-1)/1_000_000, wall)
		})
	}
	a, b, later, never := note("a"), note("b"), note("later"), note("never")
	b.Set(3 * time.Millisecond)
	a.Set(3 * time.Millisecond)
	later.Set(5 * time.Millisecond)
	never.Set(4 * time.Millisecond)
	never.Cancel()
	again := note("again")
	c.NewAlarm(func() { again.Set(time.Millisecond) }).Set(time.Millisecond)
	a.Set(2 * time.Millisecond)
	c.Advance(4 * time.Millisecond)
	c.JumpWall(-100 * time.Millisecond)
	if d, ok := c.Earliest(); !ok || d != time.Millisecond {
		t.Errorf("earliest in %v, %v", d, ok)
	}
	if !c.Next() || c.Next() {
		t.Error("one alarm was left")
	}
	if got, want := log.String(), "a@2/1002 again@2/1002 b@3/1003 later@5/905"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
