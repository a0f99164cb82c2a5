package consumer

import (
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Heartbeat takes a ConsumerGroupHeartbeat: a member joins, reports, changes its subscription, or leaves. It answers at once. A group that does not exist
// yet comes into being when a member joins.
//
// Errors: those of [Validate]; GROUP_ID_NOT_FOUND without a group; GROUP_MAX_SIZE_REACHED; UNKNOWN_MEMBER_ID; FENCED_MEMBER_EPOCH, after which the member
// gives up everything and joins anew; UNRELEASED_INSTANCE_ID and FENCED_INSTANCE_ID for static members; INVALID_REGULAR_EXPRESSION.
func (g *Group) Heartbeat(now coord.Now, cfg *coord.Config, topics coord.Topics, id ident.RequestID, c *coord.ConsumerHeartbeat, out *coord.Out) {
	if r := validate(cfg, c); r.code != wire.NoError {
		g.refuse(id, c, r, out)
		return
	}
	if c.MemberEpoch < 0 {
		g.leave(now, cfg, topics, id, c, out)
		return
	}
	name := c.Member
	if name == "" {
		name = c.NewMember
	}
	m, replaced, r := g.admit(cfg, name, c)
	if r.code == wire.NoError {
		r = g.checkRegex(c.Regex)
	}
	if r.code != wire.NoError {
		g.refuse(id, c, r, out)
		return
	}
	moved := replaced != nil && replaced.classic()
	if replaced != nil {
		m = g.replace(replaced, name, out)
	}
	before, lost := m.assigned(), c.MemberEpoch < m.epoch()
	if m != nil && m.untold && c.Owned != nil && claimsMatch(owned(c.Owned), claims(before, 0)) {
		m.untold = false
	}
	g.subscribe(now, cfg, topics, name, m, wanted(m, c), out)
	m = g.members[name]
	if moved && g.Epoch() == g.targetEpoch() && !g.covered(topics) {
		// It takes its place in the protocol as it was, and may have been the leader of a generation that is older than the newest topic.
		g.bump(topics, out)
	}
	g.assign(now, cfg, topics, out)
	g.reconcile(now, topics, m, c.Owned, c.Owned != nil, out)
	g.watch(now, cfg, m, out)

	reply := &coord.ConsumerHeartbeatReply{Member: name, MemberEpoch: m.epoch(), HeartbeatInterval: g.interval(cfg, c.IntervalMin)}
	full := c.RebalanceTimeout != -1 && (c.Topics != nil || c.Regex != nil) && c.Owned != nil
	if !samePartitions(before, m.assigned()) {
		m.untold = true
	}
	if full || lost || m.untold {
		reply.Assigned, reply.Assignment = true, assignment(m.assigned())
	}
	out.Reply(id, reply)
}

func (g *Group) refuse(id ident.RequestID, c *coord.ConsumerHeartbeat, r refusal, out *coord.Out) {
	out.Reply(id, &coord.ConsumerHeartbeatReply{Code: r.code, Message: r.text, Member: c.Member, MemberEpoch: c.MemberEpoch})
}

// interval is how long a member may wait until its next heartbeat, in ms. While the group is under way it is short, and longer with each member, so that
// a large group asks no more often in all than a small one. least is the shortest that the client can live with.
func (g *Group) interval(cfg *coord.Config, least int32) int32 {
	stable := cfg.Of(g.id).HeartbeatInterval
	if g.busy() && cfg.ReconcilingHeartbeat > 0 {
		return min(stable, max(least, min(cfg.ReconcilingHeartbeat, int32(reconcilingBase+len(g.ids)/2))))
	}
	return stable
}

// reconcilingBase is the heartbeat interval of a small group that is under way, in ms.
const reconcilingBase = 25

// assignment is what a member is told to use.
func assignment(list []records.TopicPartitions) []coord.TopicPartitions {
	told := make([]coord.TopicPartitions, len(list))
	for i := range list {
		told[i] = coord.TopicPartitions{Topic: list[i].Topic, Partitions: list[i].Partitions}
	}
	return told
}

// admit decides whether a member may go on, and changes nothing. It returns the member, nil for a new one, or the static member whose place it takes.
func (g *Group) admit(cfg *coord.Config, name string, c *coord.ConsumerHeartbeat) (m, replaced *member, r refusal) {
	join := c.MemberEpoch == 0
	if !g.Exists() && !join {
		return nil, nil, refuse(wire.GroupIDNotFound, "Group %s not found.", g.id)
	}
	if r := g.checkSize(cfg, name, text(c.Instance)); r.code != wire.NoError {
		return nil, nil, r
	}
	if c.Instance == nil {
		m = g.find(name)
		if m == nil && !join {
			return nil, nil, g.unknownMember(name)
		}
		return m, nil, checkEpoch(m, c)
	}
	static := g.static(*c.Instance)
	switch {
	case join && static == nil:
		return g.find(name), nil, refusal{}
	case join && static.id == name:
		return static, nil, refusal{} // its first answer was lost
	case join && !static.classic() && static.epoch() != leftForAWhile:
		return nil, nil, refuse(wire.UnreleasedInstanceID, "Static member %s with instance id %s cannot join the group because the instance id is owned by %s member.",
			name, *c.Instance, static.id)
	case join:
		return nil, static, refusal{}
	case static == nil:
		return nil, nil, refuse(wire.UnknownMemberID, "Instance id %s is unknown.", *c.Instance)
	case static.id != name:
		return nil, nil, fencedInstance(name, *c.Instance, static.id)
	}
	return static, nil, checkEpoch(static, c)
}

// checkSize refuses one member more than the group may have. One that takes its old place is not one more.
func (g *Group) checkSize(cfg *coord.Config, name, instance string) refusal {
	if len(g.ids) < int(cfg.ConsumerSizeMax) || g.find(name) != nil || instance != "" && g.static(instance) != nil {
		return refusal{}
	}
	return refuse(wire.GroupMaxSizeReached, "The consumer group has reached its maximum capacity of %d members.", cfg.ConsumerSizeMax)
}

func (g *Group) unknownMember(name string) refusal {
	return refuse(wire.UnknownMemberID, "Member %s is not a member of group %s.", name, g.id)
}

func fencedInstance(name, instance, owner string) refusal {
	return refuse(wire.FencedInstanceID, "Static member %s with instance id %s was fenced by member %s.", name, instance, owner)
}

// checkEpoch fences a member with an epoch that it cannot have. 0 is always a join (KAFKA-19233). The epoch before the present one is good while the member
// reports nothing that it was not given: the answer with the newer epoch was lost. A state that a newer broker wrote begins anew.
func checkEpoch(m *member, c *coord.ConsumerHeartbeat) refusal {
	if m == nil {
		return refusal{}
	}
	const again = "The member must abandon all its partitions and rejoin."
	if c.MemberEpoch != 0 {
		switch {
		case c.MemberEpoch > m.epoch():
			return refuse(wire.FencedMemberEpoch, "The consumer group member has a greater member epoch (%d) than the one known by the group coordinator (%d). %s",
				c.MemberEpoch, m.epoch(), again)
		case c.MemberEpoch == m.epoch():
		case c.MemberEpoch != m.current.PreviousEpoch, c.Owned == nil, !contains(m.assigned(), c.Owned):
			return refuse(wire.FencedMemberEpoch, "The consumer group member has a smaller member epoch (%d) than the one known by the group coordinator (%d). %s",
				c.MemberEpoch, m.epoch(), again)
		}
	}
	if unknownState(m.state()) && (c.Owned == nil || len(c.Owned) > 0) {
		return refuse(wire.FencedMemberEpoch, "The consumer group member is in a unknown state. %s", again)
	}
	return refusal{}
}

func unknownState(s records.MemberState) bool {
	return s != records.MemberStable && s != records.MemberUnrevoked && s != records.MemberUnreleased
}

// replace gives a static member's place to one with another id: its subscription, its target and what it has. What it had yet to give up goes with its
// old self.
func (g *Group) replace(old *member, name string, out *coord.Out) *member {
	sub, target, current := old.sub, old.target, old.current
	if m := g.find(name); m != nil && m != old {
		regex := m.sub.Regex
		g.drop(m, out)
		g.releaseRegex(regex, out)
	}
	g.drop(old, out)
	g.propose(&records.ConsumerMember{Group: g.id, Member: name, Value: sub}, out)
	if target != nil {
		g.propose(&records.TargetMember{Group: g.id, Member: name, Value: target}, out)
	}
	fresh := &records.CurrentAssignment{}
	if current != nil {
		fresh.State, fresh.Assigned = current.State, pack(since(claims(current.Assigned, 0), 0))
		fresh.Revoking = pack(since(claims(current.Revoking, 0), 0))
	}
	g.propose(&records.Current{Group: g.id, Member: name, Value: fresh}, out)
	return g.members[name]
}

// since sets the assignment epoch of all claims.
func since(flat []claim, epoch int32) []claim {
	for i := range flat {
		flat[i].epoch = epoch
	}
	return flat
}
