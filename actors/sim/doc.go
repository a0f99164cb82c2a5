// Package sim runs whole brokers in a simulated world: one goroutine, one seed, no
// real clock, disk, socket or random number. What runs inside is the real broker,
// from the bytes of a request to the sectors of a segment; what is simulated is
// everything that it takes from outside, through actors/broker's World.
//
// A plan with brokers=3, or more, has that many of them in the same goroutine, each on
// a disk and with a clock of its own: they find each other by what stands for gossip,
// found a cluster, elect, replicate, and are killed, stopped, frozen, cut off and left
// without power, while administrators move replicas from one to another. What must be true of them together is held after every step.
//
// The same seed gives the same run, event by event, and the same hash. So a failure
// is a number: `go test ./actors/sim -run TestSeeds -args -seed=N` replays it, and
// `-run TestClusterSeeds -args -seed=N` that of several brokers. `make seeds` runs a
// range of either kind, or of long ones (`-run TestLedger -args -ledger=long -seed=N`),
// and writes down what came of it.
//
// # What is held of several brokers
//
// After each step, by what the machines and logs have (ensemble.go):
//
//   - an epoch has one leader; leader epochs, partition epochs and metadata indexes never fall;
//   - a new leader has all that is committed, unless its election was declared to lose something, which a strict topic never excuses;
//   - replicas agree with what leaders committed, batch by batch, by offset, epoch and CRC, below their high watermarks;
//   - a leader's high watermark never falls within its epoch, and rises only where min ISR replicas, and all committed members of the ISR, have got so far:
//     with their log ends, or with what they have synced where that is promised;
//   - a follower's high watermark is one that a leader had, or may have had in a turn that nobody saw (between, parted);
//   - nothing below its high watermark is cut off a log; a restart has all that was synced before;
//   - members of ISR and ELR, apart and all of them replicas, have all that is committed, unless they lost power and have not registered since, or wait for
//     their verdict; a leader is in the ISR. Of who lost power counts what was synced, from when it has registered until its log is seen again;
//   - images of one index are equal on all brokers; who begins to serve is not fenced, and has heard of its own registration;
//   - each machine is sound by its own Check: bounds and order of offsets, epochs that rise, the leader's set of replicas, sessions and fences;
//   - what counts as synced is on the platter, at deaths and now and then; no actor fails.
//
// By what clients are told: an offset has one batch for ever, for those who read and those who were acknowledged with acks=all; nothing corrupt, nothing that
// was not sent, nothing above the high watermark of the answer, which is committed, and is no more than a follower knows to be; the end that a leader is
// asked for is never below one that was told before, nor the high watermark below one of its epoch; idempotent sequences are contiguous, producer ids unique, a
// duplicate has its original's offset; of each key of a compacted topic the newest value is there; offsets of groups that were committed stay, whoever coordinates;
// no member reads what another one reads that the coordinator of now vouches for; a broker that is fenced acknowledges nothing alone once its bound is over. With
// acks 0 and 1 a failover may lose records, and does. A page cache counts as lost when its machine loses power; what was committed in a cached topic is forgiven
// when no member of ISR or ELR that still has its page cache has it.
//
// When everything is healed: all brokers serve, all partitions have a leader, all replicas are in sync and end where their leader ends, producers are done,
// groups are at rest, everything acknowledged is read, connections give back their memory, compacted replicas have the same newest record of each key. All of that
// again after all brokers have died at once, and at last each is stopped in order, and its segments, indexes and metadata log are read.
//
// The invariants of replication by their numbers in the plan of this simulation, and where they are held:
//
//   - 1 one leader per epoch: ensemble.elected
//   - 2 log matching: ensemble.match, of all that is appended
//   - 3 agreement on what is committed, 14 which only grows: ensemble.agree, ensemble.cut
//   - 4 strong ISR, 5 enough replicas, 8 superset: ensemble.commit
//   - 6 completeness of leaders: ensemble.elected and, before they know it, ensemble.candidates
//   - 7 completeness of candidates: ensemble.candidates
//   - 9 bounds, 11 epoch lists: Machine.Check of partition after each turn; on the disk agree (fsck.go)
//   - 10 nothing committed is cut: ensemble.follow
//   - 12 what is acknowledged stays: ghostPartition.missing after both rounds of reading, and 7 meanwhile
//   - 13 what was seen stays: the cells of the ghost
//   - 15 the end that clients see, 16 the bound of reads from followers: ensemble.told
//   - 17 recovery keeps what was synced: ensemble.partition, host.checkPlatter
//   - 18 indexes agree: inspectDisks
//   - 19 nothing corrupt is served: reader.take
//   - 20 only what may go goes, 22 a full disk refuses and changes nothing else: Machine.Check, ghostPartition.missing
//   - 21 compaction keeps the newest of each key: keyed, who reads it; run.alike, of all replicas; host.fold, of coordinators
//   - 32 state is the fold of the log: host.fold; 33 to 36 assignments, epochs and commits: ghostGroup and member, of the coordinator of now
//   - 38 one fold of one log: ensemble.look; its entries are on the platters of a majority: ensemble.held
//   - 39 isolation: ensemble.produced
//   - 40 as far as it is about images: ensemble.admitted
//   - 41 memory comes back: run.leave
//   - 42 liveness: run.agreement and what until waits for
//
// Not held, and why: the high watermark that comes with records may fall when the leader changes, as in Kafka, so it is held within an epoch only (15). A follower
// whose log ends before an offset that its leader has told calls it out of range, so that is not held of followers. Transactions, share groups, tiers and
// ACLs (the rest of 40) are not there. Not held yet: retention against the clock of each.
//
// # Glossary
//
//   - World: one simulation; its seed, its own time, its order, its invariants.
//   - Node: a process of the world, through crashes and boots.
//   - NodeClock: what a node takes for the time; it drifts, and jumps when it is set.
//   - Network, End: streams of bytes between nodes and clients, and one side of one.
//   - Weather: delays, sizes and buffers of the network.
//   - member: a client that consumes in a group, by the classic protocol or that of
//     KIP-848. Faults silence it, kill it, have it leave, or speak the other protocol.
//   - gradual: said of a classic member that keeps in a rebalance what it is to go on
//     reading (KIP-429, cooperative); the others give up everything first.
//   - hold: a partition in the hands of a member, as far as that knows. Nobody else is
//     given it while the coordinator cannot have given the member up. One by name, of a
//     classic member, is not held against a topic that nobody had heard of when the
//     name was told: it was made anew meanwhile, and coordinators know topics by id.
//   - near: said of a consumer that reads what the broker in its rack has, leader or not (KIP-392).
//   - reign: the time in which the newest metadata name one leader in one epoch.
//   - fold: the state that the records of a log make. A coordinator's is compared with
//     what its log has on the disk, compacted or not, at random moments.
//   - Platter: what a power cut would leave at this moment, at least. What the broker
//     counts as durable has to be there, at every death and now and then.
//   - Aim: an operation of the disk at which it matters what a death leaves.
//   - Noise: damage to files that are caches.
//   - ensemble: several brokers, and what must be true of them together.
//   - mirror: the log of one replica, as far as it was seen.
//   - rumours: what stands for gossip: facts that come late, wrong, or never.
//   - Stream: a named source of choices; two purposes never draw from the same one.
package sim
