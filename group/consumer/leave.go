package consumer

import (
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// leave takes a member out, or lets a static one go for a while.
func (g *Group) leave(now coord.Now, cfg *coord.Config, topics coord.Topics, id ident.RequestID, c *coord.ConsumerHeartbeat, out *coord.Out) {
	m, r := g.known(c.Member, text(c.Instance))
	if r.code != wire.NoError {
		g.refuse(id, c, r, out)
		return
	}
	if c.MemberEpoch == leftForAWhile {
		g.away(now, cfg, m, out)
	} else {
		g.fence(now, cfg, topics, out, m)
	}
	out.Reply(id, &coord.ConsumerHeartbeatReply{Member: c.Member, MemberEpoch: c.MemberEpoch})
}

// known finds a member by its id and, for a static one, its instance.
func (g *Group) known(name, instance string) (*member, refusal) {
	if !g.Exists() {
		return nil, refuse(wire.GroupIDNotFound, "Group %s not found.", g.id)
	}
	if instance == "" {
		if m := g.find(name); m != nil {
			return m, refusal{}
		}
		return nil, g.unknownMember(name)
	}
	m := g.static(instance)
	switch {
	case m == nil:
		return nil, refuse(wire.UnknownMemberID, "Instance id %s is unknown.", instance)
	case m.id != name:
		return nil, fencedInstance(name, instance, m.id)
	}
	return m, refusal{}
}

// away marks a static member as gone for a while. It keeps its place until its session ends. What it should have given up is free: it uses nothing now.
func (g *Group) away(now coord.Now, cfg *coord.Config, m *member, out *coord.Out) {
	g.propose(&records.Current{Group: g.id, Member: m.id, Value: &records.CurrentAssignment{
		MemberEpoch: leftForAWhile, PreviousEpoch: m.epoch(), Assigned: pack(since(claims(m.assigned(), 0), 0)),
	}}, out)
	g.cancelMember(coord.TimerRebalance, m.id, out)
	g.watch(now, cfg, m, out)
}

// fence removes members, bumps the group epoch and makes a target without them. The epochs of a group without members are equal (KAFKA-20442), and its next
// target is not made to wait.
func (g *Group) fence(now coord.Now, cfg *coord.Config, topics coord.Topics, out *coord.Out, gone ...*member) {
	for _, m := range gone {
		regex := m.sub.Regex
		g.drop(m, out)
		g.releaseRegex(regex, out)
	}
	g.bump(topics, out)
	if len(g.ids) > 0 {
		g.assign(now, cfg, topics, out)
		return
	}
	g.propose(&records.Target{Group: g.id, Value: &records.TargetEpoch{Epoch: g.Epoch()}}, out)
	g.cancel(coord.TimerAssign, out)
	g.assigning = false
	out.Note(coord.Note{Kind: coord.NoteEmpty, Group: g.id})
}

// bump raises the group epoch.
func (g *Group) bump(topics coord.Topics, out *coord.Out) {
	g.propose(&records.ConsumerGroup{Group: g.id, Value: &records.GroupEpoch{Epoch: g.Epoch() + 1, MetadataHash: g.metadataHash(topics)}}, out)
}
