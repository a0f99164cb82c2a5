package group_test

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
)

// reign is the epoch of a group, or its generation, as the log has it.
type reign struct {
	epoch   int32
	classic bool
	vacant  bool // a generation without members: whoever comes may begin at the beginning
}

// rise follows the epochs of a step: they do not fall, not even when a group changes its protocol, unless it has no members then (invariant 34).
func (m *model) rise(entries []records.Entry) {
	if m.reigns == nil {
		return // the log was not ours from its beginning
	}
	for i, e := range entries {
		name := e.GroupID()
		r := m.reigns[name]
		switch e := e.(type) {
		case *records.GroupMetadata:
			switch {
			case e.Value != nil:
				if r != nil && e.Value.Generation < r.epoch {
					m.failf("invariant 34: generation %d after %d", e.Value.Generation, r.epoch)
				}
				m.reigns[name] = &reign{epoch: e.Value.Generation, classic: true, vacant: len(e.Value.Members) == 0}
			case r != nil && r.vacant:
				delete(m.reigns, name)
			}
		case *records.ConsumerGroup:
			if e.Value != nil {
				if r != nil && e.Value.Epoch < r.epoch {
					m.failf("invariant 34: epoch %d after %d", e.Value.Epoch, r.epoch)
				}
				m.reigns[name] = &reign{epoch: e.Value.Epoch}
			} else if !slices.ContainsFunc(entries[i:], func(e records.Entry) bool {
				return e.Type() == records.TypeGroupMetadata && e.GroupID() == name && !e.Tombstone()
			}) {
				delete(m.reigns, name) // it was deleted
			}
		case *records.Target:
			if e.Value != nil && (r == nil || e.Value.Epoch > r.epoch) {
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
