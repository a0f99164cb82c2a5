// Package group is the coordinator of groups, as a pure machine: one Shard for each partition of __consumer_offsets. It joins the machines of single
// groups and the committed offsets, none of which imports another; what they say to each other and to the shell is in package coord.
//
//   - coord: the words: commands, replies, configuration, timers.
//   - records: what stands in __consumer_offsets, as values and as bytes.
//   - offsets: committed offsets: commit, fetch, delete, expire.
//   - classic: groups whose leader assigns (JoinGroup, SyncGroup).
//   - consumer: groups whose coordinator assigns (KIP-848), with assign for the assignors.
//
// # How a step goes
//
// A command changes the state at once, by the very entries that it proposes; every answer waits until what was proposed before it is committed. Package coord
// says more, docs/adr/0012 why.
//
// # Invariants
//
//   - A shard that applied the entries of its log, compacted in any legal way, equals the one that wrote them (Shard.Entries).
//   - A group of which the log has nothing is not in the shard, but for the members that are just joining it.
//   - A group is of one type at a time.
//
// # Glossary
//
//   - shard: the coordinator of all groups that hash to one partition of __consumer_offsets.
//   - offsets-only group: one whose consumers assign themselves and only commit (Kafka: a simple group). It is listed as a classic group in state Empty,
//     without a protocol type.
package group
