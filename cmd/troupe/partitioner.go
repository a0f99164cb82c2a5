package main

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/troupe-broker/troupe/wire/record"
)

// noPartition marks a record whose partition is for the partitioner to choose.
const noPartition = -1

// partitioner sends a record where it asks to go, records with a key where Kafka's clients send them (murmur2 of the
// key, without its sign bit, modulo the partitions), and records without a key to one partition a batch.
func partitioner() kgo.Partitioner {
	hash := func(key []byte) uint32 { return uint32(record.Murmur2(key)) }
	return chooser{kgo.StickyKeyPartitioner(kgo.KafkaHasher(hash))}
}

type chooser struct{ rest kgo.Partitioner }

// ForTopic is called once for each topic.
func (c chooser) ForTopic(topic string) kgo.TopicPartitioner {
	return &topicChooser{c.rest.ForTopic(topic)}
}

type topicChooser struct{ rest kgo.TopicPartitioner }

// RequiresConsistency says whether the record's partition may not depend on which partitions can be written to now.
func (c *topicChooser) RequiresConsistency(r *kgo.Record) bool {
	return r.Partition != noPartition || c.rest.RequiresConsistency(r)
}

// Partition chooses one of n partitions. The client refuses a choice beyond n.
func (c *topicChooser) Partition(r *kgo.Record, n int) int {
	if r.Partition != noPartition {
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
