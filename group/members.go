package group

import (
	"github.com/troupe-broker/troupe/group/classic"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// join gives a JoinGroup to the group's machine. Who has no member id makes the group if there is none; an empty consumer group becomes a classic one.
func (s *Shard) join(now coord.Now, id ident.RequestID, c *coord.Join, out *coord.Out) {
	if c.Group == "" {
		out.Reply(id, &coord.JoinReply{Code: wire.InvalidGroupID, Generation: -1, Member: c.Member})
		return
	}
	g := s.groups[c.Group]
	switch {
	case s.tooHeavy(g, c):
		out.Reply(id, &coord.JoinReply{Code: wire.GroupMaxSizeReached, Generation: -1, Member: c.Member})
		return
	case s.joinTooLarge(g, c):
		out.Reply(id, &coord.JoinReply{Code: wire.UnknownServerError, Generation: -1, Member: c.Member})
		return
	case g != nil && g.consumer != nil && !g.consumer.Empty():
		g.consumer.ClassicJoin(now, &s.cfg, s.topics, id, c, out)
		s.settle(now, g, out)
		return
	case c.Member != "" && (g == nil || g.classic == nil):
		out.Reply(id, &coord.JoinReply{Code: wire.UnknownMemberID, Generation: -1, Member: c.Member})
		return
	case c.SessionTimeout < s.cfg.SessionTimeoutMin || c.SessionTimeout > s.cfg.SessionTimeoutMax: // before anything is made, or converted
		out.Reply(id, &coord.JoinReply{Code: wire.InvalidSessionTimeout, Generation: -1, Member: c.Member})
		return
	}
	g = s.ensure(c.Group)
	if g.consumer != nil {
		g.removeMachine(wire.RebalanceInProgress, out)
		out.Note(coord.Note{Kind: coord.NoteConverted, Group: g.name, Text: typeClassic})
	}
	if g.classic == nil {
		g.classic = classic.New(g.name)
	}
	g.classic.Join(now, &s.cfg, id, c, out)
	s.forget(g)
}

func (s *Shard) sync(now coord.Now, id ident.RequestID, c *coord.Sync, out *coord.Out) {
	g := s.groups[c.Group]
	switch {
	case c.Group == "":
		out.Reply(id, &coord.SyncReply{Code: wire.InvalidGroupID})
	case g != nil && g.consumer != nil:
		g.consumer.ClassicSync(now, &s.cfg, s.topics, id, c, out)
		s.settle(now, g, out)
	case g != nil && g.classic != nil && s.overweight(g.classic.AddsSync(c)):
		out.Reply(id, &coord.SyncReply{Code: wire.GroupMaxSizeReached})
	case g != nil && g.classic != nil && s.syncTooLarge(g.classic, c):
		out.Reply(id, &coord.SyncReply{Code: wire.UnknownServerError})
	case g != nil && g.classic != nil:
		g.classic.Sync(now, &s.cfg, id, c, out)
		s.weigh(g)
	default:
		out.Reply(id, &coord.SyncReply{Code: wire.UnknownMemberID})
	}
}

func (s *Shard) heartbeat(now coord.Now, id ident.RequestID, c *coord.Heartbeat, out *coord.Out) {
	g := s.groups[c.Group]
	switch {
	case c.Group == "":
		out.ReplyHeartbeat(id, wire.InvalidGroupID)
	case g != nil && g.consumer != nil:
		g.consumer.ClassicHeartbeat(now, &s.cfg, s.topics, id, c, out)
		s.settle(now, g, out)
	case g != nil && g.classic != nil:
		g.classic.Heartbeat(now, &s.cfg, id, c, out)
	default:
		out.ReplyHeartbeat(id, wire.UnknownMemberID)
	}
}

func (s *Shard) leave(now coord.Now, id ident.RequestID, c *coord.Leave, out *coord.Out) {
	g := s.groups[c.Group]
	switch {
	case c.Group == "":
		out.Reply(id, &coord.LeaveReply{Code: wire.InvalidGroupID})
	case g != nil && g.consumer != nil:
		g.consumer.ClassicLeave(now, &s.cfg, s.topics, id, c, out)
		s.settle(now, g, out)
	case g != nil && g.classic != nil:
		g.classic.Leave(now, &s.cfg, id, c, out)
		s.forget(g)
	default:
		out.Reply(id, &coord.LeaveReply{Code: wire.UnknownMemberID})
	}
}
