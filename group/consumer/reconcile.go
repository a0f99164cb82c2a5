package consumer

import (
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

// reconcile leads a member one step towards its target (CurrentAssignmentBuilder.java). reported says what the member uses, if it says so: whatever it does
// not use of what it must give up, it has given up.
func (g *Group) reconcile(now coord.Now, topics coord.Topics, m *member, reported []coord.TopicPartitions, reports bool, out *coord.Out) {
	recheck := m.recheck && !g.consistent(topics, m)
	m.recheck = false
	if m.reached(g.targetEpoch()) && !recheck {
		return
	}
	var uses []claim
	if reports {
		uses = owned(reported)
	}
	keeps := func(revoking []claim) bool { return len(revoking) > 0 && (!reports || intersects(uses, revoking)) }

	next := records.CurrentAssignment{MemberEpoch: m.epoch()}
	switch {
	case m.reached(g.targetEpoch()):
		next = g.strip(topics, m, keeps)
	case m.state() == records.MemberUnrevoked && keeps(claims(m.revoking(), 0)):
		if !recheck {
			return
		}
		next = g.strip(topics, m, keeps)
	case unknownState(m.state()):
		next.MemberEpoch = g.targetEpoch()
		g.step(topics, m, &next, keeps)
	default:
		g.step(topics, m, &next, keeps)
	}
	next.PreviousEpoch = m.epoch()
	g.become(now, m, &next, out)
}

// step computes what a member that has nothing left to give up gets next.
func (g *Group) step(topics coord.Topics, m *member, next *records.CurrentAssignment, keeps func([]claim) bool) {
	var target []claim
	for _, c := range claims(m.shall(), g.targetEpoch()) {
		if len(target) > 0 && target[len(target)-1].topic == c.topic || g.subscribes(topics, m.sub, c.topic) {
			target = append(target, c)
		}
	}
	kept, revoking := split(claims(m.assigned(), max(0, m.epoch())), target)
	_, missing := split(target, kept)
	free, unreleased := missing[:0], false
	for _, c := range missing {
		if h := g.holders[c.partition]; h != nil && h != m { // its own is what it has just given up
			unreleased = true
			continue
		}
		free = append(free, c)
	}
	if keeps(revoking) {
		next.State, next.Assigned, next.Revoking = records.MemberUnrevoked, pack(kept), pack(revoking)
		return
	}
	next.MemberEpoch, next.Assigned = g.targetEpoch(), pack(merge(kept, free))
	if unreleased {
		next.State = records.MemberUnreleased
	}
}

// strip takes topics away that the member no longer subscribes to, without waiting for the next target.
func (g *Group) strip(topics coord.Topics, m *member, keeps func([]claim) bool) records.CurrentAssignment {
	next := records.CurrentAssignment{MemberEpoch: m.epoch(), State: m.state()}
	var kept, gone []claim
	for _, c := range claims(m.assigned(), m.epoch()) {
		if g.subscribes(topics, m.sub, c.topic) {
			kept = append(kept, c)
		} else {
			gone = append(gone, c)
		}
	}
	next.Assigned = pack(kept)
	if revoking := merge(claims(m.revoking(), m.epoch()), gone); keeps(revoking) {
		next.State, next.Revoking = records.MemberUnrevoked, pack(revoking)
	}
	return next
}

// become writes the new assignment, if it is one. The rebalance timeout runs from when a revocation is first sent.
func (g *Group) become(now coord.Now, m *member, next *records.CurrentAssignment, out *coord.Out) {
	if m.current != nil && m.current.MemberEpoch == next.MemberEpoch && m.current.State == next.State &&
		sameClaims(m.current.Assigned, next.Assigned) && sameClaims(m.current.Revoking, next.Revoking) {
		return
	}
	was := m.revoking()
	g.propose(&records.Current{Group: g.id, Member: m.id, Value: next}, out)
	if m.classic() {
		return
	}
	if next.State != records.MemberUnrevoked {
		g.cancelMember(coord.TimerRebalance, m.id, out)
		return
	}
	if !intersects(claims(was, 0), claims(next.Revoking, 0)) {
		g.startMember(now, coord.TimerRebalance, m.id, m.sub.RebalanceTimeout, out)
	}
}

// subscribes tells whether a subscription covers a topic that exists.
func (g *Group) subscribes(topics coord.Topics, sub *records.Subscription, id ident.TopicID) bool {
	topic, ok := topics.ByID(id)
	return ok && g.wants(sub, topic.Name)
}

// consistent tells whether the member subscribes to all it has.
func (g *Group) consistent(topics coord.Topics, m *member) bool {
	for i, list := 0, m.assigned(); i < len(list); i++ {
		if !g.subscribes(topics, m.sub, list[i].Topic) {
			return false
		}
	}
	return true
}
