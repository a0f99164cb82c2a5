package main

import (
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/troupe-broker/troupe/wire/record"
)

// noPartition marks a record whose partition is for the partitioner to choose.
const noPartition = -1

// partitioner sends a record where it asks to go, records with a key where Kafka's clients send them (murmur2 of the
// key, without its sign bit, modulo the partitions), and records without a key to one partition a batch.
// A record that asks for what is not there is noted in wrong.
func partitioner(wrong *misplaced) kgo.Partitioner {
	hash := func(key []byte) uint32 { return uint32(record.Murmur2(key)) }
	return chooser{kgo.StickyKeyPartitioner(kgo.KafkaHasher(hash)), wrong}
}

// misplaced is the last record that named a partition which its topic does not have. The client refuses such a record in
// words that only its authors know.
type misplaced struct {
	mu         sync.Mutex
	found      bool
	partition  int32
	partitions int // how many the topic has
}

func (m *misplaced) note(partition int32, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.found, m.partition, m.partitions = true, partition, n
}

// failure says it, or is nil when every record had a place.
func (m *misplaced) failure(topic string) *failure {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.found {
		return nil
	}
	return fail(codeNotFound, fmt.Sprintf("it has %d, from 0; `troupe topic alter %s --partitions N` adds some", m.partitions, topic),
		"topic %s has no partition %d", topic, m.partition)
}

type chooser struct {
	rest  kgo.Partitioner
	wrong *misplaced
}

// ForTopic is called once for each topic.
func (c chooser) ForTopic(topic string) kgo.TopicPartitioner {
	return &topicChooser{c.rest.ForTopic(topic), c.wrong}
}

type topicChooser struct {
	rest  kgo.TopicPartitioner
	wrong *misplaced
}

// RequiresConsistency says whether the record's partition may not depend on which partitions can be written to now.
func (c *topicChooser) RequiresConsistency(r *kgo.Record) bool {
	return r.Partition != noPartition || c.rest.RequiresConsistency(r)
}

// Partition chooses one of n partitions. The client refuses a choice beyond n.
func (c *topicChooser) Partition(r *kgo.Record, n int) int {
	if r.Partition != noPartition {
		if int(r.Partition) >= n {
			c.wrong.note(r.Partition, n)
		}
		return int(r.Partition)
	}
	return c.rest.Partition(r, n)
}

// OnNewBatch lets the sticky choice move on.
func (c *topicChooser) OnNewBatch() {
	if sticky, ok := c.rest.(kgo.TopicPartitionerOnNewBatch); ok {
		sticky.OnNewBatch()
	}
}
