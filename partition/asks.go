package partition

import (
	"cmp"
	"math"
	"slices"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// ask answers a follower, or parks it at the log end.
func (m *Machine) ask(now Now, c *Ask, out *Out) {
	if m.role != Stopped && c.LeaderEpoch > m.leaderEpoch {
		m.keepAsk(c, out)
		return
	}
	r := m.replicas.find(c.Broker)
	if code := m.askRefusal(c, r); code != wire.NoError {
		out.note(Note{Kind: NoteStaleAsk, LeaderEpoch: c.LeaderEpoch})
		m.replyAsk(out, c.Request, code, c.From, c.From, 0)
		return
	}
	if c.Generation < r.generation {
		// The follower has truncated since and asked again; only that counts.
		out.note(Note{Kind: NoteStaleAsk, LeaderEpoch: c.LeaderEpoch})
		m.silence(out, c.Request)
		return
	}
	if c.Generation > r.generation {
		m.voidAsk(r, out)
		r.renew(c.Generation)
	}
	if !m.agrees(c, out) {
		m.reclock(now, r, out)
		return
	}
	first := !r.verified || !r.asks
	r.verified, r.asks = true, true
	r.merge(c.LogEnd, c.Flushed, m.end)
	if r.hasEarly && r.early.Generation <= r.generation {
		if r.early.Generation == r.generation {
			r.merge(r.early.End, r.early.Flushed, m.end)
			r.start = max(r.start, min(r.early.LogStart, r.end))
			m.finishDeletes(out)
		}
		r.hasEarly = false
	}
	m.advance(out)
	m.serveAsk(c, r, first, out)
	m.reclock(now, r, out)
	m.proposeISR(now, out)
}

// askRefusal is the code for an ask that cannot count; wire.NoError if it may.
func (m *Machine) askRefusal(c *Ask, r *replica) wire.ErrorCode {
	switch {
	case m.role == Stopped:
		return m.stopCode
	case c.LeaderEpoch < m.leaderEpoch:
		return wire.FencedLeaderEpoch
	case m.role != Leading || r == nil || c.Broker == m.broker:
		return wire.NotLeaderOrFollower
	case !m.registered(r, c.BrokerEpoch):
		return wire.StaleBrokerEpoch
	case !sound(c.LogEnd, c.Flushed) || c.From < 0 || c.LastBatchEpoch > c.LeaderEpoch:
		return wire.InvalidRequest
	}
	return wire.NoError
}

// agrees checks that the follower's log is a prefix of this one, and answers it if
// not.
func (m *Machine) agrees(c *Ask, out *Out) bool {
	if c.LogEnd < m.logStart && c.LastBatchEpoch == ident.NoLeaderEpoch && m.logStart < m.end {
		return true // an empty log, which can begin with the first batch here
	}
	if c.LogEnd < m.logStart {
		// There is nothing here to compare with, nor to go on from.
		m.replyAsk(out, c.Request, wire.OffsetOutOfRange, c.From, c.From, 0)
		return false
	}
	epoch, end := c.LastBatchEpoch, m.end
	if epoch != ident.NoLeaderEpoch {
		epoch, end = m.epochs.end(epoch, m.end)
	}
	if epoch == c.LastBatchEpoch && c.LogEnd <= end {
		return true
	}
	if epoch == ident.NoLeaderEpoch {
		epoch = m.epochs.last() // an empty log that begins beyond our end
	}
	out.note(Note{Kind: NoteDiverged, Offset: end, LeaderEpoch: epoch})
	f := &m.replyAsk(out, c.Request, wire.NoError, c.From, c.From, 0).Fetch
	f.Diverging, f.DivergingEpoch, f.DivergingEnd = true, epoch, end
	return false
}

// serveAsk answers with a range, or parks. The first ask of an epoch and generation,
// and of a connection, is answered even when there is no range: only then does the
// follower know that the logs agree, and may believe a high watermark.
func (m *Machine) serveAsk(c *Ask, r *replica, first bool, out *Out) {
	from := c.From
	if from == c.LogEnd && c.LastBatchEpoch == ident.NoLeaderEpoch {
		from = max(from, m.logStart)
	}
	if from < m.logStart || from > m.end {
		m.replyAsk(out, c.Request, wire.OffsetOutOfRange, c.From, c.From, 0)
		return
	}
	if first || from < m.end {
		m.replyAsk(out, c.Request, wire.NoError, from, m.end, c.BytesMax)
		r.told(m)
		return
	}
	m.voidAsk(r, out)
	r.parked = parkedAsk{open: true, request: c.Request, from: c.From, bytesMax: c.BytesMax}
	m.tellFollowers(out)
}

// answerAsks answers the followers whose asks wait below the log end.
func (m *Machine) answerAsks(now Now, out *Out) {
	for i := range m.replicas.all {
		r := &m.replicas.all[i]
		if !r.parked.open || r.parked.from >= m.end {
			continue
		}
		r.parked.open = false
		m.replyAsk(out, r.parked.request, wire.NoError, r.parked.from, m.end, r.parked.bytesMax)
		r.told(m)
		m.reclock(now, r, out)
	}
}

// refuseAsks answers every parked ask with a code.
func (m *Machine) refuseAsks(code wire.ErrorCode, out *Out) {
	for i := range m.replicas.all {
		if r := &m.replicas.all[i]; r.parked.open {
			r.parked.open, r.clock.stands = false, false
			m.replyAsk(out, r.parked.request, code, r.parked.from, r.parked.from, 0)
		}
	}
}

// voidAsk ends the wait of an ask whose follower asks elsewhere.
func (m *Machine) voidAsk(r *replica, out *Out) {
	if r.parked.open {
		r.parked.open = false
		m.silence(out, r.parked.request)
	}
}

// silence ends a request that nobody waits for any more.
func (m *Machine) silence(out *Out, id ident.RequestID) {
	m.replyAsk(out, id, wire.NoError, ident.NoOffset, ident.NoOffset, 0).Silent = true
}

// replyAsk answers a follower. Unlike a reader it gets the offsets with any code.
func (m *Machine) replyAsk(out *Out, id ident.RequestID, code wire.ErrorCode, from, upTo ident.Offset, bytesMax int32) *Reply {
	r := m.reply(out, id, ReplyAsk, code)
	r.Fetch = FetchReply{
		From: from, UpTo: upTo, BytesMax: bytesMax,
		HighWatermark: m.highWatermark, LastStable: m.lastStable(), LogStart: m.logStart,
		DivergingEpoch: ident.NoLeaderEpoch, DivergingEnd: ident.NoOffset,
	}
	return r
}

// told notes that the current offsets leave for the follower, in an answer that it will
// heed: in a refusal it looks for nothing else.
func (r *replica) told(m *Machine) { r.toldHigh, r.toldStart = m.highWatermark, m.logStart }

// tellFollowers sends a moved high watermark or log start to the followers whose asks
// are parked. The others get it with their next answer.
func (m *Machine) tellFollowers(out *Out) {
	for i := range m.replicas.all {
		r := &m.replicas.all[i]
		if !r.parked.open || r.toldHigh >= m.highWatermark && r.toldStart >= m.logStart {
			continue
		}
		r.told(m)
		out.Watermark = append(out.Watermark, WatermarkLetter{
			Broker: r.Broker, BrokerEpoch: r.BrokerEpoch,
			Says: Watermark{LeaderEpoch: m.leaderEpoch, Generation: r.generation, HighWatermark: m.highWatermark, LogStart: m.logStart},
		})
	}
}

// withdraw takes an ask back.
func (m *Machine) withdraw(now Now, c *Withdraw, out *Out) {
	m.dropEarlyAsk(c.Broker, c.BrokerEpoch, c.LeaderEpoch, out)
	r := m.replicas.find(c.Broker)
	if r == nil || m.role != Leading || c.LeaderEpoch != m.leaderEpoch || !m.registered(r, c.BrokerEpoch) || c.Generation != r.generation {
		return
	}
	m.voidAsk(r, out)
	r.asks = false
	m.reclock(now, r, out)
}

// earlyMax bounds the followers whose asks or reports of a later epoch are kept.
const earlyMax = 64

// earlyFollower has heard of a leader epoch before this machine: by the same
// metadata log, but on another broker.
type earlyFollower struct {
	ask         Ask
	progress    Progress
	hasAsk      bool
	hasProgress bool
}

// earlyOf finds the place for what a broker says too early. A later registration takes
// the place of a former one; nil: there is none.
func (m *Machine) earlyOf(b ident.BrokerID, create bool) *earlyFollower {
	for i := range m.early {
		if e := &m.early[i]; e.hasAsk && e.ask.Broker == b || e.hasProgress && e.progress.Broker == b {
			return e
		}
	}
	if !create || len(m.early) >= earlyMax {
		return nil
	}
	m.early = append(m.early, earlyFollower{})
	return &m.early[len(m.early)-1]
}

// keepAsk keeps an ask of a later leader epoch.
func (m *Machine) keepAsk(c *Ask, out *Out) {
	e := m.earlyOf(c.Broker, true)
	if e == nil {
		m.replyAsk(out, c.Request, wire.UnknownLeaderEpoch, c.From, c.From, 0)
		return
	}
	old := &e.ask
	if e.hasAsk && older(c.BrokerEpoch, old.BrokerEpoch, c.LeaderEpoch, old.LeaderEpoch, c.Generation, old.Generation) {
		m.silence(out, c.Request)
		return
	}
	if e.hasAsk {
		m.silence(out, old.Request)
	}
	e.ask, e.hasAsk = *c, true
}

// older tells whether a message is of a former registration, leader epoch or generation
// than another, in this order.
func older(b, than ident.BrokerEpoch, e, thanE ident.LeaderEpoch, g, thanG ident.Generation) bool {
	return cmp.Or(cmp.Compare(b, than), cmp.Compare(e, thanE), cmp.Compare(g, thanG)) < 0
}

// keepProgress keeps a report of a later leader epoch.
func (m *Machine) keepProgress(c *Progress, out *Out) {
	e := m.earlyOf(c.Broker, true)
	if e == nil {
		out.note(Note{Kind: NoteStaleProgress, LeaderEpoch: c.LeaderEpoch})
		return
	}
	old := &e.progress
	if e.hasProgress && older(c.BrokerEpoch, old.BrokerEpoch, c.LeaderEpoch, old.LeaderEpoch, c.Generation, old.Generation) {
		return
	}
	next := *c
	if e.hasProgress && old.BrokerEpoch == c.BrokerEpoch && old.LeaderEpoch == c.LeaderEpoch && old.Generation == c.Generation {
		next.End, next.Flushed, next.LogStart = max(c.End, old.End), max(c.Flushed, old.Flushed), max(c.LogStart, old.LogStart)
	}
	e.progress, e.hasProgress = next, true
}

// takeEarly handles what came too early, when the metadata log has caught up. What is
// still ahead stays.
func (m *Machine) takeEarly(now Now, out *Out) {
	early := m.early
	m.early = nil
	for i := range early {
		e := &early[i]
		if e.hasAsk {
			m.ask(now, &e.ask, out)
		}
		if e.hasProgress {
			m.progress(now, &e.progress, out)
		}
	}
}

// dropEarlyAsk forgets the asks up to an epoch that a broker made too early.
func (m *Machine) dropEarlyAsk(b ident.BrokerID, be ident.BrokerEpoch, upTo ident.LeaderEpoch, out *Out) {
	e := m.earlyOf(b, false)
	if e == nil || !e.hasAsk || e.ask.BrokerEpoch != be || e.ask.LeaderEpoch > upTo {
		return
	}
	m.silence(out, e.ask.Request)
	e.hasAsk = false
	m.early = slices.DeleteFunc(m.early, func(e earlyFollower) bool { return !e.hasAsk && !e.hasProgress })
}

// refuseEarly answers everything that came too early.
func (m *Machine) refuseEarly(code wire.ErrorCode, out *Out) {
	for i := range m.early {
		if e := &m.early[i]; e.hasAsk {
			m.replyAsk(out, e.ask.Request, code, e.ask.From, e.ask.From, 0)
		}
	}
	m.early = nil
}

// connected begins anew what a lost connection may have swallowed.
func (m *Machine) connected(c *Connected, out *Out) {
	switch {
	case m.role == Following && c.Broker == m.leader && c.Control:
		m.follower.told = Report{End: ident.NoOffset}
		m.report(out)
	case m.role == Following && c.Broker == m.leader:
		m.follower.reset()
		m.askOn(out)
	case m.role == Leading && c.Control:
		if r := m.replicas.find(c.Broker); r != nil {
			r.toldHigh, r.toldStart = ident.NoOffset, ident.NoOffset
			m.tellFollowers(out)
		}
	}
}

// disconnected ends the waits that hung on a data connection.
func (m *Machine) disconnected(now Now, c *Disconnected, out *Out) {
	if c.Own {
		if m.role == Following && c.Broker == m.leader {
			m.follower.reset()
		}
		return
	}
	m.dropEarlyAsk(c.Broker, c.BrokerEpoch, math.MaxInt32, out)
	r := m.replicas.find(c.Broker)
	if r == nil || m.role != Leading || !m.registered(r, c.BrokerEpoch) {
		return
	}
	m.voidAsk(r, out)
	r.asks = false
	m.reclock(now, r, out)
}
