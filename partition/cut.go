package partition

import (
	"fmt"
	"slices"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// cut is a truncation that the shell has under way. The machine's end is lowered
// before: nothing that is about to go can be read or reported any more, and readers who
// wait here for more are sent to the leader.
type cut struct {
	open    bool
	refused bool // the shell could not do it, on a full disk for example; the alarm asks again
	anew    bool // the whole log goes; it begins again at the end
	rebuild bool
	// later is the newest metadata record that came meanwhile; it is applied when the
	// log is whole again.
	later *Become
}

// diverged truncates to where the logs parted, as far as the epochs of both tell
// (OffsetsForLeaderEpochUtils, KIP-279). It may take several rounds.
func (m *Machine) diverged(now Now, c *Answered, out *Out) {
	to := c.DivergingEnd
	if epoch, end := m.epochs.end(c.DivergingEpoch, m.end); epoch != ident.NoLeaderEpoch {
		to = min(to, end)
	}
	if to >= m.end || c.DivergingEpoch < 0 || to < 0 {
		// An ask that goes only by the epochs of batches is never answered so. To do as
		// told would go on for ever.
		out.note(Note{Kind: NoteBadAnswer, LeaderEpoch: c.LeaderEpoch})
		m.askLater(now, out)
		return
	}
	out.note(Note{Kind: NoteDiverged, Offset: c.DivergingEnd, LeaderEpoch: c.DivergingEpoch})
	if to < m.logStart {
		// Nothing of this log is in the leader's.
		out.note(Note{Kind: NoteTruncatedCommitted, Offset: m.highWatermark, LeaderEpoch: m.leaderEpoch})
		m.startAnew(c.LogStart, out)
		return
	}
	m.truncate(to, out)
}

// truncate gives up what lies at or above to. What is below the high watermark was
// committed once: only an unclean election makes a leader that does not have it.
func (m *Machine) truncate(to ident.Offset, out *Out) {
	out.note(Note{Kind: NoteTruncating, Offset: to, LeaderEpoch: m.leaderEpoch})
	m.cut = cut{open: true, rebuild: m.producers.above(to)}
	m.refuseFetches(wire.NotLeaderOrFollower, out)
	m.lower(to, out)
	m.writeCut(out)
}

// startAnew gives up the whole log and begins again at start, where the leader's log
// begins: what is below is deleted there.
func (m *Machine) startAnew(start ident.Offset, out *Out) {
	out.note(Note{Kind: NoteStartingAnew, Offset: start, LeaderEpoch: m.leaderEpoch})
	m.cut = cut{open: true, anew: true}
	m.refuseFetches(wire.NotLeaderOrFollower, out)
	m.logStart, m.highWatermark, m.end, m.flushed = start, start, start, start
	m.epochs.entries = m.epochs.entries[:0]
	m.unsay()
	m.writeCut(out)
}

// lower sets the end, and everything that must not be above it.
func (m *Machine) lower(to ident.Offset, out *Out) {
	if to < m.highWatermark {
		out.note(Note{Kind: NoteTruncatedCommitted, Offset: m.highWatermark, LeaderEpoch: m.leaderEpoch})
	}
	m.end = to
	m.flushed = min(m.flushed, to)
	m.highWatermark = min(m.highWatermark, to)
	m.epochs.cutEnd(to)
	m.unsay()
}

// unsay voids what was asked and said of the log as it was.
func (m *Machine) unsay() {
	m.mode.confirmAt = min(m.mode.confirmAt, m.end)
	m.follower.agreed = false
	m.follower.reset()
	m.follower.told = Report{End: ident.NoOffset}
	m.flushAlarm, m.askAlarm, m.syncSince = never, never, never
}

// writeCut asks the shell for the truncation, at first or once more.
func (m *Machine) writeCut(out *Out) {
	m.cut.refused = false
	kind := WriteTruncate
	if m.cut.anew {
		kind = WriteRestart
	}
	out.Persist = append(out.Persist, Write{Kind: kind, Offset: m.end, LeaderEpoch: m.leaderEpoch, Rebuild: m.cut.rebuild})
}

// Cutting tells that a truncation was asked for and is not done: the log may have more
// than the machine counts.
func (m *Machine) Cutting() bool { return m.cut.open }

// truncated goes on with the shorter log.
func (m *Machine) truncated(now Now, c *Truncated, out *Out) {
	if m.role == Stopped {
		return
	}
	t := m.cut
	switch {
	case !t.open:
		panic("partition: Truncated without a truncation")
	case c.End > m.end || c.End < m.logStart || t.anew && c.End != m.end:
		panic(fmt.Sprintf("partition: a log from %d was truncated to %d, not to %d", m.logStart, c.End, m.end))
	case c.Flushed > c.End:
		panic(fmt.Sprintf("partition: a log was truncated to %d, and is flushed to %d", c.End, c.Flushed))
	case t.rebuild && c.Producers == nil:
		panic("partition: Truncated without the producers' state that was asked for")
	}
	m.cut = cut{}
	m.generation = c.Generation
	// It may lie inside of a batch, which is gone as a whole then.
	m.lower(c.End, out)
	// A sync that returned while the truncation waited was stale here, and not for the log,
	// which has nothing left to sync there.
	m.flushed = max(m.flushed, c.Flushed)
	switch {
	case t.anew:
		m.producers = NewProducers(m.config.ProducersMax)
	case c.Producers != nil:
		m.producers = c.Producers
		m.producers.max = m.config.ProducersMax
		m.producers.shrink(out)
	}
	m.confirmStrict(out)
	if m.end > m.flushed {
		m.askFlush(now, out)
	}
	if t.later != nil {
		m.become(now, t.later, out)
	}
	m.askOn(out)
	m.report(out)
}

// truncateFailed waits for space.
func (m *Machine) truncateFailed(now Now, out *Out) {
	if m.role == Stopped {
		return
	}
	if !m.cut.open {
		panic("partition: TruncateFailed without a truncation")
	}
	m.cut.refused = true
	m.askLater(now, out)
}

// becomeLater keeps a metadata record until the log is whole again. Each carries all
// there is to know, so the newest is enough.
func (m *Machine) becomeLater(c *Become) {
	if l := m.cut.later; l != nil && (c.LeaderEpoch < l.LeaderEpoch || c.LeaderEpoch == l.LeaderEpoch && c.PartitionEpoch < l.PartitionEpoch) {
		return
	}
	later := *c
	later.Replicas, later.ISR = slices.Clone(c.Replicas), slices.Clone(c.ISR)
	later.Full, later.Damaged, later.Barred = slices.Clone(c.Full), slices.Clone(c.Damaged), slices.Clone(c.Barred)
	m.cut.later = &later
}
