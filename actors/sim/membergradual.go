package sim

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// What gradual members of classic groups do beside the others (KIP-429).

// reads lists what the member reads, as it says when it joins.
func (m *member) reads() (list []kmsg.ConsumerMemberMetadataOwnedPartition) {
	for _, p := range m.parts {
		i := slices.IndexFunc(list, func(t kmsg.ConsumerMemberMetadataOwnedPartition) bool { return t.Topic == p.topic.name })
		if i < 0 {
			i = len(list)
			t := kmsg.NewConsumerMemberMetadataOwnedPartition()
			t.Topic = p.topic.name
			list = append(list, t)
		}
		list[i].Partitions = append(list[i].Partitions, p.number)
		slices.Sort(list[i].Partitions)
	}
	return list
}

// giveUp ends the reading of what the member is not to read any more, after a last commit. It joins again then: somebody waits for that.
func (m *member) giveUp(shall *kmsg.ConsumerMemberAssignment) {
	unwanted := func(p *part) bool {
		return !slices.ContainsFunc(shall.Topics, func(t kmsg.ConsumerMemberAssignmentTopic) bool {
			return t.Topic == p.topic.name && slices.Contains(t.Partitions, p.number) && slices.Contains(m.topics, p.topic)
		})
	}
	if !m.any(unwanted) {
		return
	}
	m.commit(false)
	m.release(unwanted)
	m.joins = true
	m.run.counted("partitions given up in a classic group")
}

// spare takes out of what the leader deals what another member than the new one reads: that is given when it was given up. Of two who say that they read the
// same the one with the younger assignment is right.
func (m *member) spare(shares []kmsg.ConsumerMemberAssignment) {
	type place struct {
		topic  string
		number int32
	}
	type claim struct {
		who        int
		generation int32
	}
	claims := make(map[place]claim)
	for i := range m.crew {
		wants := m.metadataOf(i)
		for _, t := range wants.OwnedPartitions {
			for _, n := range t.Partitions {
				at := place{t.Topic, n}
				if c, ok := claims[at]; !ok || wants.Generation > c.generation {
					claims[at] = claim{i, wants.Generation}
				}
			}
		}
	}
	for i := range shares {
		for j := range shares[i].Topics {
			t := &shares[i].Topics[j]
			t.Partitions = slices.DeleteFunc(t.Partitions, func(n int32) bool {
				c, ok := claims[place{t.Topic, n}]
				return ok && c.who != i
			})
		}
	}
}
