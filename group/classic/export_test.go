package classic

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire/ident"
)

// PendingMax is the bound on pending members.
const PendingMax = pendingMax

// Draw draws the group in one line. Of a member: * leads, J has a parked Join, S a parked Sync, o owes a sync, f is fresh.
func (g *Group) Draw() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v generation=%d", g.state, g.generation)
	if g.protocolType != "" {
		fmt.Fprintf(&b, " %s:%s", g.protocolType, g.protocol)
	}
	for _, m := range g.members {
		b.WriteByte(' ')
		b.WriteString(m.id)
		if m.instance != "" {
			b.WriteString("/" + m.instance)
		}
		for _, mark := range []struct {
			on   bool
			text byte
		}{{g.leader == m, '*'}, {m.joining, 'J'}, {m.syncing, 'S'}, {m.owesSync, 'o'}, {m.fresh, 'f'}} {
			if mark.on {
				b.WriteByte(mark.text)
			}
		}
	}
	if len(g.pending) > 0 {
		fmt.Fprintf(&b, " pending=%s", strings.Join(slices.Sorted(maps.Keys(g.pending)), ","))
	}
	return b.String()
}

// Parked lists the requests that wait.
func (g *Group) Parked() map[ident.RequestID]bool {
	all := map[ident.RequestID]bool{}
	for _, m := range g.members {
		if m.joining {
			all[m.join] = true
		}
		if m.syncing {
			all[m.sync] = true
		}
	}
	return all
}

// Leader is the leader's member id.
func (g *Group) Leader() string {
	if g.leader == nil {
		return ""
	}
	return g.leader.id
}

// Pending is how many members are pending.
func (g *Group) Pending() int { return len(g.pending) }

// Deadline is when a member counts as failed.
func (g *Group) Deadline(member string) ident.Instant { return g.byID[member].deadline }

// Check finds what can never be true of a group between two steps.
func (g *Group) Check(timers *coord.Timers) error {
	joining, owing := 0, 0
	supported := map[string]int{}
	static := map[string]*member{}
	for _, m := range g.members {
		if m.joining {
			joining++
		}
		if m.owesSync {
			owing++
		}
		for _, p := range m.protocols {
			supported[p.Name]++
		}
		if m.instance != "" {
			static[m.instance] = m
		}
		due, set := timers.Due(g.memberKey(coord.TimerSession, m.id))
		_, pending := g.pending[m.id]
		switch {
		case g.byID[m.id] != m:
			return fmt.Errorf("member %s is not found by its id", m.id)
		case pending:
			return fmt.Errorf("member %s is pending too", m.id)
		case m.joining && g.state != PreparingRebalance && g.state != Dead:
			return fmt.Errorf("a Join of %s is parked in %v", m.id, g.state)
		case m.syncing && g.state != CompletingRebalance:
			return fmt.Errorf("a Sync of %s is parked in %v", m.id, g.state)
		case m.owesSync && g.state != CompletingRebalance && g.state != Stable:
			return fmt.Errorf("%s owes a sync in %v", m.id, g.state)
		case m.fresh && g.state != PreparingRebalance && g.state != Dead:
			return fmt.Errorf("%s is fresh in %v", m.id, g.state)
		case set != m.timerSet || set && (due != m.timerDue || due > m.deadline):
			return fmt.Errorf("the timer of %s is set=%v due=%d, believed set=%v due=%d deadline=%d", m.id, set, due, m.timerSet, m.timerDue, m.deadline)
		case !set && !m.joining && !m.syncing && g.state != Dead:
			return fmt.Errorf("%s has no timer and waits for nothing", m.id)
		case !set && m.fresh && g.state != Dead:
			return fmt.Errorf("%s is fresh and has no timer: its client may be gone", m.id)
		}
	}
	_, join := timers.Due(g.key(coord.TimerJoin))
	_, first := timers.Due(g.key(coord.TimerInitial))
	_, sync := timers.Due(g.key(coord.TimerSync))
	switch {
	case joining != g.awaiting || owing != g.owing:
		return fmt.Errorf("%d join and %d owe a sync, counted %d and %d", joining, owing, g.awaiting, g.owing)
	case len(g.byID) != len(g.members):
		return fmt.Errorf("%d members, %d by id", len(g.members), len(g.byID))
	case !maps.Equal(static, g.static):
		return fmt.Errorf("instances %v, should be %v", g.static, static)
	case !reflect.DeepEqual(supported, g.supported):
		return fmt.Errorf("supported %v, should be %v", g.supported, supported)
	case g.state != Dead && (len(g.members) == 0) != (g.leader == nil):
		return fmt.Errorf("%d members, leader %v", len(g.members), g.leader)
	case g.leader != nil && g.byID[g.leader.id] != g.leader:
		return fmt.Errorf("the leader %s is no member", g.leader.id)
	case g.state == Empty && len(g.members) > 0:
		return fmt.Errorf("empty with %d members", len(g.members))
	case (g.state == Stable || g.state == CompletingRebalance) && len(g.members) == 0:
		return fmt.Errorf("%v without members", g.state)
	case (g.state == PreparingRebalance) != (join || first):
		return fmt.Errorf("%v, timers: join=%v initial=%v", g.state, join, first)
	case g.state == PreparingRebalance && !g.first.on && g.allJoined():
		return fmt.Errorf("all have joined, and the group is in %v", g.state)
	case first != g.first.on && g.state != Dead:
		return fmt.Errorf("first wait on=%v, its timer %v", g.first.on, first)
	case sync != (owing > 0):
		return fmt.Errorf("%d owe a sync, the timer is %v", owing, sync)
	case g.state == CompletingRebalance && !g.leader.owesSync:
		return fmt.Errorf("%v, and nobody waits for the leader", g.state)
	}
	said := 0
	for _, m := range g.members {
		said += m.size()
	}
	for id := range g.pending {
		said += len(id)
	}
	if said != g.said && g.state != Dead {
		return fmt.Errorf("the members say %d bytes, counted %d", said, g.said)
	}
	for id := range g.pending {
		if _, set := timers.Due(g.memberKey(coord.TimerPending, id)); !set {
			return fmt.Errorf("pending member %s has no timer", id)
		}
	}
	if len(g.members) > 0 && (g.state == Stable || g.state == CompletingRebalance) && g.supported[g.protocol] != len(g.members) {
		return fmt.Errorf("protocol %s is supported by %d of %d", g.protocol, g.supported[g.protocol], len(g.members))
	}
	if limit := len(g.members) + len(g.pending) + 3; timers.Len() > limit {
		return fmt.Errorf("%d timers for %d members and %d pending", timers.Len(), len(g.members), len(g.pending))
	}
	return nil
}
