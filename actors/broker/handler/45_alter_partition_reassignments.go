package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
)

// AlterPartitionReassignments (45), versions 0 and 1 (KIP-455, KIP-860).
//
// As in Kafka: a list of replicas begins a reassignment or changes one that is under way, null cancels it, and NO_REASSIGNMENT_IN_PROGRESS says that there is
// none; every replica stays in the metadata until those that are to stay are all in sync; cancelling is refused where only added replicas have what was
// committed; version 1 may forbid another replication factor. Different: a partition that is asked for twice is INVALID_REQUEST the second time; where no
// replica is taken away, a reassignment ends when the added ones are in sync, whatever has become of the old ones; while all that are to stay are damaged
// none is taken away, and cancelling is refused also where the old ones may have lost records; where
// replicas of an internal topic are only added, their brokers have to serve; a timeout of 0 or less waits for the answer.

func alterPartitionReassignments(c *Call) {
	req := c.Request.(*kmsg.AlterPartitionAssignmentsRequest)
	cmd := &cluster.AlterReassignments{FixFactor: c.Version > 0 && !req.AllowReplicationFactorChange}
	cmd.Deadline = c.deadline(req.TimeoutMillis)
	for i := range req.Topics {
		for _, p := range req.Topics[i].Partitions {
			want := cluster.Reassignment{PartitionRef: cluster.PartitionRef{Topic: req.Topics[i].Topic, Partition: p.Partition}}
			if p.Replicas != nil {
				want.Replicas = brokers(p.Replicas)
			}
			cmd.Partitions = append(cmd.Partitions, want)
		}
	}
	c.Env.Ports.Controller(cmd, &cmd.Ask, func(r cluster.Reply) {
		body, ok := r.Body.(*cluster.AlterReassignmentsReply)
		if !ok && r.Err == nil {
			r.Err = wrongBody()
		}
		resp := kmsg.NewPtrAlterPartitionAssignmentsResponse()
		resp.AllowReplicationFactorChange = req.AllowReplicationFactorChange
		if r.Err != nil {
			resp.ErrorCode, resp.ErrorMessage = refusal(r.Err)
			c.Respond(resp)
			return
		}
		for i := range body.Partitions {
			addReassignment(resp, &body.Partitions[i])
		}
		c.Respond(resp)
	})
}

// addReassignment puts one result into the response; those of one topic follow each other.
func addReassignment(resp *kmsg.AlterPartitionAssignmentsResponse, of *cluster.ReassignmentResult) {
	if last := len(resp.Topics) - 1; last < 0 || resp.Topics[last].Topic != of.Topic {
		t := kmsg.NewAlterPartitionAssignmentsResponseTopic()
		t.Topic = of.Topic
		resp.Topics = append(resp.Topics, t)
	}
	t := &resp.Topics[len(resp.Topics)-1]
	p := kmsg.NewAlterPartitionAssignmentsResponseTopicPartition()
	p.Partition = of.Partition
	p.ErrorCode, p.ErrorMessage = refusal(of.Err)
	t.Partitions = append(t.Partitions, p)
}
