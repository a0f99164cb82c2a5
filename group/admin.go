package group

import (
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
)

func (s *Shard) describe(c *coord.Describe) *coord.DescribeReply {
	if s.groups[c.Group] == nil {
		return &coord.DescribeReply{Code: wire.GroupIDNotFound, Message: "Group " + c.Group + " not found.", Group: c.Group, State: stateDead}
	}
	return &coord.DescribeReply{Group: c.Group, State: stateEmpty}
}

func (s *Shard) consumerDescribe(c *coord.ConsumerDescribe) *coord.ConsumerDescribeReply {
	message := "Group " + c.Group + " not found."
	if s.groups[c.Group] != nil {
		message = "Group " + c.Group + " is not a consumer group."
	}
	return &coord.ConsumerDescribeReply{Code: wire.GroupIDNotFound, Message: message, Group: c.Group}
}

// list answers with the groups in the order of their names.
func (s *Shard) list(c *coord.List) *coord.ListReply {
	reply := &coord.ListReply{}
	for _, name := range s.names() {
		listed := coord.ListedGroup{Group: name, State: stateEmpty, Type: typeClassic}
		if allows(c.States, listed.State) && allows(c.Types, listed.Type) {
			reply.Groups = append(reply.Groups, listed)
		}
	}
	return reply
}

// allows compares without case, as Kafka does. An empty filter allows everything.
func allows(filter []string, word string) bool {
	return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, word) })
}

func (s *Shard) delete(c *coord.Delete, out *coord.Out) wire.ErrorCode {
	if c.Group == "" {
		return wire.InvalidGroupID
	}
	g := s.groups[c.Group]
	if g == nil {
		return wire.GroupIDNotFound
	}
	g.offsets.DeleteAll(out)
	s.forget(g)
	return wire.NoError
}

func (s *Shard) inspect(c *coord.Inspect) *coord.InspectReply {
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
		seen := coord.InspectedGroup{Group: name, State: stateEmpty, Type: typeClassic}
		g.offsets.Each(func(e *records.OffsetCommit) {
			o := e.Value
			seen.Offsets = append(seen.Offsets, coord.InspectedOffset{
				Topic: e.Topic, Partition: e.Partition, Offset: o.Offset, At: o.CommitTime, Metadata: o.Metadata, Jump: o.Jump,
			})
		})
		reply.Groups = append(reply.Groups, seen)
	}
	return reply
}
