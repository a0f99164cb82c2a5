package handler

import (
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Fetch (1), versions 4 to 18.
//
// As in Kafka: long poll, incremental sessions (KIP-227), topic ids, isolation levels, epoch checks (KIP-320), at least one batch whatever the limits; with
// replica.selector.class a leader sends a consumer that names its rack to a replica there, which serves it up to its own high watermark (KIP-392).
// Different: only consumers are served here, followers replicate over the peer link; a consumer that names no rack is served by leaders alone; a second and later partition is cut at the end of a batch or in the
// middle of one, but never before its first batch is whole; nobody is sent to a replica with damaged records, and such a one answers NOT_LEADER_OR_FOLLOWER where
// a leader would say CORRUPT_MESSAGE; throttle time is always 0.

// Fetched is what one partition of a Fetch request gets.
type Fetched struct {
	Topic         int           // partitions with the same number and name are neighbours in the answer
	Name          []byte        // below version 13
	ID            ident.TopicID // from version 13
	Partition     int32
	Code          wire.ErrorCode
	HighWatermark ident.Offset
	LastStable    ident.Offset
	LogStart      ident.Offset
	Size          int // of the records
	Diverging     wire.EpochEnd
	Leader        ident.BrokerID // who leads as far as is known, with NOT_LEADER_OR_FOLLOWER and epoch errors
	LeaderEpoch   ident.LeaderEpoch
	Elsewhere     bool           // a replica that is nearer to the reader has it
	Preferred     ident.BrokerID // with Elsewhere
}

// Refuse makes f a refusal: no records and no offsets.
func (f *Fetched) Refuse(code wire.ErrorCode) {
	f.Code, f.Size = code, 0
	f.HighWatermark, f.LastStable, f.LogStart = ident.NoOffset, ident.NoOffset, ident.NoOffset
}

// FetchParts are the results of one request, in the order of the answer.
type FetchParts interface {
	Len() int
	Part(i int) *Fetched
}

// FetchAnswer encodes answers to Fetch requests. It keeps its memory: a steady stream of answers allocates nothing.
type FetchAnswer struct {
	response   wire.FetchResponse
	partitions []wire.FetchPartitionResponse
}

// FetchHead is what an answer says about the request as a whole.
type FetchHead struct {
	Version       int16
	Code          wire.ErrorCode
	Session       int32
	ReadCommitted bool
}

// AppendTo appends the body of the answer and the places where the records go, one cut for each part with a Size, in order. image and listener tell
// where a leader is reached that is not this broker.
func (a *FetchAnswer) AppendTo(dst []byte, cuts []wire.Cut, head FetchHead, parts FetchParts, image *cluster.Image, listener string) ([]byte, []wire.Cut) {
	r, n := &a.response, parts.Len()
	r.Error, r.SessionID = head.Code, head.Session
	r.Topics, r.NodeEndpoints = r.Topics[:0], r.NodeEndpoints[:0]
	if cap(a.partitions) < n {
		a.partitions = make([]wire.FetchPartitionResponse, 0, n)
	}
	a.partitions = a.partitions[:0]
	topic := -1
	for i := range n {
		p := parts.Part(i)
		if p.Topic != topic {
			topic = p.Topic
			r.Topics = append(r.Topics, wire.FetchTopicResponse{Name: p.Name, ID: p.ID})
		}
		from := len(a.partitions)
		a.partitions = append(a.partitions, wire.FetchPartitionResponse{
			Partition: p.Partition, Error: p.Code, HighWatermark: p.HighWatermark, LastStableOffset: p.LastStable, LogStartOffset: p.LogStart,
			// No transaction is ever aborted here, but a reader of committed records is owed a list.
			AbortedNull: !head.ReadCommitted, PreferredReadReplica: ident.NoBroker, RecordsSize: int32(p.Size), DivergingEpoch: p.Diverging,
		})
		if p.Elsewhere {
			a.partitions[from].PreferredReadReplica = p.Preferred
		}
		if tellsLeader(p.Code) && p.Leader >= 0 {
			a.partitions[from].CurrentLeader = wire.CurrentLeader{Known: true, Leader: p.Leader, Epoch: p.LeaderEpoch}
			r.NodeEndpoints = appendEndpoint(r.NodeEndpoints, image, p.Leader, listener)
		}
		t := &r.Topics[len(r.Topics)-1]
		t.Partitions = a.partitions[from-len(t.Partitions) : from+1]
	}
	dst, cuts = r.AppendTo(dst, cuts, head.Version)
	clear(r.Topics)
	return dst, cuts
}

// tellsLeader says whether a refusal is to name the leader.
func tellsLeader(code wire.ErrorCode) bool {
	return code == wire.NotLeaderOrFollower || code == wire.FencedLeaderEpoch || code == wire.UnknownLeaderEpoch
}
