package consumer

import (
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
)

// What things cost beside what is said, in bytes and about.
const (
	memberWeight    = 512
	wordWeight      = 64 // one of a member's topics or protocols, and one of a pattern's topics
	partitionWeight = 96 // one that somebody has: in two assignments and the index
)

// sizeOf is what a member with its subscription takes, in bytes.
func sizeOf(id string, s *records.Subscription) int {
	n := memberWeight + len(id) + len(text(s.Instance)) + len(text(s.Rack)) + len(s.ClientID) + len(s.ClientHost) + len(text(s.Assignor)) + len(text(s.Regex)) +
		wordsSize(s.Topics)
	if s.Classic != nil {
		for i := range s.Classic.Protocols {
			n += wordWeight + len(s.Classic.Protocols[i].Name) + len(s.Classic.Protocols[i].Metadata)
		}
	}
	return n
}

func wordsSize(words []string) int {
	n := 0
	for _, w := range words {
		n += wordWeight + len(w)
	}
	return n
}

// regexSize is what it takes to know what a pattern matches.
func regexSize(pattern string, r *records.Resolved) int {
	return memberWeight + len(pattern) + wordsSize(r.Topics)
}

// Weight is about what the members make the group keep, in bytes.
func (g *Group) Weight() int { return g.said + partitionWeight*len(g.holders) }

// Adds is by how much a heartbeat would make that more, as far as what it says goes: what that matches, and is given, is known only then. Somebody who wants no
// more than before adds nothing.
func (g *Group) Adds(c *coord.ConsumerHeartbeat) int {
	name := c.Member
	if name == "" {
		name = c.NewMember
	}
	m := &member{id: name, sub: g.kept(c.Member, text(c.Instance))}
	before := 0
	if m.sub != nil {
		before = sizeOf(name, m.sub)
	}
	after := sizeOf(name, wanted(m, c))
	if c.Regex != nil && *c.Regex != "" && g.regexes[*c.Regex] == nil {
		after += memberWeight + len(*c.Regex)
	}
	return after - before
}

// AddsClassic is the same of a Join of the classic protocol.
func (g *Group) AddsClassic(c *coord.Join) int {
	name := c.Member
	if name == "" {
		name = c.NewMember
	}
	before, n := 0, memberWeight+len(name)+len(c.Instance)+len(c.Client.ID)+len(c.Client.Host)
	if sub := g.kept(c.Member, c.Instance); sub != nil {
		before = sizeOf(name, sub)
	}
	for i := range c.Protocols {
		// What a protocol's metadata says of topics is kept twice: as it came, and by word.
		n += wordWeight + len(c.Protocols[i].Name) + len(c.Protocols[i].Metadata)
	}
	if len(c.Protocols) > 0 {
		if wants, err := parseSubscription(c.Protocols[0].Metadata); err == nil {
			n += wordsSize(wants.topics) + len(text(wants.rack))
		}
	}
	return n - before
}

// kept is the subscription of a member, or of the one whose place it takes.
func (g *Group) kept(id, instance string) *records.Subscription {
	m := g.find(id)
	if m == nil && instance != "" {
		m = g.static(instance)
	}
	if m == nil {
		return nil
	}
	return m.sub
}

// RecordBytes is about how large the record of a member becomes with what a heartbeat says, as key and value; 0: it says nothing new.
func (g *Group) RecordBytes(c *coord.ConsumerHeartbeat) int {
	m := &member{id: c.Member, sub: g.kept(c.Member, text(c.Instance))}
	next := wanted(m, c)
	if c.MemberEpoch < 0 || next == m.sub {
		return 0
	}
	return recordBytes(c.Member+c.NewMember, next)
}

// JoinRecordBytes is the same of a Join of the classic protocol.
func JoinRecordBytes(c *coord.Join) int {
	next := &records.Subscription{Instance: optional(c.Instance), ClientID: c.Client.ID, ClientHost: c.Client.Host, Classic: &records.Classic{}}
	for _, p := range c.Protocols {
		next.Classic.Protocols = append(next.Classic.Protocols, records.Protocol(p))
	}
	if len(c.Protocols) > 0 {
		if wants, err := parseSubscription(c.Protocols[0].Metadata); err == nil {
			next.Topics, next.Rack = wants.topics, wants.rack
		}
	}
	return recordBytes(c.Member+c.NewMember, next)
}

// recordBytes is what a subscription takes in the log.
func recordBytes(id string, s *records.Subscription) int {
	e := records.ConsumerMember{Member: id, Value: s}
	return len(e.AppendKey(nil)) + len(e.AppendValue(nil))
}
