package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/wire"
)

// Behaviour 66, as far as it is translation.
func TestDeleteRecordsAsksEachPartitionsReplica(t *testing.T) {
	versions(t, wire.KeyDeleteRecords, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t)
		k.ports.deletes = func(p handler.Place, q handler.DeleteRecords) handler.DeletedRecords {
			if q.Deadline != 1000+40*1000000 {
				t.Errorf("deadline %d", q.Deadline)
			}
			switch p {
			case handler.Place{Topic: "t", Partition: 3}:
				if q.Before != -1 {
					t.Errorf("before %d", q.Before)
				}
				return handler.DeletedRecords{LowWatermark: 17}
			case handler.Place{Topic: "t", Partition: 4}:
				return handler.DeletedRecords{Code: wire.OffsetOutOfRange, LowWatermark: 99}
			}
			t.Errorf("%+v was asked", p)
			return handler.DeletedRecords{}
		}
		req := kmsg.NewPtrDeleteRecordsRequest()
		req.TimeoutMillis = 40
		for _, name := range []string{"t", "__consumer_offsets"} {
			rt := kmsg.NewDeleteRecordsRequestTopic()
			rt.Topic = name
			p := kmsg.NewDeleteRecordsRequestTopicPartition()
			p.Partition, p.Offset = 3, -1
			rt.Partitions = append(rt.Partitions, p)
			req.Topics = append(req.Topics, rt)
		}
		second := kmsg.NewDeleteRecordsRequestTopicPartition()
		second.Partition, second.Offset = 4, 1000
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, second)
		resp := k.ask(version, req).(*kmsg.DeleteRecordsResponse)
		same(t, "t", resp.Topics[0], kmsg.DeleteRecordsResponseTopic{Topic: "t", Partitions: []kmsg.DeleteRecordsResponseTopicPartition{
			{Partition: 3, LowWatermark: 17}, {Partition: 4, LowWatermark: -1, ErrorCode: int16(wire.OffsetOutOfRange)},
		}})
		same(t, "internal", resp.Topics[1], kmsg.DeleteRecordsResponseTopic{
			Topic: "__consumer_offsets", Partitions: []kmsg.DeleteRecordsResponseTopicPartition{
				{Partition: 3, LowWatermark: -1, ErrorCode: int16(wire.InvalidTopicException)},
			},
		})
	})
}
