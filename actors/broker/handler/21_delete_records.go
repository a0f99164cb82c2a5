package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// DeleteRecords (21), versions 0 to 2.
//
// As in Kafka: -1 means up to the high watermark; an offset at or below the log start changes nothing and succeeds; one above the high watermark is
// OFFSET_OUT_OF_RANGE; a topic that does not delete is POLICY_VIOLATION, an internal one INVALID_TOPIC_EXCEPTION; the answer carries the low watermark.

func deleteRecords(c *Call) {
	req := c.Request.(*kmsg.DeleteRecordsRequest)
	resp := kmsg.NewPtrDeleteRecordsResponse()
	resp.Topics = make([]kmsg.DeleteRecordsResponseTopic, len(req.Topics))
	g := gathering(func() { c.Respond(resp) })
	for i := range req.Topics {
		t := &req.Topics[i]
		out := &resp.Topics[i]
		*out = kmsg.NewDeleteRecordsResponseTopic()
		out.Topic = t.Topic
		out.Partitions = make([]kmsg.DeleteRecordsResponseTopicPartition, len(t.Partitions))
		for j := range t.Partitions {
			p := &t.Partitions[j]
			o := &out.Partitions[j]
			*o = kmsg.NewDeleteRecordsResponseTopicPartition()
			o.Partition, o.LowWatermark = p.Partition, -1
			if cluster.InternalTopic(t.Topic) {
				o.ErrorCode = int16(wire.InvalidTopicException)
				continue
			}
			g.expect()
			question := DeleteRecords{Before: ident.Offset(p.Offset), Deadline: c.deadline(req.TimeoutMillis)}
			c.Env.Ports.DeleteRecords(Place{Topic: t.Topic, Partition: p.Partition}, question, func(a DeletedRecords) {
				o.ErrorCode = int16(a.Code)
				if a.Code == wire.NoError {
					o.LowWatermark = int64(a.LowWatermark)
				}
				g.arrived()
			})
		}
	}
	g.arrived()
}
