package handler

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// ConsumerGroupHeartbeat (68), versions 0 and 1.
//
// As in Kafka: a field that is null means "as before"; version 0 gives a new member its id, from version 1 on the client makes it (KIP-1082). Unlike in Kafka
// the assignment is told until the member has reported it, not once, since an answer may be lost. Without the feature group.version at level 1 the answer is UNSUPPORTED_VERSION, and clients speak the classic protocol.

// librdkafkaInterval is the shortest heartbeat interval that librdkafka is told, in ms. It takes the interval for the timeout of its next heartbeat
// (rd_kafka_ConsumerGroupHeartbeatRequest, 2.16), so that with a short one it would drop the answers of a busy broker, and learn nothing any more.
const librdkafkaInterval = 1000

// clientMemberIDs is the first version in which the client makes the member id.
const clientMemberIDs = 1

func consumerGroupHeartbeat(c *Call) {
	req := c.Request.(*kmsg.ConsumerGroupHeartbeatRequest)
	refuse := func(code wire.ErrorCode) {
		resp := kmsg.NewPtrConsumerGroupHeartbeatResponse()
		resp.ErrorCode = int16(code)
		c.Respond(resp)
	}
	if !c.consumerProtocol() {
		refuse(wire.UnsupportedVersion)
		return
	}
	cmd := &coord.ConsumerHeartbeat{
		Group: req.Group, Member: req.MemberID, Client: c.coordClient(), MemberEpoch: req.MemberEpoch, Instance: req.InstanceID, Rack: req.RackID,
		RebalanceTimeout: req.RebalanceTimeoutMillis, Topics: req.SubscribedTopicNames, Regex: req.SubscribedTopicRegex, Assignor: req.ServerAssignor,
	}
	if strings.Contains(c.Client.SoftwareName+c.Client.SoftwareVersion, "librdkafka") {
		cmd.IntervalMin = librdkafkaInterval
	}
	if c.Version < clientMemberIDs {
		var id ident.TopicID // spelt as Kafka spells its ids
		c.Env.Ports.Random(id[:])
		cmd.NewMember = id.String()
	}
	if req.Topics != nil {
		cmd.Owned = make([]coord.TopicPartitions, len(req.Topics))
		for i := range req.Topics {
			cmd.Owned[i] = coord.TopicPartitions{Topic: req.Topics[i].TopicID, Partitions: req.Topics[i].Partitions}
		}
	}
	coordinated(c, req.Group, cmd, func(a *coord.ConsumerHeartbeatReply) {
		resp := kmsg.NewPtrConsumerGroupHeartbeatResponse()
		resp.ErrorCode, resp.ErrorMessage, resp.MemberID = int16(a.Code), orNull(a.Message), orNull(a.Member)
		resp.MemberEpoch, resp.HeartbeatIntervalMillis = a.MemberEpoch, a.HeartbeatInterval
		if a.Assigned {
			resp.Assignment = new(kmsg.NewConsumerGroupHeartbeatResponseAssignment())
			for i := range a.Assignment {
				t := kmsg.NewConsumerGroupHeartbeatResponseAssignmentTopic()
				t.TopicID, t.Partitions = a.Assignment[i].Topic, a.Assignment[i].Partitions
				resp.Assignment.Topics = append(resp.Assignment.Topics, t)
			}
		}
		c.Respond(resp)
	}, refuse)
}
