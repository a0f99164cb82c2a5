package handler

import (
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/checkup"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Ports is what a handler may ask of the broker's actors. No port blocks. Each answer function is called exactly once, on the turn of the session that
// asked and never from inside the call; when the broker stops or a mailbox is full, it is called with an error a client retries.
type Ports interface {
	// Controller hands a command to the controller. ask must be the command's own Ask: the port fills in its request id, and the deadline is the
	// caller's to set. The answer comes after the image that holds the outcome is published on this broker and its partitions are reachable.
	Controller(command cluster.Command, ask *cluster.Ask, answer func(cluster.Reply))

	// ListOffset asks a replica for one offset (API 2).
	ListOffset(p Place, q ListOffset, answer func(ListedOffset))

	// EpochEnd asks a replica where a leader epoch ended (API 23).
	EpochEnd(p Place, q EpochEnd, answer func(EndOfEpoch))

	// DeleteRecords moves the log start of a replica (API 21).
	DeleteRecords(p Place, q DeleteRecords, answer func(DeletedRecords))

	// DescribeProducers asks a replica for its producers (API 61).
	DescribeProducers(p Place, answer func(DescribedProducers))

	// ProducerID takes one producer id, never given to anybody before (API 22).
	ProducerID(answer func(id ident.ProducerID, code wire.ErrorCode))

	// Directories tells the state of the data directories and what lies in them (API 35).
	Directories(answer func([]Directory))

	// Checkup has the replicas here of these places looked at, checked or mended, and tells how each is; of a place without one it tells nothing. No place
	// may be named twice.
	Checkup(order checkup.Order, places []ident.TopicPartition, answer func(map[ident.TopicPartition]checkup.Report))

	// Coordinator hands a command to the coordinator of a group. When that cannot take it now, the answer is a *coord.ErrorReply. A command must not
	// alias the request's frame: the coordinator keeps what it is given.
	Coordinator(group string, command coord.Command, answer func(coord.Answer))

	// Coordinators asks all coordinators on this broker the same, and brings their answers in a fixed order.
	Coordinators(command coord.Command, answer func([]coord.Answer))

	// OffsetsTopic sees to it that the topic exists in which coordinators keep what they know. With NONE, image has it.
	OffsetsTopic(answer func(image *cluster.Image, code wire.ErrorCode))

	// HighWatermark tells, at once, log start and high watermark of a partition that this broker leads; -1 when it does not.
	HighWatermark(p Place) (start, high ident.Offset)

	// FetchedOffsets tells what a client heard about committed offsets: where it has none it can use, it will ask for an offset by a special timestamp
	// (auto.offset.reset), and the group's coordinator wants to know the answer.
	FetchedOffsets(asked *coord.FetchOffsets, told *coord.FetchOffsetsReply)

	// Random fills b from the broker's source of randomness, at once: topic ids and the entropy of placements.
	Random(b []byte)
}

// Place names a partition as a request did: by the topic's name, or by its id when Topic is empty.
type Place struct {
	Topic     string
	ID        ident.TopicID
	Partition int32
}

// ListOffset is one question of API 2. Timestamp is a time, or one of Kafka's special negative values.
type ListOffset struct {
	Timestamp     int64
	LeaderEpoch   ident.LeaderEpoch // what the client believes; NoLeaderEpoch: not checked
	ReadCommitted bool              // latest is the last stable offset, not the high watermark
}

// The special timestamps of ListOffsets.
const (
	TimestampLatest         = -1 // high watermark, or last stable offset
	TimestampEarliest       = -2 // log start
	TimestampMax            = -3 // the record with the greatest timestamp
	TimestampEarliestLocal  = -4 // the earliest offset on this broker's disk
	TimestampLatestTiered   = -5 // the last offset in tiered storage; none here
	TimestampEarliestUpload = -6 // the earliest offset that waits for upload to tiered storage; none here
)

// ListedOffset answers ListOffset. With Code NONE and Offset -1 there is no such offset.
type ListedOffset struct {
	Code        wire.ErrorCode
	Offset      ident.Offset
	Timestamp   ident.Millis // of the record found, -1 where none was looked up
	LeaderEpoch ident.LeaderEpoch
}

// EpochEnd is one question of API 23.
type EpochEnd struct {
	CurrentLeaderEpoch ident.LeaderEpoch // what the client believes; NoLeaderEpoch: not checked
	LeaderEpoch        ident.LeaderEpoch // the epoch asked about
}

// EndOfEpoch answers EpochEnd: the greatest epoch at or below the one asked about, and where it ends; both -1 when there is none.
type EndOfEpoch struct {
	Code        wire.ErrorCode
	LeaderEpoch ident.LeaderEpoch
	End         ident.Offset
}

// DeleteRecords is one question of API 21.
type DeleteRecords struct {
	Before   ident.Offset  // the first offset to keep; -1: the high watermark
	Deadline ident.Instant // when to give up waiting for the other replicas
}

// DeletedRecords answers DeleteRecords.
type DeletedRecords struct {
	Code         wire.ErrorCode
	LowWatermark ident.Offset // -1 with an error
}

// DescribedProducers answers DescribeProducers.
type DescribedProducers struct {
	Code      wire.ErrorCode
	Message   string
	Producers []Producer // by rising id
}

// Producer is what a replica remembers of one producer.
type Producer struct {
	ID               ident.ProducerID
	Epoch            ident.ProducerEpoch
	LastSequence     ident.Sequence // -1: none
	LastTimestamp    ident.Millis   // -1: none
	CoordinatorEpoch int32          // -1: never in a transaction
	TxnStart         ident.Offset   // -1: no open transaction
}

// Directory is one data directory of this broker.
type Directory struct {
	Path       string
	Online     bool
	TotalBytes int64 // of the volume; -1 when unknown
	FreeBytes  int64 // usable by the broker; -1 when unknown
	Replicas   []DirectoryReplica
}

// DirectoryReplica is one replica that lies in a directory.
type DirectoryReplica struct {
	TopicPartition ident.TopicPartition
	SizeBytes      int64
	OffsetLag      int64 // log end of the leader, or high watermark, minus its own log end; 0 on a leader
}
