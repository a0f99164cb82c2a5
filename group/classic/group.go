package classic

import (
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// ConsumerProtocol is the protocol type of consumers; only its subscriptions are understood here.
const ConsumerProtocol = "consumer"

// millisecond is one as an [ident.Instant].
const millisecond ident.Instant = 1_000_000

// Group is one classic group. The zero value is not usable, New makes one.
type Group struct {
	id   string
	hard *records.Generation // what was proposed last; nil: nothing

	state        State
	since        ident.Millis // when the state was reached; -1: unknown
	protocolType string       // "": the group never had a member
	protocol     string       // chosen in this generation; "": none
	generation   int32
	leader       *member // nil only without members

	members   []*member // in the order they came: leaders, lists and entries follow it
	byID      map[string]*member
	static    map[string]*member // by instance
	supported map[string]int     // how many members support a protocol; no zeros
	said      int                // bytes of what the members and the pending ones say, and are given
	awaiting  int                // members with a parked Join
	owing     int                // members that owe a sync

	pending map[string]struct{}
	waiting pendingQueue // the pending members in the order in which they came

	first firstWait // the wait of the first rebalance; on only in PreparingRebalance

	topics      map[string]struct{} // what the members subscribe to
	topicsKnown bool                // false: not consumers, or their subscriptions cannot be read
	topicsSize  int                 // of topics, in bytes
}

// New makes a group that has nothing.
func New(id string) *Group {
	return &Group{
		id: id, since: ident.NoTimestamp,
		byID: map[string]*member{}, static: map[string]*member{}, supported: map[string]int{}, pending: map[string]struct{}{},
	}
}

// ID is the group's name.
func (g *Group) ID() string { return g.id }

// State is the group's state.
func (g *Group) State() State { return g.state }

// Generation is the current generation; 0 before the first.
func (g *Group) Generation() int32 { return g.generation }

// ProtocolType is what the members are ("consumer", "connect"); "": the group never had one.
func (g *Group) ProtocolType() string { return g.protocolType }

// Vacant tells whether the group has nothing at all: it can be forgotten.
func (g *Group) Vacant() bool {
	return g.state == Empty && g.hard == nil && len(g.pending) == 0
}

// Len is how many members the group has, pending ones not counted.
func (g *Group) Len() int { return len(g.members) }

// enter changes the state.
func (g *Group) enter(now coord.Now, s State) {
	g.state, g.since = s, now.Wall
	if s != PreparingRebalance {
		g.first.on = false
	}
}

// canRebalance tells whether a rebalance can begin; else one is under way, or the group is dead.
func (g *Group) canRebalance() bool {
	return g.state == Empty || g.state == Stable || g.state == CompletingRebalance
}

// allJoined tells whether every member's Join is parked and nobody is pending.
func (g *Group) allJoined() bool { return g.awaiting == len(g.members) && len(g.pending) == 0 }

// rebalanceTimeout is the longest of the members'.
func (g *Group) rebalanceTimeout() ident.Instant {
	var longest int32
	for _, m := range g.members {
		longest = max(longest, m.rebalanceTimeout)
	}
	return ident.Instant(longest) * millisecond
}

// find finds the member that a request speaks for. An instance that another member id holds now fences the request.
func (g *Group) find(id, instance string) (*member, wire.ErrorCode) {
	if instance != "" {
		switch m := g.static[instance]; {
		case m == nil:
			return nil, wire.UnknownMemberID
		case m.id != id:
			return nil, wire.FencedInstanceID
		}
	}
	if m := g.byID[id]; m != nil {
		return m, wire.NoError
	}
	return nil, wire.UnknownMemberID
}

// key names a timer of the group itself.
func (g *Group) key(kind coord.TimerKind) coord.TimerKey {
	return coord.TimerKey{Kind: kind, Group: g.id}
}

// memberKey names a timer of a member.
func (g *Group) memberKey(kind coord.TimerKind, member string) coord.TimerKey {
	return coord.TimerKey{Kind: kind, Group: g.id, Member: member}
}

func (g *Group) note(out *coord.Out, kind coord.NoteKind, member, text string, count int) {
	out.Note(coord.Note{Kind: kind, Group: g.id, Member: member, Text: text, Count: int64(count)})
}

// Timer runs a timer of this group that is due.
func (g *Group) Timer(now coord.Now, cfg *coord.Config, key coord.TimerKey, out *coord.Out) {
	switch key.Kind {
	case coord.TimerSession:
		g.sessionDue(now, cfg, key.Member, out)
	case coord.TimerPending:
		g.pendingDue(now, key.Member, out)
	case coord.TimerInitial:
		g.firstDue(now, cfg, out)
	case coord.TimerJoin:
		if g.state == PreparingRebalance {
			g.complete(now, out)
		}
	case coord.TimerSync:
		g.syncDue(now, cfg, out)
	case coord.TimerRebalance, coord.TimerAssign, coord.TimerRegex, coord.TimerExpire: // of other machines
	}
}
