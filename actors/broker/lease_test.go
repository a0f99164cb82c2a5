package broker

import (
	"reflect"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// A broker that is told that it is fenced kept the lease of the heartbeat before, and spoke as if it were a member until that had run out.
func TestABrokerThatIsToldThatItIsFencedHasNoLease(t *testing.T) {
	s := leasedFor(t, 0) // its clock is seconds beyond what is said here
	s.settings.Store(&config.BrokerValues{SessionMs: 6000})
	s.extendLease(1*millisecond, &cluster.HeartbeatReply{})
	if !s.leased(4800*millisecond) || s.leased(4801*millisecond) {
		t.Error("a lease lasts for 4.8 s of a session of 6 s, from the sending of the heartbeat")
	}
	s.extendLease(2*millisecond, &cluster.HeartbeatReply{Fenced: true})
	if s.leased(3 * millisecond) {
		t.Error("a fenced broker has a lease")
	}
}

// A write with acks=1 that was appended under a lease was acknowledged when that had run out before the answer left: to a client that another broker's
// records would reach no more. Those of acks=all stand: followers have agreed.
func TestWhatWasBegunUnderALeaseIsNotAcknowledgedWithoutOne(t *testing.T) {
	s := &session{shared: leasedFor(t, 1)}
	s.out.store = newBuffers(1 << 20)
	s.shared.image.Store(cluster.NewImage())
	encode := func(key wire.Key, op operation) {
		t.Helper()
		api, _ := wire.Lookup(key)
		op.requested().header = wire.RequestHeader{Key: key, API: api, Version: api.Max}
		if err := op.encode(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		lease int64
		acks  int16
		want  wire.ErrorCode
	}{{1 << 62, 1, wire.NoError}, {1, 1, wire.NotLeaderOrFollower}, {1, acksAll, wire.NoError}} {
		s.shared.lease.Store(c.lease)
		op := &produceOp{writes: make([]produceWrite, 2)}
		op.body.Acks = c.acks
		op.writes[1].Refuse(wire.MessageTooLarge, "")
		encode(wire.KeyProduce, op)
		if got := op.writes[0].Code; got != c.want {
			t.Errorf("a write with acks=%d and a lease until %d is answered %v, want %v", c.acks, c.lease, got, c.want)
		}
		if got := op.writes[1].Code; got != wire.MessageTooLarge {
			t.Errorf("a write that was refused is answered %v", got)
		}
	}
	for lease, want := range map[int64]wire.ErrorCode{1 << 62: wire.NoError, 1: wire.NotCoordinator} {
		s.shared.lease.Store(lease)
		op := &heartbeatOp{}
		encode(wire.KeyHeartbeat, op)
		if op.Code != want {
			t.Errorf("a heartbeat with a lease until %d is answered %v, want %v", lease, op.Code, want)
		}
	}
}

// A leader that had been paused refused the retry of a batch that its successor had taken: out of order. franz-go sent the records once more under a new epoch,
// librdkafka gave up; consumers whose offsets only the successor had began at 0.
func TestALeaderThatWasPausedGivesNoFinalRefusal(t *testing.T) {
	s := &session{shared: leasedFor(t, 1<<62)} // a lease is no certainty
	s.out.store = newBuffers(1 << 20)
	s.shared.image.Store(cluster.NewImage())
	s.shared.settings.Store(&config.BrokerValues{SessionMs: 6000})
	produce := func() []wire.ErrorCode {
		op := &produceOp{writes: make([]produceWrite, 4)}
		op.body.Acks = acksAll
		codes := []wire.ErrorCode{wire.OutOfOrderSequenceNumber, wire.InvalidProducerEpoch, wire.MessageTooLarge, wire.NoError}
		for i := range op.writes {
			op.writes[i].Code = codes[i]
		}
		op.doubtRefusals(s.shared)
		for i := range op.writes {
			codes[i] = op.writes[i].Code
		}
		return codes
	}
	fetch := func() []wire.ErrorCode {
		op := &fetchOp{reads: make([]fetchRead, 3)}
		op.reads[0].Code = wire.OffsetOutOfRange
		op.reads[1].Diverging = wire.EpochEnd{Known: true, Epoch: 3, EndOffset: 7}
		op.doubt(s.shared)
		var codes []wire.ErrorCode
		for i := range op.reads {
			codes = append(codes, op.reads[i].Code)
		}
		if diverging := op.reads[1].Diverging.Known; diverging != (codes[1] == wire.NoError) {
			t.Errorf("a read that diverges is answered %v, and diverging is %v", codes[1], diverging)
		}
		return codes
	}
	doubtful := [][]wire.ErrorCode{
		{wire.NotLeaderOrFollower, wire.NotLeaderOrFollower, wire.MessageTooLarge, wire.NoError},
		{wire.NotLeaderOrFollower, wire.NotLeaderOrFollower, wire.NoError},
	}
	certain := [][]wire.ErrorCode{
		{wire.OutOfOrderSequenceNumber, wire.InvalidProducerEpoch, wire.MessageTooLarge, wire.NoError}, {wire.OffsetOutOfRange, wire.NoError, wire.NoError},
	}
	look := func(when string, want [][]wire.ErrorCode) {
		t.Helper()
		if got := [][]wire.ErrorCode{produce(), fetch()}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	look("before the first heartbeat", doubtful)
	now, _ := s.shared.system.Now()
	s.shared.extendLease(now, &cluster.HeartbeatReply{})
	look("a heartbeat has just been answered", certain)
	s.shared.extendLease(now-certainMs*millisecond, &cluster.HeartbeatReply{})
	look("the last was sent 1.2 s ago", doubtful)
	s.shared.extendLease(now, &cluster.HeartbeatReply{Fenced: true})
	look("it is fenced", doubtful)
	s.shared.links = nil
	look("it is alone", certain)
}

// A coordinator that knew a group while its broker had a lease says nothing of it when that is over.
func TestACoordinatorsAnswerDoesNotLeaveWithoutALease(t *testing.T) {
	s := leasedFor(t, 1<<62)
	answer := &coord.HeartbeatReply{}
	if got := s.leaving(answer); got != answer {
		t.Errorf("under a lease it is %+v", got)
	}
	offsets := &coord.FetchOffsetsReply{}
	if got, ok := s.leaving(offsets).(*coord.ErrorReply); !ok || got.Code != wire.CoordinatorLoadInProgress {
		t.Errorf("offsets that are not certain leave as %+v", got)
	}
	now, _ := s.system.Now()
	s.heard.Store(int64(now))
	if got := s.leaving(offsets); got != offsets {
		t.Errorf("offsets that are certain leave as %+v", got)
	}
	s.lease.Store(1)
	if got, ok := s.leaving(answer).(*coord.ErrorReply); !ok || got.Code != wire.NotCoordinator {
		t.Errorf("without a lease it is %+v", got)
	}
}

// leasedFor is a broker with others, at a time after 1, whose lease ends then.
func leasedFor(t *testing.T, until int64) *shared {
	t.Helper()
	clock := runtime.NewSimClock(0)
	clock.Advance(5 * time.Second)
	s := &shared{links: &links{}, system: runtime.NewSystem(runtime.Options{Clock: clock})}
	s.lease.Store(until)
	return s
}
