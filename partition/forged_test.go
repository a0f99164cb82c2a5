package partition_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// forger makes messages of numbers that are near something, or far from everything.
type forger struct {
	rand *rand.Rand
	m    *partition.Machine
}

func (f *forger) offset() ident.Offset {
	o := f.m.Offsets()
	near := []ident.Offset{0, o.LogStart, o.HighWatermark, o.Flushed, o.End, o.End, math.MaxInt64, math.MaxInt64 - 3, math.MinInt64, 1 << 40}
	n := near[f.rand.IntN(len(near))]
	d := ident.Offset(f.rand.IntN(7) - 3)
	if d > 0 && n > math.MaxInt64-d || d < 0 && n < math.MinInt64-d {
		return n
	}
	return n + d
}

func (f *forger) epoch() ident.LeaderEpoch {
	far := []ident.LeaderEpoch{-1, 0, math.MaxInt32, math.MinInt32}
	if i := f.rand.IntN(12); i < len(far) {
		return far[i]
	}
	return f.m.LeaderEpoch() + ident.LeaderEpoch(f.rand.IntN(3)-1)
}

func (f *forger) generation() ident.Generation {
	return []ident.Generation{0, 1, 1, 1, 2, 3, math.MaxUint64}[f.rand.IntN(7)]
}

func (f *forger) broker() ident.BrokerID { return ident.BrokerID(f.rand.IntN(6) - 1) }

func (f *forger) brokerEpoch() ident.BrokerEpoch {
	return []ident.BrokerEpoch{100, 100, 100, -1, 101, math.MinInt64}[f.rand.IntN(6)]
}

func (f *forger) batches() []partition.ReplicaBatch {
	b := make([]partition.ReplicaBatch, f.rand.IntN(4))
	next := f.m.Offsets().End
	for i := range b {
		b[i] = partition.ReplicaBatch{Base: next, LeaderEpoch: f.m.LeaderEpoch(), BatchInfo: partition.BatchInfo{
			Bytes: 100, LastOffsetDelta: int32(f.rand.IntN(3)), ProducerID: ident.ProducerID(f.rand.IntN(4) - 1),
			ProducerEpoch: ident.ProducerEpoch(f.rand.IntN(4) - 1), BaseSequence: ident.Sequence(f.rand.IntN(8) - 1), Control: f.rand.IntN(9) == 0,
		}}
		switch f.rand.IntN(12) {
		case 0:
			b[i].Base = f.offset()
		case 1:
			b[i].LeaderEpoch = f.epoch()
		case 2:
			b[i].LastOffsetDelta = []int32{-1, math.MaxInt32, math.MinInt32}[f.rand.IntN(3)]
		case 3:
			b[i].Bytes = -1
		case 4:
			b[i].BaseSequence, b[i].ProducerID = math.MaxInt32, math.MaxInt64
		}
		next = b[i].Base + ident.Offset(b[i].LastOffsetDelta) + 1
	}
	return b
}

// message makes something that another broker could say.
func (f *forger) message(request ident.RequestID) partition.Command {
	report := partition.Report{LeaderEpoch: f.epoch(), Generation: f.generation(), End: f.offset(), Flushed: f.offset(), LogStart: f.offset()}
	switch f.rand.IntN(9) {
	case 0, 1:
		return &partition.Ask{Request: request, Broker: f.broker(), BrokerEpoch: f.brokerEpoch(), Inquiry: partition.Inquiry{
			LeaderEpoch: f.epoch(), Generation: f.generation(), From: f.offset(), LogEnd: f.offset(), Flushed: f.offset(),
			LastBatchEpoch: f.epoch(), BytesMax: int32(f.offset()),
		}}
	case 2:
		return &partition.Progress{Broker: f.broker(), BrokerEpoch: f.brokerEpoch(), Report: report}
	case 3:
		return &partition.Withdraw{Broker: f.broker(), BrokerEpoch: f.brokerEpoch(), Withdrawal: partition.Withdrawal{LeaderEpoch: f.epoch(), Generation: f.generation()}}
	case 4, 5:
		code := []wire.ErrorCode{wire.NoError, wire.NoError, wire.NoError, wire.OffsetOutOfRange, wire.NotLeaderOrFollower, 9999}[f.rand.IntN(6)]
		return &partition.Answered{
			LeaderEpoch: f.epoch(), Generation: f.generation(), Code: code, From: f.offset(), HighWatermark: f.offset(), LogStart: f.offset(),
			Diverging: f.rand.IntN(4) == 0, DivergingEpoch: f.epoch(), DivergingEnd: f.offset(), Batches: f.batches(),
		}
	case 6, 7:
		return &partition.Watermark{LeaderEpoch: f.epoch(), Generation: f.generation(), HighWatermark: f.offset(), LogStart: f.offset()}
	default:
		if f.rand.IntN(2) == 0 {
			return &partition.Connected{Broker: f.broker(), Control: f.rand.IntN(2) == 0}
		}
		return &partition.Disconnected{Broker: f.broker(), BrokerEpoch: f.brokerEpoch(), Own: f.rand.IntN(2) == 0}
	}
}

