package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// LeaveGroup (13), versions 0 to 5.
//
// As in Kafka: below version 3 one member leaves, and what is wrong with it is the code of the answer; from then on several leave, each with a code of its
// own, static members by their instance id with an empty member id (KIP-345).

// leaveManyVersion is the first version in which several members leave.
const leaveManyVersion = 3

func leaveGroup(c *Call) {
	req := c.Request.(*kmsg.LeaveGroupRequest)
	cmd := &coord.Leave{Group: req.Group}
	if c.Version < leaveManyVersion {
		cmd.Members = []coord.LeavingMember{{Member: req.MemberID}}
	} else {
		cmd.Members = make([]coord.LeavingMember, len(req.Members))
		for i := range req.Members {
			m := &req.Members[i]
			cmd.Members[i] = coord.LeavingMember{Member: m.MemberID, Instance: text(m.InstanceID), Reason: text(m.Reason)}
		}
	}
	coordinated(c, req.Group, cmd, func(a *coord.LeaveReply) {
		resp := kmsg.NewPtrLeaveGroupResponse()
		resp.ErrorCode = int16(a.Code)
		if c.Version < leaveManyVersion {
			if a.Code == wire.NoError && len(a.Members) == 1 {
				resp.ErrorCode = int16(a.Members[0].Code)
			}
			c.Respond(resp)
			return
		}
		for i := range a.Members {
			m := kmsg.NewLeaveGroupResponseMember()
			m.MemberID, m.InstanceID, m.ErrorCode = a.Members[i].Member, orNull(a.Members[i].Instance), int16(a.Members[i].Code)
			resp.Members = append(resp.Members, m)
		}
		c.Respond(resp)
	}, func(code wire.ErrorCode) {
		resp := kmsg.NewPtrLeaveGroupResponse()
		resp.ErrorCode = int16(code)
		c.Respond(resp)
	})
}
