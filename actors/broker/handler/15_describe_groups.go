package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// DescribeGroups (15), versions 0 to 6.
//
// As in Kafka: an unknown group, or one that speaks the newer protocol, is Dead, without an error below version 6 and with GROUP_ID_NOT_FOUND from then on
// (KIP-1043); each group has a code of its own. Different: a group that is named twice is described once.

// describeNotFound is the first version that tells that there is no such group.
const describeNotFound = 6

func describeGroups(c *Call) {
	req := c.Request.(*kmsg.DescribeGroupsRequest)
	resp := kmsg.NewPtrDescribeGroupsResponse()
	groups := once(req.Groups, func(g *string) string { return *g })
	resp.Groups = make([]kmsg.DescribeGroupsResponseGroup, len(groups))
	wait := gathering(func() { c.Respond(resp) })
	for i, group := range groups {
		out := &resp.Groups[i]
		*out = kmsg.NewDescribeGroupsResponseGroup()
		out.Group, out.AuthorizedOperations = group, operationsNotAsked
		wait.expect()
		coordinated(c, group, &coord.Describe{Group: group}, func(a *coord.DescribeReply) {
			describedGroup(out, a)
			if c.Version < describeNotFound && a.Code == wire.GroupIDNotFound {
				out.ErrorCode = 0
			}
			if out.ErrorCode == 0 {
				out.AuthorizedOperations = operations(req.IncludeAuthorizedOperations, allGroupOperations)
			}
			wait.arrived()
		}, func(code wire.ErrorCode) {
			out.ErrorCode = int16(code)
			wait.arrived()
		})
	}
	wait.arrived()
}

func describedGroup(out *kmsg.DescribeGroupsResponseGroup, a *coord.DescribeReply) {
	out.ErrorCode, out.ErrorMessage = int16(a.Code), orNull(a.Message)
	out.State, out.ProtocolType, out.Protocol = a.State, a.ProtocolType, a.Protocol
	for i := range a.Members {
		m := &a.Members[i]
		o := kmsg.NewDescribeGroupsResponseGroupMember()
		o.MemberID, o.InstanceID, o.ClientID, o.ClientHost = m.Member, orNull(m.Instance), m.Client.ID, m.Client.Host
		o.ProtocolMetadata, o.MemberAssignment = notNull(m.Metadata), notNull(m.Assignment)
		out.Members = append(out.Members, o)
	}
}
