package assign

import (
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Range gives each member a run of neighbouring partitions of each of its topics (Kafka's RangeAssignor.java): static members in the order of their
// instances first, dynamic ones in the order of their ids behind. Of n partitions and m subscribers each gets n/m, the first n%m of them one more. Topics
// with the same subscribers and the same number of partitions are cut at the same places, so a member that joins two of them has both halves. It is not
// sticky: a dynamic member that joins or leaves shifts those behind it.
func Range(members []Member, topics Topics) [][]records.TopicPartitions {
	cuts := make(map[ident.TopicID]*cut)
	for i := range members {
		for _, id := range members[i].Topics {
			c := cuts[id]
			if c == nil {
				c = &cut{partitions: topics.partitionsOf(id)}
				cuts[id] = c
			}
			c.subscribers++
		}
	}
	targets := make([][]records.TopicPartitions, len(members))
	for _, i := range order(members) {
		m := &members[i]
		var target []records.TopicPartitions
		for _, id := range m.Topics {
			if run := cuts[id].take(); len(run) > 0 {
				target = append(target, records.TopicPartitions{Topic: id, Partitions: run})
			}
		}
		if same(target, m.Target) {
			target = m.Target
		}
		targets[i] = target
	}
	return targets
}

// cut cuts the partitions of a topic into runs, one for each subscriber.
type cut struct {
	partitions, subscribers int32
	taken, next             int32 // subscribers that have theirs; the first partition that nobody has
}

func (c *cut) take() []int32 {
	n := c.partitions / c.subscribers
	if c.taken < c.partitions%c.subscribers {
		n++
	}
	c.taken++
	run := make([]int32, n)
	for i := range run {
		run[i] = c.next
		c.next++
	}
	return run
}
