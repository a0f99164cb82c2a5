// Package consumer is one consumer group of KIP-848 as a pure machine: members heartbeat, the coordinator decides who has which partitions, and each
// member is led there one heartbeat at a time. It also serves members that still speak the classic protocol, while a group moves from one to the other.
//
// # A heartbeat
//
//	check the request, the member, its epoch            refused: nothing has changed
//	take the member's subscription                      changed: ConsumerMember, perhaps Regex, and ConsumerGroup with the next group epoch
//	make the target assignment, if the epoch is newer   TargetMember of those it changes, Target
//	lead this member one step towards its target        Current
//	answer
//
// Each change is an entry. [Group.Apply] is the only writer of hard state: live it applies what is proposed, at a load what is read. Each entry sets what
// its key names and nothing else, and what follows from several entries (who holds a partition, how many members are settled) is kept beside. So the last
// entry of each key makes the state, in whatever order a compaction has left them.
//
// # Epochs
//
//	member epoch <= target epoch <= group epoch
//
// The group epoch counts the reasons for a new assignment: members, subscriptions, topics. The target epoch is the group epoch the target was made for; it
// may lag behind for consumer.assignment.interval.ms. A member that has the target epoch has given up what it must give up.
//
// # A member
//
//		stable      -- target is newer ------------------> unrevoked, unreleased or stable
//		unrevoked   -- reports none of what it must revoke -> the same, towards the newest target
//		unreleased  -- heartbeats --------------------------> the same, towards the newest target
//
//	  - unrevoked: it was told to give up partitions, and keeps its epoch until it reports that they are gone. If it does not in its rebalance timeout, it
//	    is fenced.
//	  - unreleased: it has the target's epoch, and waits for partitions that others have yet to give up.
//	  - stable: it has what it shall have.
//
// A partition is given to a member only when nobody holds it, neither as assigned nor as pending revocation: no two members ever have it.
//
// # Glossary
//
//   - target: what a member shall have. current assignment: what it has, and what it has yet to give up.
//   - assignment epoch: the member epoch in which a partition was given to the member that has it (KIP-1251). A commit with an older member epoch is good
//     for partitions that the member has had since that epoch.
//   - static member: one with a group.instance.id. It may leave for a while (epoch -2), and whoever comes back with the instance has its place.
//   - classic member: one that speaks JoinGroup and SyncGroup. Its generation is its member epoch.
//   - fence: remove a member. It learns of it by FENCED_MEMBER_EPOCH or UNKNOWN_MEMBER_ID and joins anew.
//
// # Differences from Kafka
//
// The target is made in the step that needs it, also when a member leaves or topics change, not at the next heartbeat. A regular expression is resolved in
// the step that brings it. While members are under way, heartbeats are asked for more often (coord.Config.ReconcilingHeartbeat). A static member that
// joins again under its own member id is let in although it has not left: its first answer was lost. A classic member that is not known any more, but says that
// it uses partitions, is not let in: others may have them by now.
package consumer
