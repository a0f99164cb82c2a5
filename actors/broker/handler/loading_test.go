package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// refusals are what a coordinator may answer for a while, whatever it is asked.
var refusals = []wire.ErrorCode{wire.CoordinatorLoadInProgress, wire.CoordinatorNotAvailable, wire.NotCoordinator}

// TestEachAPITellsOnlyRefusalsThatItsClientsTake refuses every request of groups in every version. What is not in Java's list of an API ends its consumer with
// a KafkaException (AbstractCoordinator.java, ConsumerCoordinator.java).
func TestEachAPITellsOnlyRefusalsThatItsClientsTake(t *testing.T) {
	same := map[wire.ErrorCode]wire.ErrorCode{}
	for _, tc := range []struct {
		key  wire.Key
		told map[wire.ErrorCode]wire.ErrorCode // in the place of what the coordinator answered
		ask  func(k *kit, version int16) int16
	}{
		{wire.KeyOffsetCommit, same, func(k *kit, version int16) int16 {
			req := kmsg.NewPtrOffsetCommitRequest()
			req.Group = "g"
			rt, p := kmsg.NewOffsetCommitRequestTopic(), kmsg.NewOffsetCommitRequestTopicPartition()
			rt.Topic, rt.TopicID, rt.Partitions = "t", [16]byte{1}, append(rt.Partitions, p)
			req.Topics = append(req.Topics, rt)
			return k.ask(version, req).(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
		}},
		{wire.KeyOffsetFetch, map[wire.ErrorCode]wire.ErrorCode{wire.CoordinatorNotAvailable: wire.NotCoordinator}, func(k *kit, version int16) int16 {
			req := kmsg.NewPtrOffsetFetchRequest()
			req.Group = "g"
			rt := kmsg.NewOffsetFetchRequestTopic()
			rt.Topic, rt.Partitions = "t", []int32{0}
			req.Topics = append(req.Topics, rt)
			g := kmsg.NewOffsetFetchRequestGroup()
			g.Group = "g"
			req.Groups = append(req.Groups, g)
			switch resp := k.ask(version, req).(*kmsg.OffsetFetchResponse); {
			case version >= 8:
				return resp.Groups[0].ErrorCode
			case version >= 2:
				return resp.ErrorCode
			default:
				return resp.Topics[0].Partitions[0].ErrorCode
			}
		}},
		{wire.KeyJoinGroup, same, func(k *kit, version int16) int16 {
			req := kmsg.NewPtrJoinGroupRequest()
			req.Group = "g"
			return k.ask(version, req).(*kmsg.JoinGroupResponse).ErrorCode
		}},
		{wire.KeyHeartbeat, map[wire.ErrorCode]wire.ErrorCode{wire.CoordinatorLoadInProgress: wire.NoError}, func(k *kit, version int16) int16 {
			var h handler.Heartbeat
			h.Answer(k.ports.coordinator("g", &coord.Heartbeat{}))
			resp := kmsg.NewPtrHeartbeatResponse()
			resp.SetVersion(version)
			if err := resp.ReadFrom(h.AppendTo(nil, version)); err != nil {
				k.t.Fatal(err)
			}
			return resp.ErrorCode
		}},
		{wire.KeyLeaveGroup, same, func(k *kit, version int16) int16 {
			req := kmsg.NewPtrLeaveGroupRequest()
			req.Group = "g"
			return k.ask(version, req).(*kmsg.LeaveGroupResponse).ErrorCode
		}},
		{wire.KeySyncGroup, map[wire.ErrorCode]wire.ErrorCode{wire.CoordinatorLoadInProgress: wire.RebalanceInProgress}, func(k *kit, version int16) int16 {
			req := kmsg.NewPtrSyncGroupRequest()
			req.Group, req.ProtocolType, req.Protocol = "g", new("consumer"), new("range")
			return k.ask(version, req).(*kmsg.SyncGroupResponse).ErrorCode
		}},
		{wire.KeyDescribeGroups, same, func(k *kit, version int16) int16 {
			req := kmsg.NewPtrDescribeGroupsRequest()
			req.Groups = []string{"g"}
			return k.ask(version, req).(*kmsg.DescribeGroupsResponse).Groups[0].ErrorCode
		}},
		{wire.KeyDeleteGroups, same, func(k *kit, version int16) int16 {
			req := kmsg.NewPtrDeleteGroupsRequest()
			req.Groups = []string{"g"}
			return k.ask(version, req).(*kmsg.DeleteGroupsResponse).Groups[0].ErrorCode
		}},
		{wire.KeyOffsetDelete, same, func(k *kit, version int16) int16 {
			req := kmsg.NewPtrOffsetDeleteRequest()
			req.Group = "g"
			return k.ask(version, req).(*kmsg.OffsetDeleteResponse).ErrorCode
		}},
		{wire.KeyConsumerGroupHeartbeat, same, func(k *kit, version int16) int16 {
			req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
			req.Group = "g"
			return k.ask(version, req).(*kmsg.ConsumerGroupHeartbeatResponse).ErrorCode
		}},
		{wire.KeyConsumerGroupDescribe, same, func(k *kit, version int16) int16 {
			req := kmsg.NewPtrConsumerGroupDescribeRequest()
			req.Groups = []string{"g"}
			return k.ask(version, req).(*kmsg.ConsumerGroupDescribeResponse).Groups[0].ErrorCode
		}},
	} {
		t.Run(tc.key.String(), func(t *testing.T) {
			versions(t, tc.key, 0, func(t *testing.T, version int16) {
				t.Helper()
				for _, refusal := range refusals {
					k := groupKit(t)
					k.answering(t, func(string, coord.Command) coord.Answer { return &coord.ErrorReply{Code: refusal} })
					want := refusal
					if other, ok := tc.told[refusal]; ok {
						want = other
					}
					code(t, refusal.String(), tc.ask(k, version), want)
				}
			})
		})
	}
}
