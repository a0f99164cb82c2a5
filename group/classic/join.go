package classic

import (
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Join serves JoinGroup. The group id is not empty.
func (g *Group) Join(now coord.Now, cfg *coord.Config, id ident.RequestID, c *coord.Join, out *coord.Out) {
	if c.SessionTimeout < cfg.SessionTimeoutMin || c.SessionTimeout > cfg.SessionTimeoutMax {
		refuseJoin(id, c.Member, wire.InvalidSessionTimeout, out)
		return
	}
	if c.Member != "" && g.Vacant() {
		refuseJoin(id, c.Member, wire.UnknownMemberID, out) // to Kafka there is no such group
		return
	}
	switch protocols := distinct(c.Protocols); {
	case !g.accepts(cfg, c):
		g.turnAway(now, id, c, out)
	case g.state == Dead:
		refuseJoin(id, c.Member, wire.CoordinatorNotAvailable, out)
	case !g.supports(c.ProtocolType, protocols):
		refuseJoin(id, c.Member, wire.InconsistentGroupProtocol, out)
	case c.Member == "":
		g.joinNew(now, cfg, id, c, protocols, out)
	default:
		g.joinKnown(now, cfg, id, c, protocols, out)
	}
}

func refuseJoin(id ident.RequestID, member string, code wire.ErrorCode, out *coord.Out) {
	out.Reply(id, &coord.JoinReply{Code: code, Generation: -1, Member: member})
}

// accepts tells whether there is room for who joins (group.max.size). While a rebalance collects joins those that wait are counted, not the members: the
// size may have been above a limit that was lowered, and this is how the last to come are left out. Pending members have no place yet.
func (g *Group) accepts(cfg *coord.Config, c *coord.Join) bool {
	m := g.byID[c.Member]
	if c.Member == "" && c.Instance != "" {
		m = g.static[c.Instance]
	}
	switch g.state {
	case PreparingRebalance:
		return m != nil && m.joining || g.awaiting < int(cfg.ClassicSizeMax)
	case CompletingRebalance, Stable:
		return m != nil || len(g.members) < int(cfg.ClassicSizeMax)
	case Empty, Dead:
	}
	return true
}

// turnAway refuses who has no place. A member that was in the group before loses its own, or the rebalance would wait for it.
func (g *Group) turnAway(now coord.Now, id ident.RequestID, c *coord.Join, out *coord.Out) {
	refuseJoin(id, "", wire.GroupMaxSizeReached, out)
	g.forgetPending(c.Member, out)
	if m := g.byID[c.Member]; m != nil {
		g.note(out, coord.NoteMemberFenced, m.id, "the group is full", 0)
		g.expel(m, out)
	}
	g.completeIfJoined(now, out)
}

// joinNew takes in who has no member id.
func (g *Group) joinNew(now coord.Now, cfg *coord.Config, id ident.RequestID, c *coord.Join, protocols []coord.Protocol, out *coord.Out) {
	if c.Instance == "" && c.RequireKnownMember {
		g.addPending(now, c, out)
		g.stir(now, cfg)
		out.Reply(id, &coord.JoinReply{Code: wire.MemberIDRequired, Generation: -1, Member: c.NewMember})
		return
	}
	if old := g.static[c.Instance]; old != nil {
		g.rejoinStatic(now, cfg, id, c, old, protocols, out)
		return
	}
	g.joinFresh(now, cfg, id, c, c.NewMember, protocols, out)
}

// joinFresh adds a member and begins a rebalance, or takes it into the one that is under way.
func (g *Group) joinFresh(now coord.Now, cfg *coord.Config, id ident.RequestID, c *coord.Join, memberID string, protocols []coord.Protocol, out *coord.Out) {
	m := &member{
		id: memberID, instance: c.Instance, client: c.Client, fresh: true, protocols: protocols,
		rebalanceTimeout: c.RebalanceTimeout, sessionTimeout: c.SessionTimeout,
	}
	g.add(m, c.ProtocolType)
	g.park(m, id, out)
	g.deadline(m, now.Mono+newMemberTimeout, out)
	g.first.more = g.first.on
	g.stir(now, cfg)
	g.rebalance(now, cfg, "new member "+memberID+because(c), out)
}

// joinKnown takes a Join with a member id.
func (g *Group) joinKnown(now coord.Now, cfg *coord.Config, id ident.RequestID, c *coord.Join, protocols []coord.Protocol, out *coord.Out) {
	if _, ok := g.pending[c.Member]; ok && c.Instance == "" {
		g.forgetPending(c.Member, out)
		g.joinFresh(now, cfg, id, c, c.Member, protocols, out)
		return
	}
	m, code := g.find(c.Member, c.Instance)
	if code != wire.NoError {
		refuseJoin(id, c.Member, code, out)
		return
	}
	why := "member " + m.id + " joins during " + g.state.String()
	switch same := m.matches(protocols); {
	case g.state == CompletingRebalance && same, g.state == Stable && same && m != g.leader:
		// It may have lost the answer of this generation: it gets it again. A static member that came late gets it now.
		if g.state == CompletingRebalance && !m.syncing {
			g.owe(m)
		}
		out.Reply(id, g.joined(m))
		return
	case g.state == Stable && m == g.leader:
		// The leader asks for a new round when something changed that metadata does not show, as new partitions.
		why = "the leader " + m.id + " joins again"
	case !same:
		why = "member " + m.id + " has new metadata"
	}
	g.update(m, c, protocols)
	g.park(m, id, out)
	g.rebalance(now, cfg, why+because(c), out)
}

// rejoinStatic takes in an instance whose process was restarted: it has no member id and replaces the old one. In a stable group nobody else need know.
func (g *Group) rejoinStatic(now coord.Now, cfg *coord.Config, id ident.RequestID, c *coord.Join, old *member, protocols []coord.Protocol, out *coord.Out) {
	before, leader := old.metadata(g.protocol), g.leader.id
	m := g.replace(old, c.NewMember, c.Client, out)
	g.update(m, c, protocols)
	if g.state == Stable && g.choose() == g.protocol && !g.otherTopics(before, m.metadata(g.protocol)) {
		g.alive(now, m, out)
		g.persist(out)
		a := g.joined(m)
		if c.SkipAssignment {
			a.SkipAssignment = m == g.leader
		} else {
			// An old client that reads another's id as the leader's does not assign, and syncs for what it had.
			a.Leader, a.Members = leader, nil
		}
		out.Reply(id, a)
		return
	}
	g.park(m, id, out)
	g.alive(now, m, out)
	g.rebalance(now, cfg, "static member "+m.instance+" joins again as "+m.id+because(c), out)
}

// joined is the answer to a Join in the current generation: the members for the leader only.
func (g *Group) joined(m *member) *coord.JoinReply {
	a := &coord.JoinReply{Generation: g.generation, ProtocolType: g.protocolType, Protocol: g.protocol, Leader: g.leader.id, Member: m.id}
	if m == g.leader {
		a.Members = make([]coord.JoinedMember, len(g.members))
		for i, other := range g.members {
			a.Members[i] = coord.JoinedMember{Member: other.id, Instance: other.instance, Metadata: other.metadata(g.protocol)}
		}
	}
	return a
}

// because adds the client's reason to ours.
func because(c *coord.Join) string {
	if c.Reason == "" {
		return ""
	}
	return ": " + c.Reason
}
