package partition_test

import (
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// TestManyProducersExpireInSlices: forgetting a hundred thousand producers must not
// hold up one turn (KAFKA-16229).
func TestManyProducersExpireInSlices(t *testing.T) {
	const count = 100000
	c := testConfig
	c.ProducersMax = count
	now := partition.Now{Mono: 1, Wall: 1000}
	p := partition.NewProducers(count)
	for id := range ident.ProducerID(count) {
		p.Replay(ident.Offset(id), partition.BatchInfo{ProducerID: id, Bytes: 100}, now.Wall)
	}
	m := partition.New(partition.Options{Broker: 1, Log: partition.LogState{End: count}, Config: c, Producers: p})
	var out partition.Out
	m.Step(now, &partition.Become{Leader: 1, Replicas: []partition.Replica{{Broker: 1}}, ISR: []ident.BrokerID{1}}, &out)
	now.Mono = out.Arm[0].At
	now.Wall += ident.Millis(c.ProducerExpirationMs)
	ticks := 0
	for {
		out.Reset()
		m.Tick(now, &out)
		if ticks++; len(out.Note) != 1 || out.Note[0].Kind != partition.NoteProducersExpired || out.Note[0].Count > 4096 {
			t.Fatalf("tick %d: %v, want at most 4096 expired producers", ticks, out.Note)
		}
		if len(out.Arm) == 0 {
			break
		}
		if out.Arm[0].Key != partition.AlarmProducers || out.Arm[0].At != now.Mono {
			t.Fatalf("tick %d: armed %v, want the rest to follow at once", ticks, out.Arm[0])
		}
	}
	if ticks != 25 || p.Len() != 0 {
		t.Errorf("%d ticks and %d producers left, want 25 and none", ticks, p.Len())
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
}

// TestSnapshotRestoresWhatARestartNeeds: after snapshot and load each producer's next
// batch is accepted, its last five are repetitions, and the order of eviction is kept.
func TestSnapshotRestoresWhatARestartNeeds(t *testing.T) {
	s := newShell(false, 1)
	var want []record.ProducerEntry
	for i, id := range []ident.ProducerID{5, 3, 9} {
		for seq := range ident.Sequence(7) {
			s.step(&partition.Append{Acks: 1, LogAppendTime: -1, Batch: partition.BatchInfo{
				Bytes: 100, ProducerID: id, ProducerEpoch: 2, BaseSequence: seq * 2, LastOffsetDelta: 1, MaxTimestamp: ident.Millis(seq),
			}})
		}
		for seq := 2; seq < 7; seq++ {
			want = append(want, record.ProducerEntry{
				ProducerID: id, ProducerEpoch: 2, LastSequence: ident.Sequence(2*seq + 1), LastOffset: ident.Offset(14*i + 2*seq + 1), OffsetDelta: 1,
				Timestamp: ident.Millis(seq), CoordinatorEpoch: -1, CurrentTxnFirstOffset: ident.NoOffset,
			})
		}
	}
	got := s.m.SnapshotProducers(nil)
	if !slices.Equal(got, want) {
		t.Fatalf("snapshot\n %v, want\n %v", got, want)
	}
	p := partition.NewProducers(3)
	p.Load(got, 0)
	if again := p.Snapshot(nil); !slices.Equal(again, want) {
		t.Fatalf("after a restart\n %v, want\n %v", again, want)
	}
	// A fourth producer takes the place of the quietest.
	p.Replay(42, partition.BatchInfo{ProducerID: 1, Bytes: 100}, 0)
	if again := p.Snapshot(nil); !slices.Equal(again[:10], want[5:]) || again[10].ProducerID != 1 {
		t.Errorf("the quietest producer was not the one to go: %v", again)
	}
}

// TestASnapshotAmidAnAnswerHasWhatIsWritten: a segment of a follower ends between two batches of one answer. The snapshot is named after the end of the first, and
// has to know that one; with the rest of the answer it is not taken in again.
func TestASnapshotAmidAnAnswerHasWhatIsWritten(t *testing.T) {
	entry := func(seq ident.Sequence, last ident.Offset) record.ProducerEntry {
		return record.ProducerEntry{ProducerID: 7, LastSequence: seq, LastOffset: last, CoordinatorEpoch: -1, CurrentTxnFirstOffset: ident.NoOffset}
	}
	want := []record.ProducerEntry{entry(0, 0), entry(1, 1), entry(2, 2)}
	for _, outcome := range []partition.Command{&partition.Appended{}, &partition.AppendFailed{Code: wire.KafkaStorageError, Written: 2}} {
		m := partition.New(partition.Options{Broker: 1, Log: partition.LogState{Generation: 1}, Config: testConfig})
		var out partition.Out
		now := partition.Now{Mono: 1, Wall: 1000}
		m.Step(now, &partition.Become{Leader: 2, Replicas: []partition.Replica{{Broker: 1}, {Broker: 2}}, ISR: []ident.BrokerID{1, 2}}, &out)
		answer := &partition.Answered{Generation: 1}
		for i := range 3 {
			answer.Batches = append(answer.Batches, partition.ReplicaBatch{Base: ident.Offset(i), BatchInfo: partition.BatchInfo{Bytes: 100, ProducerID: 7, BaseSequence: ident.Sequence(i)}})
		}
		m.Step(now, answer, &out)
		for written := range 3 {
			m.Wrote(now, written)
			if got := m.SnapshotProducers(nil); !slices.Equal(got, want[:written]) {
				t.Errorf("with %d batches written: %v, want %v", written, got, want[:written])
			}
		}
		m.Step(now, outcome, &out)
		if end := m.Offsets().End; !slices.Equal(m.SnapshotProducers(nil), want[:end]) {
			t.Errorf("after %T: %v, the log ends at %d", outcome, m.SnapshotProducers(nil), end)
		}
		if err := m.Check(); err != nil {
			t.Error(err)
		}
	}
}

// TestInfoOfReadsTheHeader checks that no field is mixed up.
func TestInfoOfReadsTheHeader(t *testing.T) {
	h := record.Header{
		Length: 100 - record.PrefixSize, Magic: record.Magic, Attributes: record.Attributes(0).WithTransactional(true),
		LastOffsetDelta: 4, MaxTimestamp: 77, ProducerID: 8, ProducerEpoch: 9, BaseSequence: 10, Count: 5,
	}
	b := make([]byte, 100)
	h.Encode(b)
	v, _, err := record.Split(b)
	if err != nil {
		t.Fatal(err)
	}
	want := partition.BatchInfo{
		Bytes: 100, LastOffsetDelta: 4, MaxTimestamp: 77, ProducerID: 8, ProducerEpoch: 9, BaseSequence: 10, Transactional: true,
	}
	if got := partition.InfoOf(v); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	h.Attributes = record.Attributes(0).WithControl(true)
	h.Encode(b)
	want.Transactional, want.Control = false, true
	if got := partition.InfoOf(v); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestAFirstBatchThatWasRefusedBeforeRecoveryIsWaitedFor: a replica whose log could not be opened yet refused a producer's
// first batch. When the log is there the second one must not go before it; a producer that the log knows is not touched.
func TestAFirstBatchThatWasRefusedBeforeRecoveryIsWaitedFor(t *testing.T) {
	p := partition.NewProducers(10)
	p.Replay(0, partition.BatchInfo{ProducerID: 7, Bytes: 100}, 0)
	for _, b := range []partition.BatchInfo{{ProducerID: 7}, {ProducerID: 8}, {ProducerID: 9, BaseSequence: 1}, {ProducerID: -1}} {
		p.ExpectFirst(b, 0)
	}
	m := partition.New(partition.Options{Broker: 1, Log: partition.LogState{End: 1, Flushed: 1}, Config: testConfig, Producers: p})
	var out partition.Out
	now := partition.Now{Mono: 1, Wall: 1}
	m.Step(now, &partition.Become{Leader: 1, Replicas: []partition.Replica{{Broker: 1}}, ISR: []ident.BrokerID{1}}, &out)
	code := func(id ident.ProducerID, sequence ident.Sequence) wire.ErrorCode {
		out.Reset()
		m.Step(now, &partition.Append{Acks: 1, LogAppendTime: -1, Batch: partition.BatchInfo{Bytes: 100, ProducerID: id, BaseSequence: sequence}}, &out)
		if len(out.Persist) == 1 {
			m.Step(now, &partition.Appended{}, &out)
		}
		return out.Reply[0].Code
	}
	for i, want := range []struct {
		id       ident.ProducerID
		sequence ident.Sequence
		code     wire.ErrorCode
	}{
		{8, 1, wire.OutOfOrderSequenceNumber}, {8, 0, wire.NoError}, {8, 1, wire.NoError}, {7, 1, wire.NoError}, {9, 5, wire.NoError},
	} {
		if got := code(want.id, want.sequence); got != want.code {
			t.Errorf("%d: producer %d, sequence %d: %v, want %v", i, want.id, want.sequence, got, want.code)
		}
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
}
