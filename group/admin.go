package group

import (
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/group/classic"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/offsets"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
)

// describe answers for a group of the other type as for one that is not there: a client asks for a consumer group by another API first.
func (s *Shard) describe(c *coord.Describe) *coord.DescribeReply {
	g := s.groups[c.Group]
	switch {
	case g == nil:
		return &coord.DescribeReply{Code: wire.GroupIDNotFound, Message: "Group " + c.Group + " not found.", Group: c.Group, State: classic.Dead.String()}
	case g.consumer != nil:
		message := "Group " + c.Group + " is not a classic group."
		return &coord.DescribeReply{Code: wire.GroupIDNotFound, Message: message, Group: c.Group, State: classic.Dead.String()}
	case g.classic != nil:
		return g.classic.Describe()
	}
	return &coord.DescribeReply{Group: c.Group, State: classic.Empty.String()}
}

func (s *Shard) consumerDescribe(c *coord.ConsumerDescribe) *coord.ConsumerDescribeReply {
	g := s.groups[c.Group]
	switch {
	case c.Group == "":
		return &coord.ConsumerDescribeReply{Code: wire.InvalidGroupID}
	case g == nil:
		return &coord.ConsumerDescribeReply{Code: wire.GroupIDNotFound, Message: "Group " + c.Group + " not found.", Group: c.Group}
	case g.consumer == nil:
		return &coord.ConsumerDescribeReply{Code: wire.GroupIDNotFound, Message: "Group " + c.Group + " is not a consumer group.", Group: c.Group}
	}
	return g.consumer.Describe(&s.cfg, s.topics)
}

// list answers with the groups in the order of their names.
func (s *Shard) list(c *coord.List) *coord.ListReply {
	reply := &coord.ListReply{}
	for _, name := range s.names() {
		g := s.groups[name]
		listed := coord.ListedGroup{Group: name, ProtocolType: g.protocolType(), State: g.state(), Type: g.kind()}
		if allows(c.States, listed.State) && allows(c.Types, listed.Type) {
			reply.Groups = append(reply.Groups, listed)
		}
	}
	return reply
}

// allows compares without case, as Kafka does. An empty filter allows everything.
func allows(filter []string, word string) bool {
	return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(strings.TrimSpace(f), word) })
}

// delete removes an empty group with all its entries.
func (s *Shard) delete(c *coord.Delete, out *coord.Out) wire.ErrorCode {
	g := s.groups[c.Group]
	switch {
	case g == nil:
		return wire.GroupIDNotFound
	case !g.empty():
		return wire.NonEmptyGroup
	}
	g.offsets.DeleteAll(out)
	g.removeMachine(wire.CoordinatorNotAvailable, out)
	s.forget(g)
	return wire.NoError
}

func (s *Shard) inspect(now coord.Now, c *coord.Inspect) *coord.InspectReply {
	names := []string{c.Group}
	if c.Group == "" {
		names = s.names()
	}
	reply := &coord.InspectReply{}
	for _, name := range names {
		g := s.groups[name]
		if g == nil {
			continue
		}
		seen := coord.InspectedGroup{Group: name, State: g.state(), Type: g.kind(), Members: g.size()}
		g.offsets.Each(func(e *records.OffsetCommit) {
			o := e.Value
			seen.Offsets = append(seen.Offsets, coord.InspectedOffset{
				Topic: e.Topic, Partition: e.Partition, Offset: o.Offset, At: o.CommitTime, Metadata: o.Metadata,
				Jump: offsets.Remembered(now, &s.cfg, o.Jump),
			})
		})
		reply.Groups = append(reply.Groups, seen)
	}
	return reply
}
