package handler

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
)

// ElectLeaders (43), versions 0 to 2 (KIP-183, KIP-460).
//
// As in Kafka: a preferred election makes the first replica leader, ELECTION_NOT_NEEDED if it leads already and PREFERRED_LEADER_NOT_AVAILABLE if it is
// not in sync or not live; an unclean one gives a partition without a leader to whoever is live, ELECTION_NOT_NEEDED if it has a leader and
// ELIGIBLE_LEADERS_NOT_AVAILABLE if nobody is; a null list means all partitions, and leaves those out of the answer that needed no election; version 0
// knows preferred elections only. Different: a partition that is asked for twice is INVALID_REQUEST the second time; a timeout of 0 or less waits for the
// answer.

// The kinds of elections (ElectionType.java).
const (
	electPreferred = 0
	electUnclean   = 1
)

func electLeaders(c *Call) {
	req := c.Request.(*kmsg.ElectLeadersRequest)
	kind := req.ElectionType
	if c.Version == 0 {
		kind = electPreferred
	}
	if kind != electPreferred && kind != electUnclean {
		c.Respond(refuseElections(req, &cluster.Error{
			Code: wire.InvalidRequest, Message: "election type " + strconv.Itoa(int(kind)) + " is unknown: 0 means preferred, 1 unclean",
		}))
		return
	}
	cmd := &cluster.ElectLeaders{Unclean: kind == electUnclean, All: req.Topics == nil}
	cmd.Deadline = c.deadline(req.TimeoutMillis)
	for i := range req.Topics {
		for _, n := range req.Topics[i].Partitions {
			cmd.Partitions = append(cmd.Partitions, cluster.PartitionRef{Topic: req.Topics[i].Topic, Partition: n})
		}
	}
	c.Env.Ports.Controller(cmd, &cmd.Ask, func(r cluster.Reply) {
		body, ok := r.Body.(*cluster.ElectLeadersReply)
		if !ok && r.Err == nil {
			r.Err = wrongBody()
		}
		if r.Err != nil {
			c.Respond(refuseElections(req, r.Err))
			return
		}
		resp := kmsg.NewPtrElectLeadersResponse()
		for i := range body.Partitions {
			addElection(resp, body.Partitions[i].PartitionRef, body.Partitions[i].Err)
		}
		c.Respond(resp)
	})
}

// refuseElections refuses a request and every partition in it: a client of version 0 reads the latter alone.
func refuseElections(req *kmsg.ElectLeadersRequest, err *cluster.Error) *kmsg.ElectLeadersResponse {
	resp := kmsg.NewPtrElectLeadersResponse()
	resp.ErrorCode = int16(err.Code)
	for i := range req.Topics {
		for _, n := range req.Topics[i].Partitions {
			addElection(resp, cluster.PartitionRef{Topic: req.Topics[i].Topic, Partition: n}, err)
		}
	}
	return resp
}

// addElection puts one result into the response; those of one topic follow each other.
func addElection(resp *kmsg.ElectLeadersResponse, of cluster.PartitionRef, err *cluster.Error) {
	if last := len(resp.Topics) - 1; last < 0 || resp.Topics[last].Topic != of.Topic {
		t := kmsg.NewElectLeadersResponseTopic()
		t.Topic = of.Topic
		resp.Topics = append(resp.Topics, t)
	}
	t := &resp.Topics[len(resp.Topics)-1]
	p := kmsg.NewElectLeadersResponseTopicPartition()
	p.Partition = of.Partition
	p.ErrorCode, p.ErrorMessage = refusal(err)
	t.Partitions = append(t.Partitions, p)
}
