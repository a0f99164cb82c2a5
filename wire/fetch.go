package wire

import "github.com/troupe-broker/troupe/wire/ident"

// FetchRequest is a decoded Fetch request, versions 4 to 18. Byte slices alias the
// body; the other slices are reused by the next Decode.
type FetchRequest struct {
	Version       int16
	ClusterID     []byte // tagged, from version 12; nil: null
	ReplicaID     ident.BrokerID
	ReplicaEpoch  ident.BrokerEpoch // from version 15
	MaxWaitMillis int32
	MinBytes      int32
	MaxBytes      int32
	ReadCommitted bool
	SessionID     int32 // from version 7
	SessionEpoch  int32 // from version 7; -1 below
	Topics        []FetchTopic
	Forgotten     []ForgottenTopic
	RackID        []byte // from version 11
}

// FetchTopic is one topic to fetch from.
type FetchTopic struct {
	Name       []byte        // below version 13
	ID         ident.TopicID // from version 13
	Partitions []FetchPartition
}

// FetchPartition is one partition to fetch from.
type FetchPartition struct {
	Partition          int32
	CurrentLeaderEpoch ident.LeaderEpoch
	FetchOffset        ident.Offset
	LastFetchedEpoch   ident.LeaderEpoch
	LogStartOffset     ident.Offset
	MaxBytes           int32
	ReplicaDirectoryID ident.DirectoryID
	HighWatermark      ident.Offset
}

// ForgottenTopic names partitions to drop from a fetch session.
type ForgottenTopic struct {
	Name       []byte
	ID         ident.TopicID
	Partitions []int32
}

// Decode checks and reads a whole body.
func (r *FetchRequest) Decode(version int16, body []byte) error { panic("not written yet") }

// FetchResponse is encoded for versions 4 to 18.
type FetchResponse struct {
	ThrottleMillis int32
	Error          ErrorCode
	SessionID      int32
	Topics         []FetchTopicResponse
	NodeEndpoints  []NodeEndpoint // from version 16
}

// FetchTopicResponse is one topic of the answer.
type FetchTopicResponse struct {
	Name       []byte
	ID         ident.TopicID
	Partitions []FetchPartitionResponse
}

// FetchPartitionResponse is one partition of the answer.
type FetchPartitionResponse struct {
	Partition            int32
	Error                ErrorCode
	HighWatermark        ident.Offset
	LastStableOffset     ident.Offset
	LogStartOffset       ident.Offset
	Aborted              []AbortedTransaction
	AbortedKnown         bool // false: the list is null, as for read_uncommitted
	PreferredReadReplica ident.BrokerID
	RecordsSize          int // bytes of the region; they are not part of the encoded bytes
	DivergingEpoch       EpochEnd
	CurrentLeader        CurrentLeader
	SnapshotID           EpochEnd
}

// AbortedTransaction is one entry of the aborted list.
type AbortedTransaction struct {
	ProducerID  ident.ProducerID
	FirstOffset ident.Offset
}

// EpochEnd is an epoch and its end offset. The zero value of Known leaves it out.
type EpochEnd struct {
	Known     bool
	Epoch     ident.LeaderEpoch
	EndOffset ident.Offset
}

// Cut says that a region of Size bytes goes over the wire before dst[At:].
type Cut struct {
	At   int
	Size int
}

// AppendTo appends the body without the records and a cut for each partition with
// records, in order.
func (r *FetchResponse) AppendTo(dst []byte, cuts []Cut, version int16) ([]byte, []Cut) {
	panic("not written yet")
}
