package runtime_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/troupe-broker/troupe/actors/runtime"
)

// teller is a behaviour that writes down its life.
func teller(log *journal, name string) *script {
	return &script{
		onStart:     func(*runtime.Turn) { log.add("start:%s", name) },
		onStopping:  func(*runtime.Turn) { log.add("stopping:%s", name) },
		onStopped:   func(*runtime.Turn) { log.add("stopped:%s", name) },
		onTerminate: func(_ *runtime.Turn, who *runtime.Ref) { log.add("%s:saw:%s", name, who.Name()) },
	}
}

func TestStopGoesDownTheTreeAndComesUpAgain(t *testing.T) {
	sys := newSystem(t)
	var log journal
	root := spawnReady(t, sys, nil, runtime.Spec{Name: "root", Kind: "test", Behaviour: teller(&log, "root")})
	mid := spawnReady(t, sys, root, runtime.Spec{Name: "mid", Kind: "test", Behaviour: teller(&log, "mid")})
	leaf := spawnReady(t, sys, mid, runtime.Spec{Name: "leaf", Kind: "test", Blocking: true, Behaviour: teller(&log, "leaf")})
	if leaf.Name() != "root/mid/leaf" {
		t.Errorf("path %s", leaf)
	}
	root.Stop()
	root.Stop() // once is enough
	<-root.Done()
	if !leaf.Stopped() || !mid.Stopped() {
		t.Error("the root is done before its children")
	}
	want := "start:root start:mid start:leaf stopping:root stopping:mid stopping:leaf stopped:leaf mid:saw:root/mid/leaf stopped:mid root:saw:root/mid stopped:root"
	if got := log.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAStoppedChildLeavesItsName(t *testing.T) {
	sys := newSystem(t)
	var log journal
	root := spawnReady(t, sys, nil, runtime.Spec{Name: "root", Kind: "test", Behaviour: teller(&log, "root")})
	spec := runtime.Spec{Name: "child", Kind: "test", Behaviour: &script{}}
	first := spawnReady(t, sys, root, spec)
	if _, err := sys.Spawn(root, spec); !errors.Is(err, runtime.ErrNameTaken) {
		t.Fatalf("a second child of the name: %v", err)
	}
	first.Stop()
	<-first.Done()
	second := spawnReady(t, sys, root, spec)
	if first == second {
		t.Fatal("the second child has the address of the first")
	}
	if err := runtime.NewRunner(sys).Send(first, &note{}); !errors.Is(err, runtime.ErrStopped) {
		t.Fatalf("send to the first: %v", err)
	}
	r := runtime.NewRunner(sys)
	n := &note{}
	if err := r.Send(second, n); err != nil {
		t.Fatal(err)
	}
	r.Run()
	if n.handled.Load() != 1 {
		t.Fatal("not handled by the second child")
	}
}

func TestAChildOfAStoppingParentNeverStarts(t *testing.T) {
	sys := newSystem(t)
	var log journal
	var late *runtime.Ref
	lost := &note{}
	parent := teller(&log, "parent")
	parent.onStopping = func(turn *runtime.Turn) {
		var err error
		if late, err = turn.Spawn(runtime.Spec{Name: "late", Kind: "test", Behaviour: teller(&log, "late")}); err != nil {
			t.Error(err)
			return
		}
		if err := turn.Send(late, lost); err != nil {
			t.Errorf("a new actor takes messages before it starts: %v", err)
		}
	}
	root := spawnReady(t, sys, nil, runtime.Spec{Name: "root", Kind: "test", Behaviour: parent})
	root.Stop()
	<-root.Done()
	<-late.Done()
	if !lost.rejectedWith(runtime.ErrStopped) {
		t.Error("the message of the actor that never started was not answered")
	}
	if strings.Contains(log.String(), "late") {
		t.Errorf("it did start: %s", log.String())
	}
	if _, err := sys.Spawn(root, runtime.Spec{Name: "later", Kind: "test", Behaviour: &script{}}); err != nil {
		t.Errorf("spawn below a dead parent fails late, as a stopped child: %v", err)
	}
}

func TestAWatcherHearsOfADeathOnce(t *testing.T) {
	for _, when := range []string{"before", "after"} {
		t.Run("watch "+when+" the death", func(t *testing.T) {
			sys := newSystem(t)
			var heard atomic.Int32
			who := spawnReady(t, sys, nil, runtime.Spec{Name: "who", Kind: "test", Behaviour: &script{}})
			stop := func() {
				who.Stop()
				<-who.Done()
			}
			if when == "after" {
				stop()
			}
			watcher := spawnReady(t, sys, nil, runtime.Spec{Name: "watcher", Kind: "test", Behaviour: &script{
				onStart: func(turn *runtime.Turn) {
					turn.Watch(who)
					turn.Watch(who)
					turn.Watch(turn.Self())
				},
				onTerminate: func(_ *runtime.Turn, r *runtime.Ref) {
					if r != who {
						t.Errorf("heard of %v", r)
					}
					heard.Add(1)
				},
			}})
			if when == "before" {
				stop()
			}
			eventually(t, "the watcher hears", func() bool { return heard.Load() > 0 })
			waitIdle(t, sys, watcher)
			if n := heard.Load(); n != 1 {
				t.Errorf("told %d times", n)
			}
		})
	}
}

func TestWhatIsQueuedIsAnsweredByAStop(t *testing.T) {
	sys := newSystem(t)
	gate, entered := make(chan struct{}), make(chan struct{})
	ref := spawnReady(t, sys, nil, runtime.Spec{Name: "a", Kind: "test", Blocking: true, BatchMax: 1, Behaviour: &script{onMessage: func(*runtime.Turn, runtime.Message) {
		close(entered)
		<-gate
	}}})
	r := runtime.NewRunner(sys)
	notes := make([]*note, 100)
	for i := range notes {
		notes[i] = &note{size: 1}
		if err := r.Send(ref, notes[i]); err != nil {
			t.Fatal(err)
		}
	}
	<-entered
	ref.Stop()
	close(gate)
	<-ref.Done()
	if notes[0].handled.Load() != 1 {
		t.Error("the running turn was not ended")
	}
	for i, n := range notes[1:] {
		if !n.rejectedWith(runtime.ErrStopped) {
			t.Fatalf("message %d: handled %d times, rejected %d times", i+1, n.handled.Load(), n.rejected.Load())
		}
	}
	if s := sys.Stats()[0]; s.Live != 0 || s.Spawned != 1 || s.Rejects != 99 || s.Depth != 0 || s.Bytes != 0 {
		t.Errorf("stats of the dead: %+v", s)
	}
}

// Every message that is sent while actors are stopped and spawned again is handled or
// rejected, never both and never neither.
func TestNothingIsUnansweredWhileActorsComeAndGo(t *testing.T) {
	sys := newSystem(t)
	root := spawnReady(t, sys, nil, runtime.Spec{Name: "root", Kind: "test", Behaviour: &script{}})
	const senders, each, places = 6, 4000, 5
	var refs [places]atomic.Pointer[runtime.Ref]
	put := func(i int) {
		spec := runtime.Spec{Name: name("a", i), Kind: "test", CountMax: 32, Blocking: i == 0, PanicOnFault: i == 1, Behaviour: &script{}}
		refs[i].Store(spawn(t, sys, root, spec))
	}
	for i := range places {
		put(i)
	}
	quit := make(chan struct{})
	var churn sync.WaitGroup
	churn.Go(func() {
		rnd := rand.New(rand.NewPCG(1, 2))
		for {
			select {
			case <-quit:
				return
			default:
			}
			i := rnd.IntN(places)
			ref := refs[i].Load()
			ref.Stop()
			<-ref.Done()
			put(i)
		}
	})
	all := make([][]*note, senders)
	var group sync.WaitGroup
	for s := range senders {
		group.Go(func() {
			r := runtime.NewRunner(sys)
			rnd := rand.New(rand.NewPCG(3, uint64(s)))
			for i := range each {
				n := &note{size: rnd.IntN(100)}
				all[s] = append(all[s], n)
				to := refs[rnd.IntN(places)].Load()
				send := r.Send
				if i%10 == 0 {
					send = func(to *runtime.Ref, m runtime.Message) error { return to.Post(m) }
				}
				refused := send(to, n) != nil
				if refused && n.rejected.Load() != 1 {
					t.Error("refused, but not rejected")
				}
				if rnd.IntN(4) == 0 {
					r.Run()
				}
			}
			r.Run()
		})
	}
	group.Wait()
	close(quit)
	churn.Wait()
	root.Stop()
	<-root.Done()
	handled := 0
	for _, n := range slices.Concat(all...) {
		if h, r := n.handled.Load(), n.rejected.Load(); h+r != 1 {
			t.Fatalf("handled %d times, rejected %d times", h, r)
		}
		handled += int(n.handled.Load())
	}
	if handled == 0 || handled == senders*each {
		t.Errorf("%d of %d handled: the test does not test it", handled, senders*each)
	}
}

func TestSpawnWatchAndStopFromManyGoroutines(t *testing.T) {
	sys := newSystem(t)
	root := spawnReady(t, sys, nil, runtime.Spec{Name: "root", Kind: "test", Behaviour: &script{}})
	var deaths, spawned atomic.Int64
	watcher := spawnReady(t, sys, root, runtime.Spec{Name: "watcher", Kind: "test", CountMax: 1 << 20, Behaviour: &script{
		onMessage:   func(turn *runtime.Turn, m runtime.Message) { turn.Watch(m.(*forward).to) },
		onTerminate: func(*runtime.Turn, *runtime.Ref) { deaths.Add(1) },
	}})
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			r := runtime.NewRunner(sys)
			for i := range 200 {
				ref, err := sys.Spawn(root, runtime.Spec{Name: name("c", g*1000+i), Kind: "test", Behaviour: &script{}})
				if err != nil {
					t.Error(err)
					return
				}
				spawned.Add(1)
				if err := r.Send(watcher, &forward{to: ref}); err != nil {
					t.Error(err)
				}
				r.Run()
				ref.Stop()
			}
		})
	}
	group.Wait()
	eventually(t, "all deaths are told", func() bool { return deaths.Load() == spawned.Load() })
}

