package consumer

import (
	"slices"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
)

// wanted is the subscription of a member after its heartbeat: m's own when nothing changes. nil in the request means as before.
func wanted(m *member, c *coord.ConsumerHeartbeat) *records.Subscription {
	var old *records.Subscription
	if m != nil {
		old = m.sub
	}
	if old == nil {
		old = &records.Subscription{RebalanceTimeout: -1}
	}
	topics := old.Topics
	if c.Topics != nil {
		topics = sorted(c.Topics)
	}
	switch {
	case m == nil || m.sub == nil, old.Classic != nil, old.ClientID != c.Client.ID, old.ClientHost != c.Client.Host:
	case c.Instance != nil && !sameText(old.Instance, c.Instance), c.Rack != nil && !sameText(old.Rack, c.Rack):
	case c.RebalanceTimeout != -1 && c.RebalanceTimeout != old.RebalanceTimeout:
	case c.Assignor != nil && !sameText(old.Assignor, c.Assignor):
	case c.Regex != nil && text(c.Regex) != text(old.Regex), !slices.Equal(topics, old.Topics):
	default:
		return old
	}
	next := *old
	next.Classic, next.ClientID, next.ClientHost, next.Topics = nil, c.Client.ID, c.Client.Host, topics
	if c.Instance != nil {
		next.Instance = keep(c.Instance)
	}
	if c.Rack != nil {
		next.Rack = keep(c.Rack)
	}
	if c.RebalanceTimeout != -1 {
		next.RebalanceTimeout = c.RebalanceTimeout
	}
	if c.Assignor != nil {
		next.Assignor = keep(c.Assignor)
	}
	if c.Regex != nil {
		next.Regex = keep(c.Regex)
	}
	return &next
}

// subscribe writes a member's subscription, and bumps the group epoch when the assignment may have to change: topics, a regular expression, the assignor
// that most members prefer. m is nil for a new member.
func (g *Group) subscribe(now coord.Now, cfg *coord.Config, topics coord.Topics, name string, m *member, next *records.Subscription, out *coord.Out) {
	var old *records.Subscription
	if m != nil {
		old = m.sub
	}
	if next == old {
		return
	}
	if old == nil {
		old = &records.Subscription{}
	}
	assignor := g.assignor(cfg)
	g.propose(&records.ConsumerMember{Group: g.id, Member: name, Value: next}, out)
	moved := !slices.Equal(old.Topics, next.Topics)
	if text(old.Regex) != text(next.Regex) {
		moved = true
		g.releaseRegex(old.Regex, out)
		if next.Regex != nil && g.regexes[*next.Regex] == nil {
			g.resolve(now, topics, []string{*next.Regex}, out)
		}
		g.watchRegexes(now, cfg, out)
	}
	if moved {
		g.members[name].recheck = true
	}
	if moved || !g.Exists() || assignor != g.assignor(cfg) {
		g.bump(topics, out)
	}
}

// TopicsChanged looks at the topics anew: a topic that members subscribe to has come, gone or grown. Regular expressions are resolved again, at most every
// ten seconds.
func (g *Group) TopicsChanged(now coord.Now, cfg *coord.Config, topics coord.Topics, out *coord.Out) {
	if len(g.ids) == 0 {
		return
	}
	changed := g.metadataHash(topics) != g.hash()
	if patterns := g.patterns(); len(patterns) > 0 {
		// What needs a new assignment anyway does not wait.
		if wait := int64(g.refreshed) + regexRefreshMin - int64(now.Wall); !changed && wait > 0 && wait <= regexRefreshMin {
			g.soonRegexes(now, wait, out)
		} else {
			changed = g.resolve(now, topics, patterns, out) || changed
		}
	}
	for _, id := range g.ids {
		g.members[id].recheck = true
	}
	if changed {
		g.bump(topics, out)
		g.assign(now, cfg, topics, out)
	}
}
