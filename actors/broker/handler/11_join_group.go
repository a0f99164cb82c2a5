package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// JoinGroup (11), versions 0 to 9.
//
// As in Kafka: version 0 has one timeout for sessions and rebalances; from version 4 on a member without an id is given one and asked to join again
// (KIP-394); from version 9 on the leader can be told to leave the assignment as it is (KIP-814).

// Versions of JoinGroup that matter here.
const (
	joinRebalanceTimeout = 1 // the first with a timeout for rebalances (KIP-62)
	joinKnownMember      = 4
	joinNullProtocol     = 7 // the first that may tell no protocol
	joinSkipAssignment   = 9
)

func joinGroup(c *Call) {
	req := c.Request.(*kmsg.JoinGroupRequest)
	cmd := &coord.Join{
		Group: req.Group, Member: req.MemberID, Instance: text(req.InstanceID), Client: c.coordClient(),
		ProtocolType: req.ProtocolType, SessionTimeout: req.SessionTimeoutMillis, RebalanceTimeout: req.RebalanceTimeoutMillis, Reason: text(req.Reason),
		RequireKnownMember: c.Version >= joinKnownMember, SkipAssignment: c.Version >= joinSkipAssignment,
		Protocols: make([]coord.Protocol, len(req.Protocols)),
	}
	if req.MemberID == "" {
		cmd.NewMember = c.memberID(cmd.Instance)
	}
	if c.Version < joinRebalanceTimeout {
		cmd.RebalanceTimeout = req.SessionTimeoutMillis
	}
	for i := range req.Protocols {
		cmd.Protocols[i] = coord.Protocol{Name: req.Protocols[i].Name, Metadata: kept(req.Protocols[i].Metadata)}
	}
	member := req.MemberID // the request is let go of long before the answer
	coordinated(c, req.Group, cmd, func(a *coord.JoinReply) { c.Respond(joined(c.Version, a)) }, func(code wire.ErrorCode) {
		c.Respond(joined(c.Version, &coord.JoinReply{Code: code, Generation: -1, Member: member}))
	})
}

func joined(version int16, a *coord.JoinReply) *kmsg.JoinGroupResponse {
	resp := kmsg.NewPtrJoinGroupResponse()
	resp.ErrorCode, resp.Generation, resp.LeaderID, resp.MemberID, resp.SkipAssignment = int16(a.Code), a.Generation, a.Leader, a.Member, a.SkipAssignment
	resp.ProtocolType, resp.Protocol = orNull(a.ProtocolType), orNull(a.Protocol)
	if version < joinNullProtocol {
		resp.Protocol = new(a.Protocol)
	}
	for i := range a.Members {
		m := kmsg.NewJoinGroupResponseMember()
		m.MemberID, m.InstanceID, m.ProtocolMetadata = a.Members[i].Member, orNull(a.Members[i].Instance), notNull(a.Members[i].Metadata)
		resp.Members = append(resp.Members, m)
	}
	return resp
}
