package runtime_test

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/troupe-broker/troupe/actors/runtime"
)

// note is a message with a name and a size. It counts its answers.
type note struct {
	text     string
	size     int
	handled  atomic.Int32
	rejected atomic.Int32
	why      atomic.Pointer[error]
}

func (n *note) Bytes() int { return n.size }

func (n *note) Reject(err error) {
	n.rejected.Add(1)
	n.why.Store(&err)
}

func (n *note) rejectedWith(err error) bool {
	why := n.why.Load()
	return n.rejected.Load() == 1 && n.handled.Load() == 0 && errors.Is(*why, err)
}

// script is a behaviour made of functions, for tests. Nil functions do nothing.
type script struct {
	onStart     func(t *runtime.Turn)
	onMessage   func(t *runtime.Turn, m runtime.Message)
	onBatch     func(t *runtime.Turn, batch []runtime.Message)
	onStopping  func(t *runtime.Turn)
	onStopped   func(t *runtime.Turn)
	onRestart   func(t *runtime.Turn)
	onTerminate func(t *runtime.Turn, who *runtime.Ref)
	onFault     func(t *runtime.Turn, f runtime.Fault, batch []runtime.Message) bool
}

func (s *script) Turn(t *runtime.Turn, batch []runtime.Message) {
	if s.onBatch != nil {
		s.onBatch(t, batch)
		return
	}
	for i, m := range batch {
		if s.onMessage != nil {
			s.onMessage(t, m)
		}
		if n, ok := m.(*note); ok {
			n.handled.Add(1)
		}
		batch[i] = nil
	}
}

func (s *script) Started(t *runtime.Turn) {
	if s.onStart != nil {
		s.onStart(t)
	}
}

func (s *script) Stopping(t *runtime.Turn) {
	if s.onStopping != nil {
		s.onStopping(t)
	}
}

func (s *script) Stopped(t *runtime.Turn) {
	if s.onStopped != nil {
		s.onStopped(t)
	}
}

func (s *script) Restarting(t *runtime.Turn) {
	if s.onRestart != nil {
		s.onRestart(t)
	}
}

func (s *script) Terminated(t *runtime.Turn, who *runtime.Ref) {
	if s.onTerminate != nil {
		s.onTerminate(t, who)
	}
}

func (s *script) Faulted(t *runtime.Turn, f runtime.Fault, batch []runtime.Message) bool {
	return s.onFault != nil && s.onFault(t, f, batch)
}

// journal collects lines from several goroutines.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) String() string { return strings.Join(j.all(), " ") }

