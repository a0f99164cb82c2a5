package runtime_test

import (
	"strings"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
)

// gossip runs a small world of actors that send to each other, restart, wait for
// timers and stop, and returns its hash and the order of what happened.
func gossip(t *testing.T, seed uint64) (uint64, string) {
	t.Helper()
	sim := newSimulated(seed)
	var log journal
	const n = 6
	refs := make([]*runtime.Ref, n)
	for i := range refs {
		spec := runtime.Spec{
			Name: name("a", i), Kind: "test", Blocking: i == 1,
			OnBug: runtime.Policy{OnBug: runtime.Restart, Then: runtime.Stop, BackoffMin: time.Millisecond},
			New: func() runtime.Behaviour {
				return &script{
					onStart: func(turn *runtime.Turn) { turn.After(time.Duration(i)*time.Millisecond, &note{text: "tick", size: 3}) },
					onMessage: func(turn *runtime.Turn, m runtime.Message) {
						n := m.(*note)
						log.add("%d:%s", i, n.text)
						if n.size > 0 {
							for k := 1; k <= 2; k++ {
								// Who has stopped by now has answered.
								_ = turn.Send(refs[(i*k+n.size)%len(refs)], &note{text: n.text, size: n.size - 1})
							}
						}
						if i == 3 && n.text == "die" {
							panic(errBoom)
						}
					},
				}
			},
		}
		refs[i] = spawn(t, sim.System, nil, spec)
	}
	for i, ref := range refs {
		sim.mustSend(t, ref, &note{text: name("m", i), size: 3})
	}
	sim.mustSend(t, refs[3], &note{text: "die", size: 2})
	for range 200 {
		sim.run.Step()
	}
	refs[2].Stop()
	for sim.run.Step() {
	}
	if sim.run.Err() != nil {
		t.Fatal(sim.run.Err())
	}
	return sim.run.Hash(), log.String()
}

func TestASeedIsARun(t *testing.T) {
	hashes, orders := map[uint64]bool{}, map[string]bool{}
	const seeds = 40
	for seed := range uint64(seeds) {
		h1, o1 := gossip(t, seed)
		h2, o2 := gossip(t, seed)
		if h1 != h2 || o1 != o2 {
			t.Fatalf("seed %d: hash %x and %x\n%s\n%s", seed, h1, h2, o1, o2)
		}
		hashes[h1], orders[o1] = true, true
	}
	if len(orders) != seeds || len(hashes) != seeds {
		t.Errorf("%d seeds gave %d orders and %d hashes", seeds, len(orders), len(hashes))
	}
}

func TestFillAndRestartAreFaultsOnDemand(t *testing.T) {
	sim := newSimulated(1)
	var log journal
	gen := 0
	ref := spawn(t, sim.System, nil, runtime.Spec{Name: "a", Kind: "test", New: func() runtime.Behaviour {
		gen++
		id := gen
		return &script{onMessage: func(_ *runtime.Turn, m runtime.Message) { log.add("%d:%s", id, m.(*note).text) }}
	}})
	sim.mustSend(t, ref, &note{text: "x"})
	sim.run.Drain()
	sim.run.Fill(ref, true)
	n := &note{}
	if err := sim.send.Send(ref, n); err == nil || !n.rejectedWith(runtime.ErrFull) {
		t.Error("a filled mailbox accepts")
	}
	sim.run.Fill(ref, false)
	sim.mustSend(t, ref, &note{text: "y"})
	sim.run.Restart(ref)
	sim.mustSend(t, ref, &note{text: "z"})
	sim.run.Drain()
	if got := log.String(); got != "1:x 2:y 2:z" {
		t.Errorf("got %s", got)
	}
}

func TestAnAbandonedSystemIsSilent(t *testing.T) {
	clock := runtime.NewSimClock(0)
	run := runtime.NewSeeded(1, clock)
	sys := func() *runtime.System { return runtime.NewSystem(runtime.Options{Clock: clock, Dispatcher: run}) }
	one, two := sys(), sys()
	var log journal
	a := spawn(t, one, nil, runtime.Spec{Name: "a", Kind: "test", Behaviour: &script{
		onStart: func(turn *runtime.Turn) { turn.After(time.Second, &note{text: "tick"}) }, onMessage: explosive(&log),
	}})
	b := spawn(t, two, nil, runtime.Spec{Name: "b", Kind: "test", Behaviour: &script{onMessage: explosive(&log)}})
	run.Drain()
	lost := &note{text: "lost"}
	for to, m := range map[*runtime.Ref]*note{a: lost, b: {text: "kept"}} {
		if err := to.Post(m); err != nil {
			t.Fatal(err)
		}
	}
	run.Abandon(one)
	if err := a.Post(&note{text: "late"}); err != nil {
		t.Errorf("nobody is there to refuse: %v", err)
	}
	for run.Step() {
	}
	if got := log.String(); got != "kept" {
		t.Errorf("got %q", got)
	}
	if h, r := lost.answers(); h+r != 0 {
		t.Error("a crashed process has answered")
	}
}

