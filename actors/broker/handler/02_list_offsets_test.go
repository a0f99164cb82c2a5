package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

func askOffsets(k *kit, version int16, isolation int8, partitions ...kmsg.ListOffsetsRequestTopicPartition) []kmsg.ListOffsetsResponseTopicPartition {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.IsolationLevel = -1, isolation
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic, t.Partitions = "t", partitions
	req.Topics = append(req.Topics, t)
	resp := k.ask(version, req).(*kmsg.ListOffsetsResponse)
	if len(resp.Topics) != 1 || resp.Topics[0].Topic != "t" || len(resp.Topics[0].Partitions) != len(partitions) {
		k.t.Fatalf("v%d: %+v", version, resp.Topics)
	}
	return resp.Topics[0].Partitions
}

func offsetOf(partition int32, timestamp int64) kmsg.ListOffsetsRequestTopicPartition {
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp, p.CurrentLeaderEpoch = partition, timestamp, 6
	return p
}

// Behaviours 50 and 51.
func TestListOffsetsAsksEachPartitionsReplica(t *testing.T) {
	versions(t, wire.KeyListOffsets, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t)
		k.ports.offsets = func(p handler.Place, q handler.ListOffset) handler.ListedOffset {
			want := handler.ListOffset{Timestamp: 1234, LeaderEpoch: ident.NoLeaderEpoch}
			if version >= 2 {
				want.ReadCommitted = true
			}
			if version >= 4 {
				want.LeaderEpoch = 6
			}
			same(t, "question", q, want)
			switch p {
			case handler.Place{Topic: "t", Partition: 0}:
				return handler.ListedOffset{Offset: 42, Timestamp: 1235, LeaderEpoch: 5}
			case handler.Place{Topic: "t", Partition: 1}:
				return handler.ListedOffset{Offset: -1, Timestamp: -1, LeaderEpoch: -1}
			}
			return handler.ListedOffset{Code: wire.NotLeaderOrFollower, Offset: 99, Timestamp: 99, LeaderEpoch: 99}
		}
		got := askOffsets(k, version, 1, offsetOf(0, 1234), offsetOf(1, 1234), offsetOf(2, 1234))
		epoch := int32(-1)
		if version >= 4 {
			epoch = 5
		}
		for i, want := range []kmsg.ListOffsetsResponseTopicPartition{
			{Partition: 0, Offset: 42, Timestamp: 1235, LeaderEpoch: epoch},
			{Partition: 1, Offset: -1, Timestamp: -1, LeaderEpoch: -1},
			{Partition: 2, ErrorCode: int16(wire.NotLeaderOrFollower), Offset: -1, Timestamp: -1, LeaderEpoch: -1},
		} {
			same(t, "partition", got[i], want)
		}
	})
}

// Behaviour 50: each special timestamp from its version on.
func TestSpecialTimestampsAreServedFromTheirVersionOn(t *testing.T) {
	first := map[int64]int16{-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11, -7: 99, -1 << 63: 99}
	versions(t, wire.KeyListOffsets, 0, func(t *testing.T, version int16) {
		t.Helper()
		for timestamp, from := range first {
			k := newKit(t)
			asked := false
			k.ports.offsets = func(handler.Place, handler.ListOffset) handler.ListedOffset {
				asked = true
				return handler.ListedOffset{Offset: 3}
			}
			want := wire.NoError
			if version < from {
				want = wire.UnsupportedVersion
			}
			code(t, "timestamp", askOffsets(k, version, 0, offsetOf(0, timestamp))[0].ErrorCode, want)
			if asked != (want == wire.NoError) {
				t.Errorf("timestamp %d in version %d: the replica was asked: %v", timestamp, version, asked)
			}
		}
	})
}

// Behaviour 52.
func TestOffsetNotAvailableIsLeaderNotAvailableForOldClients(t *testing.T) {
	versions(t, wire.KeyListOffsets, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t)
		k.ports.offsets = func(handler.Place, handler.ListOffset) handler.ListedOffset {
			return handler.ListedOffset{Code: wire.OffsetNotAvailable}
		}
		want := wire.OffsetNotAvailable
		if version < 5 {
			want = wire.LeaderNotAvailable
		}
		code(t, "latest", askOffsets(k, version, 0, offsetOf(0, -1))[0].ErrorCode, want)
	})
}

func TestAPartitionListedTwiceIsRefusedAndTheOthersAreNot(t *testing.T) {
	k := newKit(t)
	k.ports.offsets = func(p handler.Place, _ handler.ListOffset) handler.ListedOffset {
		if p.Partition != 1 {
			t.Errorf("partition %d was asked", p.Partition)
		}
		return handler.ListedOffset{Offset: 1}
	}
	got := askOffsets(k, 11, 0, offsetOf(0, -1), offsetOf(1, -1), offsetOf(0, -2))
	code(t, "first mention", got[0].ErrorCode, wire.InvalidRequest)
	code(t, "other partition", got[1].ErrorCode, wire.NoError)
	code(t, "second mention", got[2].ErrorCode, wire.InvalidRequest)
}

func TestListOffsetsOfNothingIsAnsweredWithNothing(t *testing.T) {
	k := newKit(t)
	if resp := k.ask(7, kmsg.NewPtrListOffsetsRequest()).(*kmsg.ListOffsetsResponse); len(resp.Topics) != 0 {
		t.Errorf("%+v", resp)
	}
}
