package group_test

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
)

// rise follows the epochs of groups, or their generations: they do not fall, not even when a group changes its protocol, unless no member comes along
// (invariant 34).
func (m *model) rise(entries []records.Entry) {
	if m.epochs == nil {
		return // the log was not ours from its beginning
	}
	for i, e := range entries {
		name := e.GroupID()
		if e.Type() == records.TypeGroupMetadata && e.Tombstone() {
			m.comeAlong(name, entries[i:])
		}
		epoch, ok := m.epochs[name]
		along := func(is func(records.Entry) bool) bool { // later in the step
			return slices.ContainsFunc(entries[i:], func(e records.Entry) bool { return e.GroupID() == name && !e.Tombstone() && is(e) })
		}
		switch e := e.(type) {
		case *records.GroupMetadata:
			switch {
			case e.Value != nil:
				if e.Value.Generation < epoch {
					m.failf("invariant 34: generation %d after %d", e.Value.Generation, epoch)
				}
				m.epochs[name] = e.Value.Generation
			case !along(func(e records.Entry) bool {
				member, ok := e.(*records.ConsumerMember)
				return ok && member.Value.Classic != nil
			}):
				delete(m.epochs, name) // it was deleted, or is made anew
			}
		case *records.ConsumerGroup:
			switch {
			case e.Value != nil:
				if e.Value.Epoch < epoch {
					m.failf("invariant 34: epoch %d after %d", e.Value.Epoch, epoch)
				}
				m.epochs[name] = e.Value.Epoch
			case !along(func(e records.Entry) bool { return e.Type() == records.TypeGroupMetadata }):
				delete(m.epochs, name)
			}
		case *records.Target:
			if e.Value != nil && (!ok || e.Value.Epoch > epoch) {
				m.failf("invariant 34: %s, above the group epoch", show(e))
			}
		case *records.ConsumerMember, *records.Current, *records.OffsetCommit, *records.PartitionMetadata, *records.Regex, *records.TargetMember:
		}
	}
}

// reads tells whether members of a group that is not rebalancing subscribe to a topic, as the log says.
func (m *model) reads(group, topic string, before coord.ListedGroup) bool {
	if before.Type == "Consumer" {
		return slices.ContainsFunc(m.shard.Entries(), func(e records.Entry) bool {
			member, ok := e.(*records.ConsumerMember)
			return ok && member.Group == group && slices.Contains(member.Value.Topics, topic)
		})
	}
	last, ok := m.last(group).(*records.GroupMetadata)
	if !ok || last.Value == nil || before.State != "Stable" {
		return false
	}
	return slices.ContainsFunc(last.Value.Members, func(v records.ClassicMember) bool {
		s := kmsg.NewConsumerMemberMetadata()
		if err := s.ReadFrom(v.Subscription); err != nil {
			m.failf("a bad subscription of %s: %v", v.Member, err)
		}
		return slices.Contains(s.Topics, topic)
	})
}

// comeAlong: members of a classic group that becomes a consumer group keep what they had, or others would be given what they use (invariant 33).
func (m *model) comeAlong(group string, entries []records.Entry) {
	var last *records.Generation
	for _, e := range slices.Backward(m.log) {
		if c, ok := e.(*records.GroupMetadata); ok && c.Group == group && c.Value != nil {
			last = c.Value
			break
		}
	}
	if last == nil {
		return
	}
	for _, member := range last.Members {
		i := slices.IndexFunc(entries, func(e records.Entry) bool {
			c, ok := e.(*records.Current)
			return ok && c.Member == member.Member && c.Group == group
		})
		if i < 0 || len(member.Assignment) == 0 {
			continue
		}
		has := entries[i].(*records.Current)
		if has.Value == nil || has.Value.MemberEpoch != last.Generation {
			continue // a generation that was not written down
		}
		a := kmsg.NewConsumerMemberAssignment()
		if err := a.ReadFrom(member.Assignment); err != nil {
			m.failf("a bad assignment of %s: %v", member.Member, err)
		}
		for _, t := range a.Topics {
			for _, p := range t.Partitions {
				if topic, ok := m.topics.ByName(t.Topic); ok && !holds(has.Value, topic.ID, p, has.Value.MemberEpoch) {
					m.failf("invariant 33: %s had %s-%d, and comes along with %s", member.Member, t.Topic, p, show(has))
				}
			}
		}
	}
}