func TestShutdownNamesWhoDoesNotStop(t *testing.T) {
	sys := runtime.NewSystem(runtime.Options{OnBug: fatalBug(t)})
	gate := make(chan struct{})
	root := spawnReady(t, sys, nil, runtime.Spec{Name: "root", Kind: "test", Behaviour: &script{}})
	stuck := spawnReady(t, sys, root, runtime.Spec{Name: "stuck", Kind: "test", Blocking: true, Behaviour: &script{onMessage: func(*runtime.Turn, runtime.Message) { <-gate }}})
	if err := stuck.Post(&note{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	late := errors.New("too late")
	cancel(late)
	if err := sys.Shutdown(ctx); !errors.Is(err, late) || !strings.Contains(err.Error(), "root/stuck") {
		t.Errorf("shutdown: %v", err)
	}
	if _, err := sys.Spawn(nil, runtime.Spec{Name: "new", Kind: "test", Behaviour: &script{}}); !errors.Is(err, runtime.ErrStopped) {
		t.Errorf("spawn in a system that shuts down: %v", err)
	}
	close(gate)
	shutdown(t, sys)
}

func TestBadSpecsAreRefusedWithTheReason(t *testing.T) {
	sys := newSystem(t)
	ok := runtime.Spec{Name: "a", Kind: "test", Behaviour: &script{}}
	for want, change := range map[string]func(s *runtime.Spec){
		"name is empty":            func(s *runtime.Spec) { s.Name = "" },
		"contains '/'":             func(s *runtime.Spec) { s.Name = "a/b" },
		"kind is empty":            func(s *runtime.Spec) { s.Kind = "" },
		"exactly one of":           func(s *runtime.Spec) { s.Behaviour = nil },
		"negative mailbox bound":   func(s *runtime.Spec) { s.CountMax = -1 },
		"batch bound 65":           func(s *runtime.Spec) { s.BatchMax = 65 },
		"policy restart needs New": func(s *runtime.Spec) { s.OnBug.OnBug = runtime.Restart },
		"restarts must end in exit": func(s *runtime.Spec) {
			s.OnBug = runtime.Policy{OnBug: runtime.Restart, Then: runtime.Restart}
			s.New, s.Behaviour = func() runtime.Behaviour { return &script{} }, nil
		},
	} {
		spec := ok
		change(&spec)
		if _, err := sys.Spawn(nil, spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	other := newSystem(t)
	parent := spawnReady(t, other, nil, ok)
	if _, err := sys.Spawn(parent, ok); err == nil || !strings.Contains(err.Error(), "another system") {
		t.Errorf("parent of another system: %v", err)
	}
}
