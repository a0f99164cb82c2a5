package wire

import "github.com/troupe-broker/troupe/wire/ident"

// ProduceResponse is the answer to a Produce request, versions 3 to 13. Its slices
// belong to whoever fills it and can be reused once it is encoded.
type ProduceResponse struct {
	Topics         []ProduceTopicResponse
	ThrottleMillis int32
	NodeEndpoints  []NodeEndpoint // from version 10: the brokers named by a CurrentLeader
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
	BaseOffset     ident.Offset // of the appended batch; NoOffset with an error
	LogAppendTime  ident.Millis // NoTimestamp on topics with CreateTime
	LogStartOffset ident.Offset // from version 5
	RecordErrors   []ProduceRecordError
	ErrorMessage   string        // from version 8; empty: null
	CurrentLeader  CurrentLeader // from version 10, with NOT_LEADER_OR_FOLLOWER
}

// ProduceRecordError blames one record of a refused batch, from version 8
// (KIP-467).
type ProduceRecordError struct {
	Index   int32  // of the record in the batch, from 0
	Message string // empty: null
}

// CurrentLeader tells a client whom to ask instead (KIP-951). It is left out
// unless Known.
type CurrentLeader struct {
	Known  bool
	Leader ident.BrokerID
	Epoch  ident.LeaderEpoch
}

// NodeEndpoint is where the broker is reached that a CurrentLeader names.
type NodeEndpoint struct {
	Node ident.BrokerID
	Host string
	Port int32
	Rack string // empty: null
}

// Versions that added fields to the response.
const (
	produceLogStart     = 5
	produceRecordErrors = 8
	produceLeaders      = 10
)

// AppendTo appends the body of the response in a version that is served.
func (r *ProduceResponse) AppendTo(dst []byte, version int16) []byte {
	api, _ := Lookup(KeyProduce)
	flexible := api.IsFlexible(version)
	dst = appendArrayLen(dst, len(r.Topics), flexible)
	for i := range r.Topics {
		t := &r.Topics[i]
		if version >= produceTopicIDs {
			dst = append(dst, t.ID[:]...)
		} else {
			dst = appendString(dst, t.Name, flexible)
		}
		dst = appendArrayLen(dst, len(t.Partitions), flexible)
		for j := range t.Partitions {
			dst = t.Partitions[j].appendTo(dst, version, flexible)
		}
		dst = appendNoTags(dst, flexible)
	}
	dst = appendInt32(dst, r.ThrottleMillis)
	switch {
	case flexible && version >= produceLeaders && len(r.NodeEndpoints) > 0:
		dst = append(dst, 1)
		dst = appendNodeEndpoints(dst, r.NodeEndpoints)
	case flexible:
		dst = append(dst, 0)
	}
	return dst
}

func (p *ProducePartitionResponse) appendTo(dst []byte, version int16, flexible bool) []byte {
	dst = appendInt32(dst, p.Partition)
	dst = appendInt16(dst, int16(p.Error))
	dst = appendInt64(dst, int64(p.BaseOffset))
	dst = appendInt64(dst, int64(p.LogAppendTime))
	if version >= produceLogStart {
		dst = appendInt64(dst, int64(p.LogStartOffset))
	}
	if version >= produceRecordErrors {
		dst = appendArrayLen(dst, len(p.RecordErrors), flexible)
		for i := range p.RecordErrors {
			e := &p.RecordErrors[i]
			dst = appendInt32(dst, e.Index)
			dst = appendNullableString(dst, e.Message, flexible)
			dst = appendNoTags(dst, flexible)
		}
		dst = appendNullableString(dst, p.ErrorMessage, flexible)
	}
	switch {
	case flexible && version >= produceLeaders && p.CurrentLeader.Known:
		dst = append(dst, 1)
		dst = appendCurrentLeader(dst, 0, p.CurrentLeader)
	case flexible:
		dst = append(dst, 0)
	}
	return dst
}
