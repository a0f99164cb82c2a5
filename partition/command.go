package partition

import (
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// Command is what a machine can be told. The set is closed: commands (imperative)
// ask for something, facts (past tense) report something. All are pointers, so
// that a shell can keep and reuse them; the machine keeps no reference to one
// after Step returns, and none to the slices in it.
//
//sumtype:decl
type Command interface{ command() }

// Replica names one assigned replica of the partition.
type Replica struct {
	Broker ident.BrokerID
	// BrokerEpoch is the registration under which reports of this replica count
	// (KIP-903). A report under another one is dropped.
	BrokerEpoch ident.BrokerEpoch
	Directory   ident.DirectoryID
}

// Become applies the partition's record of the metadata log: a new leader, a new
// ISR, a new write.caching mode. One that is older than what the machine knows (by
// leader epoch, then by partition epoch) is ignored; the same one again can only
// bring another registration of a replica, or other Barred.
type Become struct {
	Leader         ident.BrokerID // ident.NoBroker: there is none
	LeaderEpoch    ident.LeaderEpoch
	PartitionEpoch ident.PartitionEpoch
	Replicas       []Replica        // in order of assignment; includes this broker if it is one
	ISR            []ident.BrokerID // committed; a subset of Replicas
	// Strict is write.caching=false: only flushed bytes count. It changes together
	// with the leader epoch, never alone.
	Strict bool
	// Full lists the replicas that cannot append for want of space: they do not join the
	// ISR, even when they have caught up.
	Full []ident.BrokerID
	// Damaged lists the replicas that cannot read all they have: no reader is sent there.
	Damaged []ident.BrokerID
	// Barred lists the replicas that the controller takes into no ISR: their brokers are
	// fenced, leave or are not registered, or they are out of service. Like a registration
	// it may change without a change of the record.
	Barred []ident.BrokerID
	// MinISR is the smallest ISR that commits anything, as the controller judged ISR and
	// ELR by it; 0: what Config.MinISR and the replicas say.
	MinISR int32
}

// Configure replaces the settings of the machine.
type Configure struct{ Config Config }

// BatchInfo is what the machine knows of a batch: header fields, no bytes.
type BatchInfo struct {
	Bytes           int32 // whole batch, header included
	LastOffsetDelta int32
	MaxTimestamp    ident.Millis
	ProducerID      ident.ProducerID // ident.NoProducerID: not idempotent
	ProducerEpoch   ident.ProducerEpoch
	BaseSequence    ident.Sequence
	Transactional   bool
	Control         bool
}

// InfoOf reads what the machine has to know from the header of a batch.
func InfoOf(v record.View) BatchInfo {
	a := v.Attributes()
	return BatchInfo{
		Bytes:           int32(v.Size()),
		LastOffsetDelta: v.LastOffsetDelta(),
		MaxTimestamp:    v.MaxTimestamp(),
		ProducerID:      v.ProducerID(),
		ProducerEpoch:   v.ProducerEpoch(),
		BaseSequence:    v.BaseSequence(),
		Transactional:   a.Transactional(),
		Control:         a.Control(),
	}
}

// Append asks for one validated batch to be written. There is exactly one
// [AppendReply] for it, whatever Acks is: with acks=0 the session throws it away
// or, if it is a refusal, closes the connection.
//
// An accepted batch comes back in [Out].Persist of the same Step. A duplicate of a
// batch in the producer's window is not written again: it is answered as the
// original was, and waits as the original does.
type Append struct {
	Request ident.RequestID
	Batch   BatchInfo
	// Acks is 0, 1 or -1; anything else is INVALID_REQUIRED_ACKS.
	Acks int16
	// Deadline ends the wait for the in-sync replicas when Acks is -1. The answer
	// then is REQUEST_TIMED_OUT, and the batch stays in the log.
	Deadline ident.Instant
	// LogAppendTime is the stamp that the shell put into the batch, or
	// ident.NoTimestamp when the topic keeps the producer's timestamps.
	LogAppendTime ident.Millis
}

// Appended says that the batch of the last [WriteBatch], or all batches of the last
// [WriteReplica], are in the log.
type Appended struct{}

// AppendFailed says that the last [WriteBatch] or [WriteReplica] was not done and
// that the log is as it was before, but for the first Written batches of a
// [WriteReplica]. Code goes to the producer.
type AppendFailed struct {
	Code    wire.ErrorCode
	Written int
	Full    bool // for want of space or descriptors; the log is sound
}

// Looked says what came of a [WriteRoom].
type Looked struct{ Room bool }

// Flushed says that every byte below End was on stable storage, in the log opened
// as Generation. A fact of another generation is ignored.
type Flushed struct {
	Generation ident.Generation
	End        ident.Offset
}

// Progress says how far the log of a follower reaches. It counts only in the
// leader epoch and under the broker epoch it names, and only after an [Ask] of the
// same generation has shown that the log is a prefix of this one; one that comes
// before that ask is kept until then. Within a generation it merges by maximum; a
// lower generation is dropped.
type Progress struct {
	Broker      ident.BrokerID
	BrokerEpoch ident.BrokerEpoch
	Report
}

// Report is what a follower says of its log.
type Report struct {
	LeaderEpoch ident.LeaderEpoch
	Generation  ident.Generation // of the follower's log
	End         ident.Offset
	Flushed     ident.Offset
	LogStart    ident.Offset
}

// Inquiry is what a follower asks of its leader, and says of its own log with it.
type Inquiry struct {
	LeaderEpoch ident.LeaderEpoch
	Generation  ident.Generation // of the follower's log
	// From is only where to read. The follower of this package reads at its log end; one
	// that has more asks out may run ahead of it.
	From     ident.Offset
	LogEnd   ident.Offset // counts, once the check against LastBatchEpoch has passed
	Flushed  ident.Offset // counts likewise; <= LogEnd
	BytesMax int32
	// LastBatchEpoch is the epoch of the last batch below LogEnd, or
	// ident.NoLeaderEpoch if the log is empty. By it the leader finds out whether the
	// logs have parted (KIP-595).
	LastBatchEpoch ident.LeaderEpoch
}

// Ask is a follower's request for batches. There is exactly one reply for it, of
// kind [ReplyAsk], with a [FetchReply]: a range up to the log end, or where the logs
// parted. What the range begins with may lie above the ask's From, which the answer
// repeats all the same. An ask that has reached the log end stays parked without a limit of time:
// an idle partition costs nothing.
//
// An ask of a later leader epoch than this machine knows is kept until the metadata
// log has told of it.
type Ask struct {
	Request     ident.RequestID
	Broker      ident.BrokerID
	BrokerEpoch ident.BrokerEpoch // of the connection it came on (KIP-903)
	Inquiry
}

// Withdraw takes a parked ask back: the follower's replica is going out of service.
// The ask is answered with a Silent reply.
type Withdraw struct {
	Broker      ident.BrokerID
	BrokerEpoch ident.BrokerEpoch
	Withdrawal
}

// Withdrawal names the asks that a follower takes back.
type Withdrawal struct {
	LeaderEpoch ident.LeaderEpoch
	Generation  ident.Generation
}

// Answered is the leader's answer to an [Inquiry]. It counts only in the leader
// epoch and generation it names; its batches only if From is where the log ends.
type Answered struct {
	LeaderEpoch   ident.LeaderEpoch
	Generation    ident.Generation // of the ask
	Code          wire.ErrorCode
	From          ident.Offset // of the ask
	HighWatermark ident.Offset // the leader's
	LogStart      ident.Offset // the leader's
	// Diverging: the logs parted. The leader's log has DivergingEpoch, the largest
	// epoch up to the ask's last, up to DivergingEnd.
	Diverging      bool
	DivergingEpoch ident.LeaderEpoch
	DivergingEnd   ident.Offset
	// Batches are those of the payload, in order. Lengths and checksums have been
	// looked at by the shell.
	Batches []ReplicaBatch
}

// ReplicaBatch is a batch as its leader numbered it.
type ReplicaBatch struct {
	BatchInfo
	Base        ident.Offset
	LeaderEpoch ident.LeaderEpoch
}

// Watermark says how far the leader's high watermark and log start have moved
// since it last answered. It counts only in the leader epoch and generation it names.
type Watermark struct {
	LeaderEpoch   ident.LeaderEpoch
	Generation    ident.Generation // of the follower's log, from its ask
	HighWatermark ident.Offset
	LogStart      ident.Offset
}

// Connected says that there is a new connection to a broker. On the data connection
// that a follower made to its leader it asks anew; on a new control connection both
// sides say again what they said on the former one.
//
// A shell that gets an [Out].Ask while it has no data connection drops it: it will
// step Connected when there is one.
type Connected struct {
	Broker  ident.BrokerID
	Control bool // a control connection that this broker has made; else its data connection
}

// Disconnected says that a data connection is gone. If it was the one that this broker
// had made, no answer to an own ask will come; if it was the other's, asks that are
// parked for it get a Silent reply. It is stepped before anything that came on a later
// connection.
type Disconnected struct {
	Broker      ident.BrokerID
	BrokerEpoch ident.BrokerEpoch // of the other broker's registration on that connection
	Own         bool              // this broker had made it
}

// Truncated says that a [WriteTruncate] or [WriteRestart] is done.
type Truncated struct {
	Generation ident.Generation // that the log has now
	// End is the new log end: the offset that was asked for, or below it, if that lay
	// inside of a batch.
	End ident.Offset
	// Flushed is what of it is on stable storage. A sync that returned meanwhile is in it.
	Flushed ident.Offset
	// Producers is the state rebuilt as of End, if the [Write] said Rebuild; else nil.
	// The machine takes it over.
	Producers *Producers
}

// TruncateFailed says that a [WriteTruncate] or [WriteRestart] was refused for lack
// of space or descriptors. The log is as it was before, or it is cut and the producers'
// state could not be read. The machine asks again later; until then it neither serves
// nor asks.
type TruncateFailed struct{}

// Isolation bounds what a reader may see, with the numbers of the protocol.
type Isolation int8

// The isolation levels.
const (
	ReadUncommitted Isolation = 0 // below the high watermark
	ReadCommitted   Isolation = 1 // below the last stable offset
)

// Fetch asks for batches from From on. There is exactly one [FetchReply] for it.
//
// With Park, a fetch that finds fewer than BytesMin bytes stays in the machine
// until there are as many beyond After, or until something else ends it: the log
// start passes From, a new segment begins behind From, the epoch or the role
// changes, or the reader sends [Unpark]. The machine sets no timer for it: waiting
// at most max.wait.ms is the reader's business.
//
// The machine knows the sizes of what was appended since it began to lead; of older
// batches any one counts as enough. A reader that got a range, found it smaller
// than it wanted and still wants to wait fetches again with After set to the UpTo
// of that answer and BytesMin to what is missing.
type Fetch struct {
	Request ident.RequestID
	From    ident.Offset
	// After is where new bytes begin to count; it is taken to lie between From and the
	// log end.
	After     ident.Offset
	BytesMin  int32
	BytesMax  int32 // handed back in the reply
	Isolation Isolation
	Park      bool
	// CurrentLeaderEpoch is the epoch the reader believes in, or
	// ident.NoLeaderEpoch for no check: an older one is FENCED_LEADER_EPOCH, a newer
	// one UNKNOWN_LEADER_EPOCH (KIP-320).
	CurrentLeaderEpoch ident.LeaderEpoch
	// LastFetchedEpoch is the epoch of the last batch below From that the reader
	// has, or ident.NoLeaderEpoch. If the logs parted before From, the reply says
	// where, instead of carrying a range (KIP-595).
	LastFetchedEpoch ident.LeaderEpoch
	// AnyReplica is set by a reader that takes a follower's word, which ends at the
	// high watermark that the follower knows (KIP-392).
	AnyReplica bool
	// Near are brokers that the reader would rather ask. A leader that knows one of
	// them to be in sync and to have From sends the reader there. It belongs to the
	// sender, who leaves it alone until the reply.
	Near []ident.BrokerID
}

// Unpark ends the wait of a parked fetch: it is answered with what there is, which
// may be nothing but offsets. A request that is not parked is ignored: its answer
// has been given.
type Unpark struct{ Request ident.RequestID }

// Rolled says that the log began a new segment at Base. A parked reader behind it
// is answered, since one answer never crosses a segment's end.
type Rolled struct{ Base ident.Offset }

// DeleteRecords moves the log start up to Before, or to the high watermark if that
// is ident.NoOffset. There is exactly one [DeleteRecordsReply] for it, when all members
// of the ISR have moved their log start as far.
type DeleteRecords struct {
	Request ident.RequestID
	Before  ident.Offset
	// Deadline ends the wait for the other members: REQUEST_TIMED_OUT, and the log start
	// stays where it is. 0 means not to wait at all.
	Deadline ident.Instant
}

// Trim says that retention moved the log start to Start, which is at most the high
// watermark.
type Trim struct{ Start ident.Offset }

// The special timestamps of ListOffsets (ListOffsetsRequest.java). Which version
// of the request may use which is checked by its handler.
const (
	LatestTimestamp          ident.Millis = -1
	EarliestTimestamp        ident.Millis = -2
	MaxTimestamp             ident.Millis = -3
	EarliestLocalTimestamp   ident.Millis = -4
	LatestTieredTimestamp    ident.Millis = -5
	EarliestPendingTimestamp ident.Millis = -6
)

// ListOffsets asks for an offset by a timestamp or by one of the special ones.
// There is exactly one [ListOffsetsReply] for it.
type ListOffsets struct {
	Request            ident.RequestID
	Timestamp          ident.Millis
	Isolation          Isolation
	CurrentLeaderEpoch ident.LeaderEpoch
}

// EpochEnd asks where a leader epoch ended (OffsetForLeaderEpoch). There is exactly
// one [EpochEndReply] for it.
type EpochEnd struct {
	Request            ident.RequestID
	CurrentLeaderEpoch ident.LeaderEpoch
	Epoch              ident.LeaderEpoch
}

// DescribeProducers asks for the producers with state on this partition. There is
// exactly one [DescribeProducersReply] for it.
type DescribeProducers struct{ Request ident.RequestID }

// StrictCleared says that the mark which [WriteStrictCleared] asked to remove is
// gone from stable storage. Until then only flushed bytes of this replica count,
// whatever the mode.
type StrictCleared struct{ LeaderEpoch ident.LeaderEpoch }

// Stop ends the machine: everybody who waits is answered with Code, and so is
// every later request.
type Stop struct{ Code wire.ErrorCode }

func (*Become) command()            {}
func (*Configure) command()         {}
func (*Append) command()            {}
func (*Appended) command()          {}
func (*AppendFailed) command()      {}
func (*Looked) command()            {}
func (*Flushed) command()           {}
func (*Progress) command()          {}
func (*Ask) command()               {}
func (*Withdraw) command()          {}
func (*Answered) command()          {}
func (*Watermark) command()         {}
func (*Connected) command()         {}
func (*Disconnected) command()      {}
func (*Truncated) command()         {}
func (*TruncateFailed) command()    {}
func (*Fetch) command()             {}
func (*Unpark) command()            {}
func (*Rolled) command()            {}
func (*DeleteRecords) command()     {}
func (*Trim) command()              {}
func (*ListOffsets) command()       {}
func (*EpochEnd) command()          {}
func (*DescribeProducers) command() {}
func (*StrictCleared) command()     {}
func (*Stop) command()              {}
