// Package broker is the cast of a Troupe broker: the actors that stand between sockets, disks and the pure machines of partition and cluster. Start builds
// one broker into a runtime.System; everything of the outside comes by World, so that actors/sim can run whole brokers.
//
// # The spawn tree
//
//	root                 makes partitions what the metadata says; knows lost directories
//	├─ io-0 …            wait for disks on behalf of others: cold regions, lookups by time
//	├─ recovery-0 …      open, close and delete logs
//	├─ flusher           group commit of the data directory: the topics of clients
//	├─ flusher-internal  likewise, of internal topics, which may not hold up the others
//	├─ cleaner           has the dirtiest logs compacted, on workers of its own
//	├─ scrubber          has all records read, summed up, and compared with the leader's, round by round
//	├─ raftlog           the log of the metadata quorum
//	├─ controller        the seat at the metadata quorum: cluster.Founding, then Controller or Observer; forwards commands to the controller
//	├─ metadata          publishes images
//	├─ lifecycle         registration, heartbeats, readiness
//	├─ producer-ids      blocks of producer ids
//	├─ isr               what replicas here say to the controller: changes of ISRs, verdicts of recovery
//	├─ gossip            memberlist: which brokers are there, and which seem dead; on the peer port
//	├─ links             the peer port, and connections to the brokers that are known
//	│  └─ link-N         one connection between brokers
//	├─ listener-NAME     accepts connections
//	│  └─ session-N      one connection: order, credit, operations
//	├─ TOPIC-N           one replica: partition.Machine and its store.Log
//	└─ @groups-N         the groups that hash to one partition of __consumer_offsets: group.Shard
//
// # The way of a write
//
//	socket          the reader of the connection reads into a chunk for which there is credit, and finds the frames in it (intake)
//	session         parses the header, decodes the request, validates each batch, sends each to its partition (produceOp, produceWrite)
//	partition       the machine numbers it, the shell stamps and appends it to the log (carryOut), and the machine answers, now or when it is durable
//	flusher         asks the dirty partitions for their share, syncs them all, tells each how far it is durable
//	partition       the high watermark moves: waiting writes are answered, waiting reads are served, in this turn
//	session         encodes the answers that are ready, in the order of the requests, and writes them with one call (output)
//
// Whoever sends runs the turn: with nobody else at work all of this, but the sync, happens on the goroutine that read the socket.
//
// # The way of a read
//
// A Fetch is a fetchOp with a fetchRead for each partition. A read waits in the machine until there are bytes, and brings a store.Region: file, place and a
// reference, no bytes. Regions below 32 KiB that lie in the log's mapped tail go out in the same call as the answer around them, others by sendfile; one
// that is not in memory is read by the I/O pool first. What a client has fetched before is remembered in a fetchSession (KIP-227).
// Where replica.selector.class says so, a leader names a replica in the client's rack instead of answering, and that follower's machine serves the read, up to
// the high watermark that it has heard of (KIP-392).
//
// # The way of a replica
//
//	follower        the machine asks; the shell gives the ask to the data link to the leader (inquire), which sends those of one turn as one frame
//	leader's link   gives each ask to its partition (replicaRouter); the machine answers it with a range, or keeps it at the log end (followerAsk)
//	leader          the range is a store.Region; the link sends it as regions go to clients: sendfile, or one writev; cold ones are read first
//	follower's link reads the frame into a buffer for which there is credit, and gives it to the partition (leaderAnswer)
//	follower        sums up each batch and appends it in the same turn (writeReplica), asks on, and says by Progress when it is durable
//	leader          counts it; the high watermark moves, and Watermarks tell the followers whose asks are parked
//
// What is damaged comes back from the leader (repair.go). What the scrub of a follower reads is compared with what the leader has (compare.go): a record that both
// have at an offset must be the same, and a difference is told, not mended. An operator hears of both, and may have a replica checked or mended now, by a tagged
// field of DescribeLogDirs (checkup.go).
//
// That a link has opened or ended goes by Root, which knows every replica, to those that have to do with its broker. A replica knows by the link an ask came on
// which life of the follower it belongs to, so that news that come late do no harm. A truncation runs on the recovery pool, with the log on loan; a flush
// round passes a replica whose log is on loan, and takes its share when the log is back. Root keeps a data connection to whoever leads something here, and to nobody else. When nothing moves,
// nothing is sent, and no timer runs.
//
// # The way of a change
//
//	session         a handler asks a port; the command is a proposal to the controller
//	controller      the machine decides, the raftlog makes it durable, the image with it is committed
//	metadata        shows the change to Root, which makes the partitions reachable; then publishes the image; then lets the controller's answer go
//	session         the handler's answer function runs on the session's turn and responds
//
// So whatever a client is told exists can be reached when it hears of it. Where the controller is in another broker:
//
//	controller      this broker's seat writes the command as a Request on its control link to the broker that has the controller, or lets it wait for an election
//	link            the other broker's link decodes it, stamps a heartbeat with the time, and gives it to the controller actor there
//	controller      the reply comes back with the index at which it holds; it is kept until the images here have got there
//	metadata        lets the answer go, behind those images
//
// # How a broker comes to a cluster
//
//	gossip          finds others by --join, and tells their peer addresses
//	controller      has links to all of them; brokers without a cluster announce themselves on these
//	controller      cluster.Founding promises, when all founders are in sight, and the raftlog makes it durable; or a cluster is found
//	controller      becomes a voter (letters to the others by control links) or an observer (pulls of what voters have committed)
//	lifecycle       registers, is unfenced by a heartbeat when its partitions are ready, and serves
//
// A broker of its own, without a peer port, does all of it in Start and asks nobody. A link states cluster and broker epoch, so all links are opened again
// when either changes: at the founding and at each registration.
//
// # The way of a group's request
//
//	session         a handler makes a command of it and names the group; the port finds the coordinator by the group's hash (coordinate)
//	coordinator     the shard decides, changes its state, and proposes entries; the answer is held
//	                what was proposed since the last batch goes out as one, when none is under way (groupWrite)
//	partition       appends and commits it like a client's batch with acks=all
//	coordinator     lets go the answers whose entries are committed; after a failure it drops the shard and loads another one from the log
//	session         the handler's answer function runs on the session's turn and responds
//
// A load reads the log region by region: the partition finds each (groupRead), the I/O pool reads and applies it (loadGroups). A heartbeat has an operation
// of its own (heartbeatOp), which is its own message.
//
// # The way between brokers
//
//	links           keeps a control connection to each broker it is told of, a data connection to those that lead what this one follows; owns the peer port
//	└─ link-N       one connection: greeting, frames (wire/peer), probes, requests under way, letters in pieces
//
// Who has something for another broker finds the link in a table and sends it a message: links.send. What comes is told to a linkHandler on the link's turn;
// records come in a chunk with credit of a pool of their own, so that clients cannot take the memory that replication needs. Asks, positions and watermarks
// of one turn go into one frame. Records go out like a Fetch's. A new run of a broker makes the links of the older one void, and whatever still comes by
// them is not heard. When all links of a broker have ended and nobody listens at its address, that is told as a fact. Bytes are carried by a socket, by TLS,
// or by whoever has a PeerWire.
//
// # What is shared
//
// Actors share no state but what the struct shared holds: immutable values behind atomic pointers (image, topic table, settings), counters, and four
// objects that lock themselves for some instructions: the credit pool, the store of buffers, the cache of fetch sessions, the clients that may jump.
//
// # Memory
//
// Request bytes are bounded by the credit pool, whatever clients do: a session reads nothing without credit for it. Answers hold references to log
// segments, not bytes; while one cannot be written, its connection is not read. Mailboxes are bounded as a second line. A steady stream of requests
// allocates nothing: operations, chunks and messages are used again.
//
// # Glossary
//
//   - acquaintance: a broker that a control link is held to: registered, or shown by gossip.
//   - check: of one replica, by the scrubber: all of its records, once. divergence: committed records that are not the leader's, with checksums that are right.
//   - chunk: a buffer with requests in it, and their credit.
//   - claim: one reservation in the credit pool. The reserved slot is for one giant frame at a time.
//   - complaint: about what goes wrong for long. It is told when it begins, and then at growing intervals.
//   - gate: closed while a session can take no more; its connection is not read then.
//   - held answer: a coordinator's, that waits until what it says is committed. inquiry: a message that asks a coordinator.
//   - intake: cuts bytes into frames. feed: intake, gate and session. line: a connection as its listener knows it.
//   - link: a connection between brokers, or its actor. founding: a link of which one side has no cluster.
//   - journey: of a command to a controller that is not here. seat: this broker's part in the metadata quorum.
//   - jumper: a client that was told of no usable offset, and will ask where to go.
//   - operation: a request that was begun: produceOp, fetchOp, heartbeatOp, callOp (all others, by the handler package).
//   - place: the right to one more connection.
//   - replica: one partition hosted here, as others see it: address and counters.
//   - share: what one partition adds to a flush round.
//   - Transport: the far side of a session: a socket, or a simulated network.
package broker
