package group

import (
	"github.com/troupe-broker/troupe/group/classic"
	"github.com/troupe-broker/troupe/group/consumer"
	"github.com/troupe-broker/troupe/group/coord"
)

// What a client says becomes records, and one that is larger than the partition takes is refused before anything changes: Kafka finds out at the append, takes
// the step back, and answers UNKNOWN_SERVER_ERROR (CoordinatorRuntime.java, CoordinatorOperationExceptionHelper.java). Records of what the coordinator itself
// decides, as a target, are written whatever their size, each in a batch of its own.

// recordOverhead is what a record takes beside key and value, with its batch, in bytes.
const recordOverhead = 128

// exceeds tells whether a record of a group with so many bytes of key and value beside the group's name is too large.
func (s *Shard) exceeds(group string, n int) bool {
	return n > 0 && int64(n)+int64(2*len(group))+recordOverhead > int64(s.cfg.RecordBytesMax)
}

// commitTooLarge tells whether some partition's record would be.
func (s *Shard) commitTooLarge(c *coord.Commit) bool {
	for i := range c.Topics {
		for j := range c.Topics[i].Partitions {
			if p := &c.Topics[i].Partitions[j]; p.Code == 0 && len(p.Metadata) <= 3*int(s.cfg.OffsetMetadataMax) && s.exceeds(c.Group, len(c.Topics[i].Name)+len(p.Metadata)) {
				return true
			}
		}
	}
	return false
}

// joinTooLarge tells whether what a Join makes a group write at once would be.
func (s *Shard) joinTooLarge(g *group, c *coord.Join) bool {
	switch {
	case g != nil && g.consumer != nil && !g.consumer.Empty():
		return s.exceeds(c.Group, consumer.JoinRecordBytes(c))
	case g != nil && g.classic != nil:
		return s.exceeds(c.Group, g.classic.JoinRecordBytes(c))
	}
	return false
}

// syncTooLarge tells whether the generation with what its leader decided would be.
func (s *Shard) syncTooLarge(g *classic.Group, c *coord.Sync) bool {
	return s.exceeds(c.Group, g.SyncRecordBytes(c))
}

// heartbeatTooLarge tells whether the record of the member would be.
func (s *Shard) heartbeatTooLarge(g *group, c *coord.ConsumerHeartbeat) bool {
	if c.MemberEpoch > 0 && c.Topics == nil && c.Regex == nil {
		return false // most say no more
	}
	if g == nil || g.consumer == nil {
		return s.exceeds(c.Group, consumer.New(c.Group).RecordBytes(c))
	}
	return s.exceeds(c.Group, g.consumer.RecordBytes(c))
}
