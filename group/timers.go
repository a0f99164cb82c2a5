package group

import (
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

const millisecond ident.Instant = 1_000_000

// Tick runs the timers that are due.
func (s *Shard) Tick(now coord.Now, out *coord.Out) {
	out.Timers = s.timers
	for {
		key, ok := s.timers.Pop(now.Mono)
		if !ok {
			return
		}
		if key.Kind == coord.TimerExpire {
			s.expire(now, out)
			continue
		}
		g := s.groups[key.Group]
		switch {
		case g == nil:
			continue
		case g.consumer != nil:
			g.consumer.Timer(now, &s.cfg, s.topics, key, out)
		case g.classic != nil:
			g.classic.Timer(now, &s.cfg, key, out)
		}
		s.settle(now, g, out)
	}
}

// load begins to serve a group that was read. Where the log has both types of one, which no step of ours leaves, the consumer group stays.
func (s *Shard) load(now coord.Now, g *group, out *coord.Out) {
	if g.consumer != nil && g.classic != nil {
		loser := &group{name: g.name, classic: g.classic}
		g.classic = nil
		loser.removeMachine(wire.CoordinatorNotAvailable, out)
	}
	switch {
	case g.consumer != nil:
		g.consumer.Loaded(now, &s.cfg, s.topics, out)
	case g.classic != nil:
		g.classic.Loaded(now, &s.cfg, out)
	}
	s.settle(now, g, out)
}

// topicsChanged takes another view of the topics. Consumer groups may have to assign anew.
func (s *Shard) topicsChanged(now coord.Now, c *coord.TopicsChanged, out *coord.Out) {
	s.topics = c.Topics
	for _, name := range s.names() {
		if g := s.groups[name]; g.consumer != nil {
			g.consumer.TopicsChanged(now, &s.cfg, s.topics, out)
			s.settle(now, g, out)
		}
	}
}
