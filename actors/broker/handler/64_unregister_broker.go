package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire/ident"
)

// UnregisterBroker (64), version 0 (KIP-631).
//
// As in Kafka: BROKER_ID_NOT_REGISTERED for a broker that nobody knows, and one that is forgotten may register again. Different: a broker that lives, one that
// replicas are assigned to and a voter are INVALID_REQUEST, where Kafka forgets them all; a cluster whose troupe.peer.version is below 2 answers
// UNSUPPORTED_VERSION.

func unregisterBroker(c *Call) {
	req := c.Request.(*kmsg.UnregisterBrokerRequest)
	cmd := &cluster.UnregisterBroker{Broker: ident.BrokerID(req.BrokerID)}
	c.Env.Ports.Controller(cmd, &cmd.Ask, func(r cluster.Reply) {
		if _, ok := r.Body.(*cluster.UnregisterBrokerReply); !ok && r.Err == nil {
			r.Err = wrongBody()
		}
		resp := kmsg.NewPtrUnregisterBrokerResponse()
		resp.ErrorCode, resp.ErrorMessage = refusal(r.Err)
		c.Respond(resp)
	})
}
