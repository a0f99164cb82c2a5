// Package offsets keeps the committed offsets of one group, as a pure machine: commit, fetch, delete, expire. Beside them it remembers, for a whole shard,
// which consumers are about to jump over records (Jumps).
//
// The hard state is what the entries say that were proposed (records.OffsetCommit). Whether a member may commit is not asked here: the group's own machine
// has said so before.
//
// # How commits end
//
//   - They age from when their group became empty (KIP-211), from their own time in groups that never had members, in consumer groups, and for topics that
//     no member of a stable group reads. A commit of an old client may bring an end of its own, and then only that counts. While a group rebalances
//     nothing ages.
//   - They go with their topic. One that was made again under its name has another id, and what was committed for the old one is not shown any more.
//   - They go when they, or their group, are deleted.
//
// # Jumps
//
// A consumer that is told of no usable commit asks for an offset by a special timestamp (auto.offset.reset) and goes on from there. What lies between is a
// jump: a group skipped records, perhaps without anybody's knowing. It counts when the same client (its id and host) commits on the partition. Where the
// client went is what it asked for first; if nobody told, a commit is evidence only: nothing below the log start was read, and of a group without a commit
// it is not known how much it skipped (records.Jump.To is -1). The jump is stored with the commit, and with the later ones while it is remembered.
//
// # Where we differ from Kafka
//
//   - An offset is tied to its topic's id, not to its name alone.
//   - A commit whose topic was deleted while no shard was loaded is found by the next sweep.
//
// # Glossary
//
//   - commit: the offset from which a group goes on reading a partition, with the text that its client stored beside it.
//   - retention: how long a commit is kept after the group has no use for it any more.
//   - sweep: a look through all commits of a shard for those that are too old.
package offsets
