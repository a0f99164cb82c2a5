// Package classic is the classic consumer-group protocol for one group: a pure machine. Members meet in rounds: all join, one of them, the leader, gets
// the list of members and decides who has what, all sync and get their part. Kafka's coordinator for classic groups is the model
// (GroupMetadataManager and ClassicGroup of Kafka 4.4), with static members (KIP-345), pending members (KIP-394), batched leaving (KIP-345) and
// skipped assignments (KIP-814).
//
// # States
//
//	Empty ---------------- a member joins ----------------------> PreparingRebalance   after the first wait (docs/adr/0014)
//	PreparingRebalance --- all members have joined, or time is up -> CompletingRebalance
//	PreparingRebalance --- nobody is left ------------------------> Empty                written down
//	CompletingRebalance -- the leader syncs ----------------------> Stable               written down
//	CompletingRebalance -- somebody joins anew, leaves or fails --> PreparingRebalance
//	Stable --------------- the same, or a member never synced ----> PreparingRebalance
//	any ------------------ Drop ----------------------------------> Dead
//
// # What is kept
//
// The hard state is one [records.Generation]: what the members last agreed on, or that the group is empty. All else is soft: who waits, deadlines, the
// protocols that were not chosen, and the generation that is being formed. After a failover the group is in the generation that was written last; members
// that had moved on are told ILLEGAL_GENERATION or UNKNOWN_MEMBER_ID and join again. A generation is written before any member hears its assignment, so
// no two memberships ever work under one generation; but the number of one that was only being formed is used again after a failover, as in Kafka.
//
// # Where we differ from Kafka
//
//   - The first wait of an empty group ends when the group is quiet (docs/adr/0014).
//   - A request that is parked is always answered: a member that joins or syncs again while it waits releases the earlier request with
//     REBALANCE_IN_PROGRESS, which clients retry. Kafka forgets the earlier one.
//   - A static member that was not there for a rebalance is not asked to sync in time; only its session decides. Kafka removes it when the sync timer
//     fires, though it never heard of the generation.
//   - A member that syncs when the group is stable has a whole session again. Kafka's new coordinator counts from the end of its Join, so a member whose
//     Join was answered late can be taken for dead while it reads its assignment; the old one (GroupCoordinator.scala) did as we do.
//   - A static member comes back into a group that is full: it replaces itself, the group does not grow.
//   - A static member that comes back with other topics starts a rebalance. Kafka looks at the name of the chosen protocol only, and the new topics wait
//     for somebody else's rebalance. Other changes of the metadata (owned partitions, user data) start none, here as there.
//   - A pending member that leaves starts no rebalance.
//   - At most [pendingMax] members are pending; the oldest is forgotten for the next.
//   - A group that has nothing yet is not written down: its first entry is its first generation.
//
// # Glossary
//
//   - member: has an id that the coordinator made. A static one has an instance id of its operator too, and survives a restart of its process.
//   - pending member: was given an id (MEMBER_ID_REQUIRED) and has not joined with it.
//   - parked: a Join or Sync that waits for others. At most one of each for a member.
//   - fresh: a member in its first round. It cannot send heartbeats while its Join is parked, so it has newMemberTimeout to live.
//   - owes a sync: was told of the generation and has not synced in it.
//   - deadline: when a member counts as failed. Its timer may lie before it and is moved when it fires, so that a heartbeat touches no heap.
package classic
