package group

import (
	"cmp"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/offsets"
	"github.com/troupe-broker/troupe/wire"
)

// memberEpochAPI is the version of OffsetCommit and OffsetFetch from which on a member epoch can stand in them, and GROUP_ID_NOT_FOUND is understood.
const memberEpochAPI = 9

// commit checks who commits, and stores. A simple consumer's first commit makes the group.
func (s *Shard) commit(now coord.Now, c *coord.Commit, out *coord.Out) *coord.CommitReply {
	g := s.groups[c.Group]
	code := wire.NoError
	switch {
	case g == nil && c.Generation < 0:
		g = s.ensure(c.Group)
	case g == nil:
		code = unknownGroup(c.Version)
	case g.consumer != nil:
		code = g.consumer.CheckCommit(now, &s.cfg, c, out)
	case g.classic != nil:
		code = g.classic.CheckCommit(now, &s.cfg, c, out)
	case c.Generation >= 0: // nobody is a member of an offsets-only group
		code = wire.UnknownMemberID
	}
	if code == wire.NoError && s.commitTooLarge(c) {
		code = wire.UnknownServerError
	}
	if code != wire.NoError {
		if g != nil {
			s.forget(g)
		}
		return refuseCommit(c, code)
	}
	reply := g.offsets.Commit(now, &s.cfg, c, s.jumps, out)
	s.forget(g)
	return reply
}

// unknownGroup is the code for a member of a group that is not there: old clients know only that their generation is over.
func unknownGroup(version int16) wire.ErrorCode {
	if version >= memberEpochAPI {
		return wire.GroupIDNotFound
	}
	return wire.IllegalGeneration
}

// refuseCommit answers each partition with what is wrong with it, or else with the code.
func refuseCommit(c *coord.Commit, code wire.ErrorCode) *coord.CommitReply {
	reply := &coord.CommitReply{Topics: make([]coord.CommitTopicReply, len(c.Topics))}
	for i := range c.Topics {
		t := &c.Topics[i]
		codes := make([]coord.PartitionCode, len(t.Partitions))
		for j := range t.Partitions {
			codes[j] = coord.PartitionCode{Partition: t.Partitions[j].Partition, Code: cmp.Or(wire.ErrorCode(t.Partitions[j].Code), code)}
		}
		reply.Topics[i] = coord.CommitTopicReply{Name: t.Name, ID: t.ID, Partitions: codes}
	}
	return reply
}

// fetchOffsets answers for a group that is not there as for one without commits.
func (s *Shard) fetchOffsets(now coord.Now, c *coord.FetchOffsets, out *coord.Out) *coord.FetchOffsetsReply {
	g := s.groups[c.Group]
	if g == nil {
		var none *offsets.Group
		return none.Fetch(now, c, s.topics, s.jumps)
	}
	code := wire.NoError
	switch {
	case g.consumer != nil:
		code = g.consumer.CheckFetch(now, &s.cfg, c, out)
	case g.classic != nil:
		code = g.classic.CheckFetch(now, &s.cfg, c, out)
	}
	if code != wire.NoError {
		return offsets.Refused(c, code)
	}
	return g.offsets.Fetch(now, c, s.topics, s.jumps)
}

func (s *Shard) deleteOffsets(c *coord.DeleteOffsets, out *coord.Out) *coord.DeleteOffsetsReply {
	g := s.groups[c.Group]
	code := wire.NoError
	switch {
	case c.Group == "":
		code = wire.InvalidGroupID
	case g == nil:
		code = wire.GroupIDNotFound
	case g.classic != nil:
		code = g.classic.CheckDeleteOffsets()
	}
	if code != wire.NoError {
		return &coord.DeleteOffsetsReply{Code: code}
	}
	reply := g.offsets.Delete(c, g.subscribed, out)
	s.forget(g)
	return reply
}

// topicsDeleted removes the commits of topics that are gone.
func (s *Shard) topicsDeleted(c *coord.TopicsDeleted, out *coord.Out) {
	for _, name := range s.names() {
		g := s.groups[name]
		for _, t := range c.Topics {
			g.offsets.TopicDeleted(t.Name, t.ID, out)
		}
		s.forget(g)
	}
}
