package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// OffsetForLeaderEpoch (23), versions 2 to 4.
//
// As in Kafka: the answer is the largest epoch up to the one asked about and where it ended, both -1 when none is known; the epoch that the client
// believes in is checked first.

func offsetForLeaderEpoch(c *Call) {
	req := c.Request.(*kmsg.OffsetForLeaderEpochRequest)
	resp := kmsg.NewPtrOffsetForLeaderEpochResponse()
	resp.Topics = make([]kmsg.OffsetForLeaderEpochResponseTopic, len(req.Topics))
	g := gathering(func() { c.Respond(resp) })
	for i := range req.Topics {
		t := &req.Topics[i]
		out := &resp.Topics[i]
		*out = kmsg.NewOffsetForLeaderEpochResponseTopic()
		out.Topic = t.Topic
		out.Partitions = make([]kmsg.OffsetForLeaderEpochResponseTopicPartition, len(t.Partitions))
		for j := range t.Partitions {
			p := &t.Partitions[j]
			o := &out.Partitions[j]
			*o = kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			o.Partition, o.LeaderEpoch, o.EndOffset = p.Partition, int32(ident.NoLeaderEpoch), int64(ident.NoOffset)
			g.expect()
			question := EpochEnd{CurrentLeaderEpoch: ident.LeaderEpoch(p.CurrentLeaderEpoch), LeaderEpoch: ident.LeaderEpoch(p.LeaderEpoch)}
			c.Env.Ports.EpochEnd(Place{Topic: t.Topic, Partition: p.Partition}, question, func(a EndOfEpoch) {
				o.ErrorCode = int16(a.Code)
				if a.Code == wire.NoError {
					o.LeaderEpoch, o.EndOffset = int32(a.LeaderEpoch), int64(a.End)
				}
				g.arrived()
			})
		}
	}
	g.arrived()
}
