package classic

import (
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// The window in which an empty group's first rebalance waits for another member (docs/adr/0014): it grows with the members, as a round that has to be
// repeated for one who came late costs more.
const (
	quietBase      = 100 * millisecond
	quietPerMember = 1 * millisecond
	quietMax       = 300 * millisecond
)

// firstWait is the wait of an empty group's first rebalance.
type firstWait struct {
	on    bool
	quiet ident.Instant // nobody came for a window: it ends

	// Kafka's rule, which ends it at the latest.
	check            ident.Instant // when the rule is asked next
	delay, remaining int64         // ms: the last delay, and what may still be added
	more             bool          // a member came since the last delay began
}

// Rebalance begins a rebalance, if none is under way: a conversion needs it.
func (g *Group) Rebalance(now coord.Now, cfg *coord.Config, reason string, out *coord.Out) {
	if g.canRebalance() && len(g.members) > 0 {
		g.prepare(now, cfg, reason, out)
	}
}

// rebalance begins a rebalance, or ends the one that is under way if this was the last to join.
func (g *Group) rebalance(now coord.Now, cfg *coord.Config, reason string, out *coord.Out) {
	if g.canRebalance() {
		g.prepare(now, cfg, reason, out)
		return
	}
	g.completeIfJoined(now, out)
}

// prepare begins a rebalance.
func (g *Group) prepare(now coord.Now, cfg *coord.Config, reason string, out *coord.Out) {
	if g.state == CompletingRebalance {
		for _, m := range g.members {
			g.give(m, nil)
			if g.answerSync(m, &coord.SyncReply{Code: wire.RebalanceInProgress}, out) {
				g.alive(now, m, out)
			}
		}
	}
	g.settleAll(out)
	wasEmpty := g.state == Empty
	g.enter(now, PreparingRebalance)
	g.note(out, coord.NoteRebalance, "", reason, len(g.members))
	switch {
	case wasEmpty:
		g.firstBegins(now, cfg, out)
	case g.allJoined():
		g.complete(now, out)
	default:
		out.Timers.Set(g.key(coord.TimerJoin), now.Mono+g.rebalanceTimeout())
	}
}

// settleAll forgets who owes a sync.
func (g *Group) settleAll(out *coord.Out) {
	for _, m := range g.members {
		g.settle(m)
	}
	out.Timers.Cancel(g.key(coord.TimerSync))
}

// completeIfJoined ends the collecting of joins when all are there. The first wait ends by its own rule.
func (g *Group) completeIfJoined(now coord.Now, out *coord.Out) {
	if g.state == PreparingRebalance && !g.first.on && g.allJoined() {
		g.complete(now, out)
	}
}

// complete ends the collecting of joins: dynamic members that did not come are removed, the others begin a new generation.
func (g *Group) complete(now coord.Now, out *coord.Out) {
	out.Timers.Cancel(g.key(coord.TimerJoin))
	out.Timers.Cancel(g.key(coord.TimerInitial))
	g.removeLate(out)
	if !g.electJoined() && len(g.members) > 0 {
		// Only static members, and none of them came. They stay until their sessions end; the round goes on.
		out.Timers.Set(g.key(coord.TimerJoin), now.Mono+g.rebalanceTimeout())
		return
	}
	g.generation++
	if len(g.members) == 0 {
		g.protocol = ""
		g.resubscribe()
		g.enter(now, Empty)
		g.persist(out)
		g.note(out, coord.NoteEmpty, "", "", 0)
		return
	}
	g.protocol = g.choose()
	g.resubscribe()
	g.enter(now, CompletingRebalance)
	for _, m := range g.members {
		if m.joining {
			g.owe(m)
			g.answerJoin(m, g.joined(m), out)
		}
		m.fresh = false
		g.alive(now, m, out)
	}
	out.Timers.Set(g.key(coord.TimerSync), now.Mono+g.rebalanceTimeout())
}

// removeLate removes the dynamic members that did not join. Static ones stay for a session timeout (KIP-345).
func (g *Group) removeLate(out *coord.Out) {
	var late []*member
	for _, m := range g.members {
		if !m.joining && m.instance == "" {
			late = append(late, m)
		}
	}
	for _, m := range late {
		g.note(out, coord.NoteMemberFenced, m.id, "it did not join in time", 0)
		g.expel(m, out)
	}
}

// electJoined makes sure that the leader is one who has joined; false: nobody has.
func (g *Group) electJoined() bool {
	if g.leader != nil && g.leader.joining {
		return true
	}
	for _, m := range g.members {
		if m.joining {
			g.leader = m
			return true
		}
	}
	return false
}

// quiet is the window for a group of this size, never more than group.initial.rebalance.delay.ms.
func (g *Group) quiet(cfg *coord.Config) ident.Instant {
	n := ident.Instant(len(g.members) + len(g.pending))
	return min(quietBase+n*quietPerMember, quietMax, ident.Instant(cfg.InitialRebalanceDelay)*millisecond)
}

// firstBegins starts the first wait.
func (g *Group) firstBegins(now coord.Now, cfg *coord.Config, out *coord.Out) {
	delay := int64(cfg.InitialRebalanceDelay)
	g.first = firstWait{
		on: true, quiet: now.Mono + g.quiet(cfg), check: now.Mono + ident.Instant(delay)*millisecond,
		delay: delay, remaining: max(int64(g.rebalanceTimeout()/millisecond)-delay, 0),
	}
	out.Timers.Set(g.key(coord.TimerInitial), min(g.first.quiet, g.first.check))
}

// stir notes that somebody came during the first wait: it goes on for a window. The timer finds that out when it fires.
func (g *Group) stir(now coord.Now, cfg *coord.Config) {
	if g.first.on {
		g.first.quiet = max(g.first.quiet, now.Mono+g.quiet(cfg))
	}
}

// firstDue ends the first wait, or goes on with it: for as long as somebody came within the window, and Kafka's rule goes on too. That one waits for
// group.initial.rebalance.delay.ms, and again as often as somebody came meanwhile, but not beyond the rebalance timeout.
func (g *Group) firstDue(now coord.Now, cfg *coord.Config, out *coord.Out) {
	f := &g.first
	if g.state != PreparingRebalance || !f.on {
		return
	}
	if now.Mono >= f.quiet {
		g.complete(now, out)
		return
	}
	if now.Mono >= f.check {
		if !f.more || f.remaining == 0 {
			g.complete(now, out)
			return
		}
		f.more = false
		delay := min(int64(cfg.InitialRebalanceDelay), f.remaining)
		f.remaining = max(f.remaining-f.delay, 0)
		f.delay = delay
		f.check = now.Mono + ident.Instant(delay)*millisecond
	}
	out.Timers.Set(g.key(coord.TimerInitial), min(f.quiet, f.check))
}
