package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

func quorumRequest(topic string, partitions ...int32) *kmsg.DescribeQuorumRequest {
	req := kmsg.NewPtrDescribeQuorumRequest()
	rt := kmsg.NewDescribeQuorumRequestTopic()
	rt.Topic = topic
	for _, n := range partitions {
		p := kmsg.NewDescribeQuorumRequestTopicPartition()
		p.Partition = n
		rt.Partitions = append(rt.Partitions, p)
	}
	req.Topics = append(req.Topics, rt)
	return req
}

func TestDescribeQuorumTellsTheVoters(t *testing.T) {
	versions(t, wire.KeyDescribeQuorum, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t, smallCluster()...)
		reply := cluster.Reply{Body: &cluster.DescribeQuorumReply{Leader: 2, Term: 9, Committed: 77, Voters: []cluster.VoterState{
			{Voter: cluster.Voter{Node: 11, Broker: 2, Directory: ident.DirectoryID{1}}, LogEnd: 78, LastFetch: 5001, LastCaughtUp: 5002},
			{Voter: cluster.Voter{Node: 12, Broker: 44, Directory: ident.DirectoryID{2}}, LogEnd: 0, LastFetch: -1, LastCaughtUp: -1},
		}, Observers: []cluster.VoterState{{Voter: cluster.Voter{Broker: 7}, LogEnd: 60, LastFetch: -1, LastCaughtUp: -1}}}}
		k.ports.controller = func(cmd cluster.Command) cluster.Reply {
			if _, ok := cmd.(*cluster.DescribeQuorum); !ok {
				t.Errorf("%T", cmd)
			}
			return reply
		}
		resp := k.ask(version, quorumRequest("__cluster_metadata", 0)).(*kmsg.DescribeQuorumResponse)
		if len(resp.Topics) != 1 || resp.Topics[0].Topic != "__cluster_metadata" || len(resp.Topics[0].Partitions) != 1 || resp.ErrorCode != 0 {
			t.Fatalf("%+v", resp)
		}
		p := resp.Topics[0].Partitions[0]
		if p.ErrorCode != 0 || p.LeaderID != 2 || p.LeaderEpoch != 9 || p.HighWatermark != 77 || len(p.Observers) != 1 || p.Observers[0].ReplicaID != 7 || p.Observers[0].LogEndOffset != 60 {
			t.Errorf("%+v", p)
		}
		voters := []kmsg.DescribeQuorumResponseTopicPartitionReplicaState{
			{ReplicaID: 2, LogEndOffset: 78, LastFetchTimestamp: -1, LastCaughtUpTimestamp: -1},
			{ReplicaID: 44, LogEndOffset: -1, LastFetchTimestamp: -1, LastCaughtUpTimestamp: -1},
		}
		if version >= 1 {
			voters[0].LastFetchTimestamp, voters[0].LastCaughtUpTimestamp = 5001, 5002
		}
		if version >= 2 {
			voters[0].ReplicaDirectoryID, voters[1].ReplicaDirectoryID = [16]byte{1}, [16]byte{2}
			same(t, "nodes", resp.Nodes, []kmsg.DescribeQuorumResponseNode{
				{NodeID: 2, Listeners: []kmsg.DescribeQuorumResponseNodeListener{{Name: "PLAINTEXT", Host: "b2", Port: 9092}, {Name: "EXTERNAL", Host: "out2", Port: 19092}}},
				{NodeID: 44, Listeners: []kmsg.DescribeQuorumResponseNodeListener{}},
			})
		}
		same(t, "voters", p.CurrentVoters, voters)
		reply = cluster.Reply{Err: &cluster.Error{Code: wire.NotController, Message: "elsewhere"}}
		code(t, "refused", k.ask(version, quorumRequest("__cluster_metadata", 0)).(*kmsg.DescribeQuorumResponse).ErrorCode, wire.NotController)
	})
}

func TestOnlyTheMetadataPartitionHasAQuorum(t *testing.T) {
	versions(t, wire.KeyDescribeQuorum, 0, func(t *testing.T, version int16) {
		t.Helper()
		for _, req := range []*kmsg.DescribeQuorumRequest{quorumRequest("a", 0), quorumRequest("__cluster_metadata", 1), quorumRequest("__cluster_metadata", 0, 0)} {
			resp := newKit(t).ask(version, req).(*kmsg.DescribeQuorumResponse)
			if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != len(req.Topics[0].Partitions) {
				t.Fatalf("%+v", resp)
			}
			for _, p := range resp.Topics[0].Partitions {
				code(t, req.Topics[0].Topic, p.ErrorCode, wire.UnknownTopicOrPartition)
			}
		}
	})
}
