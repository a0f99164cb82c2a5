package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// SyncGroup (14), versions 0 to 5.
//
// As in Kafka: a follower's request waits for the leader's; from version 5 on protocol type and name are checked and told (KIP-559); while a coordinator loads
// its groups the answer is REBALANCE_IN_PROGRESS (GroupCoordinator.scala, handleSyncGroup): the round that this is part of is lost, and members join again at
// once. COORDINATOR_LOAD_IN_PROGRESS would end a Java consumer with an exception.

// syncProtocolVersion is the first version with protocol type and name.
const syncProtocolVersion = 5

func syncGroup(c *Call) {
	req := c.Request.(*kmsg.SyncGroupRequest)
	respond := func(a *coord.SyncReply) {
		resp := kmsg.NewPtrSyncGroupResponse()
		resp.ErrorCode, resp.ProtocolType, resp.Protocol, resp.MemberAssignment = int16(a.Code), orNull(a.ProtocolType), orNull(a.Protocol), notNull(a.Assignment)
		c.Respond(resp)
	}
	cmd := &coord.Sync{
		Group: req.Group, Member: req.MemberID, Instance: text(req.InstanceID), Generation: req.Generation, ProtocolType: text(req.ProtocolType),
		Protocol: text(req.Protocol), Assignments: make([]coord.MemberAssignment, len(req.GroupAssignment)),
	}
	if c.Version >= syncProtocolVersion && (cmd.ProtocolType == "" || cmd.Protocol == "") {
		respond(&coord.SyncReply{Code: wire.InconsistentGroupProtocol})
		return
	}
	for i := range req.GroupAssignment {
		a := &req.GroupAssignment[i]
		cmd.Assignments[i] = coord.MemberAssignment{Member: a.MemberID, Assignment: kept(a.MemberAssignment)}
	}
	coordinated(c, req.Group, cmd, respond, func(code wire.ErrorCode) {
		if code == wire.CoordinatorLoadInProgress {
			code = wire.RebalanceInProgress
		}
		respond(&coord.SyncReply{Code: code})
	})
}
