package broker

import (
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/group"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// asker is an inquiry that notes its answers.
type asker struct {
	name  string
	heard *[]string
}

func (*asker) Bytes() int          { return 0 }
func (*asker) Reject(error)        {}
func (*asker) asks() coord.Command { return nil }
func (*asker) stepped()            {}
func (a *asker) answered(*runtime.Turn, coord.Answer) {
	*a.heard = append(*a.heard, a.name)
}

func TestHeldAnswersLeaveInOrderWhenTheyAreCommittedOrTooLate(t *testing.T) {
	var heard []string
	var h heldAnswers
	release := func(committed uint64) []string {
		heard = nil
		h.release(committed, func(m inquiry, a coord.Answer) { m.answered(nil, a) })
		return heard
	}
	for i, name := range []string{"a", "b", "c", "d"} {
		h.push(heldAnswer{to: &asker{name, &heard}, after: uint64(1 + i/2), deadline: ident.Instant(10 * (i + 1))})
	}
	if at, ok := h.deadline(); !ok || at != 10 {
		t.Errorf("the first deadline is %d, %v", at, ok)
	}
	if got := release(0); len(got) != 0 {
		t.Errorf("nothing is committed, %v left", got)
	}
	if got := release(1); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("one entry is committed, %v left", got)
	}
	heard = nil
	h.expire(35, func(m inquiry) { m.answered(nil, nil) })
	if !slices.Equal(heard, []string{"c"}) {
		t.Errorf("at 35 %v were given up", heard)
	}
	if got := release(2); !slices.Equal(got, []string{"d"}) {
		t.Errorf("two entries are committed, %v left", got)
	}
	if _, ok := h.deadline(); ok || h.len() != 0 {
		t.Errorf("%d answers are held still", h.len())
	}
}

func TestWhatClientsHearOfAFailedAppend(t *testing.T) {
	for code, want := range map[wire.ErrorCode]wire.ErrorCode{
		wire.NotLeaderOrFollower: wire.NotCoordinator, wire.KafkaStorageError: wire.CoordinatorNotAvailable, wire.NotEnoughReplicas: wire.CoordinatorNotAvailable,
		wire.NotEnoughReplicasAfterAppend: wire.CoordinatorNotAvailable, wire.RequestTimedOut: wire.CoordinatorNotAvailable,
	} {
		if got := appendRefusal(code); got != want {
			t.Errorf("%v: %v, want %v", code, got, want)
		}
	}
}

func TestJumpersAreBoundedAndForgotten(t *testing.T) {
	var j jumpers
	ref := new(runtime.Ref)
	client := func(i int) coord.Client { return coord.Client{ID: string(rune('a' + i%26)), Host: string(rune(i))} }
	for i := range 3 * jumpersMax {
		j.told(client(i), ref, ident.Instant(i))
		j.told(client(i), ref, ident.Instant(i)) // the same again
	}
	if n := len(j.latest); n > jumpersMax || len(j.order) > jumpersMax {
		t.Errorf("%d clients and %d mentions are remembered, at most %d may be", n, len(j.order), jumpersMax)
	}
	newest := client(3*jumpersMax - 1)
	if got := j.waiting(newest, 3*jumpersMax); len(got) != 1 || got[0] != ref {
		t.Errorf("the newest client: %v", got)
	}
	if got := j.waiting(client(0), 3*jumpersMax); got != nil {
		t.Errorf("the oldest client is remembered: %v", got)
	}
	if got := j.waiting(newest, 3*jumpersMax+jumperAge); got != nil || j.count.Load() != 0 {
		t.Errorf("after their time %d clients are remembered, %v", j.count.Load(), got)
	}
}

// What lingers is due when its time has come, but not while the batch before it is under way: a coordinator that woke up for it would find nothing to do, again
// and again.
func TestWhatLingersWaitsForTheBatchBeforeIt(t *testing.T) {
	c := &coordinatorActor{state: coordinatorServing, shard: group.New(coord.DefaultConfig(), viewTopics(cluster.NewImage())), flush: 7}
	if at := c.wake(); at != 7 {
		t.Errorf("it is due at %d, want 7", at)
	}
	c.writing = true
	if at := c.wake(); at != 0 {
		t.Errorf("behind a batch it is due at %d", at)
	}
}

// What a Join or a Sync brings counts in the mailbox, where the memory of its request does not bound it any more, and is gone once it has been stepped: who
// waits for others may wait for half an hour.
func TestWhatWaitsForOthersIsCountedAndLetGo(t *testing.T) {
	m := &coordinate{command: &coord.Sync{Group: "g", Assignments: []coord.MemberAssignment{{Member: "m", Assignment: make([]byte, 5000)}}}}
	m.held = coord.HeldBytes(m.command)
	if n := m.Bytes(); n < 5000 || n > 5200 {
		t.Errorf("it counts %d bytes", n)
	}
	m.stepped()
	if m.asks() != nil {
		t.Error("it keeps the command")
	}
	join := &coord.Join{Protocols: []coord.Protocol{{Name: "range", Metadata: make([]byte, 7000)}}, Reason: string(make([]byte, 900))}
	if n := coord.HeldBytes(join); n < 7900 || n > 8200 {
		t.Errorf("a join counts %d bytes", n)
	}
}

// A shard that is dropped is loaded again at once; only errors that follow each other make its members wait.
func TestOnlyErrorsThatRepeatAreWaitedFor(t *testing.T) {
	c := &coordinatorActor{}
	for _, step := range []struct {
		seconds ident.Instant
		repeats bool
	}{{100, false}, {101, true}, {110, true}, {121, false}, {130, true}} {
		c.now.Mono = step.seconds * 1000 * millisecond
		if got := c.repeats(); got != step.repeats {
			t.Errorf("at %d s an error repeats: %v", step.seconds, got)
		}
	}
	for damaged, want := range map[int]ident.Instant{0: 1, 1: 2, 3: 8, 6: 60, 1000: 60} {
		c.damaged = damaged
		if got := c.pause(); got != want*1000*millisecond {
			t.Errorf("after %d loads that met damage the pause is %v, want %d s", damaged, duration(got), want)
		}
	}
}
