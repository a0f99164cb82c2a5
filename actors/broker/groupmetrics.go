package broker

import (
	"sync/atomic"

	"github.com/troupe-broker/troupe/group/coord"
)

// groupCounters count what coordinators do.
type groupCounters struct {
	load       histogram // of a shard, from its begin to its service
	loads      atomic.Int64
	skipped    atomic.Int64 // records that could not be read
	batches    atomic.Int64
	records    atomic.Int64
	timeouts   atomic.Int64 // answers given up because they were not committed in time
	commits    atomic.Int64 // offsets
	expired    atomic.Int64 // offsets
	rebalances atomic.Int64
	fenced     atomic.Int64 // members
	jumps      atomic.Int64 // records that consumers left unread
}

// note counts what happened, and logs what an operator may look for.
func (c *coordinatorActor) note(n *coord.Note) {
	m := &c.shared.metrics.groups
	switch n.Kind {
	case coord.NoteCommitted:
		m.commits.Add(n.Count)
	case coord.NoteOffsetExpired:
		m.expired.Add(n.Count)
		c.log.Info().Str("group", n.Group).Int64("offsets", n.Count).Msg("committed offsets expired")
	case coord.NoteRebalance:
		m.rebalances.Add(1)
		c.log.Info().Str("group", n.Group).Str("member", n.Member).Str("reason", n.Text).Msg("the group rebalances")
	case coord.NoteStable:
		c.log.Info().Str("group", n.Group).Int64("members", n.Count).Msg("the group is stable")
	case coord.NoteMemberFenced:
		m.fenced.Add(1)
		c.log.Info().Str("group", n.Group).Str("member", n.Member).Str("reason", n.Text).Msg("a member was removed from its group")
	case coord.NoteEmpty:
		c.log.Debug().Str("group", n.Group).Msg("the group is empty")
	case coord.NoteJump:
		m.jumps.Add(n.Count)
		c.log.Warn().Str("group", n.Group).Int64("records", n.Count).Str("reason", n.Text).Msg("a consumer jumped over records")
	case coord.NoteConverted:
		c.log.Info().Str("group", n.Group).Str("protocol", n.Text).Msg("the group changed its protocol")
	}
}
