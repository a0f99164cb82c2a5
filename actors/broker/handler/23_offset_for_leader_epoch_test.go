package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/wire"
)

// Behaviour 53, as far as it is translation.
func TestOffsetForLeaderEpochAsksEachPartitionsReplica(t *testing.T) {
	versions(t, wire.KeyOffsetForLeaderEpoch, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t)
		k.ports.epochs = func(p handler.Place, q handler.EpochEnd) handler.EndOfEpoch {
			same(t, "question", q, handler.EpochEnd{CurrentLeaderEpoch: 9, LeaderEpoch: 5})
			if p == (handler.Place{Topic: "t", Partition: 1}) {
				return handler.EndOfEpoch{LeaderEpoch: 4, End: 100}
			}
			return handler.EndOfEpoch{Code: wire.FencedLeaderEpoch, LeaderEpoch: 4, End: 100}
		}
		req := kmsg.NewPtrOffsetForLeaderEpochRequest()
		rt := kmsg.NewOffsetForLeaderEpochRequestTopic()
		rt.Topic = "t"
		for _, n := range []int32{1, 2} {
			p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
			p.Partition, p.CurrentLeaderEpoch, p.LeaderEpoch = n, 9, 5
			rt.Partitions = append(rt.Partitions, p)
		}
		req.Topics = append(req.Topics, rt)
		resp := k.ask(version, req).(*kmsg.OffsetForLeaderEpochResponse)
		same(t, "answer", resp.Topics, []kmsg.OffsetForLeaderEpochResponseTopic{{Topic: "t", Partitions: []kmsg.OffsetForLeaderEpochResponseTopicPartition{
			{Partition: 1, LeaderEpoch: 4, EndOffset: 100},
			{Partition: 2, ErrorCode: int16(wire.FencedLeaderEpoch), LeaderEpoch: -1, EndOffset: -1},
		}}})
	})
}