// TestACrashedSystemLeavesNothingBehind reuses what crashed Systems held: their names are free, their last turns and
// bugs concern nobody.
func TestACrashedSystemLeavesNothingBehind(t *testing.T) {
	clock := runtime.NewSimClock(0)
	run := runtime.NewSeeded(1, clock)
	for range 20 {
		sys := runtime.NewSystem(runtime.Options{Clock: clock, Dispatcher: run})
		root := spawn(t, sys, nil, runtime.Spec{Name: "root", Kind: "test", Behaviour: &script{onMessage: func(*runtime.Turn, runtime.Message) {
			run.Abandon(sys) // in the middle of a turn, which goes on
			panic(errBoom)
		}}})
		child := spawn(t, sys, root, runtime.Spec{Name: "child", Kind: "test", Behaviour: &script{}})
		run.Drain()
		if err := child.Post(&note{text: "waits"}); err != nil {
			t.Fatal(err)
		}
		if err := root.Post(&note{text: "die"}); err != nil {
			t.Fatal(err)
		}
		if !run.Drain() || run.Err() != nil || len(run.Blames()) > 0 {
			t.Fatalf("the bug of a dead process has ended the run: %v", run.Err())
		}
		run.Reclaim(sys)
	}
}

// TestActorsThatAreLateFindAllThatCameInTheMeantime: an actor whose turn is late has in it what was sent while it waited.
func TestActorsThatAreLateFindAllThatCameInTheMeantime(t *testing.T) {
	sim := newSimulated(1)
	sim.run.Late(func(_ *runtime.System, actor string) time.Duration {
		if actor != "late" {
			return 0
		}
		return time.Millisecond
	})
	var log journal
	late := spawn(t, sim.System, nil, runtime.Spec{Name: "late", Kind: "test", Behaviour: &script{onMessage: func(*runtime.Turn, runtime.Message) { log.add("late") }}})
	other := spawn(t, sim.System, nil, runtime.Spec{Name: "other", Kind: "test", Behaviour: &script{onMessage: func(*runtime.Turn, runtime.Message) {
		log.add("other")
		sim.mustSend(t, late, &note{})
	}}})
	for sim.run.Step() {
	}
	sim.mustSend(t, late, &note{})
	sim.mustSend(t, other, &note{})
	for sim.run.Step() {
	}
	if got := log.String(); got != "other late late" {
		t.Errorf("order %q", got)
	}
}

// TestAFrozenSystemDoesNothingUntilItGoesOn: what it is sent meanwhile is there then.
func TestAFrozenSystemDoesNothingUntilItGoesOn(t *testing.T) {
	sim := newSimulated(1)
	var log journal
	say := func(s string) runtime.Spec {
		return runtime.Spec{Name: s, Kind: "test", Behaviour: &script{onMessage: func(*runtime.Turn, runtime.Message) { log.add("%s", s) }}}
	}
	early, late := spawn(t, sim.System, nil, say("early")), spawn(t, sim.System, nil, say("late"))
	for sim.run.Step() {
	}
	sim.mustSend(t, early, &note{})
	sim.run.Freeze(sim.System, true)
	sim.mustSend(t, late, &note{})
	for sim.run.Step() {
	}
	if got := log.String(); got != "" || sim.run.Ready() != 0 {
		t.Errorf("frozen, and yet %q", got)
	}
	sim.run.Freeze(sim.System, false)
	for sim.run.Step() {
	}
	if got := log.String(); len(got) != len("early late") {
		t.Errorf("after that %q", got)
	}
}

func TestBlockingActorsAreHeldWhileOthersRun(t *testing.T) {
	sim := newSimulated(1)
	var log journal
	sim.run.Hold(func(_ *runtime.System, actor string) time.Duration {
		if actor != "disk" {
			t.Errorf("%s does not block", actor)
		}
		return time.Millisecond
	})
	turns := 0
	sim.run.Watch(func(string, []runtime.Message) { turns++ })
	disk := spawn(t, sim.System, nil, runtime.Spec{Name: "disk", Kind: "test", Blocking: true, Behaviour: &script{onMessage: func(*runtime.Turn, runtime.Message) { log.add("disk") }}})
	other := spawn(t, sim.System, nil, runtime.Spec{Name: "other", Kind: "test", Behaviour: &script{onMessage: func(*runtime.Turn, runtime.Message) { log.add("other") }}})
	for sim.run.Step() {
	}
	sim.mustSend(t, disk, &note{})
	sim.mustSend(t, disk, &note{})
	sim.mustSend(t, other, &note{})
	began, _ := sim.clock.Now()
	for sim.run.Step() {
	}
	if took, _ := sim.clock.Now(); time.Duration(took-began) < time.Millisecond {
		t.Errorf("the disk answered after %v", time.Duration(took-began))
	}
	if got := log.String(); got != "other disk disk" || turns == 0 {
		t.Errorf("order %q, %d turns told", got, turns)
	}
}

func TestShutdownInASimulation(t *testing.T) {
	sim := newSimulated(1)
	root := spawn(t, sim.System, nil, runtime.Spec{Name: "root", Kind: "test", Behaviour: &script{}})
	spawn(t, sim.System, root, runtime.Spec{Name: "child", Kind: "test", Blocking: true, Behaviour: &script{}})
	if err := sim.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !root.Stopped() {
		t.Error("not stopped")
	}
	stuck := newSimulated(1)
	spawn(t, stuck.System, nil, runtime.Spec{Name: "a", Kind: "test", Behaviour: &script{onStart: func(*runtime.Turn) { panic(errBoom) }}})
	spawn(t, stuck.System, nil, runtime.Spec{Name: "b", Kind: "test", Behaviour: &script{}})
	stuck.run.Drain()
	if err := stuck.Shutdown(t.Context()); err == nil || !strings.Contains(err.Error(), "ended by a bug") {
		t.Errorf("shutdown after the run has ended: %v", err)
	}
}
