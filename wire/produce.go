package wire

import "github.com/troupe-broker/troupe/wire/ident"

// ProduceRequest is a decoded Produce request, versions 3 to 13. It aliases the
// body. Reuse it by decoding again.
type ProduceRequest struct {
	Version         int16
	TransactionalID []byte // nil: null
	Acks            int16
	TimeoutMillis   int32
	TopicCount      int
	PartitionCount  int // over all topics
	topics          []byte
}

// Decode checks and reads a whole body.
func (r *ProduceRequest) Decode(version int16, body []byte) error { panic("not written yet") }

// Partitions walks the partitions of all topics in request order.
func (r *ProduceRequest) Partitions() ProduceIterator { panic("not written yet") }

// ProduceIterator: for it := r.Partitions(); it.Next(); { … }
type ProduceIterator struct {
	TopicIndex int           // of the topic in the request
	TopicName  []byte        // below version 13
	TopicID    ident.TopicID // from version 13
	Partition  int32
	Records    []byte // nil: null
	rest       []byte
}

// Next moves on.
func (it *ProduceIterator) Next() bool { panic("not written yet") }

// ProduceResponse is encoded for versions 3 to 13.
type ProduceResponse struct {
	Topics         []ProduceTopicResponse
	ThrottleMillis int32
	NodeEndpoints  []NodeEndpoint // from version 10
}

// ProduceTopicResponse is one topic of the answer.
type ProduceTopicResponse struct {
	Name       []byte        // below version 13
	ID         ident.TopicID // from version 13
	Partitions []ProducePartitionResponse
}

// ProducePartitionResponse is one partition of the answer.
type ProducePartitionResponse struct {
	Partition      int32
	Error          ErrorCode
	BaseOffset     ident.Offset
	LogAppendTime  ident.Millis // NoTimestamp with CreateTime
	LogStartOffset ident.Offset // from version 5
	RecordErrors   []ProduceRecordError
	ErrorMessage   string        // from version 8; empty: null
	CurrentLeader  CurrentLeader // from version 10
}

// ProduceRecordError blames a record, from version 8.
type ProduceRecordError struct {
	Index   int32
	Message string // empty: null
}

// CurrentLeader tells a client whom to ask instead (KIP-951). The zero value of
// Known leaves it out.
type CurrentLeader struct {
	Known  bool
	Leader ident.BrokerID
	Epoch  ident.LeaderEpoch
}

// NodeEndpoint is where a broker named by a CurrentLeader is reached.
type NodeEndpoint struct {
	Node ident.BrokerID
	Host string
	Port int32
	Rack string // empty: null
}

// AppendTo appends the body.
func (r *ProduceResponse) AppendTo(dst []byte, version int16) []byte { panic("not written yet") }
