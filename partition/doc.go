// Package partition is one replica of one partition as a pure state machine: it
// decides, and never does. It reads no clock, touches no file and no socket, holds
// no lock and starts no goroutine. Its shell, the partition actor, hands it one
// [Command] at a time and carries out the [Out] that comes back.
//
// The machine never sees the bytes of a record. What it has to know of a batch is
// in its header, and the shell reads that into a [BatchInfo].
//
// # One turn
//
//	out.Reset()
//	m.Step(now, command, &out)
//	for each write in out.Persist:        // 1. in this turn, before anything else
//	    do it; for batches, m.Step(now, &Appended{…} or &AppendFailed{…}, &out)
//	if out.Flush: ask the flusher         // 2. its answer is Flushed, in a later turn
//	propose each of out.Propose           // 3. to the controller, with out.Condition
//	answer each of out.Reply              // 4. read the regions of fetches in this turn
//	send Ask, Withdraw, Report, Watermark // 5. to other brokers
//	arm each of out.Arm                   // 6. an alarm that goes off is a Tick
//	log and count each of out.Note        // 7.
//
// Step appends to the bundle and never clears it, so the answers of the Appended
// that the shell steps in the middle of a turn land behind those of the command
// that asked for the write. A truncation may take longer than the turn: it ends with
// [Truncated] or [TruncateFailed].
//
// What comes from outside, from clients and other brokers, is checked and never
// panics. What the shell must not do panics.
//
// # Offsets
//
//	logStart <= lastStable <= highWatermark <= end
//	flushed  <= end
//
// The end is what the local log holds. The flushed end is what of it is on stable
// storage, as reported by [Flushed]; a report of another generation of the log is
// ignored. A leader's high watermark is the smallest reported end over the committed
// ISR and the replicas whose addition is pending; with write.caching=false it is the
// smallest reported flushed end. It never goes back, and stands still while the
// committed ISR is smaller than min(min.insync.replicas, assigned replicas). A
// follower's is its leader's, as far as its own log reaches, once the leader has said
// that the logs agree; it goes back only when the log is truncated below it.
//
// # Roles
//
//	unassigned -- Become(leader = us) ----> leading
//	unassigned -- Become(leader = other) -> following
//	leading   <-- Become ----------------> following
//	any        -- Stop -------------------> stopped    for ever
//
// A leader whose own sync hangs for replica.lag.time.max.ms asks to be replaced, and
// leads on until a record names another. One that has no room for anything for some seconds
// tells the controller, as a follower does at the first batch; the record says of such a
// replica that it is full, and then its leader does not propose it to join the ISR.
//
// Only a leading machine appends for clients and serves. In every other role a
// request is answered NOT_LEADER_OR_FOLLOWER, a stopped one answers with the code it
// was stopped with. Leaving the leading role answers everybody who waits.
//
// # Replication
//
// Followers pull (KIP-101, KIP-279, KIP-320, KIP-595, KIP-903, KIP-966):
//
//	follower                          leader
//	Out.Ask ------ data connection -----> Ask
//	Answered <------------------------ Reply of kind ReplyAsk, at once or when
//	                                      there is something above the log end
//	Out.Report --- control connection --> Progress
//	Watermark <------------------------ Out.Watermark
//
//	asking -- Answered, the logs agree ---------> append, ask on
//	       -- Answered, they parted at T -------> truncate to T, new generation, ask
//	       -- Answered, our end is not there ---> begin anew, new generation, ask
//	       -- refused ---------------------------> ask again after a pause
//
// An ask says where to read and, apart from that, what the log has: its end, its
// flushed end and the epoch of its last batch. The leader finds by these whether the
// log is a prefix of its own. Only then, for this leader epoch and this generation of
// the follower's log, does anything count that the follower says; a report that comes
// before is kept. What is said under another registration, epoch or generation is
// dropped. The first ask of an epoch, a generation or a connection is answered at
// once, so that the follower knows that the logs agree; later ones stay parked at the
// log end. Nothing moves: nothing is sent.
//
// The clock of replica.lag.time.max.ms stands for a follower whose ask is parked, and
// what counts of its log is at the leader's log end. Members whose clock has run out
// are proposed to leave, others that have reached the epoch's start and the high
// watermark to join. One proposal is out at a time and emitted again unchanged until
// a record with a higher partition epoch comes. After a refusal the next one waits, each
// time twice as long, until one is accepted or it is another situation: somebody has
// registered anew, or is barred or no more. Whoever is barred is not proposed at all.
//
// What the shell has to keep:
//
//   - No [Become] is stepped before the record of this broker's own registration has
//     been replayed, and records come in the order of the metadata log.
//   - The high watermark in [LogState] is one that was checkpointed as such, or the
//     log start: never the flushed end, where there are other replicas.
//   - Generations are never used twice in a process; a truncation and an opening of
//     the log are a new one. Broker epochs are those of the handshake.
//   - An answer repeats the ask's leader epoch, generation and From, whatever the reply's
//     range begins with. One that is Silent is not sent.
//   - Replies, asks and reports of one connection stay in order. [Disconnected] is
//     stepped before anything of a later connection, [Connected] when there is one.
//
// # Glossary
//
// Commands are imperative, facts are in the past tense; both are named by what the
// receiver of the message, the machine, makes of them.
//
//   - [Become]: the metadata log says who leads, in which epoch, with which ISR.
//     Leading: an entry for the new epoch is persisted before anything is served.
//     Following: the leader is asked.
//   - [Configure]: topic or broker settings changed.
//   - [Append]: a producer wants one batch written. Leading: checked, numbered and
//     handed to the shell to write. Else: refused.
//   - [Appended], [AppendFailed]: what came of a write of batches, in the same turn.
//   - [Looked]: whether there is room for a batch.
//   - [Flushed]: everything below an offset is on stable storage.
//   - [Ask]: a follower wants batches. Leading: answered or parked. Else: refused, or
//     kept if it is of an epoch to come.
//   - [Progress]: how far a follower's log reaches.
//   - [Withdraw]: a follower takes its ask back.
//   - [Answered]: the leader's answer.
//   - [Watermark]: how far the leader's high watermark and log start have moved.
//   - [Connected], [Disconnected]: of the connections between leader and followers.
//   - [Truncated], [TruncateFailed]: what came of a truncation.
//   - [Fetch]: a reader wants batches from an offset on; it may be parked.
//   - [Unpark]: the reader stops waiting; it is answered with what there is.
//   - [Rolled]: the log began a new segment.
//   - [DeleteRecords]: an administrator moves the log start.
//   - [Trim]: retention moved the log start.
//   - [ListOffsets], [EpochEnd], [DescribeProducers]: questions.
//   - [StrictCleared]: the mark that says "strict, confirmed" is gone from disk.
//   - [Stop]: do nothing any more.
//
// Other words:
//
//   - Barred: of a replica, that the controller would take it into no ISR: its broker is
//     fenced, leaves or is not registered, or it is out of service. It may go on asking.
//   - Full: of a replica, that nothing can be appended for want of space or descriptors. It
//     keeps and serves what it has.
//   - Generation: one life of a log in a process, between openings and truncations.
//   - Epoch start: the log end at which a leader epoch began.
//   - To resign: of a leader, to ask for another. It leads until a record says who does.
//   - Pending: proposed to join the ISR; counted by the high watermark already.
//   - To agree: of two logs, that one is a prefix of the other.
package partition
