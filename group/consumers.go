package group

import (
	"fmt"

	"github.com/troupe-broker/troupe/group/classic"
	"github.com/troupe-broker/troupe/group/consumer"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// consumerHeartbeat gives a ConsumerGroupHeartbeat to the group's machine. Who joins makes the group if there is none, and turns a classic one into a
// consumer group: an empty one always, one with members if the migration policy lets it and its members are consumers.
func (s *Shard) consumerHeartbeat(now coord.Now, id ident.RequestID, c *coord.ConsumerHeartbeat, out *coord.Out) {
	code, text := consumer.Validate(&s.cfg, c)
	if code == wire.NoError && !s.cfg.ConsumerProtocol {
		code, text = wire.UnsupportedVersion, "The consumer group protocol is not enabled."
	}
	g := s.groups[c.Group]
	if code == wire.NoError && (g == nil || g.consumer == nil) && c.MemberEpoch != 0 {
		code, text = wire.GroupIDNotFound, "Group "+c.Group+" is not a consumer group."
	}
	if code == wire.NoError && s.tooMuchWanted(g, c) {
		code = wire.GroupMaxSizeReached
		text = fmt.Sprintf("The members of the groups of this coordinator would need more than %d bytes.", s.cfg.MembersBytesMax)
	}
	if code == wire.NoError && s.heartbeatTooLarge(g, c) {
		code, text = wire.UnknownServerError, fmt.Sprintf("The record of the member would be larger than %d bytes.", s.cfg.RecordBytesMax)
	}
	if code != wire.NoError {
		refuseConsumer(id, c, code, text, out)
		return
	}
	g = s.ensure(c.Group)
	if g.consumer != nil {
		g.consumer.Heartbeat(now, &s.cfg, s.topics, id, c, out)
	} else {
		s.begin(now, g, id, c, out)
	}
	s.settle(now, g, out)
}

func refuseConsumer(id ident.RequestID, c *coord.ConsumerHeartbeat, code wire.ErrorCode, text string, out *coord.Out) {
	out.Reply(id, &coord.ConsumerHeartbeatReply{Code: code, Message: text, Member: c.Member, MemberEpoch: c.MemberEpoch})
}

// begin makes a consumer group, in the place of a classic one if there is one. It is tried first: a heartbeat that is refused makes nothing, and leaves
// the other. The tombstone of the classic group comes before the entries of the new one, as Kafka's loader wants it.
func (s *Shard) begin(now coord.Now, g *group, id ident.RequestID, c *coord.ConsumerHeartbeat, out *coord.Out) {
	trial := coord.Out{Timers: coord.NewTimers()}
	fresh := consumer.New(g.name)
	if g.classic != nil && g.classic.State() != classic.Empty && !s.adopt(now, g, fresh, &trial) {
		refuseConsumer(id, c, wire.GroupIDNotFound, "Group "+c.Group+" is not a consumer group.", out)
		return
	}
	fresh.Heartbeat(now, &s.cfg, s.topics, id, c, &trial)
	if refused(trial.Replies) {
		for _, r := range trial.Replies {
			out.Reply(r.Request, r.Answer)
		}
		return
	}
	if g.classic != nil {
		g.removeMachine(wire.RebalanceInProgress, out)
		out.Note(coord.Note{Kind: coord.NoteConverted, Group: g.name, Text: typeConsumer})
	}
	g.consumer = fresh
	accept(&trial, out)
}

// refused tells whether a heartbeat was.
func refused(replies []coord.Reply) bool {
	for _, r := range replies {
		if a, ok := r.Answer.(*coord.ConsumerHeartbeatReply); ok && a.Code != wire.NoError {
			return true
		}
	}
	return false
}

// accept takes over what was tried. The answers wait for all of it.
func accept(trial, out *coord.Out) {
	for _, e := range trial.Entries {
		out.Propose(e)
	}
	for _, r := range trial.Replies {
		out.Reply(r.Request, r.Answer)
	}
	out.Notes = append(out.Notes, trial.Notes...)
	for {
		due, ok := trial.Timers.Next()
		if !ok {
			return
		}
		key, _ := trial.Timers.Pop(due)
		out.Timers.Set(key, due)
	}
}
