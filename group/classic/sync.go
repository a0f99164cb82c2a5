package classic

import (
	"strings"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Sync serves SyncGroup.
func (g *Group) Sync(now coord.Now, _ *coord.Config, id ident.RequestID, c *coord.Sync, out *coord.Out) {
	m, code := g.checkSync(c)
	if code != wire.NoError {
		out.Reply(id, &coord.SyncReply{Code: code})
		return
	}
	g.settle(m)
	if g.owing == 0 {
		out.Timers.Cancel(g.key(coord.TimerSync))
	}
	if g.state == Stable {
		g.alive(now, m, out)
		out.Reply(id, g.synced(m))
		return
	}
	g.answerSync(m, &coord.SyncReply{Code: wire.RebalanceInProgress}, out)
	m.syncing, m.sync = true, id
	if m == g.leader {
		g.assign(now, c.Assignments, out)
	}
}

// checkSync checks a Sync: in CompletingRebalance it may be parked, in Stable answered.
func (g *Group) checkSync(c *coord.Sync) (*member, wire.ErrorCode) {
	switch g.state {
	case Empty:
		return nil, wire.UnknownMemberID
	case Dead:
		return nil, wire.CoordinatorNotAvailable
	case PreparingRebalance, CompletingRebalance, Stable:
	}
	m, code := g.find(c.Member, c.Instance)
	switch {
	case code != wire.NoError:
		return nil, code
	case c.Generation != g.generation:
		return nil, wire.IllegalGeneration
	case differ(c.ProtocolType, g.protocolType) || differ(c.Protocol, g.protocol):
		return nil, wire.InconsistentGroupProtocol
	case g.state == PreparingRebalance:
		return nil, wire.RebalanceInProgress
	}
	return m, wire.NoError
}

// differ compares two words of which each may be unsaid.
func differ(a, b string) bool { return a != "" && b != "" && a != b }

// assign takes what the leader decided, writes it down, and tells all who wait. Members it forgot have nothing; others than members are passed over.
func (g *Group) assign(now coord.Now, assignments []coord.MemberAssignment, out *coord.Out) {
	for _, m := range g.members {
		g.give(m, nil)
	}
	for i := range assignments {
		if m := g.byID[assignments[i].Member]; m != nil {
			g.give(m, assignments[i].Assignment)
		}
	}
	g.enter(now, Stable)
	g.persist(out)
	for _, m := range g.members {
		if g.answerSync(m, g.synced(m), out) {
			g.alive(now, m, out)
		}
	}
	g.note(out, coord.NoteStable, "", "", len(g.members))
}

// synced is the answer to a Sync in a stable group.
func (g *Group) synced(m *member) *coord.SyncReply {
	return &coord.SyncReply{ProtocolType: g.protocolType, Protocol: g.protocol, Assignment: m.assignment}
}

// syncDue removes the members that were told of the generation and did not sync (KAFKA-12890). A leader that is silent would keep all others waiting.
func (g *Group) syncDue(now coord.Now, cfg *coord.Config, out *coord.Out) {
	if g.owing == 0 || g.state != CompletingRebalance && g.state != Stable {
		return
	}
	var late []*member
	var names []string
	for _, m := range g.members {
		if m.owesSync {
			late = append(late, m)
			names = append(names, m.id)
		}
	}
	for _, m := range late {
		g.note(out, coord.NoteMemberFenced, m.id, "it did not sync in time", 0)
		g.expel(m, out)
	}
	g.prepare(now, cfg, "no sync from "+strings.Join(names, ", "), out)
}
