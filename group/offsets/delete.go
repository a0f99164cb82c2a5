package offsets

import (
	"maps"
	"slices"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Delete removes single commits. Those of topics that the group reads are refused with GROUP_SUBSCRIBED_TO_TOPIC; what is not there is deleted already.
func (g *Group) Delete(c *coord.DeleteOffsets, subscribed func(topic string) bool, out *coord.Out) *coord.DeleteOffsetsReply {
	reply := &coord.DeleteOffsetsReply{Topics: make([]coord.CommitTopicReply, len(c.Topics))}
	for i, t := range c.Topics {
		code := wire.NoError
		if subscribed(t.Name) {
			code = wire.GroupSubscribedToTopic
		}
		codes := make([]coord.PartitionCode, len(t.Partitions))
		for j, p := range t.Partitions {
			codes[j] = coord.PartitionCode{Partition: p, Code: code}
			if code == wire.NoError && g.Get(t.Name, p) != nil {
				g.remove(t.Name, p, out)
			}
		}
		reply.Topics[i] = coord.CommitTopicReply{Name: t.Name, Partitions: codes}
	}
	return reply
}

// DeleteAll removes all commits, because the group goes.
func (g *Group) DeleteAll(out *coord.Out) {
	for _, name := range slices.Sorted(maps.Keys(g.topics)) {
		for _, p := range slices.Sorted(maps.Keys(g.topics[name].commits)) {
			g.remove(name, p, out)
		}
	}
}

// TopicDeleted removes the commits of a topic that is gone. Those for another topic of the same name stay.
func (g *Group) TopicDeleted(name string, id ident.TopicID, out *coord.Out) {
	t := g.topics[name]
	if t == nil {
		return
	}
	t.each(func(e *records.OffsetCommit) {
		if usable(e.Value, id) {
			g.remove(t.name, e.Partition, out)
		}
	})
}
