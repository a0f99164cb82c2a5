package classic

import (
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// newMemberTimeout is how long a fresh member's Join may be parked: Kafka's, which no key changes.
const newMemberTimeout = 5 * 60 * 1000 * millisecond

// Heartbeat serves Heartbeat. It allocates nothing.
func (g *Group) Heartbeat(now coord.Now, _ *coord.Config, id ident.RequestID, c *coord.Heartbeat, out *coord.Out) {
	if g.state == Dead {
		out.ReplyHeartbeat(id, wire.CoordinatorNotAvailable)
		return
	}
	m, code := g.find(c.Member, c.Instance)
	if code == wire.NoError && c.Generation != g.generation {
		code = wire.IllegalGeneration
	}
	if code != wire.NoError {
		out.ReplyHeartbeat(id, code)
		return
	}
	// A member hears of a rebalance here. It is alive all the same.
	g.alive(now, m, out)
	if g.state == PreparingRebalance {
		code = wire.RebalanceInProgress
	}
	out.ReplyHeartbeat(id, code)
}

// alive gives a member a whole session timeout from now.
func (g *Group) alive(now coord.Now, m *member, out *coord.Out) {
	g.deadline(m, now.Mono+ident.Instant(m.sessionTimeout)*millisecond, out)
}

// deadline moves a member's deadline. The timer is touched only when it would come too late.
func (g *Group) deadline(m *member, at ident.Instant, out *coord.Out) {
	m.deadline = at
	if m.timerSet && m.timerDue <= at {
		return
	}
	out.Timers.Set(g.memberKey(coord.TimerSession, m.id), at)
	m.timerSet, m.timerDue = true, at
}

// disarm cancels a member's timer.
func (g *Group) disarm(m *member, out *coord.Out) {
	if m.timerSet {
		out.Timers.Cancel(g.memberKey(coord.TimerSession, m.id))
		m.timerSet = false
	}
}

// sessionDue moves the timer of a member that was heard of, and removes one that was not. A member whose request is parked cannot be heard of: it gets a
// new session with its answer, unless it is fresh. A fresh one whose client has gone would come back in each round as another fresh one (KAFKA-9752).
func (g *Group) sessionDue(now coord.Now, cfg *coord.Config, id string, out *coord.Out) {
	m := g.byID[id]
	if m == nil {
		return
	}
	m.timerSet = false
	switch {
	case now.Mono < m.deadline:
		g.deadline(m, m.deadline, out)
	case !m.fresh && (m.joining || m.syncing):
	default:
		g.note(out, coord.NoteMemberFenced, m.id, "its session timed out", 0)
		g.expel(m, out)
		switch {
		case g.state == Stable || g.state == CompletingRebalance:
			g.prepare(now, cfg, "member "+m.id+" timed out", out)
		case g.state == PreparingRebalance && g.allJoined():
			g.complete(now, out)
		}
	}
}

// expel removes a member and answers what it has parked: if its client is still there, it begins anew.
func (g *Group) expel(m *member, out *coord.Out) {
	g.answerJoin(m, &coord.JoinReply{Code: wire.UnknownMemberID, Generation: -1}, out)
	g.answerSync(m, &coord.SyncReply{Code: wire.UnknownMemberID}, out)
	g.remove(m, out)
}

// pendingDue forgets a pending member that did not come.
func (g *Group) pendingDue(now coord.Now, id string, out *coord.Out) {
	if _, ok := g.pending[id]; ok {
		delete(g.pending, id)
		g.said -= len(id)
	}
	if g.state == PreparingRebalance && g.allJoined() {
		g.complete(now, out)
	}
}
