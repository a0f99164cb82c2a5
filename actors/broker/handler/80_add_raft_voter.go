package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// AddRaftVoter (80), versions 0 and 1 (KIP-853).
//
// As in Kafka: a broker's id and the id of its data directory name the voter; whoever has a vote already is DUPLICATE_VOTER; another change under way, and a
// broker that does not follow the metadata log closely as an observer, are REQUEST_TIMED_OUT. Different: a directory that the broker has not registered is
// INVALID_VOTER_KEY; the listeners are not looked at, since voters speak on the peer port that brokers register; the answer waits for the commit even where
// version 1 would not.

func addRaftVoter(c *Call) {
	req := c.Request.(*kmsg.AddRaftVoterRequest)
	resp := kmsg.NewPtrAddRaftVoterResponse()
	if err := voterKey(req.VoterID, req.VoterDirectoryID); err != nil {
		resp.ErrorCode, resp.ErrorMessage = refusal(err)
		c.Respond(resp)
		return
	}
	cmd := &cluster.AddVoter{Cluster: clusterOf(req.ClusterID), Broker: ident.BrokerID(req.VoterID), Directory: req.VoterDirectoryID}
	cmd.Deadline = c.deadline(req.TimeoutMillis)
	c.Env.Ports.Controller(cmd, &cmd.Ask, func(r cluster.Reply) {
		if _, ok := r.Body.(*cluster.AddVoterReply); !ok && r.Err == nil {
			r.Err = wrongBody()
		}
		resp.ErrorCode, resp.ErrorMessage = refusal(r.Err)
		c.Respond(resp)
	})
}

// voterKey refuses what can name no voter.
func voterKey(id int32, directory [16]byte) *cluster.Error {
	if id < 0 || directory == [16]byte{} {
		return &cluster.Error{Code: wire.InvalidRequest, Message: "a voter is named by a broker id from 0 on and the id of its data directory"}
	}
	return nil
}

func clusterOf(id *string) ident.ClusterID {
	if id == nil {
		return ""
	}
	return ident.ClusterID(*id)
}
