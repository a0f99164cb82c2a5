package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/wire/ident"
)

// ErrNameTaken says that a sibling with the name is alive.
var ErrNameTaken = errors.New("actor name is taken")

// Options of a System.
type Options struct {
	// Log gets bugs, and the lines of protoactor.
	Log zerolog.Logger
	// Clock is the source of time. Default: the computer's.
	Clock Clock
	// Dispatcher runs what no sender runs. Default: a Pool.
	Dispatcher Dispatcher
	// OnBug hears of every Blame, with the decision, after it was logged, on the
	// goroutine that supervises. When the decision is Exit the process must end:
	// nobody should go on with what the actor left. Without OnBug an Exit panics
	// with the *Blame, except under a Seeded dispatcher, which ends its run.
	OnBug func(*Blame)
}

// System is one tree of actors with its clock and its dispatcher.
type System struct {
	log        zerolog.Logger
	clock      Clock
	real       *RealClock // clock, when senders' budgets are measured with it
	dispatcher Dispatcher
	inPlace    bool // senders run turns
	traced     bool // the dispatcher records turns
	onBug      func(*Blame)

	library     *library
	incarnation atomic.Uint64
	goroutines  sync.WaitGroup // of blocking actors

	abandoned bool // by a simulation; its goroutine's own
	frozen    bool // likewise

	mu       sync.Mutex
	live     map[string]*mailbox // by path
	tops     []*mailbox          // without a parent, in the order they were spawned
	retired  map[string]KindStats
	stopping bool
}

// NewSystem starts a System without actors.
func NewSystem(o Options) *System {
	s := &System{
		log: o.Log, clock: o.Clock, dispatcher: o.Dispatcher, onBug: o.OnBug,
		live:    make(map[string]*mailbox),
		retired: make(map[string]KindStats),
	}
	if s.clock == nil {
		s.clock = NewRealClock()
	}
	if s.dispatcher == nil {
		s.dispatcher = NewPool(0)
	}
	s.inPlace, s.traced = s.dispatcher.inPlace(), s.dispatcher.traced()
	if s.inPlace {
		s.real, _ = s.clock.(*RealClock)
	}
	s.library = openLibrary(o.Log, !s.inPlace)
	return s
}

// Now reads the system's clock.
func (s *System) Now() (ident.Instant, ident.Millis) { return s.clock.Now() }

// Clock is the system's clock.
func (s *System) Clock() Clock { return s.clock }

// Log is the system's logger.
func (s *System) Log() *zerolog.Logger { return &s.log }

// Spawn starts an actor below parent, or at the top when parent is nil. It may be
// called from anywhere, does not wait and returns a Ref that takes messages at once;
// the actor starts in a turn of its parent. When the parent stops before that, the
// messages are rejected and the Ref is done.
func (s *System) Spawn(parent *Ref, spec Spec) (*Ref, error) {
	spec, err := spec.withDefaults()
	if err != nil {
		return nil, err
	}
	var above *mailbox
	if parent != nil {
		if above = parent.mb; above.sys != s {
			return nil, fmt.Errorf("spawn %s: parent %s lives in another system", spec.Name, parent)
		}
	}
	m := newMailbox(s, above, spec)
	if err := s.enter(m); err != nil {
		return nil, fmt.Errorf("spawn %s: %w", m.path, err)
	}
	if above != nil {
		above.PostSystemMessage(&adopt{child: m})
		return &m.ref, nil
	}
	m.launch()
	if _, err := s.library.guarded.SpawnNamed(s.props(m), m.id); err != nil {
		panic(fmt.Sprintf("actors/runtime: spawn %s: %v", m.path, err)) // ids are unique
	}
	return &m.ref, nil
}

// Await waits until done is closed. Under a Seeded dispatcher it runs the simulation
// until then, and fails when nothing can happen any more.
func (s *System) Await(ctx context.Context, done <-chan struct{}) error {
	return s.dispatcher.await(ctx, done)
}

// Shutdown stops the actors that have no parent, the youngest first, each with all
// its children, and waits for every actor and goroutine of the System. When ctx ends
// first it returns an error that names the actors that are still alive.
func (s *System) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	tops := slices.Clone(s.tops)
	s.mu.Unlock()
	for _, m := range slices.Backward(tops) {
		m.askStop()
		if err := s.dispatcher.await(ctx, m.done); err != nil {
			return fmt.Errorf("shutdown: still alive: %s: %w", strings.Join(s.names(), ", "), err)
		}
	}
	s.goroutines.Wait()
	s.dispatcher.close()
	s.library.close()
	return nil
}

// enter takes the name.
func (s *System) enter(m *mailbox) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return ErrStopped
	}
	if _, taken := s.live[m.path]; taken {
		return ErrNameTaken
	}
	s.live[m.path] = m
	if m.cell.parent == nil {
		s.tops = append(s.tops, m)
	}
	return nil
}

// forget frees the name of an actor that has stopped and keeps its counters.
func (s *System) forget(m *mailbox) {
	a := m.stats()
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.retired[a.Kind]
	k.add(&a)
	s.retired[a.Kind] = k
	delete(s.live, m.path)
	if m.cell.parent == nil {
		s.tops = slices.DeleteFunc(s.tops, func(t *mailbox) bool { return t == m })
	}
}

func (s *System) props(m *mailbox) *actor.Props {
	return actor.PropsFromProducer(
		func() actor.Actor { return &m.cell },
		actor.WithMailbox(func() actor.Mailbox { return m }),
		actor.WithSupervisor(supervision),
	)
}

// tell logs a blame and passes it on.
func (s *System) tell(b *Blame) {
	if s.abandoned {
		return // nobody is left to hear of it
	}
	level := zerolog.ErrorLevel
	if b.Decision == Exit {
		level = zerolog.FatalLevel
	}
	s.log.WithLevel(level).Str("actor", b.Actor).Str("kind", b.Kind).Str("handling", b.Message).Stringer("decision", b.Decision).
		Int("failures", b.Failures).Err(b).Str("stack", b.Stack).Msg("actor failed")
	ended := s.dispatcher.told(b)
	switch {
	case s.onBug != nil:
		s.onBug(b)
	case b.Decision == Exit && !ended:
		panic(b)
	}
}

// names lists the paths of the live actors.
func (s *System) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.live))
	for path := range s.live {
		names = append(names, path)
	}
	slices.Sort(names)
	return names
}
