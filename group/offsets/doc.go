// Package offsets keeps the committed offsets of one group, as a pure machine: commit, fetch, delete, expire.
//
// The hard state is what the entries say that were proposed (records.OffsetCommit); Group.Apply is the only way to change it, at a load and live. Whether
// a member may commit is not asked here: the group's own machine has said so before.
//
// # Glossary
//
//   - commit: the offset from which a group goes on reading a partition, with the text that its client stored beside it.
//   - retention: how long a commit is kept after the group has no use for it any more. A commit of an old client may bring its own.
package offsets
