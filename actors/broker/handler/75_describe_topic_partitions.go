package handler

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// DescribeTopicPartitions (75), version 0 (KIP-966).
//
// As in Kafka: topics in the order of their names, page by page: an answer holds at most as many partitions as the request and
// max.request.partition.size.limit allow, and a cursor where the next one begins; no topics means all; a cursor that names a topic outside of the list, or
// a negative partition, is INVALID_REQUEST; a partition without a reachable leader has leader -1 and no error.

func describeTopicPartitions(c *Call) {
	req := c.Request.(*kmsg.DescribeTopicPartitionsRequest)
	resp := kmsg.NewPtrDescribeTopicPartitionsResponse()
	names := make([]string, 0, len(req.Topics))
	for i := range req.Topics {
		names = append(names, req.Topics[i].Topic)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	from, first := "", 0
	if req.Cursor != nil {
		from, first = req.Cursor.Topic, int(req.Cursor.Partition)
		if first < 0 || len(names) > 0 && !slices.Contains(names, from) {
			for _, topic := range names {
				resp.Topics = append(resp.Topics, refusePartitions(wire.InvalidRequest, topic))
			}
			c.Respond(resp)
			return
		}
	}
	page := partitionPage{
		view: c.view(), resp: resp, from: from, first: first,
		left: max(1, min(int(req.ResponsePartitionLimit), int(c.brokerInt("max.request.partition.size.limit")))),
	}
	if len(names) == 0 {
		for t := range c.Env.Image.TopicsFrom(from) {
			if !page.add(t.Name, t) {
				break
			}
		}
	}
	for _, topic := range names {
		if topic < from {
			continue
		}
		t, _ := c.Env.Image.Topic(topic)
		if !page.add(topic, t) {
			break
		}
	}
	c.Respond(resp)
}

// brokerInt reads a broker setting as it holds now.
func (c *Call) brokerInt(key string) int64 {
	return c.Env.Image.Stack("", c.Env.Broker, c.Env.Static).BrokerInt(key)
}

// partitionPage is one answer being filled.
type partitionPage struct {
	view  view
	resp  *kmsg.DescribeTopicPartitionsResponse
	from  string // topic of the cursor, which begins at partition first
	first int
	left  int // partitions that still fit
}

// add puts a topic on the page, or as much of it as fits; t is nil when it does not exist. It returns false when the page is full, the cursor set.
func (p *partitionPage) add(topic string, t *cluster.Topic) bool {
	if p.left == 0 {
		p.next(topic, 0)
		return false
	}
	if t == nil {
		p.resp.Topics = append(p.resp.Topics, refusePartitions(unknownTopic(topic), topic))
		return true
	}
	out := kmsg.NewDescribeTopicPartitionsResponseTopic()
	out.Topic, out.TopicID, out.IsInternal = new(t.Name), t.ID, t.Internal()
	out.AuthorizedOperations = allTopicOperations
	i := 0
	if topic == p.from {
		i = p.first
	}
	for ; i < len(t.Partitions) && p.left > 0; i++ {
		out.Partitions = append(out.Partitions, p.partition(int32(i), t.Partitions[i]))
		p.left--
	}
	p.resp.Topics = append(p.resp.Topics, out)
	if i < len(t.Partitions) {
		p.next(topic, i)
		return false
	}
	return true
}

func (p *partitionPage) next(topic string, partition int) {
	cursor := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
	cursor.Topic, cursor.Partition = topic, int32(partition)
	p.resp.NextCursor = &cursor
}

func (p *partitionPage) partition(number int32, part *cluster.Partition) kmsg.DescribeTopicPartitionsResponseTopicPartition {
	leader, _ := p.view.leader(part)
	out := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
	out.Partition, out.LeaderID, out.LeaderEpoch = number, int32(leader), int32(part.LeaderEpoch)
	out.Replicas, out.ISR, out.OfflineReplicas = ids(part.Replicas), ids(part.ISR), p.view.offline(part)
	out.EligibleLeaderReplicas, out.LastKnownELR = ids(part.ELR), ids(nil)
	if part.Leader == ident.NoBroker { // what is kept besides is for the controller
		out.LastKnownELR = ids(part.LastKnownELR)
	}
	return out
}

func refusePartitions(code wire.ErrorCode, topic string) kmsg.DescribeTopicPartitionsResponseTopic {
	out := kmsg.NewDescribeTopicPartitionsResponseTopic()
	out.ErrorCode, out.Topic, out.IsInternal = int16(code), new(topic), cluster.InternalTopic(topic)
	out.AuthorizedOperations = allTopicOperations
	return out
}
