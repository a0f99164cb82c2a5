package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
)

func electionRequest(kind int8, topics ...kmsg.ElectLeadersRequestTopic) *kmsg.ElectLeadersRequest {
	req := kmsg.NewPtrElectLeadersRequest()
	req.ElectionType, req.TimeoutMillis, req.Topics = kind, 30, topics
	return req
}

func TestElectLeadersHandsEverythingOn(t *testing.T) {
	versions(t, wire.KeyElectLeaders, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t)
		req := electionRequest(1, kmsg.ElectLeadersRequestTopic{Topic: "a", Partitions: []int32{0, 2}}, kmsg.ElectLeadersRequestTopic{Topic: "b", Partitions: []int32{7}})
		reply := cluster.Reply{Body: &cluster.ElectLeadersReply{Partitions: []cluster.ElectionResult{
			{PartitionRef: cluster.PartitionRef{Topic: "a"}},
			{PartitionRef: cluster.PartitionRef{Topic: "a", Partition: 2}, Err: &cluster.Error{Code: wire.ElectionNotNeeded, Message: "why"}},
			{PartitionRef: cluster.PartitionRef{Topic: "b", Partition: 7}, Err: &cluster.Error{Code: wire.UnknownTopicOrPartition, Message: "none"}},
		}}}
		k.ports.controller = func(cmd cluster.Command) cluster.Reply {
			got := cmd.(*cluster.ElectLeaders)
			if got.Deadline != 1000+30*1000000 || got.All || got.Unclean != (version > 0) {
				t.Errorf("%+v", got)
			}
			same(t, "partitions", got.Partitions, []cluster.PartitionRef{{Topic: "a"}, {Topic: "a", Partition: 2}, {Topic: "b", Partition: 7}})
			return reply
		}
		resp := k.ask(version, req).(*kmsg.ElectLeadersResponse)
		code(t, "all", resp.ErrorCode, wire.NoError)
		same(t, "answer", resp.Topics, []kmsg.ElectLeadersResponseTopic{
			{Topic: "a", Partitions: []kmsg.ElectLeadersResponseTopicPartition{
				{}, {Partition: 2, ErrorCode: int16(wire.ElectionNotNeeded), ErrorMessage: new("why")},
			}},
			{Topic: "b", Partitions: []kmsg.ElectLeadersResponseTopicPartition{
				{Partition: 7, ErrorCode: int16(wire.UnknownTopicOrPartition), ErrorMessage: new("none")},
			}},
		})

		reply = cluster.Reply{Err: &cluster.Error{Code: wire.RequestTimedOut, Message: "late"}}
		allRefused(t, version, k.ask(version, req).(*kmsg.ElectLeadersResponse), wire.RequestTimedOut, 3)
		reply = cluster.Reply{Body: &cluster.CreatePartitionsReply{}}
		allRefused(t, version, k.ask(version, req).(*kmsg.ElectLeadersResponse), wire.UnknownServerError, 3)
	})
}

// allRefused wants one error on everything, on the whole only where the version has a place for it.
func allRefused(t *testing.T, version int16, resp *kmsg.ElectLeadersResponse, want wire.ErrorCode, partitions int) {
	t.Helper()
	if version > 0 {
		code(t, "all", resp.ErrorCode, want)
	}
	for i := range resp.Topics {
		for _, p := range resp.Topics[i].Partitions {
			code(t, resp.Topics[i].Topic, p.ErrorCode, want)
			partitions--
		}
	}
	if partitions != 0 {
		t.Errorf("%d partitions too few: %+v", partitions, resp)
	}
}

func TestNoListMeansAllElectionsAndAnEmptyOneNone(t *testing.T) {
	versions(t, wire.KeyElectLeaders, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t)
		k.ports.controller = func(cluster.Command) cluster.Reply { return cluster.Reply{Body: &cluster.ElectLeadersReply{}} }
		k.ask(version, electionRequest(0))
		empty := electionRequest(0)
		empty.Topics = []kmsg.ElectLeadersRequestTopic{}
		if resp := k.ask(version, empty).(*kmsg.ElectLeadersResponse); len(resp.Topics) != 0 || resp.ErrorCode != 0 {
			t.Errorf("%+v", resp)
		}
		var all []bool
		for _, cmd := range k.ports.commands {
			all = append(all, cmd.(*cluster.ElectLeaders).All)
		}
		same(t, "all", all, []bool{true, false})
	})
}

func TestAnUnknownKindOfElectionIsRefused(t *testing.T) {
	versions(t, wire.KeyElectLeaders, 1, func(t *testing.T, version int16) {
		t.Helper()
		resp := newKit(t).ask(version, electionRequest(2, kmsg.ElectLeadersRequestTopic{Topic: "a", Partitions: []int32{0, 1}})).(*kmsg.ElectLeadersResponse)
		allRefused(t, version, resp, wire.InvalidRequest, 2)
	})
}
