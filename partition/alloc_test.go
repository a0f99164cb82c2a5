package partition_test

import (
	"testing"

	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// shell is the least a shell does: it writes every batch and collects nothing.
type shell struct {
	m   *partition.Machine
	now partition.Now
	out partition.Out

	appended partition.Appended
}

func newShell(strict bool, replicas ...ident.BrokerID) *shell {
	s := &shell{m: partition.New(partition.Options{Broker: 1, Log: partition.LogState{Generation: 1}, Config: testConfig})}
	become := &partition.Become{Leader: 1, Strict: strict}
	for _, id := range replicas {
		become.Replicas = append(become.Replicas, partition.Replica{Broker: id})
		become.ISR = append(become.ISR, id)
	}
	s.step(become)
	return s
}

func (s *shell) step(c partition.Command) {
	s.out.Reset()
	s.m.Step(s.now, c, &s.out)
	for _, w := range s.out.Persist {
		if w.Kind == partition.WriteBatch || w.Kind == partition.WriteReplica {
			s.m.Step(s.now, &s.appended, &s.out)
		}
	}
}

// TestAppendAndFetchDoNotAllocate covers the ways a produce and a fetch can take
// once the machine is warm: answered at once, parked and answered by a flush, by a
// follower, by the append of another.
func TestAppendAndFetchDoNotAllocate(t *testing.T) {
	const turns = 1000
	for _, c := range []struct {
		name     string
		strict   bool
		replicas []ident.BrokerID
		producer ident.ProducerID
	}{
		{name: "cached", replicas: []ident.BrokerID{1}, producer: ident.NoProducerID},
		{name: "cached, idempotent", replicas: []ident.BrokerID{1}, producer: 7},
		{name: "strict, idempotent", strict: true, replicas: []ident.BrokerID{1}, producer: 7},
		{name: "three replicas", replicas: []ident.BrokerID{1, 2, 3}, producer: 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShell(c.strict, c.replicas...)
			app := &partition.Append{Acks: -1, Deadline: 1 << 60, LogAppendTime: ident.NoTimestamp}
			app.Batch = partition.BatchInfo{Bytes: 1000, LastOffsetDelta: 9, ProducerID: c.producer}
			fetch := &partition.Fetch{BytesMin: 1, BytesMax: 1 << 20, Park: true, CurrentLeaderEpoch: -1, LastFetchedEpoch: 0}
			flushed := &partition.Flushed{Generation: 1}
			ask := &partition.Ask{Inquiry: partition.Inquiry{Generation: 1}}
			acks, reads, asks := 0, 0, 0
			turn := func() {
				end := s.m.Offsets().End
				fetch.Request, fetch.From = ident.RequestID(end)+1, end
				s.step(fetch)
				app.Request = ident.RequestID(end) + 2
				s.step(app)
				app.Batch.BaseSequence = app.Batch.BaseSequence.Add(10)
				count := func() {
					for i := range s.out.Reply {
						r := &s.out.Reply[i]
						if r.Code != wire.NoError {
							t.Fatal(*r)
						}
						if r.Kind == partition.ReplyAsk {
							asks++
						} else if r.Kind == partition.ReplyAppend {
							acks++
						} else if r.Fetch.UpTo == end+10 {
							reads++
						}
					}
				}
				count()
				if c.strict {
					flushed.End = end + 10
					s.step(flushed)
					count()
				}
				for _, id := range c.replicas[1:] {
					ask.Broker, ask.LogEnd, ask.Flushed, ask.From = id, end+10, end+10, end+10
					s.step(ask)
					count()
				}
			}
			for range 100 { // warm
				turn()
			}
			if n := testing.AllocsPerRun(turns, turn); n != 0 {
				t.Errorf("%v allocations per append and fetch, want 0", n)
			}
			// AllocsPerRun runs once more, to warm up itself.
			if want := 100 + turns + 1; acks != want || reads != want {
				t.Errorf("%d acknowledgements and %d reads, want %d: the test did not measure what it says", acks, reads, want)
			}
			// The first ask is answered at once, the last one is still parked.
			if want := (100 + turns) * (len(c.replicas) - 1); asks != want {
				t.Errorf("%d asks of followers answered, want %d", asks, want)
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name     string
		producer ident.ProducerID
		strict   bool
	}{{"mode=cached/idempotent=no", -1, false}, {"mode=cached/idempotent=yes", 7, false}, {"mode=strict/idempotent=yes", 7, true}} {
		b.Run(c.name, func(b *testing.B) {
			s := newShell(c.strict, 1)
			app := &partition.Append{Request: 1, Acks: -1, Deadline: 1 << 60, LogAppendTime: ident.NoTimestamp}
			app.Batch = partition.BatchInfo{Bytes: 1000, LastOffsetDelta: 9, ProducerID: c.producer}
			flushed := &partition.Flushed{Generation: 1}
			b.ReportAllocs()
			for b.Loop() {
				s.step(app)
				app.Batch.BaseSequence = app.Batch.BaseSequence.Add(10)
				if c.strict {
					flushed.End += 10
					s.step(flushed)
				}
			}
		})
	}
}

// TestFollowingDoesNotAllocate: an answer with a batch, the report of its flush, and a
// watermark, once the machine is warm.
func TestFollowingDoesNotAllocate(t *testing.T) {
	s := &shell{m: partition.New(partition.Options{Broker: 1, Log: partition.LogState{Generation: 1}, Config: testConfig})}
	s.step(&partition.Become{Leader: 2, Strict: true, Replicas: []partition.Replica{{Broker: 1}, {Broker: 2}}, ISR: []ident.BrokerID{1, 2}})
	answered := &partition.Answered{Generation: 1, Batches: []partition.ReplicaBatch{{BatchInfo: partition.BatchInfo{Bytes: 1000, LastOffsetDelta: 9, ProducerID: 7}}}}
	flushed := &partition.Flushed{Generation: 1}
	watermark := &partition.Watermark{Generation: 1}
	asks, reports := 0, 0
	turn := func() {
		end := s.m.Offsets().End
		answered.From, answered.Batches[0].Base, answered.HighWatermark = end, end, end
		s.step(answered)
		answered.Batches[0].BaseSequence = answered.Batches[0].BaseSequence.Add(10)
		asks += len(s.out.Ask)
		flushed.End = end + 10
		s.step(flushed)
		reports += len(s.out.Report)
		watermark.HighWatermark = end + 10
		s.step(watermark)
	}
	for range 100 { // warm
		turn()
	}
	if n := testing.AllocsPerRun(1000, turn); n != 0 {
		t.Errorf("%v allocations per answer, want 0", n)
	}
	if o := s.m.Offsets(); asks != 1101 || reports != 1101 || o.HighWatermark != 11010 || o.Flushed != 11010 {
		t.Errorf("%d asks and %d reports, %+v: the test did not measure what it says", asks, reports, o)
	}
}
