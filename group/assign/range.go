package assign

import "github.com/troupe-broker/troupe/group/records"

// Range gives each member a run of neighbouring partitions of each of its topics (Kafka's RangeAssignor.java): static members in the order of their
// instances first, dynamic ones in the order of their ids behind. Of n partitions and m subscribers each gets n/m, the first n%m of them one more. Topics
// with the same subscribers and the same number of partitions are cut at the same places, so a member that joins two of them has both halves. It is not
// sticky: a dynamic member that joins or leaves shifts those behind it.
func Range(members []Member, topics Topics) [][]records.TopicPartitions {
	s := subscribe(members)
	cuts := make([]cut, len(s.ids))
	for t, id := range s.ids {
		cuts[t].partitions = topics.partitionsOf(id)
	}
	for _, l := range s.of {
		for _, t := range s.lists[l] {
			cuts[t].subscribers++
		}
	}
	targets := make([][]records.TopicPartitions, len(members))
	for m, i := range s.order {
		var target []records.TopicPartitions
		for _, t := range s.lists[s.of[m]] {
			if run := cuts[t].take(); run != nil {
				target = append(target, records.TopicPartitions{Topic: s.ids[t], Partitions: run})
			}
		}
		if same(target, members[i].Target) {
			target = members[i].Target
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

// take takes the next run, nil for an empty one.
func (c *cut) take() []int32 {
	if c.next == c.partitions {
		return nil
	}
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
