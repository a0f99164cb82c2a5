package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire/ident"
)

// RemoveRaftVoter (81), version 0 (KIP-853).
//
// As in Kafka: a voter that there is not is VOTER_NOT_FOUND, its broker with another directory among them; another change under way is REQUEST_TIMED_OUT.
// Different: the last voter stays (INVALID_REQUEST); a voter without which too few of the others answer stays (REQUEST_TIMED_OUT); a controller whose own vote
// is to go hands over before, not after.

func removeRaftVoter(c *Call) {
	req := c.Request.(*kmsg.RemoveRaftVoterRequest)
	resp := kmsg.NewPtrRemoveRaftVoterResponse()
	if err := voterKey(req.VoterID, req.VoterDirectoryID); err != nil {
		resp.ErrorCode, resp.ErrorMessage = refusal(err)
		c.Respond(resp)
		return
	}
	cmd := &cluster.RemoveVoter{Cluster: clusterOf(req.ClusterID), Broker: ident.BrokerID(req.VoterID), Directory: req.VoterDirectoryID}
	c.Env.Ports.Controller(cmd, &cmd.Ask, func(r cluster.Reply) {
		if _, ok := r.Body.(*cluster.RemoveVoterReply); !ok && r.Err == nil {
			r.Err = wrongBody()
		}
		resp.ErrorCode, resp.ErrorMessage = refusal(r.Err)
		c.Respond(resp)
	})
}
