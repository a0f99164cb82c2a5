package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

func TestAlterPartitionReassignmentsHandsEverythingOn(t *testing.T) {
	versions(t, wire.KeyAlterReassignments, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t)
		req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
		req.TimeoutMillis, req.AllowReplicationFactorChange = 30, false
		req.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{
			{Topic: "a", Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Partition: 0, Replicas: []int32{2, 3}}, {Partition: 2}}},
			{Topic: "b", Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Partition: 7, Replicas: []int32{}}}},
		}
		refs := []cluster.PartitionRef{{Topic: "a"}, {Topic: "a", Partition: 2}, {Topic: "b", Partition: 7}}
		reply := cluster.Reply{Body: &cluster.AlterReassignmentsReply{Partitions: []cluster.ReassignmentResult{
			{PartitionRef: refs[0]},
			{PartitionRef: refs[1], Err: &cluster.Error{Code: wire.NoReassignmentInProgress, Message: "why"}},
			{PartitionRef: refs[2], Err: &cluster.Error{Code: wire.InvalidReplicaAssignment, Message: "nobody"}},
		}}}
		k.ports.controller = func(cmd cluster.Command) cluster.Reply {
			got := cmd.(*cluster.AlterReassignments)
			if got.Deadline != 1000+30*1000000 || got.FixFactor != (version > 0) {
				t.Errorf("%+v", got)
			}
			same(t, "partitions", got.Partitions, []cluster.Reassignment{{PartitionRef: refs[0], Replicas: []ident.BrokerID{2, 3}}, {PartitionRef: refs[1]}, {PartitionRef: refs[2], Replicas: []ident.BrokerID{}}})
			return reply
		}
		resp := k.ask(version, req).(*kmsg.AlterPartitionAssignmentsResponse)
		code(t, "all", resp.ErrorCode, wire.NoError)
		same(t, "answer", resp.Topics, []kmsg.AlterPartitionAssignmentsResponseTopic{
			{Topic: "a", Partitions: []kmsg.AlterPartitionAssignmentsResponseTopicPartition{
				{}, {Partition: 2, ErrorCode: int16(wire.NoReassignmentInProgress), ErrorMessage: new("why")},
			}},
			{Topic: "b", Partitions: []kmsg.AlterPartitionAssignmentsResponseTopicPartition{
				{Partition: 7, ErrorCode: int16(wire.InvalidReplicaAssignment), ErrorMessage: new("nobody")},
			}},
		})

		reply = cluster.Reply{Err: &cluster.Error{Code: wire.RequestTimedOut, Message: "late"}}
		code(t, "all", k.ask(version, req).(*kmsg.AlterPartitionAssignmentsResponse).ErrorCode, wire.RequestTimedOut)
		reply = cluster.Reply{Body: &cluster.CreatePartitionsReply{}}
		code(t, "all", k.ask(version, req).(*kmsg.AlterPartitionAssignmentsResponse).ErrorCode, wire.UnknownServerError)
	})
}

func TestListPartitionReassignmentsTellsWhatIsBeingMoved(t *testing.T) {
	versions(t, wire.KeyListReassignments, 0, func(t *testing.T, version int16) {
		t.Helper()
		id := ident.TopicID{1}
		still := cluster.Partition{Replicas: []ident.BrokerID{1}, Leader: ident.NoBroker}
		moved := cluster.Partition{Replicas: []ident.BrokerID{3, 2, 1}, Leader: ident.NoBroker, Adding: []ident.BrokerID{3}, Removing: []ident.BrokerID{1}}
		k := newKit(t,
			&cluster.TopicRecord{Name: "a", ID: id}, &cluster.PartitionRecord{Topic: id, Partition: still}, &cluster.PartitionRecord{Topic: id, Number: 1, Partition: moved},
			&cluster.TopicRecord{Name: "b", ID: ident.TopicID{2}}, &cluster.PartitionRecord{Topic: ident.TopicID{2}, Partition: still},
		)
		want := []kmsg.ListPartitionReassignmentsResponseTopic{{Topic: "a", Partitions: []kmsg.ListPartitionReassignmentsResponseTopicPartition{
			{Partition: 1, Replicas: []int32{3, 2, 1}, AddingReplicas: []int32{3}, RemovingReplicas: []int32{1}},
		}}}
		all := kmsg.NewPtrListPartitionReassignmentsRequest()
		same(t, "all", k.ask(version, all).(*kmsg.ListPartitionReassignmentsResponse).Topics, want)
		some := kmsg.NewPtrListPartitionReassignmentsRequest()
		some.Topics = []kmsg.ListPartitionReassignmentsRequestTopic{{Topic: "none", Partitions: []int32{0}}, {Topic: "b", Partitions: []int32{0}}, {Topic: "a", Partitions: []int32{-1, 0, 1, 1, 2}}}
		same(t, "some", k.ask(version, some).(*kmsg.ListPartitionReassignmentsResponse).Topics, want)
		some.Topics = []kmsg.ListPartitionReassignmentsRequestTopic{}
		if resp := k.ask(version, some).(*kmsg.ListPartitionReassignmentsResponse); len(resp.Topics) != 0 || resp.ErrorCode != 0 {
			t.Errorf("%+v", resp)
		}
	})
}
