package classic

import "github.com/troupe-broker/troupe/group/coord"

// What a member costs beside what it says, in bytes and about.
const (
	memberWeight   = 512 // a pending one too
	protocolWeight = 64  // and one of its protocols
)

// sizeOf is what a member says, in bytes.
func sizeOf(protocols []coord.Protocol) int {
	n := 0
	for i := range protocols {
		n += len(protocols[i].Name) + len(protocols[i].Metadata) + protocolWeight
	}
	return n
}

// Weight is about what the members make the group keep, in bytes.
func (g *Group) Weight() int { return g.said + memberWeight*(len(g.members)+len(g.pending)) }

// Size is what a group would keep of who joins as a new member.
func Size(c *coord.Join) int { return memberWeight + sizeOf(c.Protocols) }

// Adds is by how much a Join would make that more. Somebody who says no more than before adds nothing.
func (g *Group) Adds(c *coord.Join) int {
	before := 0
	m := g.byID[c.Member]
	if c.Member == "" && c.Instance != "" {
		m = g.static[c.Instance]
	}
	switch _, pending := g.pending[c.Member]; {
	case m != nil:
		before = memberWeight + sizeOf(m.protocols)
	case pending:
		before = memberWeight
	}
	return Size(c) - before
}
