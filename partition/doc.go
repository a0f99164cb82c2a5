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
//	    do it; for a batch, m.Step(now, &Appended{…} or &AppendFailed{…}, &out)
//	if out.Flush: ask the flusher         // 2. its answer is Flushed, in a later turn
//	propose each of out.Propose           // 3. to the controller
//	answer each of out.Reply              // 4. read the regions of fetches in this turn
//	arm each of out.Arm                   // 5. an alarm that goes off is a Tick
//	log and count each of out.Note        // 6.
//
// Step appends to the bundle and never clears it, so the answers of the Appended
// that the shell steps in the middle of a turn land behind those of the command
// that asked for the write.
//
// # Offsets
//
//	logStart <= lastStable <= highWatermark <= end
//	flushed  <= end
//
// The end is what the local log holds. The flushed end is what of it is on stable
// storage, as reported by [Flushed]; a report of another generation of the log is
// ignored. The high watermark is the smallest reported end over the committed ISR
// and the replicas whose addition is pending; with write.caching=false it is the
// smallest reported flushed end. It never goes back, and stands still while the
// committed ISR is smaller than min(min.insync.replicas, assigned replicas).
//
// # Roles
//
//	unassigned -- Become(leader = us) ----> leading
//	unassigned -- Become(leader = other) -> following
//	leading   <-- Become ----------------> following
//	leading    -- Resign -----------------> resigned   until Become with a higher epoch
//	any        -- Stop -------------------> stopped    for ever
//
// Only a leading machine appends and serves. In every other role a request is
// answered NOT_LEADER_OR_FOLLOWER, a stopped one answers with the code it was
// stopped with. Leaving the leading role answers everybody who waits.
//
// # Glossary
//
// Commands are imperative, facts are in the past tense; both are named by what the
// receiver of the message, the machine, makes of them.
//
//   - [Become]: the metadata log says who leads, in which epoch, with which ISR.
//     Leading: an entry for the new epoch is persisted before anything is served.
//   - [Configure]: topic or broker settings changed.
//   - [Append]: a producer wants one batch written. Leading: checked, numbered and
//     handed to the shell to write. Else: refused.
//   - [Appended], [AppendFailed]: what came of that write, in the same turn.
//   - [Flushed]: everything below an offset is on stable storage.
//   - [Progress]: how far a follower's log reaches.
//   - [Fetch]: a reader wants batches from an offset on; it may be parked.
//   - [Unpark]: the reader stops waiting; it is answered with what there is.
//   - [Rolled]: the log began a new segment.
//   - [DeleteRecords]: an administrator moves the log start.
//   - [Trim]: retention moved the log start.
//   - [ListOffsets], [EpochEnd], [DescribeProducers]: questions.
//   - [StrictCleared]: the mark that says "strict, confirmed" is gone from disk.
//   - [Resign], [Stop]: lead no more; do nothing any more.
package partition
