package runtime

import (
	"cmp"
	"maps"
	"slices"
)

// counters of one actor. They are changed where the mailbox's lock is held anyhow,
// so counting costs the hot path nothing but the additions.
type counters struct {
	turns, messages, rejects, panics, restarts uint64
}

// KindStats sums up the actors of one kind. The counters include those that have
// stopped; they only grow.
type KindStats struct {
	Kind    string
	Live    int    // actors now
	Spawned uint64 // actors ever

	Turns    uint64 // batches handled
	Messages uint64 // messages handled
	Rejects  uint64 // messages refused, or answered by a stop
	Panics   uint64 // turns and hooks that failed
	Restarts uint64

	Depth     int // messages in mailboxes and running turns now
	Bytes     int // their bytes
	DepthHigh int // the most that one actor ever had
	BytesHigh int
}

// ActorStats is the same of one live actor.
type ActorStats struct {
	Name, Kind                                 string
	Turns, Messages, Rejects, Panics, Restarts uint64
	Depth, Bytes, DepthHigh, BytesHigh         int
	// Suspended is set while a failed actor waits for its restart.
	Suspended bool
	// Quarantined is set while it refuses all messages.
	Quarantined bool
}

// Stats sums up all actors, ordered by kind. It visits every actor, taking its
// mailbox's lock for some nanoseconds: made for a scrape, not for a loop.
func (s *System) Stats() []KindStats {
	kinds := make(map[string]KindStats)
	s.mu.Lock()
	maps.Copy(kinds, s.retired)
	live := s.snapshot()
	s.mu.Unlock()
	for _, m := range live {
		a := m.stats()
		k := kinds[a.Kind]
		k.Live++
		k.add(&a)
		kinds[a.Kind] = k
	}
	out := make([]KindStats, 0, len(kinds))
	for _, k := range kinds {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b KindStats) int { return cmp.Compare(a.Kind, b.Kind) })
	return out
}

// Actors lists the live actors, ordered by path.
func (s *System) Actors() []ActorStats {
	s.mu.Lock()
	live := s.snapshot()
	s.mu.Unlock()
	out := make([]ActorStats, 0, len(live))
	for _, m := range live {
		out = append(out, m.stats())
	}
	slices.SortFunc(out, func(a, b ActorStats) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// snapshot lists the live mailboxes in no order. s.mu is held.
func (s *System) snapshot() []*mailbox {
	live := make([]*mailbox, 0, len(s.live))
	for _, m := range s.live {
		live = append(live, m)
	}
	return live
}

func (k *KindStats) add(a *ActorStats) {
	k.Kind = a.Kind
	k.Spawned++
	k.Turns += a.Turns
	k.Messages += a.Messages
	k.Rejects += a.Rejects
	k.Panics += a.Panics
	k.Restarts += a.Restarts
	k.Depth += a.Depth
	k.Bytes += a.Bytes
	k.DepthHigh = max(k.DepthHigh, a.DepthHigh)
	k.BytesHigh = max(k.BytesHigh, a.BytesHigh)
}

// stats reads the counters of one actor.
func (m *mailbox) stats() ActorStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return ActorStats{
		Name: m.path, Kind: m.spec.Kind,
		Turns: m.turns, Messages: m.messages, Rejects: m.rejects, Panics: m.panics, Restarts: m.restarts,
		Depth: m.count, Bytes: m.bytes, DepthHigh: m.countHigh, BytesHigh: m.bytesHigh,
		Suspended: m.suspended && !m.dead, Quarantined: m.shut,
	}
}
