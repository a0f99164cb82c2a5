package consumer

import (
	"slices"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// ClassicJoin takes a JoinGroup of a member that speaks the classic protocol (GroupMetadataManager.classicGroupJoinToConsumerGroup). It is answered at once:
// the member gets no assignment to make, and its generation is its member epoch.
//
// Errors: INVALID_SESSION_TIMEOUT; INCONSISTENT_GROUP_PROTOCOL when migration is off, or nobody else speaks its protocols, or its subscription is malformed;
// GROUP_MAX_SIZE_REACHED; MEMBER_ID_REQUIRED, with the id; UNKNOWN_MEMBER_ID and FENCED_INSTANCE_ID for static members.
func (g *Group) ClassicJoin(now coord.Now, cfg *coord.Config, topics coord.Topics, id ident.RequestID, c *coord.Join, out *coord.Out) {
	refused := func(code wire.ErrorCode, member string) {
		out.Reply(id, &coord.JoinReply{Code: code, Generation: -1, Member: member})
	}
	name := c.Member
	if name == "" {
		name = c.NewMember
	}
	if c.SessionTimeout < cfg.SessionTimeoutMin || c.SessionTimeout > cfg.SessionTimeoutMax {
		refused(wire.InvalidSessionTimeout, c.Member)
		return
	}
	if !cfg.MigrationUp && !cfg.MigrationDown {
		refused(wire.InconsistentGroupProtocol, c.Member)
		return
	}
	if r := g.checkSize(cfg, name, c.Instance); r.code != wire.NoError {
		refused(r.code, c.Member)
		return
	}
	if c.ProtocolType != protocolType || !g.speaks(c.Protocols) {
		refused(wire.InconsistentGroupProtocol, c.Member)
		return
	}
	wants, err := parseSubscription(c.Protocols[0].Metadata)
	if err != nil {
		refused(wire.InconsistentGroupProtocol, c.Member)
		return
	}
	if c.RequireKnownMember && c.Member == "" && c.Instance == "" {
		refused(wire.MemberIDRequired, name)
		return
	}
	m, r := g.admitClassic(name, c, len(wants.owned) > 0, out)
	if r.code != wire.NoError {
		refused(r.code, c.Member)
		return
	}
	next := &records.Subscription{
		Instance: optional(c.Instance), Rack: wants.rack, ClientID: c.Client.ID, ClientHost: c.Client.Host, Topics: wants.topics,
		RebalanceTimeout: c.RebalanceTimeout, Classic: &records.Classic{SessionTimeout: c.SessionTimeout},
	}
	if m != nil && m.sub != nil {
		if next.Instance == nil {
			next.Instance = m.sub.Instance
		}
		if next.Rack == nil {
			next.Rack = m.sub.Rack
		}
	}
	for _, p := range c.Protocols {
		next.Classic.Protocols = append(next.Classic.Protocols, records.Protocol(p))
	}
	g.subscribe(now, cfg, topics, name, m, next, out)
	m = g.members[name]
	g.cancelMember(coord.TimerRebalance, name, out)
	g.assign(now, cfg, topics, out)
	g.reconcile(now, topics, m, byID(topics, wants.owned), true, out)

	g.cancelMember(coord.TimerJoin, name, out)
	g.watch(now, cfg, m, out)
	g.startMember(now, coord.TimerSync, name, c.RebalanceTimeout, out)
	out.Reply(id, &coord.JoinReply{
		Generation: m.epoch(), ProtocolType: protocolType, Protocol: c.Protocols[0].Name, Member: name, SkipAssignment: c.SkipAssignment,
	})
}

// speaks tells whether all classic members support one of the protocols.
func (g *Group) speaks(protocols []coord.Protocol) bool {
	return slices.ContainsFunc(protocols, func(p coord.Protocol) bool {
		for _, id := range g.ids {
			if c := g.members[id].sub.Classic; c != nil && !slices.ContainsFunc(c.Protocols, func(q records.Protocol) bool { return q.Name == p.Name }) {
				return false
			}
		}
		return true
	})
}

// admitClassic finds the member that joins, nil for a new one. A static member without an id takes the place of the one before, whatever that spoke
// (KAFKA-17228). One that is not known and uses partitions was fenced and has not heard of it: it has to let go of them before it joins.
func (g *Group) admitClassic(name string, c *coord.Join, uses bool, out *coord.Out) (*member, refusal) {
	if c.Instance == "" {
		m := g.find(name)
		if m == nil && uses {
			return nil, g.unknownMember(name)
		}
		return m, refusal{}
	}
	static := g.static(c.Instance)
	switch {
	case c.Member != "" && static == nil:
		return nil, refuse(wire.UnknownMemberID, "Instance id %s is unknown.", c.Instance)
	case c.Member != "" && static.id != c.Member:
		return nil, fencedInstance(c.Member, c.Instance, static.id)
	case static == nil || static.id == name:
		return static, refusal{}
	}
	return g.replace(static, name, out), refusal{}
}

// ClassicSync takes a SyncGroup of a classic member, and answers with its assignment.
func (g *Group) ClassicSync(now coord.Now, cfg *coord.Config, topics coord.Topics, id ident.RequestID, c *coord.Sync, out *coord.Out) {
	m, code := g.classicMember(c.Member, c.Instance, c.Generation)
	if code == wire.NoError {
		protocol := m.sub.Classic.Protocols[0].Name
		switch {
		case c.ProtocolType != "" && c.ProtocolType != protocolType, c.Protocol != "" && c.Protocol != protocol:
			code = wire.InconsistentGroupProtocol
		case g.targetEpoch() > m.epoch() && m.state() != records.MemberUnrevoked:
			g.awaitJoin(now, m, out)
			code = wire.RebalanceInProgress
		}
	}
	if code != wire.NoError {
		out.Reply(id, &coord.SyncReply{Code: code})
		return
	}
	g.cancelMember(coord.TimerSync, m.id, out)
	g.watch(now, cfg, m, out)
	wants, err := parseSubscription(m.sub.Classic.Protocols[0].Metadata)
	if err != nil {
		wants.version = 0 // the log has it so; every version of the assignment is the same
	}
	out.Reply(id, &coord.SyncReply{
		ProtocolType: c.ProtocolType, Protocol: c.Protocol, Assignment: appendAssignment(nil, wants.version, topics, m.assigned()),
	})
}

// ClassicHeartbeat takes a Heartbeat of a classic member. It is told to rejoin when there is a newer target, when it has to give up partitions, and when
// partitions it waits for are free.
func (g *Group) ClassicHeartbeat(now coord.Now, cfg *coord.Config, _ coord.Topics, id ident.RequestID, c *coord.Heartbeat, out *coord.Out) {
	m, code := g.classicMember(c.Member, c.Instance, c.Generation)
	if code == wire.NoError {
		g.watch(now, cfg, m, out)
		if m.epoch() < g.targetEpoch() || m.state() == records.MemberUnrevoked || m.state() == records.MemberUnreleased && !g.waits(m) {
			g.awaitJoin(now, m, out)
			code = wire.RebalanceInProgress
		}
	}
	out.ReplyHeartbeat(id, code)
}

// waits tells whether others hold what the member shall have.
func (g *Group) waits(m *member) bool {
	for _, c := range claims(m.shall(), 0) {
		if h := g.holders[c.partition]; h != nil && h != m {
			return true
		}
	}
	return false
}

// awaitJoin gives a classic member its rebalance timeout to rejoin, from when it is first told to.
func (g *Group) awaitJoin(now coord.Now, m *member, out *coord.Out) {
	if _, ok := out.Timers.Due(g.key(coord.TimerJoin, m.id)); !ok {
		g.startMember(now, coord.TimerJoin, m.id, m.sub.RebalanceTimeout, out)
	}
}

// classicMember finds a classic member of the generation.
func (g *Group) classicMember(name, instance string, generation int32) (*member, wire.ErrorCode) {
	m, r := g.known(name, instance)
	switch {
	case r.code == wire.GroupIDNotFound:
		return nil, wire.UnknownMemberID
	case r.code != wire.NoError:
		return nil, r.code
	case !m.classic():
		return nil, wire.UnknownMemberID
	case m.epoch() != generation:
		return nil, wire.IllegalGeneration
	}
	return m, wire.NoError
}

// ClassicLeave takes a LeaveGroup. Each member is answered for itself; all that can go do so in one group epoch.
func (g *Group) ClassicLeave(now coord.Now, cfg *coord.Config, topics coord.Topics, id ident.RequestID, c *coord.Leave, out *coord.Out) {
	reply := &coord.LeaveReply{Members: make([]coord.LeftMember, len(c.Members))}
	var gone []*member
	for i, l := range c.Members {
		m, code := g.leavingMember(l)
		reply.Members[i] = coord.LeftMember{Member: l.Member, Instance: l.Instance, Code: code}
		if m != nil {
			reply.Members[i].Member = m.id
		}
		if m != nil && !slices.Contains(gone, m) {
			gone = append(gone, m)
		}
	}
	if len(gone) > 0 {
		g.fence(now, cfg, topics, out, gone...)
	}
	out.Reply(id, reply)
}

func (g *Group) leavingMember(l coord.LeavingMember) (*member, wire.ErrorCode) {
	m := g.find(l.Member)
	if l.Instance != "" {
		m = g.static(l.Instance)
	}
	switch {
	case m == nil:
		return nil, wire.UnknownMemberID
	case l.Member != "" && m.id != l.Member:
		return nil, wire.FencedInstanceID
	case !m.classic():
		return nil, wire.UnknownMemberID
	}
	return m, wire.NoError
}
