package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// ConsumerGroupDescribe (69), versions 0 and 1.
//
// As in Kafka: a group that does not speak the newer protocol is GROUP_ID_NOT_FOUND, and admin clients then ask DescribeGroups; from version 1 on a member's
// type is told (KIP-1099). Different: a group that is named twice is described once.

func consumerGroupDescribe(c *Call) {
	req := c.Request.(*kmsg.ConsumerGroupDescribeRequest)
	resp := kmsg.NewPtrConsumerGroupDescribeResponse()
	groups := once(req.Groups, func(g *string) string { return *g })
	resp.Groups = make([]kmsg.ConsumerGroupDescribeResponseGroup, len(groups))
	wait := gathering(func() { c.Respond(resp) })
	spoken := c.consumerProtocol()
	for i, group := range groups {
		out := &resp.Groups[i]
		*out = kmsg.NewConsumerGroupDescribeResponseGroup()
		out.Group, out.AuthorizedOperations = group, operationsNotAsked
		switch {
		case !spoken:
			out.ErrorCode = int16(wire.UnsupportedVersion)
			continue
		case group == "":
			out.ErrorCode = int16(wire.InvalidGroupID)
			continue
		}
		wait.expect()
		coordinated(c, group, &coord.ConsumerDescribe{Group: group}, func(a *coord.ConsumerDescribeReply) {
			describedConsumerGroup(out, a)
			if a.Code == wire.NoError {
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

func describedConsumerGroup(out *kmsg.ConsumerGroupDescribeResponseGroup, a *coord.ConsumerDescribeReply) {
	out.ErrorCode, out.ErrorMessage = int16(a.Code), orNull(a.Message)
	out.State, out.Epoch, out.AssignmentEpoch, out.AssignorName = a.State, a.GroupEpoch, a.AssignmentEpoch, a.Assignor
	for i := range a.Members {
		m := &a.Members[i]
		o := kmsg.NewConsumerGroupDescribeResponseGroupMember()
		o.MemberID, o.MemberEpoch, o.ClientID, o.ClientHost = m.Member, m.Epoch, m.Client.ID, m.Client.Host
		o.SubscribedTopics, o.MemberType = m.Topics, m.Type
		if m.HasInstance {
			o.InstanceID = new(m.Instance)
		}
		if m.HasRack {
			o.RackID = new(m.Rack)
		}
		if m.HasRegex {
			o.SubscribedTopicRegex = new(m.Regex)
		}
		o.Assignment, o.TargetAssignment = assignment(m.Assignment), assignment(m.Target)
		out.Members = append(out.Members, o)
	}
}

func assignment(topics []coord.TopicPartitions) kmsg.Assignment {
	out := kmsg.NewAssignment()
	for i := range topics {
		t := kmsg.NewAssignmentTopicPartition()
		t.TopicID, t.Topic, t.Partitions = topics[i].Topic, topics[i].Name, topics[i].Partitions
		out.TopicPartitions = append(out.TopicPartitions, t)
	}
	return out
}
