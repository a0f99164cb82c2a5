package partition

import (
	"math"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// follower is what a replica knows of its leader.
type follower struct {
	// agreed: an answer of this leader epoch, to an ask of this generation, has said that
	// the local log is a prefix of the leader's. Before that no high watermark of the
	// leader's may be believed: what lies below it here may be something else.
	agreed bool
	// asked is where the unanswered ask reads; ident.NoOffset: there is none.
	asked ident.Offset
	// The greatest high watermark and log start that the leader told of in this epoch;
	// ident.NoOffset: none.
	heardHigh  ident.Offset
	heardStart ident.Offset
	told       Report // the last report, or what the last ask said
	backoff    int64  // the next pause, in nanoseconds; 0: the first one
}

// begin forgets what another leader, or the same one in another epoch, has said.
func (f *follower) begin() {
	*f = follower{asked: ident.NoOffset, heardHigh: ident.NoOffset, heardStart: ident.NoOffset, told: Report{End: ident.NoOffset}}
}

// reset forgets the ask: there will be no answer to it.
func (f *follower) reset() { f.asked, f.backoff = ident.NoOffset, 0 }

// follow ends a leadership, if there was one, and begins to ask the new leader.
func (m *Machine) follow(now Now, out *Out) {
	m.role = Following
	m.flushAlarm = never
	m.goOnLeading()
	m.follower.begin()
	out.note(Note{Kind: NoteBecameFollower, LeaderEpoch: m.leaderEpoch})
	m.answerAll(wire.NotLeaderOrFollower, out)
	// A leadership in which nothing was written is no part of the log; its epoch may be
	// above that of the next batch.
	m.epochs.cutEnd(m.end)
	out.Persist = append(out.Persist, Write{Kind: WriteEpochsCut, Offset: m.end, LeaderEpoch: m.leaderEpoch})
	if m.end > m.flushed {
		m.askFlush(now, out)
	}
	if m.producers.Len() > 0 {
		m.armProducers(now, out)
	}
	m.askOn(out)
}

// mayAsk tells whether there is somebody to ask, and something to say. While the strict
// mark is being cleared nothing may be said of bytes that are not flushed.
func (m *Machine) mayAsk() bool {
	return m.role == Following && m.leader != ident.NoBroker && m.leader != m.broker && !m.cut.open && !m.mode.clearing &&
		m.replicas.find(m.broker) != nil
}

// askOn asks for what comes at the log end, unless that is asked for already.
func (m *Machine) askOn(out *Out) {
	f := &m.follower
	if !m.mayAsk() || f.asked == m.end {
		return
	}
	// One that reads elsewhere is of no use: its answer would not begin at the log end.
	f.asked = m.end
	start := f.told.LogStart
	f.told = m.reportNow()
	f.told.LogStart = start // an ask does not say where the log starts; a report does
	out.Ask = append(out.Ask, Inquiry{
		LeaderEpoch: m.leaderEpoch, Generation: m.generation, From: m.end, LogEnd: m.end, Flushed: m.flushed,
		LastBatchEpoch: m.lastBatchEpoch(), BytesMax: m.config.AskBytesMax,
	})
}

// lastBatchEpoch is the epoch of the last batch, ident.NoLeaderEpoch in an empty log.
// A leadership without batches does not count.
func (m *Machine) lastBatchEpoch() ident.LeaderEpoch {
	if m.end == m.logStart {
		return ident.NoLeaderEpoch
	}
	return m.epochs.of(m.end - 1)
}

// reportNow is what there is to say of the log.
func (m *Machine) reportNow() Report {
	return Report{LeaderEpoch: m.leaderEpoch, Generation: m.generation, End: m.end, Flushed: m.flushed, LogStart: m.logStart}
}

// report tells the leader what has changed since it was told last.
func (m *Machine) report(out *Out) {
	if !m.mayAsk() {
		return
	}
	if r := m.reportNow(); r != m.follower.told {
		m.follower.told = r
		out.Report = append(out.Report, r)
	}
}

// askLater arms another ask after a pause, which grows from refusal to refusal.
func (m *Machine) askLater(now Now, out *Out) {
	f := &m.follower
	if f.backoff == 0 {
		f.backoff = max(m.config.AskBackoffNanos/32, 1)
	}
	m.askAlarm = now.Mono + ident.Instant(f.backoff)
	f.backoff = min(2*f.backoff, max(m.config.AskBackoffNanos, 1))
	out.Arm = append(out.Arm, Alarm{Key: AlarmAsk, At: m.askAlarm})
}

// askAgain ends the pause.
func (m *Machine) askAgain(out *Out) {
	m.askAlarm = never
	if m.cut.refused {
		m.writeCut(out)
		return
	}
	m.askOn(out)
}

// answered takes in the leader's answer.
func (m *Machine) answered(now Now, c *Answered, out *Out) {
	f := &m.follower
	if !m.heeds(c.LeaderEpoch) || c.Generation != m.generation {
		out.note(Note{Kind: NoteStaleAnswer, LeaderEpoch: c.LeaderEpoch})
		return
	}
	if f.asked == c.From {
		f.asked = ident.NoOffset
	}
	switch {
	case c.Code == wire.OffsetOutOfRange && c.LogStart > m.end:
		m.startAnew(c.LogStart, out)
		return
	case c.Code != wire.NoError:
		// The leader may not know yet that it leads, or this registration; or it leads
		// no more. The metadata log will tell one of us.
		m.askLater(now, out)
		return
	case m.begunInside(c):
		m.startAnew(c.Batches[0].Base, out)
		return
	case c.LogStart < 0 || c.HighWatermark < c.LogStart || !m.fit(c):
		out.note(Note{Kind: NoteBadAnswer, LeaderEpoch: c.LeaderEpoch})
		m.askLater(now, out)
		return
	case c.Diverging:
		m.diverged(now, c, out)
		return
	case m.begunBelow(c):
		m.startAnew(min(c.LogStart, c.Batches[0].Base), out)
		return
	}
	f.agreed = true
	m.hear(c.HighWatermark, c.LogStart)
	if c.From != m.end || len(c.Batches) == 0 {
		if c.From != m.end {
			out.note(Note{Kind: NoteStaleAnswer, LeaderEpoch: c.LeaderEpoch})
		}
		m.heed(out)
		m.goOn(out)
		return
	}
	m.write(c.Batches, out)
}

// heeds tells whether what a leader of the epoch says is of interest now.
func (m *Machine) heeds(e ident.LeaderEpoch) bool {
	return m.role == Following && e == m.leaderEpoch && !m.cut.open
}

// begunInside tells whether the log ends inside of the first batch, and all that it has
// is deleted on the leader, or it has nothing: the leader's log start is no batch's base.
// Then it has to begin with that batch.
func (m *Machine) begunInside(c *Answered) bool {
	if c.Diverging || m.end != m.logStart && c.LogStart < m.end || c.From != m.end || len(c.Batches) == 0 {
		return false
	}
	b := &c.Batches[0]
	return 0 <= b.Base && b.Base < m.end && b.LastOffsetDelta >= 0 && m.end-b.Base <= ident.Offset(b.LastOffsetDelta)
}

// begunBelow tells whether the log has nothing, and begins where all is deleted on the leader. It could take the first batch there is; but a log start is durable
// only later than what is appended, and one that is found below that after a death of the process would promise records that are not there.
func (m *Machine) begunBelow(c *Answered) bool {
	return m.end == m.logStart && c.From == m.end && len(c.Batches) > 0 && min(c.LogStart, c.Batches[0].Base) > m.end
}

// fit tells whether batches can follow each other, and the log end if the answer
// begins there.
func (m *Machine) fit(c *Answered) bool {
	next, epoch := c.From, ident.LeaderEpoch(0)
	if c.From == m.end {
		epoch = max(m.epochs.last(), 0)
	}
	for i := range c.Batches {
		b := &c.Batches[i]
		if b.Base < next || b.LastOffsetDelta < 0 || b.Base > math.MaxInt64-ident.Offset(b.LastOffsetDelta)-1 ||
			b.LeaderEpoch < epoch || b.LeaderEpoch > m.leaderEpoch || b.Bytes <= 0 {
			return false
		}
		next, epoch = b.Base+ident.Offset(b.LastOffsetDelta)+1, b.LeaderEpoch
	}
	return true
}

// write hands batches to the shell. Their outcome is stepped before anything else.
func (m *Machine) write(batches []ReplicaBatch, out *Out) {
	m.proposal.open, m.proposal.replicated, m.proposal.replayed = true, append(m.proposal.replicated[:0], batches...), 0
	out.Persist = append(out.Persist, Write{Kind: WriteReplica, Offset: m.end, LeaderEpoch: m.leaderEpoch})
}

// replicatedKept bounds the memory that is kept for the batches of an answer.
const replicatedKept = 64

// replay takes the first n batches of a write into the producers' state, each once. They
// are in the log, whatever becomes of the others.
func (m *Machine) replay(now Now, n int) {
	p := &m.proposal
	for ; p.replayed < min(n, len(p.replicated)); p.replayed++ {
		b := &p.replicated[p.replayed]
		m.producers.Replay(b.Base, b.BatchInfo, now.Wall)
	}
}

// replicated takes the first n written batches into the state.
func (m *Machine) replicated(now Now, n int, out *Out) {
	m.replay(now, n)
	batches := m.proposal.replicated[:min(max(n, 0), len(m.proposal.replicated))]
	if m.proposal.replicated = m.proposal.replicated[:0]; cap(m.proposal.replicated) > replicatedKept {
		m.proposal.replicated = nil
	}
	for i := range batches {
		b := &batches[i]
		// Where compaction has left a gap, the epoch begins at its lower end: so it takes in
		// what another replica may still hold there of an epoch that was overruled.
		m.epochs.assign(b.LeaderEpoch, m.end)
		m.end = b.Base + ident.Offset(b.LastOffsetDelta) + 1
	}
	if m.producers.Len() > 0 {
		m.armProducers(now, out)
	}
	if m.end > m.flushed {
		m.askFlush(now, out)
	}
}

// hear remembers what the leader says of its log.
func (m *Machine) hear(high, start ident.Offset) {
	f := &m.follower
	f.heardHigh, f.heardStart = max(f.heardHigh, high), max(f.heardStart, start)
}

// heed raises high watermark and log start to what the leader says, as far as the
// local log reaches.
func (m *Machine) heed(out *Out) {
	if !m.follower.agreed {
		return
	}
	if high := min(m.follower.heardHigh, m.end); high > m.highWatermark {
		m.highWatermark = high
		m.wakeFetches(out)
	}
	if start := min(m.follower.heardStart, m.highWatermark); start > m.logStart {
		out.Persist = append(out.Persist, Write{Kind: WriteStart, Offset: start, LeaderEpoch: m.leaderEpoch})
		m.moveStart(start, out)
	}
}

// goOn asks for more and says what has not been said.
func (m *Machine) goOn(out *Out) {
	m.follower.backoff = 0
	m.askOn(out)
	m.report(out)
}

// watermark takes in what the leader says while an ask is parked there.
func (m *Machine) watermark(c *Watermark, out *Out) {
	if !m.heeds(c.LeaderEpoch) || c.Generation != m.generation || c.LogStart < 0 || c.HighWatermark < c.LogStart {
		out.note(Note{Kind: NoteStaleAnswer, LeaderEpoch: c.LeaderEpoch})
		return
	}
	m.hear(c.HighWatermark, c.LogStart)
	m.heed(out)
	m.report(out)
}
