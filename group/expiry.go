package group

import (
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
	names []string // of the groups that are still to be looked at, in order. Some may have gone meanwhile
	topic string   // where the first one goes on; "": at its beginning
}

// expireLater sets the timer of the next sweep.
func (s *Shard) expireLater(now coord.Now, out *coord.Out) {
	s.sweep = sweep{}
	out.Timers.Set(coord.TimerKey{Kind: coord.TimerExpire}, now.Mono+ident.Instant(max(1, s.cfg.OffsetsCheckInterval))*millisecond)
}

// expire begins a sweep, or does one portion more.
func (s *Shard) expire(now coord.Now, out *coord.Out) {
	if len(s.sweep.names) == 0 {
		s.sweep.names = s.names()
	}
	partitions := sweepPartitions
	for groups := sweepGroups; len(s.sweep.names) > 0; groups-- {
		if partitions <= 0 || groups == 0 {
			out.Timers.Set(coord.TimerKey{Kind: coord.TimerExpire}, now.Mono+sweepPause)
			return
		}
		g := s.groups[s.sweep.names[0]]
		if g != nil {
			topic, seen, done := g.offsets.Expire(now, s.cfg.OffsetsRetention, s.aging(g), s.sweep.topic, partitions, out)
			partitions -= seen
			if !done {
				s.sweep.topic, partitions = topic, 0
				continue
			}
			s.expireGroup(g, out)
		}
		s.sweep.names, s.sweep.topic = s.sweep.names[1:], ""
	}
	s.expireLater(now, out)
}

// expireGroup removes a group that has neither members nor offsets. A classic group that is not written down has given out a member id and waits for it.
func (s *Shard) expireGroup(g *group, out *coord.Out) {
	if g.offsets.Len() == 0 && g.empty() && (g.classic == nil || g.classic.Entry() != nil) {
		g.removeMachine(wire.CoordinatorNotAvailable, out)
	}
	s.forget(g)
}