// goid is the number of this goroutine.
func goid() string {
	var buf [64]byte
	id, _, _ := strings.Cut(string(buf[:goruntime.Stack(buf[:], false)]), " [")
	return id
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

func newSystem(tb testing.TB) *runtime.System {
	tb.Helper()
	sys := runtime.NewSystem(runtime.Options{OnBug: fatalBug(tb)})
	tb.Cleanup(func() { shutdown(tb, sys) })
	return sys
}

func TestRunEndsTheTurnOnTheSendersGoroutine(t *testing.T) {
	sys := newSystem(t)
	got := 0 // no lock: the turn runs here
	ref := spawnReady(t, sys, nil, runtime.Spec{Name: "a", Kind: "test", Behaviour: &script{onMessage: func(*runtime.Turn, runtime.Message) { got++ }}})
	r := runtime.NewRunner(sys)
	for i := range 1000 {
		if err := r.Send(ref, &note{}); err != nil {
			t.Fatal(err)
		}
		if got != i {
			t.Fatalf("Send ran a turn: %d handled, %d sent and run", got, i)
		}
		r.Run()
		if got != i+1 {
			t.Fatalf("%d handled after Run, want %d", got, i+1)
		}
	}
}

func TestWhatATurnSendsRunsAfterIt(t *testing.T) {
	sys := newSystem(t)
	var log journal
	var a, b *runtime.Ref
	send := func(turn *runtime.Turn, to *runtime.Ref, text string) {
		if err := turn.Send(to, &note{text: text}); err != nil {
			t.Error(err)
		}
	}
	talk := func(other **runtime.Ref) func(*runtime.Turn, runtime.Message) {
		return func(turn *runtime.Turn, m runtime.Message) {
			text := m.(*note).text
			log.add("(%s", text)
			if len(text) < 4 {
				send(turn, *other, text+"x")
				send(turn, turn.Self(), text+"y")
			}
			log.add("%s)", text)
		}
	}
	a = spawnReady(t, sys, nil, runtime.Spec{Name: "a", Kind: "test", BatchMax: 1, Behaviour: &script{onMessage: talk(&b)}})
	b = spawnReady(t, sys, nil, runtime.Spec{Name: "b", Kind: "test", BatchMax: 1, Behaviour: &script{onMessage: talk(&a)}})
	r := runtime.NewRunner(sys)
	if err := r.Send(a, &note{text: "m"}); err != nil {
		t.Fatal(err)
	}
	r.Run()
	eventually(t, "all turns", func() bool { return len(log.all()) == 2*15 })
	depth := 0
	for _, line := range log.all() {
		if strings.HasPrefix(line, "(") {
			depth++
		} else {
			depth--
		}
		if depth > 1 {
			t.Fatalf("a turn inside a turn: %v", log.String())
		}
	}
}

func TestRunInsideATurnIsABug(t *testing.T) {
	blames := make(chan *runtime.Blame, 1)
	sys := runtime.NewSystem(runtime.Options{OnBug: func(b *runtime.Blame) { blames <- b }})
	defer shutdown(t, sys)
	r := runtime.NewRunner(sys)
	ref := spawnReady(t, sys, nil, runtime.Spec{Name: "a", Kind: "test", OnBug: runtime.Policy{OnBug: runtime.Stop}, Behaviour: &script{onMessage: func(turn *runtime.Turn, _ runtime.Message) {
		if err := r.Send(turn.Self(), &note{}); err != nil {
			t.Error(err)
		}
		r.Run()
	}}})
	if err := r.Send(ref, &note{}); err != nil {
		t.Fatal(err)
	}
	r.Run()
	if b := <-blames; !strings.Contains(b.Error(), "Run called inside a turn") {
		t.Fatal(b)
	}
}

func TestALongRunIsHandedOver(t *testing.T) {
	sys := newSystem(t)
	var turns, here atomic.Int64
	me := goid()
	stop := make(chan struct{})
	ref := spawnReady(t, sys, nil, runtime.Spec{Name: "a", Kind: "test", Behaviour: &script{onMessage: func(turn *runtime.Turn, m runtime.Message) {
		turns.Add(1)
		if goid() == me {
			here.Add(1)
		}
		select {
		case <-stop:
		default:
			if err := turn.Send(turn.Self(), m); err != nil {
				t.Error(err)
			}
		}
	}}})
	r := runtime.NewRunner(sys)
	if err := r.Send(ref, &note{}); err != nil {
		t.Fatal(err)
	}
	r.Run() // would never return without the budget
	if n := here.Load(); n == 0 || n > 64 {
		t.Errorf("%d turns on the sender, want 1 to 64", n)
	}
	before := turns.Load()
	eventually(t, "the dispatcher goes on", func() bool { return turns.Load() > before+1000 })
	close(stop)
}

func TestAHandOverKeepsOrderAndMessages(t *testing.T) {
	sys := newSystem(t)
	const n = 500
	var log [n][]int
	refs := make([]*runtime.Ref, n)
	for i := range refs {
		refs[i] = spawnReady(t, sys, nil, runtime.Spec{Name: name("a", i), Kind: "test", Behaviour: &script{onMessage: func(_ *runtime.Turn, m runtime.Message) {
			log[i] = append(log[i], m.(*note).size)
		}}})
	}
	r := runtime.NewRunner(sys)
	for k := range 3 {
		for _, ref := range refs {
			if err := r.Send(ref, &note{size: k}); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.Run()
	for i, ref := range refs {
		waitIdle(t, sys, ref)
		if !slices.Equal(log[i], []int{0, 1, 2}) {
			t.Fatalf("actor %d got %v", i, log[i])
		}
	}
}

func TestEachSendersOrderIsKept(t *testing.T) {
	sys := newSystem(t)
	const senders, each = 8, 20_000
	var next [senders]int
	ref := spawnReady(t, sys, nil, runtime.Spec{Name: "a", Kind: "test", CountMax: 128, Behaviour: &script{onMessage: func(_ *runtime.Turn, m runtime.Message) {
		v := m.(*amount).n
		if s, i := v%senders, v/senders; next[s] != i {
			t.Errorf("sender %d: got message %d, want %d", s, i, next[s])
			next[s] = i + 1
		} else {
			next[s]++
		}
	}}})
	var group sync.WaitGroup
	for s := range senders {
		group.Go(func() {
			r := runtime.NewRunner(sys)
			for i := 0; i < each; {
				if r.Send(ref, &amount{i*senders + s}) == nil {
					i++
				}
				r.Run()
			}
		})
	}
	group.Wait()
	waitIdle(t, sys, ref)
	for s, n := range next {
		if n != each {
			t.Errorf("sender %d: %d handled of %d", s, n, each)
		}
	}
}

func TestAFullMailboxAnswersAtOnce(t *testing.T) {
	sys := newSystem(t)
	gate := make(chan struct{})
	entered := make(chan struct{}, 1)
	ref := spawnReady(t, sys, nil, runtime.Spec{Name: "a", Kind: "test", CountMax: 4, BytesMax: 100, Blocking: true, Behaviour: &script{onMessage: func(*runtime.Turn, runtime.Message) {
		select {
		case entered <- struct{}{}:
		default:
		}
		<-gate
	}}})
	r := runtime.NewRunner(sys)
	send := func(size int) *note {
		n := &note{size: size}
		err := r.Send(ref, n)
		if (err != nil) != (n.rejected.Load() == 1) {
			t.Fatalf("Send returned %v, Reject was called %d times", err, n.rejected.Load())
		}
		return n
	}
	huge := send(1000) // an empty mailbox takes what is over its bound, or it would never arrive
	<-entered
	if huge.rejected.Load() != 0 {
		t.Fatal("refused by an empty mailbox")
	}
	if n := send(1); !n.rejectedWith(runtime.ErrFull) {
		t.Fatal("over the bound of bytes, but accepted")
	}
	gate <- struct{}{}
	waitIdle(t, sys, ref)
	accepted := []*note{send(10), send(10), send(10), send(10)}
	if n := send(1); !n.rejectedWith(runtime.ErrFull) {
		t.Fatal("over the bound of messages, but accepted")
	}
	close(gate)
	waitIdle(t, sys, ref)
	for i, n := range accepted {
		if n.handled.Load() != 1 || n.rejected.Load() != 0 {
			t.Errorf("message %d: handled %d times, rejected %d times", i, n.handled.Load(), n.rejected.Load())
		}
	}
	if s := sys.Stats()[0]; s.Rejects != 2 || s.Messages != 5 || s.DepthHigh != 4 || s.BytesHigh != 1000 || s.Depth != 0 || s.Bytes != 0 {
		t.Errorf("stats %+v", s)
	}
}

// owed is a note that no bound keeps out.
type owed struct{ note }

func (*owed) Owed() {}

func TestAFullMailboxTakesWhatItsActorIsOwed(t *testing.T) {
	sys := newSystem(t)
	gate, entered := make(chan struct{}), make(chan struct{}, 1)
	handled := 0
	ref := spawnReady(t, sys, nil, runtime.Spec{Name: "a", Kind: "test", CountMax: 1, BytesMax: 100, Blocking: true, Behaviour: &script{onMessage: func(_ *runtime.Turn, m runtime.Message) {
		select {
		case entered <- struct{}{}:
		default:
		}
		<-gate
		if _, ok := m.(*owed); ok {
			handled++
		}
	}}})
	r := runtime.NewRunner(sys)
	if err := r.Send(ref, &note{size: 100}); err != nil {
		t.Fatal(err)
	}
	<-entered
	if err := r.Send(ref, &note{}); !errors.Is(err, runtime.ErrFull) {
		t.Fatalf("a full mailbox answers %v", err)
	}
	for range 3 {
		if err := r.Send(ref, &owed{note{size: 50}}); err != nil {
			t.Errorf("what the actor is owed was refused: %v", err)
		}
	}
	close(gate)
	waitIdle(t, sys, ref)
	if handled != 3 {
		t.Errorf("%d of 3 were handled", handled)
	}
	ref.Stop()
	<-ref.Done()
	late := &owed{}
	if err := r.Send(ref, late); !errors.Is(err, runtime.ErrStopped) || !late.rejectedWith(runtime.ErrStopped) {
		t.Errorf("an actor that has stopped answers %v", err)
	}
}

func TestABlockingActorDoesNotHoldItsSender(t *testing.T) {
	sys := newSystem(t)
	gate, done := make(chan struct{}), make(chan struct{})
	ref := spawnReady(t, sys, nil, runtime.Spec{Name: "disk", Kind: "test", Blocking: true, Behaviour: &script{onMessage: func(turn *runtime.Turn, m runtime.Message) {
		<-gate
		if to, ok := m.(*forward); ok {
			if err := turn.Send(to.to, &note{}); err != nil {
				t.Error(err)
			}
		}
	}}})
	answer := spawnReady(t, sys, nil, runtime.Spec{Name: "answer", Kind: "test", Behaviour: &script{onMessage: func(*runtime.Turn, runtime.Message) { close(done) }}})
	r := runtime.NewRunner(sys)
	if err := r.Send(ref, &forward{to: answer}); err != nil {
		t.Fatal(err)
	}
	r.Run()
	select {
	case <-done:
		t.Fatal("answered before the disk was ready")
	default:
	}
	close(gate)
	<-done // the blocking actor's own goroutine ran the turn of its receiver
}

type forward struct{ to *runtime.Ref }

func (*forward) Bytes() int { return 8 }

func TestFlushSendsBeforeABlockingTurnEnds(t *testing.T) {
	sys := newSystem(t)
	got := make(chan struct{})
	answer := spawnReady(t, sys, nil, runtime.Spec{Name: "answer", Kind: "test", Behaviour: &script{onMessage: func(*runtime.Turn, runtime.Message) { close(got) }}})
	ref := spawnReady(t, sys, nil, runtime.Spec{Name: "disk", Kind: "test", Blocking: true, Behaviour: &script{onMessage: func(turn *runtime.Turn, _ runtime.Message) {
		if err := turn.Send(answer, &note{}); err != nil {
			t.Error(err)
		}
		turn.Flush()
		<-got
	}}})
	if err := ref.Post(&note{}); err != nil {
		t.Fatal(err)
	}
	<-got
}

func TestAGoroutineThatEndsHandsOver(t *testing.T) {
	sys := newSystem(t)
	got := make(chan string, 1)
	ref := spawnReady(t, sys, nil, runtime.Spec{Name: "a", Kind: "test", Behaviour: &script{onMessage: func(*runtime.Turn, runtime.Message) { got <- goid() }}})
	r := runtime.NewRunner(sys)
	if err := r.Send(ref, &note{}); err != nil {
		t.Fatal(err)
	}
	r.Flush()
	if <-got == goid() {
		t.Error("the turn ran here")
	}
}

func TestMessagesCrossSystems(t *testing.T) {
	one, two := newSystem(t), newSystem(t)
	got := 0
	ref := spawnReady(t, two, nil, runtime.Spec{Name: "a", Kind: "test", Behaviour: &script{onMessage: func(*runtime.Turn, runtime.Message) { got++ }}})
	r := runtime.NewRunner(one)
	if err := r.Send(ref, &note{}); err != nil {
		t.Fatal(err)
	}
	r.Run()
	if got != 1 {
		t.Fatalf("%d handled", got)
	}
}

func TestSendAndRunDoNotAllocate(t *testing.T) {
	sys := newSystem(t)
	last := &adder{}
	next := spawnReady(t, sys, nil, runtime.Spec{Name: "last", Kind: "test", Behaviour: last})
	first := spawnReady(t, sys, nil, runtime.Spec{Name: "first", Kind: "test", PanicOnFault: true, Behaviour: &forwarder{to: next}})
	r := runtime.NewRunner(sys)
	m := &amount{1}
	n := testing.AllocsPerRun(2000, func() {
		for range 3 { // one carried, two queued
			if err := r.Send(first, m); err != nil {
				t.Fatal(err)
			}
		}
		r.Run()
	})
	if n != 0 {
		t.Fatalf("%v allocations", n)
	}
}
