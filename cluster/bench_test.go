package cluster

import (
	"fmt"
	"testing"

	"github.com/troupe-broker/troupe/wire/ident"
)

// bigImage has topics of some partitions each, all led by broker 1.
func bigImage(tb testing.TB, topics, partitions int) *Image {
	tb.Helper()
	records := []Record{&ClusterRecord{ClusterID: "c1"}, &RegisterBrokerRecord{Broker: Broker{ID: 1, Epoch: 1}}}
	for i := range topics {
		id := ident.TopicID{byte(i), byte(i >> 8), 1}
		records = append(records, &TopicRecord{Name: fmt.Sprintf("topic-%05d", i), ID: id})
		for n := range partitions {
			records = append(records, &PartitionRecord{Topic: id, Number: int32(n), Partition: Partition{
				Replicas: []ident.BrokerID{1}, ISR: []ident.BrokerID{1}, Leader: 1, Strict: true, Directories: []ident.DirectoryID{{1}},
			}})
		}
	}
	m, _, err := NewImage().Apply(1, 1, records)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func BenchmarkApply(b *testing.B) {
	for _, shape := range []struct{ topics, partitions int }{{10_000, 1}, {100, 100}, {1, 10_000}} {
		m := bigImage(b, shape.topics, shape.partitions)
		id := ident.TopicID{byte(shape.topics / 2), byte(shape.topics / 2 >> 8), 1}
		all := []Record{}
		for t := range m.Topics() {
			for i := range t.Partitions {
				all = append(all, &PartitionChangeRecord{Topic: t.ID, Number: int32(i), Leader: 1})
			}
		}
		for name, records := range map[string][]Record{
			"one":   {&PartitionChangeRecord{Topic: id, Number: 0, Leader: 1}},
			"all":   all,
			"topic": {&TopicRecord{Name: "topic-new", ID: ident.TopicID{9: 9}}, &PartitionRecord{Topic: ident.TopicID{9: 9}, Partition: Partition{Replicas: []ident.BrokerID{1}, ISR: []ident.BrokerID{1}, Leader: 1}}},
		} {
			b.Run(fmt.Sprintf("topics=%d/partitions=%d/change=%s", shape.topics, shape.partitions, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, _, err := m.Apply(2, 1, records); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	m := bigImage(b, 10_000, 1)
	for b.Loop() {
		if _, ok := m.Topic("topic-05000"); !ok {
			b.Fatal("not found")
		}
	}
}

func BenchmarkSnapshot(b *testing.B) {
	m := bigImage(b, 1000, 10)
	data := EncodeSnapshot(m)
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			EncodeSnapshot(m)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, err := DecodeSnapshot(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkCreateTopic is one topic through the whole machine with a disk that answers at once, in a cluster that has many.
func BenchmarkCreateTopic(b *testing.B) {
	w := newWorld(b, 1, Options{TopicsMax: 1 << 30, PartitionsMax: 1 << 30, SnapshotBytes: 1 << 40}, nil)
	n := w.node(1)
	n.start()
	w.settle()
	out := &Out{}
	step := func(cmd Command) {
		n.c.Step(w.now, cmd, out)
		for len(out.Persist) > 0 {
			last := out.Persist[len(out.Persist)-1].ID
			out.Reset()
			n.c.Step(w.now, &Persisted{Save: last}, out)
		}
		out.Reset()
	}
	step(registration(1, 1, ""))
	step(&Heartbeat{Broker: 1, Epoch: 3, Applied: 3})
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		step(&CreateTopics{Topics: []NewTopic{{Name: fmt.Sprintf("t%d", i), ID: ident.TopicID{1, byte(i), byte(i >> 8), byte(i >> 16), byte(i >> 24)}, Partitions: 1, ReplicationFactor: 1}}})
	}
	b.StopTimer()
	if got := n.c.Image().TopicCount(); got != i {
		b.Fatalf("%d topics, want %d", got, i)
	}
}
