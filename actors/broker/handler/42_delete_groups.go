package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// DeleteGroups (42), versions 0 to 3.
//
// As in Kafka: only a group without members can be deleted (NON_EMPTY_GROUP), with everything it has committed; each group has a code of its own. The
// message of version 3 belongs to streams groups, which this broker does not have.

func deleteGroups(c *Call) {
	req := c.Request.(*kmsg.DeleteGroupsRequest)
	resp := kmsg.NewPtrDeleteGroupsResponse()
	resp.Groups = make([]kmsg.DeleteGroupsResponseGroup, len(req.Groups))
	wait := gathering(func() { c.Respond(resp) })
	for i, group := range req.Groups {
		out := &resp.Groups[i]
		*out = kmsg.NewDeleteGroupsResponseGroup()
		out.Group = group
		done := func(code wire.ErrorCode) {
			out.ErrorCode = int16(code)
			wait.arrived()
		}
		wait.expect()
		coordinated(c, group, &coord.Delete{Group: group}, func(a *coord.CodeReply) { done(a.Code) }, done)
	}
	wait.arrived()
}
