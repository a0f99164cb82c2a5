package consumer_test

import "github.com/troupe-broker/troupe/group/records"

// follow goes through the new entries of the log: a member has a partition since the epoch in which it got it, for as long as it keeps it (KIP-1251). What a
// commit may rest on is known from here, not from the group.
func (m *model) follow() {
	if m.held == nil || m.followed > len(m.log) {
		m.held, m.followed = m.currents(), len(m.log)
		return
	}
	for _, e := range m.log[m.followed:] {
		e, ok := e.(*records.Current)
		if !ok {
			continue
		}
		before := m.held[e.Member]
		if m.held[e.Member] = e.Value; e.Value == nil {
			delete(m.held, e.Member)
			continue
		}
		if e.Value.MemberEpoch <= 0 { // a static member that is away, or has come back: it uses nothing
			continue
		}
		m.sameSince(e, before, e.Value.Revoking, true)
		m.sameSince(e, before, e.Value.Assigned, false)
	}
	m.followed = len(m.log)
}

// sameSince checks the epochs of one list of an entry. What a member is to give up it still has; what it gave up and got back it has anew.
func (m *model) sameSince(e *records.Current, before *records.CurrentAssignment, list []records.TopicPartitions, revoking bool) {
	for _, t := range list {
		for i, index := range t.Partitions {
			p := part{t.Topic, index}
			want := e.Value.MemberEpoch
			if before != nil {
				had := &records.CurrentAssignment{Assigned: before.Assigned}
				if revoking {
					had = before
				}
				if epoch, ok := epochOf(had, p); ok {
					want = epoch
				}
			}
			if t.Epochs[i] != want {
				m.fail("invariant 35: %s has partition %s-%d since epoch %d, the log says %d", e.Member, nameOf(p.topic), p.index, t.Epochs[i], want)
			}
		}
	}
}
