package offsets

import (
	"maps"
	"slices"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Fetch answers with the commits of the partitions that are asked for; every one of them is in the answer. topics tells the ids of topics that are asked
// for by name; what clients hear of partitions without a usable commit goes into jumps. A nil group has no commits.
func (g *Group) Fetch(now coord.Now, c *coord.FetchOffsets, topics coord.Topics, jumps *Jumps) *coord.FetchOffsetsReply {
	if c.All {
		return g.fetchAll(c, topics)
	}
	reply := &coord.FetchOffsetsReply{Group: c.Group, Topics: make([]coord.FetchedTopic, len(c.Topics))}
	for i := range c.Topics {
		t := &c.Topics[i]
		id := t.ID
		if id.IsZero() {
			id = idOf(topics, t.Name)
		}
		var commits map[int32]*records.OffsetCommit
		if g != nil {
			if known := g.topics[t.Name]; known != nil {
				commits = known.commits
			}
		}
		partitions := make([]coord.FetchedOffset, len(t.Partitions))
		for j := range t.Partitions {
			p := t.Partitions[j]
			var o *records.Offset
			if e := commits[p.Partition]; e != nil && usable(e.Value, id) {
				o = e.Value
			}
			jumps.told(now, c.Client, c.Group, t.Name, id, p, o)
			partitions[j] = fetched(p.Partition, o)
		}
		reply.Topics[i] = coord.FetchedTopic{Name: t.Name, ID: t.ID, Partitions: partitions}
	}
	return reply
}

// fetchAll answers with every commit whose topic is still the one it was made for, topics by name and partitions by number.
func (g *Group) fetchAll(c *coord.FetchOffsets, topics coord.Topics) *coord.FetchOffsetsReply {
	reply := &coord.FetchOffsetsReply{Group: c.Group}
	if g == nil {
		return reply
	}
	for _, name := range slices.Sorted(maps.Keys(g.topics)) {
		id := idOf(topics, name)
		t := coord.FetchedTopic{Name: name, ID: id}
		g.topics[name].each(func(e *records.OffsetCommit) {
			if !usable(e.Value, id) {
				return
			}
			if t.ID.IsZero() {
				t.ID = e.Value.TopicID
			}
			t.Partitions = append(t.Partitions, fetched(e.Partition, e.Value))
		})
		if len(t.Partitions) > 0 {
			reply.Topics = append(reply.Topics, t)
		}
	}
	return reply
}

// Refused answers with the same error for the group; partitions are left out, as the protocol wants it from v8 on, and before it the handler puts
// the code where the version has a place for it.
func Refused(c *coord.FetchOffsets, code wire.ErrorCode) *coord.FetchOffsetsReply {
	return &coord.FetchOffsetsReply{Group: c.Group, Code: code}
}

func fetched(partition int32, o *records.Offset) coord.FetchedOffset {
	if o == nil {
		return coord.FetchedOffset{Partition: partition, Offset: ident.NoOffset, LeaderEpoch: ident.NoLeaderEpoch}
	}
	return coord.FetchedOffset{Partition: partition, Offset: o.Offset, LeaderEpoch: o.LeaderEpoch, Metadata: o.Metadata}
}

func idOf(topics coord.Topics, name string) ident.TopicID {
	if topics == nil {
		return ident.TopicID{}
	}
	t, ok := topics.ByName(name)
	if !ok {
		return ident.TopicID{}
	}
	return t.ID
}
