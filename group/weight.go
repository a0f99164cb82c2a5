package group

import (
	"github.com/troupe-broker/troupe/group/classic"
	"github.com/troupe-broker/troupe/group/consumer"
	"github.com/troupe-broker/troupe/group/coord"
)

// weigh keeps the count of what the members of the shard's groups make it keep.
func (s *Shard) weigh(g *group) {
	w := 0
	if g.classic != nil {
		w += g.classic.Weight()
	}
	if g.consumer != nil {
		w += g.consumer.Weight()
	}
	s.weight += int64(w - g.weight)
	g.weight = w
}

// overweight tells whether so many bytes more would be too many. Who adds nothing is never refused: the limit may have been lowered.
func (s *Shard) overweight(adds int) bool {
	return adds > 0 && s.weight+int64(adds) > s.cfg.MembersBytesMax
}

// tooHeavy tells whether what a member of the classic protocol says would be too much.
func (s *Shard) tooHeavy(g *group, c *coord.Join) bool {
	switch {
	case g != nil && g.consumer != nil && !g.consumer.Empty():
		return s.overweight(g.consumer.AddsClassic(c))
	case g != nil && g.classic != nil:
		return s.overweight(g.classic.Adds(c))
	}
	return s.overweight(classic.Size(c))
}

// tooMuchWanted is the same of the newer protocol. A member that leaves, or says nothing new, is always heard.
func (s *Shard) tooMuchWanted(g *group, c *coord.ConsumerHeartbeat) bool {
	if c.MemberEpoch < 0 || c.MemberEpoch > 0 && c.Topics == nil && c.Regex == nil {
		return false
	}
	if g == nil || g.consumer == nil {
		return s.overweight(consumer.New(c.Group).Adds(c))
	}
	return s.overweight(g.consumer.Adds(c))
}
