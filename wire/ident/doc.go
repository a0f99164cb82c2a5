// Package ident holds the names and numbers by which the parts of the broker
// speak of things: offsets, epochs, ids, instants. Each is a type of its own, so
// that an offset cannot be passed where an epoch is wanted and the compiler, not
// a reader, finds the mistake.
//
// The package has no behaviour beyond printing, parsing and comparing, depends
// on nothing of ours and never reads a clock or a random source: whoever needs a
// fresh id hands in sixteen random bytes.
//
// # Glossary
//
//   - Offset: position of a record in a partition, from 0; never reused.
//   - LeaderEpoch: how often leadership of a partition was given out (KIP-101).
//   - PartitionEpoch: how often the partition's record in the metadata log changed.
//   - BrokerID, BrokerEpoch: a broker, and one registration of it (KIP-631).
//   - ProducerID, ProducerEpoch, Sequence: an idempotent producer, one incarnation
//     of it, and the number of one of its records (KIP-98).
//   - TopicID: a topic across renames of nothing: a topic that is deleted and
//     created again under its name has another id (KIP-516).
//   - DirectoryID: one data directory of one broker (KIP-858).
//   - ClusterID: the cluster, as text.
//   - NodeID: one member of the metadata quorum's Raft group.
//   - RequestID: ties a reply of a machine to whoever waits for it.
//   - Instant: a point on the injected monotonic clock.
//   - Millis: wall-clock milliseconds, Kafka's timestamps.
//   - Generation: one opening of a log; truncation and reopening start a new one.
package ident
