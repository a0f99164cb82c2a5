package broker

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/store"
)

// sharer is a partition that is busy until it is let go, and then says that it was asked.
type sharer struct {
	busy  chan struct{}
	began chan struct{}
	asked chan struct{}
}

// filling keeps a sharer busy.
type filling struct{}

func (*filling) Bytes() int { return 0 }

// Turn implements runtime.Behaviour.
func (s *sharer) Turn(t *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		switch m := m.(type) {
		case *filling:
			s.began <- struct{}{}
			<-s.busy
		case *beginShare:
			_ = t.Send(m.flusher, &share{replica: m.replica})
			close(s.asked)
		}
	}
}

// TestAPartitionWithoutRoomIsAskedForItsShareAgain: its mailbox is full when a round begins. Otherwise it would wait for ever to be asked, and so would everybody
// whose records it has.
func TestAPartitionWithoutRoomIsAskedForItsShareAgain(t *testing.T) {
	sys := runtime.NewSystem(runtime.Options{Log: zerolog.New(io.Discard), OnBug: func(b *runtime.Blame) { t.Errorf("a bug: %v", b) }})
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := sys.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	}()
	spawn := func(name string, b runtime.Behaviour) *runtime.Ref {
		t.Helper()
		spec := blocking(cast("partition", name, b))
		spec.CountMax = 1
		ref, err := sys.Spawn(nil, spec)
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	full := &sharer{busy: make(chan struct{}), began: make(chan struct{}, 1), asked: make(chan struct{})}
	free := &sharer{asked: make(chan struct{})}
	ref := spawn("full-0", full)
	if err := ref.Post(&filling{}); err != nil { // it has room for one message
		t.Fatal(err)
	}
	<-full.began
	flushing, err := sys.Spawn(nil, blocking(cast("flusher", "flusher", &flusher{shared: &shared{}})))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*replica{{ref: ref}, {ref: spawn("free-0", free)}} {
		r.flush.dirty.replica = r
		if err := flushing.Post(&r.flush.dirty); err != nil {
			t.Fatal(err)
		}
	}
	<-free.asked // after the other, which had no room
	close(full.busy)
	select {
	case <-full.asked:
	case <-time.After(20 * time.Second):
		t.Fatal("the partition was not asked again")
	}
}

// TestAPartitionWithoutRoomGetsWhatItWaitsFor: the result of a sync, a log that was on loan and the orders of Root come once. Refused, they would be lost, and
// whoever waits for what they say would wait for ever.
func TestAPartitionWithoutRoomGetsWhatItWaitsFor(t *testing.T) {
	sys := runtime.NewSystem(runtime.Options{Log: zerolog.New(io.Discard), OnBug: func(b *runtime.Blame) { t.Errorf("a bug: %v", b) }})
	full := &sharer{busy: make(chan struct{}), began: make(chan struct{}, 1)}
	spec := blocking(cast("partition", "full-0", full))
	spec.CountMax = 1
	ref, err := sys.Spawn(nil, spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := ref.Post(&filling{}); err != nil {
		t.Fatal(err)
	}
	<-full.began
	for _, m := range []runtime.Message{
		&synced{}, &found{}, &logCut{}, &logRenewed{run: &repairRun{repair: &store.Repair{}, replica: &replica{dir: &dataDir{}}}}, &opened{}, &confessed{}, &strictMarked{}, &repairWorked{run: &repairRun{repair: &store.Repair{}, replica: &replica{dir: &dataDir{}}}}, &cleanJob{cleaner: ref}, &scrubbed{}, &pieceRead{piece: &scrubPiece{scrubber: ref}}, &unsound{},
		&removed{}, &linkChanged{}, &groupRead{coordinator: ref, back: true}, &groupWrite{coordinator: ref, back: true}, &becomePartition{}, &configurePartition{}, &takeOffline{}, &removePartition{}, &closePartition{done: func(error) {}},
	} {
		if err := ref.Post(m); err != nil {
			t.Errorf("%T was refused: %v", m, err)
		}
	}
	close(full.busy)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := sys.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

// TestALogThatManyWaitForIsNotCalledClosed: a stop that comes while the log is on loan waits with the others, however many they are. Refused, it would count as
// done, and the directory as closed clean.
func TestALogThatManyWaitForIsNotCalledClosed(t *testing.T) {
	p := &partitionActor{waiting: make([]runtime.Message, waitersMax)}
	p.wait(&closePartition{done: func(error) { t.Error("the stop was told that the log is closed") }})
	refused := false
	p.wait(&anyAsk{func() { refused = true }})
	if len(p.waiting) != waitersMax+1 || !refused {
		t.Errorf("%d wait, expected %d; another was refused: %v", len(p.waiting), waitersMax+1, refused)
	}
}

// anyAsk is a message of which a partition lets only so many wait.
type anyAsk struct{ rejected func() }

func (*anyAsk) Bytes() int     { return 0 }
func (c *anyAsk) Reject(error) { c.rejected() }
