package handler

import (
	"errors"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// Produce (0), versions 3 to 13. Versions 0 to 2 are advertised and refused, as Kafka does (KAFKA-18659).
//
// As in Kafka: each partition has its own result; acks=0 is never answered; a repeated batch of an idempotent producer is answered as the original
// was. Different: a request with a transactional id is refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED, since no transactional id can have been
// initialised; throttle time is always 0.

// Produced is the fate of one partition of a Produce request.
type Produced struct {
	Topic         int           // index of the topic in the request
	Name          []byte        // as the request named it, below version 13
	ID            ident.TopicID // likewise, from version 13
	Partition     int32
	Code          wire.ErrorCode
	Message       string
	Records       []wire.ProduceRecordError
	BaseOffset    ident.Offset
	LogAppendTime ident.Millis
	LogStart      ident.Offset
	Leader        ident.BrokerID // who leads as far as is known, with NOT_LEADER_OR_FOLLOWER
	LeaderEpoch   ident.LeaderEpoch
}

// Refuse makes p a refusal.
func (p *Produced) Refuse(code wire.ErrorCode, message string) {
	p.Code, p.Message = code, message
	p.BaseOffset, p.LogAppendTime, p.LogStart = ident.NoOffset, ident.NoTimestamp, ident.NoOffset
}

// RefuseBatch makes p the refusal of a batch that record.Validate did not let through.
func (p *Produced) RefuseBatch(err error) {
	var invalid *record.Invalid
	if !errors.As(err, &invalid) {
		p.Refuse(wire.UnknownServerError, err.Error())
		return
	}
	p.Refuse(reasonCodes[invalid.Reason], invalid.Message)
	for i := range invalid.Records {
		p.Records = append(p.Records, wire.ProduceRecordError{Index: invalid.Records[i].Index, Message: invalid.Records[i].Message})
	}
}

// reasonCodes gives the error code that answers each reason to refuse a batch.
var reasonCodes = [...]wire.ErrorCode{
	record.ReasonCorrupt:       wire.CorruptMessage,
	record.ReasonInvalidRecord: wire.InvalidRecord,
	record.ReasonTooLarge:      wire.MessageTooLarge,
	record.ReasonListTooLarge:  wire.RecordListTooLarge,
	record.ReasonTimestamp:     wire.InvalidTimestamp,
	record.ReasonCompression:   wire.UnsupportedCompressionType,
}

// ProduceRefusal says whether a whole Produce request is refused, partition by partition, before anything is looked at.
func ProduceRefusal(req *wire.ProduceRequest) (code wire.ErrorCode, message string) {
	switch {
	case req.Acks != 0 && req.Acks != 1 && req.Acks != -1:
		return wire.InvalidRequiredAcks, "acks must be 0, 1 or -1 (all)"
	case req.TransactionalID != nil:
		return wire.TransactionalIDAuthorizationFailed, "this broker has no transactions: no transactional id can have been initialised"
	}
	return wire.NoError, ""
}

// ProduceAnswer encodes answers to Produce requests. It keeps its memory: a steady stream of answers allocates nothing.
type ProduceAnswer struct {
	response   wire.ProduceResponse
	partitions []wire.ProducePartitionResponse
}

// ProduceParts are the results of one request, in its order.
type ProduceParts interface {
	Len() int
	Part(i int) *Produced
}

// AppendTo appends the body of the answer in a version. image and listener tell where a leader is reached that is not this broker.
func (a *ProduceAnswer) AppendTo(dst []byte, version int16, parts ProduceParts, image *cluster.Image, listener string) []byte {
	r, n := &a.response, parts.Len()
	r.Topics, r.NodeEndpoints = r.Topics[:0], r.NodeEndpoints[:0]
	if cap(a.partitions) < n {
		a.partitions = make([]wire.ProducePartitionResponse, 0, n)
	}
	a.partitions = a.partitions[:0]
	topic := -1
	for i := range n {
		p := parts.Part(i)
		if p.Topic != topic {
			topic = p.Topic
			r.Topics = append(r.Topics, wire.ProduceTopicResponse{Name: p.Name, ID: p.ID})
		}
		from := len(a.partitions)
		a.partitions = append(a.partitions, wire.ProducePartitionResponse{
			Partition: p.Partition, Error: p.Code, BaseOffset: p.BaseOffset, LogAppendTime: p.LogAppendTime, LogStartOffset: p.LogStart,
			RecordErrors: p.Records, ErrorMessage: p.Message,
		})
		if p.Code == wire.NotLeaderOrFollower && p.Leader >= 0 {
			a.partitions[from].CurrentLeader = wire.CurrentLeader{Known: true, Leader: p.Leader, Epoch: p.LeaderEpoch}
			r.NodeEndpoints = appendEndpoint(r.NodeEndpoints, image, p.Leader, listener)
		}
		t := &r.Topics[len(r.Topics)-1]
		// The partitions of a topic are neighbours; the slice never moves, its capacity was made for all.
		t.Partitions = a.partitions[from-len(t.Partitions) : from+1]
	}
	dst = r.AppendTo(dst, version)
	clear(a.partitions)
	clear(r.Topics)
	return dst
}

// appendEndpoint adds where a broker is reached, once (KIP-951).
func appendEndpoint(dst []wire.NodeEndpoint, image *cluster.Image, id ident.BrokerID, listener string) []wire.NodeEndpoint {
	for i := range dst {
		if dst[i].Node == id {
			return dst
		}
	}
	b, ok := image.Broker(id)
	if !ok {
		return dst
	}
	e, ok := b.Endpoint(listener)
	if !ok {
		return dst
	}
	return append(dst, wire.NodeEndpoint{Node: id, Host: e.Host, Port: int32(e.Port), Rack: b.Rack})
}
