package partition

import (
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Out is what one Step asks of the shell. Duties are done in field order: what is
// persisted must be so before anything below leaves the process.
type Out struct {
	Persist []Write    // 1. writes into the local log, in this turn
	Flush   bool       // 2. ask the flusher to sync this log
	Propose []Proposal // 3. changes of the ISR, for the controller
	// and what it has to know of this replica; only the last counts
	Condition []Condition
	Reply     []Reply // 4. to whoever waits under a request id
	// 5. Letters between leader and followers. Of several reports or watermarks for
	// one receiver only the last need be sent.
	Ask       []Inquiry         // to the leader, on the data connection
	Withdraw  []Withdrawal      // to the leader, on the data connection
	Report    []Report          // to the leader, on the control connection, as Progress
	Watermark []WatermarkLetter // to followers, on the control connections
	Arm       []Alarm           // 6. wake-ups; arming a key again replaces it
	Note      []Note            // 7. what happened, for logs and metrics
}

// WatermarkLetter is a [Watermark] for one follower.
type WatermarkLetter struct {
	Broker      ident.BrokerID
	BrokerEpoch ident.BrokerEpoch
	Says        Watermark
}

// Reset empties the bundle and keeps its memory.
func (o *Out) Reset() {
	clear(o.Reply) // the producers of a reply belong to its receiver
	clear(o.Propose)
	o.Persist, o.Flush, o.Propose, o.Condition = o.Persist[:0], false, o.Propose[:0], o.Condition[:0]
	o.Ask, o.Withdraw, o.Report, o.Watermark = o.Ask[:0], o.Withdraw[:0], o.Report[:0], o.Watermark[:0]
	o.Reply, o.Arm, o.Note = o.Reply[:0], o.Arm[:0], o.Note[:0]
}

// note appends a note.
func (o *Out) note(n Note) { o.Note = append(o.Note, n) }

// WriteKind says what a [Write] is about.
type WriteKind int8

// The writes a machine asks for.
const (
	// WriteBatch appends the batch of the [Append] being stepped: stamp Offset and
	// LeaderEpoch into it, append it to the log, step [Appended] or [AppendFailed].
	WriteBatch WriteKind = iota + 1
	// WriteEpoch adds (LeaderEpoch, Offset) to the log's leader epoch file.
	WriteEpoch
	// WriteStart moves the log start to Offset.
	WriteStart
	// WriteStrictConfirmed sets the mark "strict, confirmed" beside the durable
	// mark: every byte below the first strict epoch's start is on stable storage.
	// Setting it late is safe.
	WriteStrictConfirmed
	// WriteStrictCleared removes that mark. Once its absence is durable (at once,
	// if the log has none) the shell steps [StrictCleared].
	WriteStrictCleared
	// WriteReplica appends the batches of the [Answered] being stepped, as they are;
	// the first goes at Offset or above. Step [Appended] or [AppendFailed].
	WriteReplica
	// WriteEpochsCut forgets the entries of the leader epoch file that begin at Offset
	// or above: leaderships in which nothing was written.
	WriteEpochsCut
	// WriteTruncate cuts the log at Offset. Unlike the other writes it may take more
	// than this turn; nothing is stepped that reads or writes the log until
	// [Truncated] or [TruncateFailed] has been.
	WriteTruncate
	// WriteRestart drops the whole log and begins it anew at Offset, in the manner of
	// WriteTruncate.
	WriteRestart
	// WriteRoom looks whether a batch of Bytes could be appended, by reserving the space.
	// Step [Looked]. Nothing of the log changes, but that a segment may begin.
	WriteRoom
)

// Write is one change of the local log.
type Write struct {
	Kind        WriteKind
	Request     ident.RequestID // of the Append, for WriteBatch
	Offset      ident.Offset
	LeaderEpoch ident.LeaderEpoch
	// Rebuild, of a WriteTruncate: batches of idempotent producers are cut off, so
	// [Truncated] has to bring the producers' state as of the new end, read from the
	// newest snapshot at or below it and the batches above that.
	Rebuild bool
	Bytes   int32 // of a WriteRoom
}

// Proposal asks the controller to commit another ISR. It stays pending, and the
// machine emits it again unchanged from time to time, until a [Become] with a higher
// partition epoch arrives. One that resigns is apart from that: it may go out beside
// another, and is pending never.
type Proposal struct {
	LeaderEpoch    ident.LeaderEpoch
	PartitionEpoch ident.PartitionEpoch // of the record it is based on
	ISR            []Replica            // the whole set wanted, in order of assignment; never changed, so it may be kept
	// Resign: the leader wants another one elected, and names no set. It leads on until
	// there is one.
	Resign bool
}

// Condition is what the controller has to know of a replica that serves.
type Condition struct {
	// Full: nothing can be appended, for want of space or descriptors. It should not lead,
	// nor be in the ISR, where others can do without it.
	Full bool
}

// ReplyKind says which part of a [Reply] has meaning.
type ReplyKind int8

// The kinds of replies, one for each command that asks.
const (
	ReplyAppend ReplyKind = iota + 1
	ReplyFetch
	ReplyDeleteRecords
	ReplyListOffsets
	ReplyEpochEnd
	ReplyDescribeProducers
	// ReplyAsk has its part in Fetch, whose HighWatermark and LogStart hold with any
	// code. A range that is not empty is answered with one batch at least.
	ReplyAsk
)

// Reply answers the command that carried Request. Each such command has exactly
// one reply.
type Reply struct {
	Request ident.RequestID
	Kind    ReplyKind
	Code    wire.ErrorCode // wire.NoError: the part below holds
	// Silent: whoever asked is gone or asks elsewhere; nothing is to be sent.
	Silent bool
	// Leader and LeaderEpoch are the leader this machine knows of, so that a
	// refused client can be sent there (KIP-951).
	Leader      ident.BrokerID
	LeaderEpoch ident.LeaderEpoch

	Append        AppendReply
	Fetch         FetchReply
	DeleteRecords DeleteRecordsReply
	ListOffsets   ListOffsetsReply
	EpochEnd      EpochEndReply
	Producers     DescribeProducersReply
}

// AppendReply answers [Append]. On a refusal BaseOffset is -1, except after
// REQUEST_TIMED_OUT and NOT_ENOUGH_REPLICAS_AFTER_APPEND, where the batch is in
// the log.
type AppendReply struct {
	BaseOffset    ident.Offset
	LogAppendTime ident.Millis // ident.NoTimestamp: the producer's timestamps were kept
	LogStart      ident.Offset
	Duplicate     bool // nothing was written: BaseOffset is the original's
}

// FetchReply answers [Fetch]: the shell reads whole batches from From on, below
// UpTo, at most BytesMax bytes but at least one batch if the reader asked so. From
// equal to UpTo means no data. On a refusal all offsets are -1.
type FetchReply struct {
	From          ident.Offset
	UpTo          ident.Offset
	BytesMax      int32
	HighWatermark ident.Offset
	LastStable    ident.Offset
	LogStart      ident.Offset
	// Diverging is set when the reader's log parted from this one: it has to go
	// back to the end of DivergingEpoch at DivergingEnd.
	Diverging      bool
	DivergingEpoch ident.LeaderEpoch
	DivergingEnd   ident.Offset
	// Preferred is the replica to ask instead; ident.NoBroker: none. From = UpTo then.
	Preferred ident.BrokerID
}

// DeleteRecordsReply answers [DeleteRecords].
type DeleteRecordsReply struct{ LowWatermark ident.Offset }

// ListOffsetsReply answers [ListOffsets]. If Search is set, the answer is in the
// log: the shell looks for the first record with the wanted timestamp (or, for
// [MaxTimestamp], the record with the greatest one) below UpTo; a search that finds
// nothing answers SearchFailed. Otherwise Offset is the answer, without a
// timestamp; -1 is a legal one.
type ListOffsetsReply struct {
	Search       bool
	SearchFailed wire.ErrorCode // wire.NoError: "no such record", offset and timestamp -1
	UpTo         ident.Offset
	Offset       ident.Offset
	LeaderEpoch  ident.LeaderEpoch // of the record at Offset, or ident.NoLeaderEpoch
}

// EpochEndReply answers [EpochEnd]: the largest epoch up to the one asked for, and
// the offset behind its last record. Both are -1 if the epoch is not known.
type EpochEndReply struct {
	Epoch ident.LeaderEpoch
	End   ident.Offset
}

// DescribeProducersReply answers [DescribeProducers], by ascending producer id.
// The slice belongs to the receiver.
type DescribeProducersReply struct{ Producers []ProducerState }

// ProducerState is what a partition knows of an idempotent producer.
type ProducerState struct {
	ProducerID    ident.ProducerID
	ProducerEpoch ident.ProducerEpoch
	LastSequence  ident.Sequence
	LastTimestamp ident.Millis // greatest timestamp of its last batch
}

// AlarmKey names a wake-up.
type AlarmKey int8

// The alarms of a machine.
const (
	AlarmProduce   AlarmKey = iota + 1 // the first deadline of a parked produce
	AlarmFlush                         // flush.ms of the oldest unflushed batch
	AlarmProducers                     // the next look for expired producers
	AlarmLag                           // the first follower's clock of replica.lag.time.max.ms
	AlarmSync                          // a sync of this log has hung for replica.lag.time.max.ms
	AlarmPropose                       // a proposal is sent again, or may be made again
	AlarmAsk                           // an ask, or a truncation, is tried again
	AlarmDelete                        // the first deadline of a waiting DeleteRecords
	AlarmResign                        // a leader that wants to be none says so again
	AlarmRoom                          // a log that could not grow is looked at
)

// Alarm asks for a Tick at At or soon after. Arming a key again replaces it; a
// Tick that comes early or twice does no harm.
type Alarm struct {
	Key AlarmKey
	At  ident.Instant
}

// NoteKind names something that happened.
type NoteKind int8

// What can happen. Offset, LeaderEpoch, Producer and Count of a [Note] mean what
// the kind says, and are zero otherwise.
const (
	NoteBecameLeader       NoteKind = iota + 1 // Offset: the epoch's start
	NoteBecameFollower                         // following the leader of LeaderEpoch, or waiting for one
	NoteStopped                                //
	NoteISRChanged                             // Count: members now
	NoteLogStart                               // Offset: the new log start
	NoteTimedOut                               // Count: parked produces that ended without an acknowledgement
	NoteProduceFull                            // an acks=all produce was refused: too many wait
	NoteFetchFull                              // a fetch was answered early: too many wait
	NoteProducersExpired                       // Count: producers forgotten after producer.id.expiration.ms
	NoteProducerEvicted                        // Producer: forgotten, the bound was reached
	NoteStaleFlush                             // a flush result of another generation, ignored
	NoteStaleBecome                            // a metadata record not newer than the known one, ignored
	NoteStaleProgress                          // a follower's report of another epoch or generation, ignored
	NoteStrictConfirmed                        // Offset: the flushed end
	NoteStaleAsk                               // an ask of another epoch, registration or generation, refused
	NoteStaleAnswer                            // an answer of another epoch or generation, or that fits nowhere, ignored
	NoteBadAnswer                              // an answer that no leader gives, ignored; LeaderEpoch: its
	NoteDiverged                               // Offset: where a follower was told to truncate; LeaderEpoch: the epoch found
	NoteTruncating                             // Offset: the new end
	NoteTruncatedCommitted                     // a truncation below the high watermark, Offset: that was; records may be lost
	NoteStartingAnew                           // Offset: the new log start and end
	NoteISRShrinks                             // Count: members proposed to leave
	NoteISRExpands                             // Count: members proposed to join
	NoteSyncHung                               // the own sync has not returned for replica.lag.time.max.ms
	NoteFull                                   // nothing can be appended; Offset: the log end
	NoteRoom                                   // something can be appended again; Offset: the log end
)

// Note is one thing that happened. The machine logs nothing; the shell makes log
// lines and metrics of notes.
type Note struct {
	Kind        NoteKind
	Offset      ident.Offset
	LeaderEpoch ident.LeaderEpoch
	Producer    ident.ProducerID
	Count       int32
}
