package consumer_test

import (
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
)

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

// static finds the member that has an instance.
func (m *model) static(instance string) *records.ConsumerMember {
	for _, e := range m.g.Entries() {
		if e, ok := e.(*records.ConsumerMember); ok && e.Value.Instance != nil && *e.Value.Instance == instance {
			return e
		}
	}
	return nil
}

// waitsForSomebody: nobody waits for a member that has just joined, as it uses nothing; and one that was heard of, and is told to wait for partitions, waits
// for some that another member has.
func (m *model) waitsForSomebody(request *coord.ConsumerHeartbeat) {
	id, currents := request.Member, m.currents()
	switch current := currents[id]; {
	case current == nil:
		return
	case current.State == records.MemberUnrevoked && request.MemberEpoch == 0:
		m.fail("%s joins, and has to give up %v", id, current.Revoking)
	case current.State != records.MemberUnreleased:
		return
	}
	for _, e := range m.g.Entries() {
		target, ok := e.(*records.TargetMember)
		if !ok || target.Member != id {
			continue
		}
		for _, t := range target.Value.Topics {
			for _, p := range t.Partitions {
				for other, current := range currents {
					if _, has := epochOf(current, part{t.Topic, p}); has && other != id {
						return
					}
				}
			}
		}
	}
	m.fail("%s waits, and nobody has what it waits for", id)
}

// late sends a heartbeat of the epoch before, as one that was under way for long. It does not say what its member uses, or something that the member does
// not have, and must not count.
func (m *model) late() {
	live := m.alive()
	if len(live) == 0 {
		return
	}
	c := live[m.r.IntN(len(live))]
	current := m.currents()[c.id]
	if c.classic || current == nil || current.PreviousEpoch <= 0 || current.PreviousEpoch >= current.MemberEpoch {
		return
	}
	request := &coord.ConsumerHeartbeat{Group: "g", Member: c.id, MemberEpoch: current.PreviousEpoch, RebalanceTimeout: -1}
	if c.instance != "" {
		request.Instance = &c.instance
	}
	if m.r.IntN(2) == 0 {
		request.Owned = []coord.TopicPartitions{{Topic: topicID("elsewhere", 1), Partitions: []int32{0}}}
	}
	if r := m.heartbeat(request); r.Code != wire.FencedMemberEpoch {
		m.fail("%s goes on with epoch %d after %d: %v", c.id, request.MemberEpoch, current.MemberEpoch, r.Code)
	}
}