// TestForgedMessagesNeverPanic: whatever other brokers say, a machine in any role stays
// sound, and answers each ask at most once.
func TestForgedMessagesNeverPanic(t *testing.T) {
	wrote, cut := 0, 0
	for seed := range uint64(3000) {
		f := &forger{rand: rand.New(rand.NewPCG(seed, 7))}
		c := testConfig
		c.LagNanos, c.ProposeRetryNanos = 1000*millisecond, 200*millisecond
		f.m = partition.New(partition.Options{
			Broker: 1, Config: c,
			Log: partition.LogState{Start: 2, End: 20, Flushed: 15, HighWatermark: 10, Generation: 1, Epochs: []partition.EpochStart{{Epoch: 0, Start: 0}, {Epoch: 2, Start: 8}}},
		})
		var out partition.Out
		now := partition.Now{Mono: 1000 * millisecond, Wall: 1000}
		open := map[ident.RequestID]bool{}
		end, generation := ident.Offset(20), ident.Generation(1)
		replicas := []partition.Replica{{Broker: 1, BrokerEpoch: 100}, {Broker: 2, BrokerEpoch: 100}, {Broker: 3, BrokerEpoch: 100}}
		step := func(cmd partition.Command) {
			out.Reset()
			if cmd == nil {
				f.m.Tick(now, &out)
			} else {
				f.m.Step(now, cmd, &out)
			}
			for i := 0; i < len(out.Persist); i++ {
				switch w := out.Persist[i]; w.Kind {
				case partition.WriteReplica:
					wrote++
					f.m.Step(now, &partition.Appended{}, &out)
				case partition.WriteTruncate, partition.WriteRestart:
					cut++
					generation++
					f.m.Step(now, &partition.Truncated{Generation: generation, End: w.Offset, Flushed: f.m.Offsets().Flushed, Producers: partition.NewProducers(9)}, &out)
				default:
				}
			}
			for i := range out.Reply {
				r := &out.Reply[i]
				if r.Kind != partition.ReplyAsk || !open[r.Request] {
					t.Fatalf("seed %d: %v answers nobody", seed, *r)
				}
				delete(open, r.Request)
			}
			if err := f.m.Check(); err != nil {
				t.Fatalf("seed %d: after %T%+v: %v", seed, cmd, cmd, err)
			}
			end = f.m.Offsets().End
		}
		epoch := ident.LeaderEpoch(2)
		for request := range ident.RequestID(60) {
			switch f.rand.IntN(15) {
			case 0:
				epoch++
				step(&partition.Become{
					Leader: ident.BrokerID(f.rand.IntN(3) + 1), LeaderEpoch: epoch, PartitionEpoch: ident.PartitionEpoch(epoch), Replicas: replicas,
					ISR: []ident.BrokerID{1, 2, 3}, Strict: f.rand.IntN(2) == 0,
				})
			case 1:
				now.Mono += ident.Instant(f.rand.IntN(900)) * millisecond
				step(nil)
			default:
				m := f.message(request + 1)
				if _, ok := m.(*partition.Ask); ok {
					open[request+1] = true
				}
				step(m)
			}
		}
		if end < 0 {
			t.Fatalf("seed %d: the log ends at %d", seed, end)
		}
	}
	if wrote == 0 || cut == 0 {
		t.Errorf("%d writes and %d truncations: the forger makes nothing that passes", wrote, cut)
	}
}
