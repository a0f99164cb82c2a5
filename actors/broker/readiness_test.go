package broker

import (
	"errors"
	"testing"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire"
)

// starting is a Root that awaits replicas, and what stands for the lifecycle actor, with its bounds.
type starting struct {
	root      *rootActor
	lifecycle *listening
}

func newStarting(t *testing.T) (*runtime.System, *starting) {
	t.Helper()
	sys := runtime.NewSystem(runtime.Options{Clock: runtime.NewSimClock(0), OnBug: func(b *runtime.Blame) { t.Errorf("a bug: %v\n%s", b, b.Stack) }})
	s := &starting{lifecycle: &listening{told: make(chan runtime.Message, 1<<14)}}
	ref, err := sys.Spawn(nil, cast("lifecycle", "lifecycle", s.lifecycle))
	if err != nil {
		t.Fatal(err)
	}
	s.root = &rootActor{shared: newShared(sys, zerolog.Nop()), lifecycle: ref}
	return sys, s
}

// comes makes a replica that Root awaits.
func (s *starting) comes() *replica {
	rep := &replica{dir: &dataDir{opened: store.Opened{Mode: store.RecoverSameBoot}}}
	s.root.await(rep)
	return rep
}

func is[M runtime.Message](m runtime.Message) bool {
	_, ok := m.(M)
	return ok
}

// Root told the lifecycle actor of each replica that came to serve. Ten thousand that came within a second filled its mailbox, which then refused the controller's
// answer: the broker waited for that for ever, without a registration or without heartbeats.
func TestManyReplicasThatComeLeaveRoomForAnAnswer(t *testing.T) {
	sys, s := newStarting(t)
	inTurn(t, sys, func(turn *runtime.Turn) {
		s.root.Started(turn)
		var batch []runtime.Message
		for range 10_000 {
			batch = append(batch, &replicaReady{replica: s.comes()})
		}
		s.root.Turn(turn, batch)
		if err := s.root.lifecycle.Post(&heard{}); err != nil {
			t.Errorf("the controller's answer is refused: %v", err)
		}
	})
	if m := <-s.lifecycle.told; !is[*readiness](m) {
		t.Errorf("it hears %T and not that the replicas serve", m)
	}
	if m := <-s.lifecycle.told; !is[*heard](m) {
		t.Errorf("then it hears %T and not the answer", m)
	}
}

// Nothing else that fills the mailbox keeps out what the lifecycle actor cannot go on without.
func TestAFullMailboxTakesTheControllersAnswer(t *testing.T) {
	sys, s := newStarting(t)
	inTurn(t, sys, func(turn *runtime.Turn) {
		var err error
		for err == nil {
			err = turn.Send(s.root.lifecycle, &hangup{})
		}
		if !errors.Is(err, runtime.ErrFull) {
			t.Fatalf("the mailbox refuses with %v", err)
		}
		for _, m := range []runtime.Message{&heard{}, &readiness{}} {
			if err := turn.Send(s.root.lifecycle, m); err != nil {
				t.Errorf("%T is refused: %v", m, err)
			}
		}
	})
}

// A partition that was moved away while it was the last one awaited was never told to be done with, and the broker stayed fenced.
func TestAReplicaThatLeavesIsNotAwaited(t *testing.T) {
	sys, s := newStarting(t)
	inTurn(t, sys, func(turn *runtime.Turn) {
		s.root.Started(turn)
		rep := s.comes()
		ref, err := sys.Spawn(nil, cast("partition", "orders-0", &listening{told: make(chan runtime.Message, 1)}))
		if err != nil {
			t.Fatal(err)
		}
		rep.ref = ref
		s.root.remove(turn, rep, wire.NotLeaderOrFollower)
		if err := turn.Send(s.root.lifecycle, &heard{}); err != nil {
			t.Error(err)
		}
	})
	if m := <-s.lifecycle.told; !is[*readiness](m) {
		t.Errorf("it hears %T and not that the replicas serve", m)
	}
}
