package runtime_test

import (
	goruntime "runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/troupe-broker/troupe/actors/runtime"
)

// The benchmarks of this file compare the way through an actor with the thing it
// replaces, an object under a mutex, in the same run:
//
//	go test -run '^$' -bench Send -count 5 ./actors/runtime
//
// The figures are nanoseconds per message, sent and handled: by the clock, and of
// processor time.

// adder is the smallest behaviour that does something.
type adder struct{ sum, n int64 }

func (a *adder) Turn(_ *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		a.sum += int64(m.(*amount).n)
	}
	a.n += int64(len(batch))
}

type amount struct{ n int }

func (*amount) Bytes() int { return 8 }

// locked is the baseline.
type locked struct {
	mu  sync.Mutex
	sum int64
	n   int64
}

func (l *locked) add(m runtime.Message) {
	l.mu.Lock()
	l.sum += int64(m.(*amount).n)
	l.n++
	l.mu.Unlock()
}

func BenchmarkSend(b *testing.B) {
	for _, c := range []struct {
		name            string
		senders, actors int
	}{
		{"senders=1/actors=1", 1, 1},
		{"senders=8/actors=1", 8, 1},
		{"senders=8/actors=64", 8, 64},
	} {
		b.Run(c.name+"/mutex", func(b *testing.B) { benchMutex(b, c.senders, c.actors) })
		b.Run(c.name+"/runner", func(b *testing.B) { benchRunner(b, c.senders, c.actors) })
	}
}

func benchMutex(b *testing.B, senders, actors int) {
	b.Helper()
	objects := make([]locked, actors)
	spread(b, senders, func(sender, i int, m *amount) { objects[(sender*31+i)%actors].add(m) })
}

func benchRunner(b *testing.B, senders, actors int) {
	b.Helper()
	sys := runtime.NewSystem(runtime.Options{OnBug: fatalBug(b)})
	defer shutdown(b, sys)
	objects := make([]adder, actors)
	refs := make([]*runtime.Ref, actors)
	for i := range refs {
		refs[i] = spawnReady(b, sys, nil, runtime.Spec{Name: name("adder", i), Kind: "test.adder", Behaviour: &objects[i]})
	}
	runners := make([]*runtime.Runner, senders)
	for i := range runners {
		runners[i] = runtime.NewRunner(sys)
	}
	spread(b, senders, func(sender, i int, m *amount) {
		r := runners[sender]
		for to := refs[(sender*31+i)%actors]; r.Send(to, m) != nil; {
			r.Run() // a full mailbox: let others go on
			goruntime.Gosched()
		}
		r.Run()
	})
	for _, r := range refs {
		waitIdle(b, sys, r)
	}
	handled := int64(0)
	for i := range objects {
		handled += objects[i].n
	}
	if handled != int64(b.N) {
		b.Fatalf("%d handled of %d", handled, b.N)
	}
}

// spread makes b.N calls on senders goroutines.
func spread(b *testing.B, senders int, call func(sender, i int, m *amount)) {
	b.Helper()
	var group sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime(b)
	for s := range senders {
		group.Go(func() {
			m := &amount{1}
			for i := s; i < b.N; i += senders {
				call(s, i, m)
			}
		})
	}
	group.Wait()
	b.StopTimer()
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
}

// cpuTime is the processor time this process has used, in ns. It says more than the
// clock on a machine that does other things too.
func cpuTime(b *testing.B) int64 {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkChain sends on from turn to turn: the price of a hop inside one Run.
func BenchmarkChain(b *testing.B) {
	sys := runtime.NewSystem(runtime.Options{OnBug: fatalBug(b)})
	defer shutdown(b, sys)
	last := &signaller{got: make(chan struct{}, 1)}
	next := spawnReady(b, sys, nil, runtime.Spec{Name: "last", Kind: "test.chain", Behaviour: last})
	const hops = 8
	for i := range hops - 1 {
		next = spawnReady(b, sys, nil, runtime.Spec{Name: name("hop", i), Kind: "test.chain", Behaviour: &forwarder{to: next}})
	}
	r := runtime.NewRunner(sys)
	m := &amount{1}
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Send(next, m); err != nil {
			b.Fatal(err)
		}
		r.Run()
		<-last.got // a Run that was interrupted for long has handed over
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*hops), "ns/hop")
}

type forwarder struct{ to *runtime.Ref }

func (f *forwarder) Turn(t *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		if err := t.Send(f.to, m); err != nil {
			panic(err)
		}
	}
}

// BenchmarkPost is the way through the dispatcher: a goroutine has to be woken.
func BenchmarkPost(b *testing.B) {
	sys := runtime.NewSystem(runtime.Options{OnBug: fatalBug(b)})
	defer shutdown(b, sys)
	a := &signaller{got: make(chan struct{}, 1)}
	ref := spawnReady(b, sys, nil, runtime.Spec{Name: "a", Kind: "test.post", Behaviour: a})
	m := &amount{1}
	b.ReportAllocs()
	for b.Loop() {
		if err := ref.Post(m); err != nil {
			b.Fatal(err)
		}
		<-a.got
	}
}

type signaller struct{ got chan struct{} }

func (s *signaller) Turn(_ *runtime.Turn, batch []runtime.Message) {
	for range batch {
		s.got <- struct{}{}
	}
}

// BenchmarkSpawn is the price of a short-lived actor.
func BenchmarkSpawn(b *testing.B) {
	sys := runtime.NewSystem(runtime.Options{OnBug: fatalBug(b)})
	defer shutdown(b, sys)
	parent := spawnReady(b, sys, nil, runtime.Spec{Name: "parent", Kind: "test.parent", Behaviour: &adder{}})
	b.ReportAllocs()
	for b.Loop() {
		ref, err := sys.Spawn(parent, runtime.Spec{Name: "child", Kind: "test.child", Behaviour: &adder{}})
		if err != nil {
			b.Fatal(err)
		}
		ref.Stop()
		<-ref.Done()
	}
}

// BenchmarkTimer arms and calls off.
func BenchmarkTimer(b *testing.B) {
	sys := runtime.NewSystem(runtime.Options{OnBug: fatalBug(b)})
	defer shutdown(b, sys)
	ref := spawnReady(b, sys, nil, runtime.Spec{Name: "a", Kind: "test.timer", Behaviour: &rearmer{}})
	r := runtime.NewRunner(sys)
	m := &amount{1}
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Send(ref, m); err != nil {
			b.Fatal(err)
		}
		r.Run()
	}
}

type rearmer struct{ timer *runtime.Timer }

func (a *rearmer) Started(t *runtime.Turn) { a.timer = t.NewTimer(&amount{}) }

func (a *rearmer) Turn(_ *runtime.Turn, batch []runtime.Message) {
	for range batch {
		a.timer.Reset(1 << 40)
	}
}
