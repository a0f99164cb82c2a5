package classic

import (
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// What a member costs beside what it says, in bytes and about.
const (
	memberWeight   = 512 // a pending one too
	protocolWeight = 64  // and one of its protocols
	topicWeight    = 48  // and one of the topics that the group is subscribed to
)

// size is what a member says and is given, in bytes.
func (m *member) size() int {
	return len(m.id) + len(m.instance) + len(m.client.ID) + len(m.client.Host) + len(m.assignment) + sizeOf(m.protocols)
}

// sizeOf is what protocols take, in bytes.
func sizeOf(protocols []coord.Protocol) int {
	n := 0
	for i := range protocols {
		n += len(protocols[i].Name) + len(protocols[i].Metadata) + protocolWeight
	}
	return n
}

// Weight is about what the members make the group keep, in bytes.
func (g *Group) Weight() int {
	return g.said + g.topicsSize + memberWeight*(len(g.members)+len(g.pending))
}

// Size is what a group would keep of who joins as a new member.
func Size(c *coord.Join) int {
	name := c.Member
	if name == "" {
		name = c.NewMember
	}
	return memberWeight + len(name) + len(c.Instance) + len(c.Client.ID) + len(c.Client.Host) + sizeOf(c.Protocols)
}

// Adds is by how much a Join would make that more. Somebody who says no more than before adds nothing.
func (g *Group) Adds(c *coord.Join) int {
	before := 0
	m := g.byID[c.Member]
	if c.Member == "" && c.Instance != "" {
		m = g.static[c.Instance]
	}
	switch _, pending := g.pending[c.Member]; {
	case m != nil:
		before = memberWeight + m.size() - len(m.assignment)
	case pending:
		before = memberWeight + len(c.Member)
	}
	return Size(c) - before
}

// AddsSync is by how much a Sync would make it more: the leader's, when it says what everybody is given.
func (g *Group) AddsSync(c *coord.Sync) int {
	if !g.decides(c) {
		return 0
	}
	n := 0
	for _, m := range g.members {
		n -= len(m.assignment)
	}
	for i := range c.Assignments {
		if g.byID[c.Assignments[i].Member] != nil {
			n += len(c.Assignments[i].Assignment)
		}
	}
	return n
}

// decides tells whether a Sync is the leader's that ends a rebalance.
func (g *Group) decides(c *coord.Sync) bool {
	m, code := g.checkSync(c)
	return code == wire.NoError && m == g.leader && g.state == CompletingRebalance
}

// SyncRecordBytes is about how large the generation becomes with what a Sync decides, as key and value of a record; 0: it decides nothing.
func (g *Group) SyncRecordBytes(c *coord.Sync) int {
	if !g.decides(c) {
		return 0
	}
	n := g.recordBytes()
	for i := range c.Assignments {
		if m := g.byID[c.Assignments[i].Member]; m != nil {
			n += len(c.Assignments[i].Assignment)
		}
	}
	return n
}

// JoinRecordBytes is the same of a Join that writes the generation anew: that of an instance which comes back into a stable group. 0: it writes nothing yet.
func (g *Group) JoinRecordBytes(c *coord.Join) int {
	m := g.static[c.Instance]
	if c.Member != "" || c.Instance == "" || m == nil || g.state != Stable {
		return 0
	}
	n := g.recordBytes() + len(c.NewMember) - len(m.id) + len(c.Client.ID) - len(m.client.ID) - len(m.metadata(g.protocol))
	for i := range c.Protocols {
		if c.Protocols[i].Name == g.protocol {
			n += len(c.Protocols[i].Metadata)
		}
	}
	for _, other := range g.members {
		n += len(other.assignment)
	}
	return n
}

// recordBytes is what the generation takes without assignments.
func (g *Group) recordBytes() int {
	n := len(g.protocolType) + len(g.protocol)
	if g.leader != nil {
		n += len(g.leader.id)
	}
	for _, m := range g.members {
		n += memberRecord + len(m.id) + len(m.instance) + len(m.client.ID) + len(m.client.Host) + len(m.metadata(g.protocol))
	}
	return n
}

// memberRecord is what a member takes in the record beside its words.
const memberRecord = 24
