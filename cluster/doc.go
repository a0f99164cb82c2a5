// Package cluster is the controller of a Troupe cluster as a pure machine, and the metadata it decides.
//
// One Raft quorum of 1, 3 or 5 controllers keeps one log of metadata records. Its leader is the controller: it alone creates and deletes topics,
// places replicas, elects leaders, fences brokers, changes configs and hands out producer ids. Everybody else replays the committed records into an
// immutable Image and acts on that alone.
//
// # The machine
//
// Controller hosts etcd's raft.RawNode and does nothing by itself: no clock, no disk, no socket, no random number, no goroutine. The shell calls
// Step with one Command and the time, or Tick every Options.TickMs, and then does what Out asks, field by field, in the order of the fields:
//
//	Persist  write to the raft log, in order, Sync before Persisted is stepped
//	Send     letters to other voters; they may be lost, repeated and reordered
//	Commit   new images with the delta that led to them, in order
//	Reply    answers, each to the RequestID its command carried, exactly once
//	Note     what happened, for logs, metrics and transcripts
//
// Commit comes before Reply so that whoever hears "created" finds the topic in the published image. Persist is asynchronous: the raft log writer may
// take its time while letters and heartbeats go on; what must wait for the disk waits inside the machine until Persisted comes back.
//
// # How a command becomes metadata
//
//  1. The controller checks the command against the newest image it has proposed (the speculative image), and makes records of it.
//  2. The records are one raft entry: one atomic batch. The speculative image applies it at once, so the next command sees it.
//  3. The entry is persisted here and on a majority, and committed.
//  4. The committed image takes the batch; Out.Commit and the held back reply leave in the same bundle.
//
// A controller acts only after the empty entry of its own term is applied: before that it cannot know what its predecessor committed. A command
// that needs the controller and meets none is answered NOT_CONTROLLER.
//
// # Glossary
//
//   - Index: position of an entry in the metadata log, from 1. Kafka calls it the metadata offset.
//   - Term: Raft's election number; DescribeQuorum shows it as the leader epoch of the metadata partition.
//   - Voter: member of the quorum, known by its Raft node id, which is random and made with the data directory; a voter without its log is a new node.
//   - Caught-up observer: a broker without a vote that says by its heartbeats which node it would be, and lacks few entries. Only such a one becomes a voter.
//   - Broker epoch: index of the record that registered a broker's current incarnation. An older epoch is a ghost (KIP-903).
//   - Incarnation: random id of one run of a broker process.
//   - Fenced: registered, but not trusted to lead or to be in a new replica set. A broker is fenced until it has asked to be unfenced and has caught up.
//   - Partition epoch: rises with each change of a partition's record; compare-and-set token of ISR proposals.
//   - Leader epoch: rises with each election and with each change of the write mode.
//   - ELR: eligible leader replicas (KIP-966), out of the ISR yet known to hold all committed records.
//   - MinISR: the smallest ISR that commits anything, min(min.insync.replicas, replicas). It travels in the partition's record, so that the leader counts by
//     the number that the controller judged ISR and ELR by, and not by a file of its own.
//   - Whole: a replica that lost nothing of what it had reported. One that is not leaves ISR and ELR in the batch that registers its broker. One that is not
//     known to be, unverified, stays in them and cannot be elected until Verified. A broker sends that for every partition whose record names it.
//   - Last known set: ISR ∪ ELR of the time when the partition last had a leader that led, LastKnownELR in the record. Whoever is elected adds its own and keeps
//     those of before, until it proposes something, or a heartbeat says that its broker has heard of it: it may be dead already. Whoever is put out of ISR and
//     ELR under a leader that stays is in it, until the leader has heard of that likewise: by a lowered MinISR, by being fenced while the ISR commits without
//     it, by a proposal. That it has heard is known to the controller, and is not in the record: when all go down at once, the set is what it was when the
//     leader proposed something last, and one that is gone for good is waited for, or an operator elects without it. When nobody whole is left, all of them
//     must be back and have reported (last batch epoch, log end); the farthest leads, and the record says that something may be lost.
//   - Proposal: an ISR that a leader wants. It counts from then on for the high watermark and ends with a record of a higher partition epoch; one that is
//     refused for what it asks gets such a record without a change.
//   - Damaged, offline: marks of a replica whose broker lives (MarkReplicas). A damaged one cannot read all it has, and leads only where nobody else can: one
//     of the ELR takes its place as soon as it is there, and does not join the ISR first, for which it may need what cannot be read. An
//     offline one is out of service, and out of the ISR. They last as long as the broker's run.
//   - Full: a mark likewise, of a replica that serves and can append nothing, for want of space or descriptors. It leads, and is in the ISR, only where others
//     cannot do without it. It lasts until there is room again.
//   - Resign: of a leader, to ask for another one. Nothing is written where nobody can take its place.
//   - Reassignment: replicas on their way to other brokers (KIP-455). The record lists all of them meanwhile: Adding, who held nothing before, counts for nothing;
//     Removing, who is to hold nothing in the end, counts as before. When all who stay are in the ISR, and not all of them are damaged, those who were to go are gone, in the
//     same record and in a new leader epoch.
//   - Strict: the partition's write mode of this leader epoch, the opposite of write.caching: only flushed records count.
//
// # Commands
//
// Start brings the machine to life; Persisted and PersistFailed answer Out.Persist; Receive carries a letter from another voter; Unreachable and
// SnapshotSent report on letters. GossipHint and LinkDown come from every voter's own senses, Resign from a broker that stops. RegisterBroker, Heartbeat, Verified, MarkReplicas and
// ChangeISR come from brokers, Pull from observers. CreateTopics, DeleteTopics, CreatePartitions, AlterConfigs, IncrementalAlterConfigs, ElectLeaders, AlterReassignments, UnregisterBroker, UpdateFeatures, AddVoter, RemoveVoter,
// AllocateProducerIDs and DescribeQuorum come from clients and brokers by way of the handlers.
//
// # Becoming a cluster, and following one
//
// Founding is the machine of a broker without a cluster: with N-1 others it promises a cluster and its voters, all on stable storage, before Raft starts
// anywhere; or it finds a cluster and joins it. Observer is the machine of a broker without a vote: it pulls committed entries from any voter. Commands from
// other brokers travel as EncodeCommand writes them, answers as EncodeReply does.
//
// # Other voters
//
// AddVoter and RemoveVoter change the quorum by one voter at a time (KIP-853). The entry is Raft's own change of configuration with the records in it, so that
// Raft and the image change at the same index; snapshots have the voters in their records. A change that is committed is told to nobody, neither to who asked
// for it nor to observers, before the disk knows that it is committed. An observer that finds itself named goes on as a Controller, a voter that was removed as
// an Observer, both by way of Out.Reseat: a snapshot of the image that says so, and the term and the vote that were promised, which outlive either machine.
// How a voter hears that it is none any more stands at recall. A controller that is to be removed hands over first.
//
// # Timers
//
// All timers of membership, with the names Kafka has for them. Nothing that must not happen depends on one of them.
//
//	broker.heartbeat.interval.ms             500 ms (Kafka: 2000)  a broker's word to the controller
//	broker.session.timeout.ms                6 s    (Kafka: 9000)  silence after which a broker is fenced; a new controller begins it anew for everybody
//	Options.SuspectMs                        1.5 s  (Kafka: none)  the same while gossip calls that run of the broker dead; that of the last controller's broker
//	                                         counts from its last letter as the leader
//	LinkDown, refused                        at once (Kafka: none) its connections are closed and nobody listens at its address
//	lateMs                                   1 s    (Kafka: KAFKA-15019) a check of sessions that is later than this extends them by the delay
//	lease of a broker                        0.8 × session from the sending of the last heartbeat that was answered (Kafka: none)
//	Options.TickMs × ElectionTicks           1 s to 2 s (controller.quorum.election.timeout.ms: 1000)  silence of the controller before an election
//	LinkDown, refused, of the controller     at once, 100 ms between voters (Kafka: none)
//	Options.TickMs × ElectionTicks           1 s    (Kafka: none)  without a word from a majority a controller answers no heartbeat
//	Options.TickMs × HeartbeatTicks × 2      200 ms (Kafka: none)  the same for the heartbeats of its own broker
//	leader.imbalance.check.interval.seconds  300 s  (Kafka: 300)   preferred leaders, while auto.leader.rebalance.enable
//	Observer.SilenceMs                       2 s    (controller.quorum.fetch.timeout.ms: 2000)  silence of a voter before the next one is asked
//	Options.TickMs × ElectionTicks × 3       3 s    (Kafka: none)  without a controller a voter asks whether it still has its vote
package cluster
