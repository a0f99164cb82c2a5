package consumer

import (
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

const (
	microsecond = 1_000
	millisecond = 1_000_000
)

// Loaded begins the group's work after a load: every member has its full session timeout, who has partitions to give up its full rebalance timeout. What
// has happened to the topics meanwhile is looked at.
func (g *Group) Loaded(now coord.Now, cfg *coord.Config, topics coord.Topics, out *coord.Out) {
	clear(g.holders) // between the entries that a compaction left, members may have seemed to hold what others do
	g.repair(out)
	for _, id := range g.ids {
		m := g.members[id]
		m.recheck, m.untold = true, true // nobody remembers which answers were lost; a client that sends the same heartbeat again to the new coordinator does not ask to be told
		g.watch(now, cfg, m, out)
		if m.state() == records.MemberUnrevoked && !m.classic() {
			g.startMember(now, coord.TimerRebalance, id, m.sub.RebalanceTimeout, out)
		}
	}
	g.watchRegexes(now, cfg, out)
	g.TopicsChanged(now, cfg, topics, out)
	if g.Epoch() == g.targetEpoch() && !g.Empty() && !g.covered(topics) {
		g.bump(topics, out)
	}
	g.assign(now, cfg, topics, out)
}

// Timer tells that a timer of this group went off.
func (g *Group) Timer(now coord.Now, cfg *coord.Config, topics coord.Topics, key coord.TimerKey, out *coord.Out) {
	switch key.Kind {
	case coord.TimerAssign:
		g.assigning = false
		g.makeTarget(now, cfg, topics, out)
		return
	case coord.TimerRegex:
		g.resolving = false
		changed := false
		if len(g.under.patterns) > 0 {
			changed = g.resolveOn(now, topics, out)
		} else {
			changed = g.resolve(now, topics, g.patterns(), out)
		}
		if changed {
			g.bump(topics, out)
			g.assign(now, cfg, topics, out)
		}
		g.watchRegexes(now, cfg, out)
		return
	case coord.TimerSession, coord.TimerRebalance, coord.TimerJoin, coord.TimerSync:
	case coord.TimerInitial, coord.TimerPending, coord.TimerExpire:
		return
	}
	m := g.find(key.Member)
	if m == nil {
		return
	}
	why := ""
	switch key.Kind {
	case coord.TimerSession:
		m.watched = false
		if m.deadline > now.Mono {
			g.rearm(m, out)
			return
		}
		why = "its session ended"
	case coord.TimerRebalance:
		if m.state() != records.MemberUnrevoked {
			return
		}
		why = "it did not give up its partitions in its rebalance timeout"
	case coord.TimerSync:
		why = "it did not sync in its rebalance timeout"
	default:
		why = "it did not rejoin in its rebalance timeout"
	}
	out.Note(coord.Note{Kind: coord.NoteMemberFenced, Group: g.id, Member: m.id, Text: why})
	g.fence(now, cfg, topics, out, m)
}

// watch moves the end of a member's session. The timer stays where it is, and moves when it goes off: a heartbeat costs no work in the heap.
func (g *Group) watch(now coord.Now, cfg *coord.Config, m *member, out *coord.Out) {
	timeout := cfg.Of(g.id).SessionTimeout
	if m.classic() {
		timeout = m.sub.Classic.SessionTimeout
	}
	m.deadline = now.Mono + ident.Instant(timeout)*millisecond
	if !m.watched || m.deadline < m.due {
		g.rearm(m, out)
	}
}

func (g *Group) rearm(m *member, out *coord.Out) {
	m.watched, m.due = true, m.deadline
	out.Timers.Set(g.key(coord.TimerSession, m.id), m.deadline)
}

// start sets a timer of the group, wait in ms.
func (g *Group) start(now coord.Now, kind coord.TimerKind, wait int64, out *coord.Out) {
	out.Timers.Set(g.key(kind, ""), now.Mono+ident.Instant(max(0, wait))*millisecond)
}

func (g *Group) cancel(kind coord.TimerKind, out *coord.Out) { out.Timers.Cancel(g.key(kind, "")) }

// startMember sets a timer of a member, wait in ms.
func (g *Group) startMember(now coord.Now, kind coord.TimerKind, id string, wait int32, out *coord.Out) {
	out.Timers.Set(g.key(kind, id), now.Mono+ident.Instant(max(0, wait))*millisecond)
}

func (g *Group) cancelMember(kind coord.TimerKind, id string, out *coord.Out) {
	out.Timers.Cancel(g.key(kind, id))
}

// forgetTimers stops everything that waits for a member that is gone.
func (g *Group) forgetTimers(id string, out *coord.Out) {
	for _, kind := range [...]coord.TimerKind{coord.TimerSession, coord.TimerRebalance, coord.TimerJoin, coord.TimerSync} {
		g.cancelMember(kind, id, out)
	}
}
