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
