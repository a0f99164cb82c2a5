package ident

import "strconv"

// Offset is the position of a record in a partition. The first record has
// offset 0; an offset is never given to a second record.
type Offset int64

// NoOffset says that there is no offset, as Kafka's -1 does.
const NoOffset Offset = -1

// String prints the offset in decimal.
func (o Offset) String() string { return strconv.FormatInt(int64(o), 10) }

// LeaderEpoch counts the leaderships of a partition (KIP-101).
type LeaderEpoch int32

// NoLeaderEpoch says that no epoch is known or that none shall be checked.
const NoLeaderEpoch LeaderEpoch = -1

// String prints the epoch in decimal.
func (e LeaderEpoch) String() string { return strconv.FormatInt(int64(e), 10) }

// PartitionEpoch counts the changes of a partition's metadata record.
type PartitionEpoch int32

// String prints the epoch in decimal.
func (e PartitionEpoch) String() string { return strconv.FormatInt(int64(e), 10) }

// BrokerID names a broker.
type BrokerID int32

// NoBroker says that there is no broker, for example no leader.
const NoBroker BrokerID = -1

// String prints the id in decimal.
func (b BrokerID) String() string { return strconv.FormatInt(int64(b), 10) }

// BrokerEpoch names one registration of a broker with the controller.
type BrokerEpoch int64

// NoBrokerEpoch says that no registration is known.
const NoBrokerEpoch BrokerEpoch = -1

// String prints the epoch in decimal.
func (e BrokerEpoch) String() string { return strconv.FormatInt(int64(e), 10) }

// ProducerID names an idempotent producer.
type ProducerID int64

// NoProducerID is what a batch of a producer without idempotence carries.
const NoProducerID ProducerID = -1

// String prints the id in decimal.
func (p ProducerID) String() string { return strconv.FormatInt(int64(p), 10) }

// ProducerEpoch names one incarnation of a producer id.
type ProducerEpoch int16

// NoProducerEpoch is what a batch of a producer without idempotence carries.
const NoProducerEpoch ProducerEpoch = -1

// String prints the epoch in decimal.
func (e ProducerEpoch) String() string { return strconv.FormatInt(int64(e), 10) }

// Sequence numbers the records of one producer on one partition. It wraps from
// 2147483647 to 0.
type Sequence int32

// NoSequence is what a batch without idempotence carries.
const NoSequence Sequence = -1

// String prints the sequence in decimal.
func (s Sequence) String() string { return strconv.FormatInt(int64(s), 10) }

// Add returns the sequence n records later, wrapping from 2147483647 to 0 as
// producers do. s and n must not be negative.
func (s Sequence) Add(n int32) Sequence {
	return Sequence((int64(s) + int64(n)) & 0x7fffffff)
}

// ClusterID names the cluster, in the text form of Kafka's Uuid.
type ClusterID string

// NodeID names a member of the metadata quorum's Raft group. It is random, made
// together with the data directory, and never 0.
type NodeID uint64

// String prints the id as sixteen hexadecimal digits.
func (n NodeID) String() string {
	const digits = "0123456789abcdef"
	var b [16]byte
	for i := range b {
		b[i] = digits[(n>>(60-4*i))&0xf]
	}
	return string(b[:])
}

// RequestID ties a reply to whoever asked. 0 means that nobody waits.
type RequestID uint64

// Instant is a point on the injected monotonic clock, in nanoseconds from an
// origin without meaning. Only differences say anything.
type Instant int64

// Millis is wall-clock time in milliseconds since 1970-01-01 UTC: what Kafka
// calls a timestamp.
type Millis int64

// NoTimestamp is Kafka's "no timestamp".
const NoTimestamp Millis = -1

// String prints the number of milliseconds in decimal.
func (m Millis) String() string { return strconv.FormatInt(int64(m), 10) }

// Generation names one opening of a log within a process. Truncation and
// reopening take a new one from a counter of the process, so that a late fact
// about the old bytes can be told from a fact about the new ones.
type Generation uint64

// TopicPartition names a partition by the name of its topic.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String prints topic and partition as Kafka names a partition's directory:
// "topic-0".
func (tp TopicPartition) String() string {
	return tp.Topic + "-" + strconv.FormatInt(int64(tp.Partition), 10)
}

// Compare orders by topic name, then by partition number: -1, 0 or +1.
func (tp TopicPartition) Compare(other TopicPartition) int {
	switch {
	case tp.Topic < other.Topic:
		return -1
	case tp.Topic > other.Topic:
		return +1
	case tp.Partition < other.Partition:
		return -1
	case tp.Partition > other.Partition:
		return +1
	}
	return 0
}
