package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// Heartbeat (12), versions 0 to 4.
//
// As in Kafka: while a coordinator loads its groups, it grants every heartbeat.

func heartbeat(c *Call) {
	req := c.Request.(*kmsg.HeartbeatRequest)
	cmd := &coord.Heartbeat{Group: req.Group, Member: req.MemberID, Instance: text(req.InstanceID), Generation: req.Generation}
	respond := func(code wire.ErrorCode) {
		resp := kmsg.NewPtrHeartbeatResponse()
		resp.ErrorCode = int16(code)
		c.Respond(resp)
	}
	coordinated(c, req.Group, cmd, func(a *coord.HeartbeatReply) { respond(a.Code) }, respond)
}
