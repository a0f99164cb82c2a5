package classic

import (
	"bytes"
	"slices"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// member is one member of a group.
type member struct {
	id, instance                     string
	client                           coord.Client
	rebalanceTimeout, sessionTimeout int32            // ms
	protocols                        []coord.Protocol // in order of preference, names distinct
	assignment                       []byte

	joining, syncing bool // a request is parked
	join, sync       ident.RequestID
	owesSync         bool
	fresh            bool

	// The timer, if it is set, is due at or before the deadline.
	deadline ident.Instant
	timerSet bool
	timerDue ident.Instant
}

// metadata is what the member said with a protocol.
func (m *member) metadata(protocol string) []byte {
	for i := range m.protocols {
		if m.protocols[i].Name == protocol {
			return m.protocols[i].Metadata
		}
	}
	return nil
}

// matches tells whether the member said the same before.
func (m *member) matches(protocols []coord.Protocol) bool {
	return slices.EqualFunc(m.protocols, protocols, func(a, b coord.Protocol) bool {
		return a.Name == b.Name && bytes.Equal(a.Metadata, b.Metadata)
	})
}

// distinct drops protocols whose name came before, so that a member counts once for each. It copies only when it must.
func distinct(protocols []coord.Protocol) []coord.Protocol {
	if len(protocols) < 2 {
		return protocols
	}
	seen := make(map[string]struct{}, len(protocols))
	var kept []coord.Protocol
	for i := range protocols {
		_, again := seen[protocols[i].Name]
		seen[protocols[i].Name] = struct{}{}
		switch {
		case again && kept == nil:
			kept = slices.Clone(protocols[:i])
		case !again && kept != nil:
			kept = append(kept, protocols[i])
		}
	}
	if kept != nil {
		return kept
	}
	return protocols
}

// add takes a member in. The first one makes the group's protocol type and leads it.
func (g *Group) add(m *member, protocolType string) {
	if len(g.members) == 0 {
		g.protocolType = protocolType
	}
	g.members = append(g.members, m)
	g.byID[m.id] = m
	if m.instance != "" {
		g.static[m.instance] = m
	}
	g.count(m.protocols, 1)
	g.said += m.size()
	if g.leader == nil {
		g.leader = m
	}
}

// remove takes a member out. Its parked requests must have been answered. The oldest other member follows a leader.
func (g *Group) remove(m *member, out *coord.Out) {
	g.members = slices.DeleteFunc(g.members, func(other *member) bool { return other == m })
	delete(g.byID, m.id)
	if g.static[m.instance] == m {
		delete(g.static, m.instance)
	}
	g.count(m.protocols, -1)
	g.said -= m.size()
	g.unpark(m)
	g.settle(m)
	g.disarm(m, out)
	if g.leader == m {
		g.leader = nil
		if len(g.members) > 0 {
			g.leader = g.members[0]
		}
	}
}

// replace puts a new member id in the place of an old one of the same instance. Whoever still speaks for the old one is fenced.
func (g *Group) replace(old *member, id string, client coord.Client, out *coord.Out) *member {
	g.answerJoin(old, &coord.JoinReply{Code: wire.FencedInstanceID, Generation: -1, Member: old.id}, out)
	g.answerSync(old, &coord.SyncReply{Code: wire.FencedInstanceID}, out)
	g.disarm(old, out)
	m := &member{
		id: id, instance: old.instance, client: client, rebalanceTimeout: old.rebalanceTimeout, sessionTimeout: old.sessionTimeout,
		protocols: old.protocols, assignment: old.assignment, owesSync: old.owesSync,
	}
	g.said += m.size() - old.size()
	g.members[slices.Index(g.members, old)] = m
	delete(g.byID, old.id)
	g.byID[id] = m
	g.static[m.instance] = m
	if g.leader == old {
		g.leader = m
	}
	return m
}

// update takes what a member says anew.
func (g *Group) update(m *member, c *coord.Join, protocols []coord.Protocol) {
	g.support(m, protocols)
	m.rebalanceTimeout, m.sessionTimeout = c.RebalanceTimeout, c.SessionTimeout
}

// Support says what a member supports beside the protocol of a generation that was applied, in order of preference.
func (g *Group) Support(id string, protocols []coord.Protocol) {
	if m := g.byID[id]; m != nil && len(protocols) > 0 {
		g.support(m, distinct(protocols))
	}
}

// support takes what a member supports now.
func (g *Group) support(m *member, protocols []coord.Protocol) {
	g.said -= m.size()
	g.count(m.protocols, -1)
	m.protocols = protocols
	g.count(m.protocols, 1)
	g.said += m.size()
}

// give takes what was decided for a member.
func (g *Group) give(m *member, assignment []byte) {
	g.said += len(assignment) - len(m.assignment)
	m.assignment = assignment
}

// count adds n to the members that support each protocol.
func (g *Group) count(protocols []coord.Protocol, n int) {
	for i := range protocols {
		name := protocols[i].Name
		if g.supported[name] += n; g.supported[name] == 0 {
			delete(g.supported, name)
		}
	}
}

// supports tells whether a member with these protocols can be in the group: the type is the group's, and one protocol at least is known to all members.
func (g *Group) supports(protocolType string, protocols []coord.Protocol) bool {
	if g.state == Empty {
		return protocolType != "" && len(protocols) > 0
	}
	return protocolType == g.protocolType &&
		slices.ContainsFunc(protocols, func(p coord.Protocol) bool { return g.supported[p.Name] == len(g.members) })
}

// choose chooses the protocol: each member votes for the one it likes best of those that all know. Of two with as many votes the one that got its first
// vote earlier wins.
func (g *Group) choose() string {
	type tally struct {
		name  string
		votes int
	}
	var tallies []tally
	for _, m := range g.members {
		i := slices.IndexFunc(m.protocols, func(p coord.Protocol) bool { return g.supported[p.Name] == len(g.members) })
		if i < 0 {
			continue
		}
		name := m.protocols[i].Name
		t := slices.IndexFunc(tallies, func(t tally) bool { return t.name == name })
		if t < 0 {
			t = len(tallies)
			tallies = append(tallies, tally{name: name})
		}
		tallies[t].votes++
	}
	var best tally
	for _, t := range tallies {
		if t.votes > best.votes {
			best = t
		}
	}
	return best.name
}

// park keeps a Join until its round ends. An earlier one of the member is released.
func (g *Group) park(m *member, id ident.RequestID, out *coord.Out) {
	g.answerJoin(m, &coord.JoinReply{Code: wire.RebalanceInProgress, Generation: -1, Member: m.id}, out)
	m.joining, m.join = true, id
	g.awaiting++
}

// unpark forgets a parked Join.
func (g *Group) unpark(m *member) {
	if m.joining {
		m.joining = false
		g.awaiting--
	}
}

// answerJoin answers a parked Join, if there is one.
func (g *Group) answerJoin(m *member, a *coord.JoinReply, out *coord.Out) {
	if m.joining {
		out.Reply(m.join, a)
		g.unpark(m)
	}
}

// answerSync answers a parked Sync, if there is one.
func (g *Group) answerSync(m *member, a *coord.SyncReply, out *coord.Out) bool {
	if !m.syncing {
		return false
	}
	out.Reply(m.sync, a)
	m.syncing = false
	return true
}

// owe notes that a member has to sync.
func (g *Group) owe(m *member) {
	if !m.owesSync {
		m.owesSync = true
		g.owing++
	}
}

// settle notes that a member has synced, or need not any more.
func (g *Group) settle(m *member) {
	if m.owesSync {
		m.owesSync = false
		g.owing--
	}
}
