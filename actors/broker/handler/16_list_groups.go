package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// ListGroups (16), versions 0 to 5.
//
// As in Kafka: the groups that this broker coordinates, those with nothing but offsets too; from version 4 on filtered by state, from version 5 on by type,
// both without regard to case; while one of the coordinators loads, the answer is COORDINATOR_LOAD_IN_PROGRESS; the groups of one that cannot serve are left
// out (GroupCoordinatorService.listGroups), or nobody could list those of the others.

func listGroups(c *Call) {
	req := c.Request.(*kmsg.ListGroupsRequest)
	c.Env.Ports.Coordinators(&coord.List{States: req.StatesFilter, Types: req.TypesFilter}, func(answers []coord.Answer) {
		resp := kmsg.NewPtrListGroupsResponse()
		for _, a := range answers {
			answerOf(a, func(a *coord.ListReply) {
				for _, g := range a.Groups {
					out := kmsg.NewListGroupsResponseGroup()
					out.Group, out.ProtocolType, out.GroupState, out.GroupType = g.Group, g.ProtocolType, g.State, g.Type
					resp.Groups = append(resp.Groups, out)
				}
			}, func(code wire.ErrorCode) {
				if code != wire.NotCoordinator && code != wire.CoordinatorNotAvailable { // another broker lists those, or nobody can
					resp.ErrorCode = int16(code)
				}
			})
		}
		if resp.ErrorCode != 0 {
			resp.Groups = nil
		}
		c.Respond(resp)
	})
}
