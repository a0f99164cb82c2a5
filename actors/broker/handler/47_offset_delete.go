package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// OffsetDelete (47), version 0.
//
// As in Kafka: a topic to which the group is subscribed keeps its offsets (GROUP_SUBSCRIBED_TO_TOPIC), one partition at a time; a partition that does not
// exist is UNKNOWN_TOPIC_OR_PARTITION.

func offsetDelete(c *Call) {
	req := c.Request.(*kmsg.OffsetDeleteRequest)
	resp := kmsg.NewPtrOffsetDeleteResponse()
	resp.Topics = make([]kmsg.OffsetDeleteResponseTopic, len(req.Topics))
	cmd := &coord.DeleteOffsets{Group: req.Group}
	var places []*kmsg.OffsetDeleteResponseTopicPartition // in the order of the command
	for i := range req.Topics {
		t := &req.Topics[i]
		out := &resp.Topics[i]
		*out = kmsg.NewOffsetDeleteResponseTopic()
		out.Topic = t.Topic
		out.Partitions = make([]kmsg.OffsetDeleteResponseTopicPartition, len(t.Partitions))
		topic, missing := c.topicNamed(t.Topic, [16]byte{}, false)
		asked := coord.DeleteTopic{Name: t.Topic}
		for j := range t.Partitions {
			o := &out.Partitions[j]
			*o = kmsg.NewOffsetDeleteResponseTopicPartition()
			o.Partition, o.ErrorCode = t.Partitions[j].Partition, int16(missing)
			switch {
			case topic == nil:
			case o.Partition < 0 || int(o.Partition) >= len(topic.Partitions):
				o.ErrorCode = int16(wire.UnknownTopicOrPartition)
			default:
				asked.Partitions = append(asked.Partitions, o.Partition)
				places = append(places, o)
			}
		}
		if len(asked.Partitions) > 0 {
			cmd.Topics = append(cmd.Topics, asked)
		}
	}
	refuse := func(code wire.ErrorCode) {
		resp := kmsg.NewPtrOffsetDeleteResponse()
		resp.ErrorCode = int16(code)
		c.Respond(resp)
	}
	coordinated(c, req.Group, cmd, func(a *coord.DeleteOffsetsReply) {
		if a.Code != wire.NoError {
			refuse(a.Code)
			return
		}
		next := 0
		for i := range a.Topics {
			for _, p := range a.Topics[i].Partitions {
				if next < len(places) {
					places[next].ErrorCode = int16(p.Code)
				}
				next++
			}
		}
		c.Respond(resp)
	}, refuse)
}
