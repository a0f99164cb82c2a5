package consumer

import (
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
)

// What a member costs beside what it says, in bytes and about.
const (
	memberWeight = 512
	wordWeight   = 32 // and one of its topics or protocols
)

// sizeOf is what a member's subscription takes, in bytes.
func sizeOf(s *records.Subscription) int {
	n := memberWeight + len(text(s.Regex)) + wordsSize(s.Topics)
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

// Weight is about what the members make the group keep, in bytes.
func (g *Group) Weight() int { return g.said }

// Adds is by how much a heartbeat would make that more. Somebody who wants no more than before adds nothing.
func (g *Group) Adds(c *coord.ConsumerHeartbeat) int {
	before, topics := 0, c.Topics
	if sub := g.kept(c.Member, text(c.Instance)); sub != nil {
		before = sizeOf(sub)
		if topics == nil {
			topics = sub.Topics
		}
	}
	return memberWeight + len(text(c.Regex)) + wordsSize(topics) - before
}

// AddsClassic is the same of a Join of the classic protocol.
func (g *Group) AddsClassic(c *coord.Join) int {
	before, n := 0, memberWeight
	if sub := g.kept(c.Member, c.Instance); sub != nil {
		before = sizeOf(sub)
	}
	for i := range c.Protocols {
		n += wordWeight + len(c.Protocols[i].Name) + len(c.Protocols[i].Metadata)
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
