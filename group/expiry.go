package group

import (
	"slices"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// How much one tick of a sweep does: partitions that are looked at, and groups, which cost something even without commits. Then others have their turn.
const (
	sweepPartitions = 2000
	sweepGroups     = 500
	sweepPause      = 1 * millisecond
)

// sweep is one look through the offsets of all groups: every offsets.retention.check.interval.ms, in portions.
type sweep struct {
	on    bool
	group string // where it goes on
	topic string // and there
}

// expireLater sets the timer of the next sweep.
func (s *Shard) expireLater(now coord.Now, out *coord.Out) {
	out.Timers.Set(coord.TimerKey{Kind: coord.TimerExpire}, now.Mono+ident.Instant(max(1, s.cfg.OffsetsCheckInterval))*millisecond)
}

// expire does one portion of a sweep. Groups are visited in the order of their names, so that a sweep finds its place again whatever has come and gone.
func (s *Shard) expire(now coord.Now, out *coord.Out) {
	names := s.names()
	first := 0
	if s.sweep.on {
		first, _ = slices.BinarySearch(names, s.sweep.group)
	}
	budget := sweepPartitions
	for i, name := range names[first:] {
		if budget <= 0 || i >= sweepGroups {
			s.pause(now, name, "", out)
			return
		}
		g, after := s.groups[name], ""
		if s.sweep.on && name == s.sweep.group {
			after = s.sweep.topic
		}
		topic, seen, done := g.offsets.Expire(now, s.cfg.OffsetsRetention, g.aging(), after, budget, out)
		budget -= seen
		if !done {
			s.pause(now, name, topic, out)
			return
		}
		s.expireGroup(g, out)
	}
	s.sweep = sweep{}
	s.expireLater(now, out)
}

func (s *Shard) pause(now coord.Now, group, topic string, out *coord.Out) {
	s.sweep = sweep{on: true, group: group, topic: topic}
	out.Timers.Set(coord.TimerKey{Kind: coord.TimerExpire}, now.Mono+sweepPause)
}

// expireGroup removes a group that has neither members nor offsets. A classic group that is not written down has given out a member id and waits for it.
func (s *Shard) expireGroup(g *group, out *coord.Out) {
	if g.offsets.Len() == 0 && g.empty() && (g.classic == nil || g.classic.Entry() != nil) {
		g.removeMachine(wire.CoordinatorNotAvailable, out)
	}
	s.forget(g)
}
