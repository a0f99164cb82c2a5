package handler

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// DescribeProducers (61), version 0.
//
// As in Kafka: any replica answers for the producers it knows; a partition that this broker has no replica of is NOT_LEADER_OR_FOLLOWER, one that does not
// exist UNKNOWN_TOPIC_OR_PARTITION. Different: partitions are asked one after the other, and once the answer holds producersMax producers the rest is
// INVALID_REQUEST, as is a partition that is listed twice: a short request could otherwise ask for a very long answer.

const producersMax = 100_000

func describeProducers(c *Call) {
	req := c.Request.(*kmsg.DescribeProducersRequest)
	d := producersAnswer{call: c, resp: kmsg.NewPtrDescribeProducersResponse(), left: producersMax, seen: map[ident.TopicPartition]bool{}}
	for i := range req.Topics {
		out := kmsg.NewDescribeProducersResponseTopic()
		out.Topic = req.Topics[i].Topic
		for _, number := range req.Topics[i].Partitions {
			p := kmsg.NewDescribeProducersResponseTopicPartition()
			p.Partition = number
			out.Partitions = append(out.Partitions, p)
		}
		d.resp.Topics = append(d.resp.Topics, out)
	}
	d.ask(0, 0)
}

// producersAnswer is an answer being filled, partition by partition.
type producersAnswer struct {
	call *Call
	resp *kmsg.DescribeProducersResponse
	left int
	seen map[ident.TopicPartition]bool
}

// ask goes on from a partition of the answer to the first that a replica has to be asked for, or answers.
func (d *producersAnswer) ask(topic, partition int) {
	for ; topic < len(d.resp.Topics); topic, partition = topic+1, 0 {
		t := &d.resp.Topics[topic]
		for ; partition < len(t.Partitions); partition++ {
			p := &t.Partitions[partition]
			place := ident.TopicPartition{Topic: t.Topic, Partition: p.Partition}
			if d.seen[place] {
				p.ErrorCode, p.ErrorMessage = int16(wire.InvalidRequest), new(place.String()+" is in the request more than once")
				continue
			}
			d.seen[place] = true
			if d.left <= 0 {
				p.ErrorCode = int16(wire.InvalidRequest)
				p.ErrorMessage = new("one answer holds " + strconv.Itoa(producersMax) + " producers; ask for fewer partitions at a time")
				continue
			}
			d.call.Env.Ports.DescribeProducers(Place{Topic: t.Topic, Partition: p.Partition}, func(a DescribedProducers) {
				d.put(p, a)
				d.ask(topic, partition+1)
			})
			return
		}
	}
	d.call.Respond(d.resp)
}

// put fills in the answer of one replica.
func (d *producersAnswer) put(p *kmsg.DescribeProducersResponseTopicPartition, a DescribedProducers) {
	d.left -= len(a.Producers)
	p.ErrorCode = int16(a.Code)
	if a.Message != "" {
		p.ErrorMessage = new(a.Message)
	}
	for _, state := range a.Producers {
		s := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
		s.ProducerID, s.ProducerEpoch, s.LastSequence = int64(state.ID), int32(state.Epoch), int32(state.LastSequence)
		s.LastTimestamp, s.CoordinatorEpoch, s.CurrentTxnStartOffset = int64(state.LastTimestamp), state.CoordinatorEpoch, int64(state.TxnStart)
		p.ActiveProducers = append(p.ActiveProducers, s)
	}
}
