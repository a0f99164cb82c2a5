package group

import (
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/offsets"
	"github.com/troupe-broker/troupe/wire"
)

// memberEpochAPI is the version of OffsetCommit and OffsetFetch from which on a member epoch can stand in them, and GROUP_ID_NOT_FOUND is understood.
const memberEpochAPI = 9

// commit checks who commits, and stores.
func (s *Shard) commit(now coord.Now, c *coord.Commit, out *coord.Out) *coord.CommitReply {
	g := s.groups[c.Group]
	if g == nil {
		if c.Generation >= 0 {
			if c.Version >= memberEpochAPI {
				return refuseCommit(c, wire.GroupIDNotFound)
			}
			return refuseCommit(c, wire.IllegalGeneration)
		}
		g = s.ensure(c.Group)
	} else if c.Generation >= 0 {
		return refuseCommit(c, wire.UnknownMemberID)
	}
	reply := g.offsets.Commit(now, &s.cfg, c, s.jumps, out)
	s.forget(g)
	return reply
}

// refuseCommit answers the code for every partition.
func refuseCommit(c *coord.Commit, code wire.ErrorCode) *coord.CommitReply {
	reply := &coord.CommitReply{Topics: make([]coord.CommitTopicReply, len(c.Topics))}
	for i := range c.Topics {
		t := &c.Topics[i]
		codes := make([]coord.PartitionCode, len(t.Partitions))
		for j := range t.Partitions {
			codes[j] = coord.PartitionCode{Partition: t.Partitions[j].Partition, Code: code}
		}
		reply.Topics[i] = coord.CommitTopicReply{Name: t.Name, ID: t.ID, Partitions: codes}
	}
	return reply
}

func (s *Shard) fetchOffsets(now coord.Now, c *coord.FetchOffsets) *coord.FetchOffsetsReply {
	var g *offsets.Group
	if known := s.groups[c.Group]; known != nil {
		g = known.offsets
	}
	return g.Fetch(now, c, s.topics, s.jumps)
}

func (s *Shard) deleteOffsets(c *coord.DeleteOffsets, out *coord.Out) *coord.DeleteOffsetsReply {
	g := s.groups[c.Group]
	if c.Group == "" {
		return &coord.DeleteOffsetsReply{Code: wire.InvalidGroupID}
	}
	if g == nil {
		return &coord.DeleteOffsetsReply{Code: wire.GroupIDNotFound}
	}
	reply := g.offsets.Delete(c, func(string) bool { return false }, out)
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
