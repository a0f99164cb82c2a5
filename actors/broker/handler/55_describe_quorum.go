package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// DescribeQuorum (55), versions 0 to 2.
//
// As in Kafka: the quorum is described as partition 0 of the topic __cluster_metadata; any other partition is UNKNOWN_TOPIC_OR_PARTITION. The leader epoch is
// the term of the Raft log, the high watermark its committed index. Different: the nodes of version 2 are the brokers that the voters live in, with
// their client listeners, since controllers have no listener of their own; brokers that follow the log without a vote are the observers, and what they
// have is what they said in their last heartbeat.

const metadataTopic = "__cluster_metadata"

func describeQuorum(c *Call) {
	req := c.Request.(*kmsg.DescribeQuorumRequest)
	if len(req.Topics) != 1 || req.Topics[0].Topic != metadataTopic || len(req.Topics[0].Partitions) != 1 || req.Topics[0].Partitions[0].Partition != 0 {
		c.Respond(unknownQuorum(req))
		return
	}
	cmd := &cluster.DescribeQuorum{}
	c.Env.Ports.Controller(cmd, &cmd.Ask, func(r cluster.Reply) {
		body, ok := r.Body.(*cluster.DescribeQuorumReply)
		if !ok && r.Err == nil {
			r.Err = wrongBody()
		}
		resp := kmsg.NewPtrDescribeQuorumResponse()
		if r.Err != nil {
			resp.ErrorCode, resp.ErrorMessage = refusal(r.Err)
			c.Respond(resp)
			return
		}
		t := kmsg.NewDescribeQuorumResponseTopic()
		t.Topic = metadataTopic
		p := kmsg.NewDescribeQuorumResponseTopicPartition()
		p.LeaderID, p.LeaderEpoch, p.HighWatermark = int32(body.Leader), int32(body.Term), int64(body.Committed)
		for i := range body.Voters {
			p.CurrentVoters = append(p.CurrentVoters, replicaState(&body.Voters[i]))
			resp.Nodes = append(resp.Nodes, quorumNode(c, body.Voters[i].Broker))
		}
		for i := range body.Observers {
			p.Observers = append(p.Observers, replicaState(&body.Observers[i]))
		}
		t.Partitions = append(t.Partitions, p)
		resp.Topics = append(resp.Topics, t)
		c.Respond(resp)
	})
}

// replicaState draws what the controller knows of a voter or an observer: nothing is -1, as it is of one that was not heard since the controller is one.
func replicaState(v *cluster.VoterState) kmsg.DescribeQuorumResponseTopicPartitionReplicaState {
	s := kmsg.NewDescribeQuorumResponseTopicPartitionReplicaState()
	s.ReplicaID, s.ReplicaDirectoryID, s.LogEndOffset = int32(v.Broker), v.Directory, int64(v.LogEnd)
	if v.LogEnd == 0 {
		s.LogEndOffset = -1 // Raft counts from 1
	}
	s.LastFetchTimestamp, s.LastCaughtUpTimestamp = int64(v.LastFetch), int64(v.LastCaughtUp)
	return s
}

// quorumNode tells where the broker of a voter is reached.
func quorumNode(c *Call, id ident.BrokerID) kmsg.DescribeQuorumResponseNode {
	n := kmsg.NewDescribeQuorumResponseNode()
	n.NodeID = int32(id)
	b, ok := c.Env.Image.Broker(id)
	if !ok {
		return n
	}
	for _, e := range b.Endpoints {
		if e.Name == config.PeerListener {
			continue // no client can speak there
		}
		l := kmsg.NewDescribeQuorumResponseNodeListener()
		l.Name, l.Host, l.Port = e.Name, e.Host, e.Port
		n.Listeners = append(n.Listeners, l)
	}
	return n
}

// unknownQuorum refuses every partition of a request.
func unknownQuorum(req *kmsg.DescribeQuorumRequest) *kmsg.DescribeQuorumResponse {
	resp := kmsg.NewPtrDescribeQuorumResponse()
	for i := range req.Topics {
		t := kmsg.NewDescribeQuorumResponseTopic()
		t.Topic = req.Topics[i].Topic
		for _, asked := range req.Topics[i].Partitions {
			p := kmsg.NewDescribeQuorumResponseTopicPartition()
			p.Partition, p.ErrorCode = asked.Partition, int16(wire.UnknownTopicOrPartition)
			p.ErrorMessage = new("the quorum is described as partition 0 of " + metadataTopic + " alone")
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}
