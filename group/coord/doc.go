// Package coord has the words of a group coordinator: what it can be asked (Command), what it answers (Reply), what it knows of the cluster (Topics), how
// it is configured (Config), what it wants of its shell (Out), and its timers. The machines (classic, consumer, offsets) and the shard that joins them
// (package group) share these words, so that none of them imports another.
//
// # How a step goes
//
// A command changes the state of the shard at once and puts what changed into Out.Entries, in order. The shell appends them to the shard's own partition
// of __consumer_offsets. Every reply says how many entries of this shard had been proposed when it was decided (Reply.After), and leaves when all of them
// are committed: nobody ever hears of a state that could be lost. An append that failed is a failover to oneself: the shell drops the shard with all its
// held replies (they become errors that clients retry) and loads a new one from the committed log. docs/adr/0012 has the reasons.
//
// Whatever must survive a failover is changed only by applying entries, live by the very entry that is proposed, at a load by the ones that are read:
// a shard that was loaded from the log equals the one that wrote it.
//
// # Glossary
//
//   - shard: the coordinator of all groups that hash to one partition of __consumer_offsets.
//   - entry: one record of that partition, as a value (package records).
//   - hard state: what entries say. soft state: who waits for what, and deadlines; lost in a failover, and harmless to lose.
//   - generation: the epoch of a classic group, one for all members. group epoch, member epoch: those of KIP-848.
package coord
