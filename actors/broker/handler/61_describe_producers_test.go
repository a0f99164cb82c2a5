package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/wire"
)

func producersRequest(topic string, partitions ...int32) *kmsg.DescribeProducersRequest {
	req := kmsg.NewPtrDescribeProducersRequest()
	rt := kmsg.NewDescribeProducersRequestTopic()
	rt.Topic, rt.Partitions = topic, partitions
	req.Topics = append(req.Topics, rt)
	return req
}

func TestDescribeProducersTellsWhatEachReplicaKnows(t *testing.T) {
	k := newKit(t)
	k.ports.producers = func(p handler.Place) handler.DescribedProducers {
		if p == (handler.Place{Topic: "t", Partition: 5}) {
			return handler.DescribedProducers{Producers: []handler.Producer{
				{ID: 1000, Epoch: 2, LastSequence: 3, LastTimestamp: 4, CoordinatorEpoch: -1, TxnStart: -1},
				{ID: 1001, Epoch: 0, LastSequence: -1, LastTimestamp: -1, CoordinatorEpoch: 7, TxnStart: 80},
			}}
		}
		return handler.DescribedProducers{Code: wire.NotLeaderOrFollower, Message: "not here"}
	}
	req := producersRequest("t", 5, 6, 5)
	req.Topics = append(req.Topics, producersRequest("u", 5).Topics...)
	resp := k.ask(0, req).(*kmsg.DescribeProducersResponse)
	if len(resp.Topics) != 2 || resp.Topics[0].Topic != "t" || resp.Topics[1].Topic != "u" || len(resp.Topics[0].Partitions) != 3 {
		t.Fatalf("%+v", resp.Topics)
	}
	known, elsewhere, twice := resp.Topics[0].Partitions[0], resp.Topics[0].Partitions[1], resp.Topics[0].Partitions[2]
	same(t, "producers", known.ActiveProducers, []kmsg.DescribeProducersResponseTopicPartitionActiveProducer{
		{ProducerID: 1000, ProducerEpoch: 2, LastSequence: 3, LastTimestamp: 4, CoordinatorEpoch: -1, CurrentTxnStartOffset: -1},
		{ProducerID: 1001, ProducerEpoch: 0, LastSequence: -1, LastTimestamp: -1, CoordinatorEpoch: 7, CurrentTxnStartOffset: 80},
	})
	code(t, "known", known.ErrorCode, wire.NoError)
	code(t, "elsewhere", elsewhere.ErrorCode, wire.NotLeaderOrFollower)
	same(t, "message", deref(elsewhere.ErrorMessage), "not here")
	code(t, "listed twice", twice.ErrorCode, wire.InvalidRequest)
	code(t, "the other topic", resp.Topics[1].Partitions[0].ErrorCode, wire.NotLeaderOrFollower)
}

func TestOneAnswerHoldsABoundedNumberOfProducers(t *testing.T) {
	k := newKit(t)
	asked := 0
	k.ports.producers = func(handler.Place) handler.DescribedProducers {
		asked++
		return handler.DescribedProducers{Producers: make([]handler.Producer, 40000)}
	}
	resp := k.ask(0, producersRequest("t", 0, 1, 2, 3, 4)).(*kmsg.DescribeProducersResponse)
	for i, p := range resp.Topics[0].Partitions {
		want := wire.NoError
		if i >= 3 {
			want = wire.InvalidRequest
		}
		code(t, "partition", p.ErrorCode, want)
	}
	if asked != 3 || k.ports.producersOnce != 1 {
		t.Errorf("%d replicas were asked, %d at a time; want 3, one after the other", asked, k.ports.producersOnce)
	}
}
