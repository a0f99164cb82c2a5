package classic

import (
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Entry is the hard state: the generation that was proposed or loaded last. nil: there is none. It must not be changed.
func (g *Group) Entry() *records.Generation { return g.hard }

// persist makes the current generation the hard state and proposes it. What is answered after it waits until it is committed.
func (g *Group) persist(out *coord.Out) {
	v := &records.Generation{
		ProtocolType: g.protocolType, Generation: g.generation, StateTime: g.since, Members: make([]records.ClassicMember, len(g.members)),
	}
	if len(g.members) > 0 {
		v.Protocol, v.Leader = new(g.protocol), new(g.leader.id)
	}
	for i, m := range g.members {
		v.Members[i] = records.ClassicMember{
			Member: m.id, ClientID: m.client.ID, ClientHost: m.client.Host, RebalanceTimeout: m.rebalanceTimeout, SessionTimeout: m.sessionTimeout,
			Subscription: m.metadata(g.protocol), Assignment: m.assignment,
		}
		if m.instance != "" {
			v.Members[i].Instance = new(m.instance)
		}
	}
	g.hard = v
	out.Propose(&records.GroupMetadata{Group: g.id, Value: v})
}

// Apply loads a generation: the group is in it as if it had just become stable, or empty. Whatever was there before is gone, so it must not be used on a
// group that serves. nil, a tombstone, leaves nothing.
func (g *Group) Apply(v *records.Generation) {
	*g = *New(g.id)
	if v == nil {
		return
	}
	g.hard = v
	g.since, g.protocolType, g.generation = v.StateTime, v.ProtocolType, v.Generation
	if v.Protocol != nil {
		g.protocol = *v.Protocol
	}
	for i := range v.Members {
		g.load(&v.Members[i])
	}
	if len(g.members) > 0 {
		g.state = Stable
		if v.Leader != nil && g.byID[*v.Leader] != nil {
			g.leader = g.byID[*v.Leader]
		}
	}
	g.resubscribe()
}

// load takes in a stored member. One without an id is passed over, and of two with one id, or one instance, the first stays: nobody writes such.
func (g *Group) load(v *records.ClassicMember) {
	m := &member{
		id: v.Member, client: coord.Client{ID: v.ClientID, Host: v.ClientHost}, rebalanceTimeout: v.RebalanceTimeout, sessionTimeout: v.SessionTimeout,
		protocols: []coord.Protocol{{Name: g.protocol, Metadata: v.Subscription}}, assignment: v.Assignment,
	}
	if v.RebalanceTimeout < 0 { // written as version 0, which had none
		m.rebalanceTimeout = v.SessionTimeout
	}
	if v.Instance != nil {
		m.instance = *v.Instance
	}
	if m.id == "" || g.byID[m.id] != nil || m.instance != "" && g.static[m.instance] != nil {
		return
	}
	g.add(m, g.protocolType)
}

// Loaded begins to serve what was loaded: every member has a whole session timeout to be heard of. A group that is larger than group.max.size, which may
// have been lowered, rebalances, so that its members can commit before some are left out. So does one that was a consumer group: a leader is who was told so
// by a Join, and nobody else sees that topics change.
func (g *Group) Loaded(now coord.Now, cfg *coord.Config, out *coord.Out) {
	for _, m := range g.members {
		g.alive(now, m, out)
	}
	switch {
	case g.state != Stable:
	case len(g.members) > int(cfg.ClassicSizeMax):
		g.Rebalance(now, cfg, "the group is larger than group.max.size", out)
	case g.hard.Leader == nil:
		g.Rebalance(now, cfg, "the last member of the consumer protocol left, and nobody leads", out)
	}
}

// Drop ends the group: it was deleted, converted or unloaded. Everything parked is answered with code, and nothing of it stays in the timers. Entries are
// the caller's.
func (g *Group) Drop(code wire.ErrorCode, out *coord.Out) {
	for _, m := range g.members {
		g.answerJoin(m, &coord.JoinReply{Code: code, Generation: -1, Member: m.id}, out)
		g.answerSync(m, &coord.SyncReply{Code: code}, out)
		g.disarm(m, out)
	}
	for id := range g.pending {
		g.said -= len(id)
		out.Timers.Cancel(g.memberKey(coord.TimerPending, id))
	}
	g.settleAll(out)
	out.Timers.Cancel(g.key(coord.TimerJoin))
	out.Timers.Cancel(g.key(coord.TimerInitial))
	clear(g.pending)
	g.waiting = pendingQueue{}
	g.state, g.first.on = Dead, false
}

// EmptySince is when the group became empty; -1: it is not, or nobody knows.
func (g *Group) EmptySince() ident.Millis {
	if g.state == Empty {
		return g.since
	}
	return ident.NoTimestamp
}
