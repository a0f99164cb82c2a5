package consumer

import (
	"slices"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
)

// The types of members, as ConsumerGroupDescribe has them.
const (
	typeClassic  int8 = 0
	typeConsumer int8 = 1
)

// Describe is the answer to ConsumerGroupDescribe. Members are in the order of their ids. A topic that is gone has no name.
func (g *Group) Describe(cfg *coord.Config, topics coord.Topics) *coord.ConsumerDescribeReply {
	reply := &coord.ConsumerDescribeReply{
		Group: g.id, State: g.State(), GroupEpoch: g.Epoch(), AssignmentEpoch: g.targetEpoch(), Assignor: g.assignor(cfg),
		Members: make([]coord.ConsumerMember, len(g.ids)),
	}
	for i, id := range g.ids {
		m := g.members[id]
		reply.Members[i] = coord.ConsumerMember{
			Member: id, Instance: text(m.sub.Instance), HasInstance: m.sub.Instance != nil, Rack: text(m.sub.Rack), HasRack: m.sub.Rack != nil,
			Epoch: m.epoch(), Client: coord.Client{ID: m.sub.ClientID, Host: m.sub.ClientHost}, Topics: slices.Clone(m.sub.Topics),
			Regex: text(m.sub.Regex), HasRegex: m.sub.Regex != nil, Type: typeConsumer,
			Assignment: named(topics, m.assigned()), Target: named(topics, m.shall()),
		}
		if m.classic() {
			reply.Members[i].Type = typeClassic
		}
	}
	return reply
}

func named(topics coord.Topics, list []records.TopicPartitions) []coord.TopicPartitions {
	told := assignment(list)
	for i := range told {
		if t, ok := topics.ByID(told[i].Topic); ok {
			told[i].Name = t.Name
		}
	}
	return told
}
