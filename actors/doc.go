// Package actors is the surface for people who add actors to the broker. It is small
// and stable: Register and Info say what an actor is, Actor is its code, Ctx is all it
// may do, Policy what follows its bugs, and the types that implement Fact are what the
// broker tells. docs/extending.md walks the whole way; actors/observer/topichits is an
// actor to start from, and actors/actortest tries one.
//
// # Kinds
//
// The first half of an actor's id is its kind, a contract between it and the broker:
//
//   - core: the broker's own cast, below. It is declared through the same Register,
//     but its code takes turns of actors/runtime directly.
//   - observer: hears the facts, changes nothing. It may lose facts when its mailbox
//     is full, which is counted, and whatever it does harms nobody: it runs on its own
//     goroutine, and a panic costs a restart, then a quarantine or its end.
//
// # What an actor may rely on
//
// Receive is called for one message at a time, never twice at once. What one sender
// sends comes in the order it was sent. A fact is shared by all that hear it and must
// not be changed. Time comes from Ctx, so that a test can move it.
//
// # The cast
//
// Every actor of the broker, with what it hosts and what is done when its code fails
// or its disk or socket does. "exit" means that the process ends and says who is to
// blame: an invariant that broke must not be restarted into. A test holds this table
// against what is registered and against the types that take turns.
//
//	| actor         | one per            | hosts                                                      | on a bug | on an I/O error               |
//	|---------------|--------------------|------------------------------------------------------------|----------|-------------------------------|
//	| Root          | process            | the spawn tree; makes partitions what the metadata says    | exit     | back off                      |
//	| Lifecycle     | process            | registration, heartbeats, readiness, controlled shutdown   | exit     | back off                      |
//	| Metadata      | process            | the published cluster.Image and those who wait for it      | exit     | none                          |
//	| Controller    | process            | cluster.Founding, then Controller or Observer; active on one process | exit | step down             |
//	| RaftLogWriter | process            | store.RaftLog of the metadata quorum                       | exit     | exit                          |
//	| ProducerIDs   | process            | the block of producer ids being given out                  | exit     | none                          |
//	| Listener      | address            | accept, limits of connections                              | exit     | back off                      |
//	| Session       | client connection  | order of requests, credit, operations under way            | halt     | close it                      |
//	| Partition     | hosted replica     | partition.Machine and its store.Log                        | exit     | replica offline               |
//	| ISR           | process            | what replicas here say to the controller: proposals, verdicts of recovery, marks | exit | none          |
//	| Coordinator   | led partition of __consumer_offsets | group.Shard: the groups that hash to the partition | exit  | unload, load again            |
//	| Flusher       | data directory and kind of topic | group commit: of clients' topics, of internal ones | exit     | directory offline; all: exit  |
//	| Cleaner       | process            | has the dirtiest logs compacted                            | exit     | back off                      |
//	| Scrubber      | process            | has all records read and summed up, round by round         | exit     | none                          |
//	| IOWorker      | goroutine of a pool | reads of cold data; opening, closing, cutting, compacting and deleting of logs | exit     | told to who asked             |
//	| Links         | process            | which brokers are reached: the peer port, dialling, back-off | exit   | back off                      |
//	| Link          | connection between brokers | msgpack frames, probes, requests under way         | halt     | connect again                 |
//	| Gossip        | process            | memberlist: discovers brokers and suspects the dead        | exit     | back off                      |
//	| Neighbour     | process of a simulation of several | nothing: it stands for Gossip, and the simulation hears who this broker is | exit | none |
//	| Facts         | process            | the facts that observers hear                              | exit     | none                          |
package actors
