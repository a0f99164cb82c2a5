package cluster

import (
	"bytes"
	"errors"
	"testing"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

// sampleRecords is one record of each code with every field set.
func sampleRecords() []Record {
	value := "604800000"
	id := ident.TopicID{1, 2, 3}
	return []Record{
		&NoOpRecord{},
		&ClusterRecord{ClusterID: "mPdxEDEzTnWOBDHjTzLWxg"},
		&VotersRecord{Voters: []Voter{voterOf(1), voterOf(2), voterOf(3)}},
		&RegisterBrokerRecord{Broker: Broker{
			ID: 1, Epoch: 5, Incarnation: Incarnation{9}, Endpoints: []Endpoint{{Name: "PLAINTEXT", Host: "host", Port: 9092, Protocol: 0}},
			Directories: []ident.DirectoryID{{1}}, Rack: "r", Features: []FeatureRange{{Name: PeerVersion, Min: 1, Max: 2}}, Fenced: true, ShuttingDown: true,
		}},
		&FenceBrokerRecord{Broker: 1, Epoch: 5, ShuttingDown: true},
		&ShutDownBrokerRecord{Broker: 1, Epoch: 5},
		&UnfenceBrokerRecord{Broker: 1, Epoch: 5},
		&TopicRecord{Name: "orders", ID: id},
		&PartitionRecord{Topic: id, Number: 0, Partition: Partition{
			Replicas: []ident.BrokerID{1, 2, 3}, Directories: []ident.DirectoryID{{1}, {2}, {3}}, ISR: []ident.BrokerID{1, 2}, ELR: []ident.BrokerID{3},
			Adding: []ident.BrokerID{3}, Removing: []ident.BrokerID{1}, Leader: 1, LeaderEpoch: 7, Epoch: 8, Strict: true,
			MinISR: 2, Unverified: []ident.BrokerID{3}, LastKnownELR: []ident.BrokerID{3}, Reports: []Report{{Broker: 3, LastEpoch: 6, End: 100}}, Election: ElectionPossibleLoss, Offline: []ident.BrokerID{3}, Damaged: []ident.BrokerID{1}, Full: []ident.BrokerID{2},
		}},
		&PartitionChangeRecord{
			Topic: id, Number: 0, ISR: []ident.BrokerID{}, ELR: []ident.BrokerID{1, 2}, LastKnownELR: []ident.BrokerID{3}, Leader: ident.NoBroker,
			Mode: ModeCached, Replicas: []ident.BrokerID{3, 2, 1}, Directories: []ident.DirectoryID{{3}, {2}, {1}}, Adding: []ident.BrokerID{}, Removing: []ident.BrokerID{},
			MinISR: 1, Unverified: []ident.BrokerID{}, Reports: []Report{}, Election: ElectionUnclean, Offline: []ident.BrokerID{}, Damaged: []ident.BrokerID{2}, Full: []ident.BrokerID{},
		},
		&PartitionChangeRecord{Topic: id, Number: 0, Leader: LeaderUnchanged, Mode: ModeStrict},
		&ConfigRecord{Resource: topicResource("orders"), Name: "retention.ms", Value: &value},
		&ConfigRecord{Resource: config.Resource{Type: config.BrokerResource}, Name: "log.retention.ms"},
		&FeatureLevelRecord{Name: PeerVersion, Level: 1},
		&ProducerIDsRecord{Broker: 1, Epoch: 5, Next: 1000},
		&RemoveTopicRecord{ID: id},
		&UnregisterBrokerRecord{Broker: 1, Epoch: 5},
	}
}

func TestEveryRecordReadsBackAsItWasWritten(t *testing.T) {
	seen := map[Code]bool{}
	for _, rec := range sampleRecords() {
		seen[rec.Code()] = true
		b := EncodeBatch([]Record{rec})
		back, err := DecodeBatch(b)
		if err != nil {
			t.Errorf("%T: %v", rec, err)
			continue
		}
		if again := EncodeBatch(back); !bytes.Equal(again, b) || back[0].Code() != rec.Code() {
			t.Errorf("%T reads back as %+v", rec, back[0])
		}
		for n := range b {
			if _, err := DecodeBatch(b[:n]); !errors.Is(err, ErrMalformed) {
				t.Errorf("%T cut to %d of %d bytes: %v", rec, n, len(b), err)
			}
		}
	}
	for code := range codeEnd {
		if !seen[code] {
			t.Errorf("no sample of code %d", code)
		}
	}
}

// raw writes msgpack by hand: what older and newer versions may send.
func raw(build func(w *writer)) []byte {
	w := newWriter()
	w.array(1)
	build(w)
	return w.buf.Bytes()
}

func TestRecordsGrowAtTheirEnd(t *testing.T) {
	newer := raw(func(w *writer) {
		w.array(6)
		w.uint(uint64(CodeTopic))
		w.string("orders")
		w.bytes(bytes.Repeat([]byte{1}, 16))
		w.array(2) // fields of a later version: any shape
		w.nil()
		must(w.enc.EncodeMapLen(1))
		w.string("k")
		w.bytes([]byte("v"))
		must(w.enc.EncodeFloat64(1.5))
		w.bool(true)
	})
	records, err := DecodeBatch(newer)
	if err != nil {
		t.Fatal(err)
	}
	if topic := records[0].(*TopicRecord); topic.Name != "orders" || topic.ID[15] != 1 {
		t.Errorf("%+v", topic)
	}
	older := raw(func(w *writer) {
		w.array(3)
		w.uint(uint64(CodeFenceBroker))
		w.int(1)
		w.int(5)
	})
	records, err = DecodeBatch(older)
	if err != nil {
		t.Fatal(err)
	}
	if fence := records[0].(*FenceBrokerRecord); fence.Broker != 1 || fence.Epoch != 5 || fence.ShuttingDown {
		t.Errorf("%+v", fence)
	}
	unknown := raw(func(w *writer) {
		w.array(1)
		w.uint(uint64(codeEnd))
	})
	if _, err := DecodeBatch(unknown); !errors.Is(err, ErrUnknownCode) || errors.Is(err, ErrMalformed) {
		t.Errorf("%v", err)
	}
}

func TestHostileLengthsAndDepthsAreRefusedCheaply(t *testing.T) {
	deep := append([]byte{0x91, 0x92, byte(CodeNoOp)}, bytes.Repeat([]byte{0x91}, 1_000_000)...)
	for name, b := range map[string][]byte{
		"array of 4 G records":    {0xdd, 0xff, 0xff, 0xff, 0xff},
		"string of 4 G bytes":     {0x91, 0x93, byte(CodeTopic), 0xdb, 0xff, 0xff, 0xff, 0xff, 'x'},
		"list of 4 G brokers":     {0x91, 0x94, byte(CodePartition), 0xc4, 0, 0, 0xdd, 0xff, 0xff, 0xff, 0xff},
		"map of 4 G in the tail":  {0x91, 0x92, byte(CodeNoOp), 0xdf, 0xff, 0xff, 0xff, 0xff},
		"bytes after the batch":   {0x90, 0xc0},
		"a million nested arrays": deep,
		"nil":                     {0xc0},
		"record of no fields":     {0x91, 0x90},
		"nothing":                 {},
	} {
		allocs := testing.AllocsPerRun(1, func() {
			if _, err := DecodeBatch(b); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s: %v", name, err)
			}
		})
		if allocs > 100 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}

func FuzzDecodeBatch(f *testing.F) {
	f.Add(EncodeBatch(sampleRecords()))
	for _, rec := range sampleRecords() {
		f.Add(EncodeBatch([]Record{rec}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		records, err := DecodeBatch(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrUnknownCode) {
				t.Fatalf("an error of no kind: %v", err)
			}
			return
		}
		canonical := EncodeBatch(records)
		again, err := DecodeBatch(canonical)
		if err != nil || !bytes.Equal(EncodeBatch(again), canonical) {
			t.Fatalf("what was read is written as what cannot be read: %v", err)
		}
		m, _, err := NewImage().Apply(1, 1, records)
		if err != nil {
			if !errors.Is(err, ErrContradiction) {
				t.Fatalf("an error of no kind: %v", err)
			}
			return
		}
		if back, err := DecodeSnapshot(EncodeSnapshot(m)); err != nil || !back.Equal(m) {
			t.Fatalf("the image does not survive its snapshot: %v", err)
		}
	})
}

func FuzzDecodeSnapshot(f *testing.F) {
	for _, m := range sampleImages() {
		f.Add(EncodeSnapshot(m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeSnapshot(b)
		if err != nil {
			for _, kind := range []error{ErrMalformed, ErrUnknownCode, ErrNewerVersion, ErrContradiction} {
				if errors.Is(err, kind) {
					return
				}
			}
			t.Fatalf("an error of no kind: %v", err)
		}
		if back, err := DecodeSnapshot(EncodeSnapshot(m)); err != nil || !back.Equal(m) {
			t.Fatalf("the image does not survive its snapshot: %v", err)
		}
	})
}

func sampleImages() []*Image {
	m := NewImage()
	images := []*Image{m}
	for i, rec := range sampleRecords() {
		next, _, err := m.Apply(uint64(i+1), 1, []Record{rec})
		if err != nil {
			panic(err)
		}
		m = next
		images = append(images, m)
	}
	return images
}

// FuzzNew builds controllers from damaged raft logs: an error or a working machine, never a panic.
func FuzzNew(f *testing.F) {
	g, err := Genesis(Promise{ClusterID: "c1", Voters: []Voter{loneVoter}})
	if err != nil {
		f.Fatal(err)
	}
	entry := append([]byte{0}, EncodeBatch([]Record{&TopicRecord{Name: "a", ID: ident.TopicID{1}}})...)
	f.Add(g.HardState, g.Snapshot.Data, uint64(1), uint64(1), uint64(2), uint64(1), entry)
	f.Add(encodeHardState(3, 7, 2), g.Snapshot.Data, uint64(1), uint64(1), uint64(2), uint64(3), []byte{0})
	f.Add(encodeHardState(3, 7, 9), g.Snapshot.Data, uint64(1), uint64(1), uint64(3), uint64(3), []byte{2, 1})
	f.Fuzz(func(t *testing.T, hard, snapshot []byte, index, term, first, entryTerm uint64, data []byte) {
		d := Durable{HardState: hard, Snapshot: &Snapshot{Index: index, Term: term, Data: snapshot}, Entries: []Entry{{Index: first, Term: entryTerm, Data: data}, {Index: first + 1, Term: entryTerm, Data: data}}}
		c, err := New(Options{Node: loneVoter.Node, Broker: loneVoter.Broker, Durable: d})
		if err != nil {
			return
		}
		out := &Out{}
		c.Step(Now{Mono: 1}, &Start{}, out)
		for range 10 {
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
			saves := append([]Save(nil), out.Persist...)
			out.Reset()
			for _, s := range saves {
				c.Step(Now{Mono: 1}, &Persisted{Save: s.ID}, out)
			}
		}
	})
}
