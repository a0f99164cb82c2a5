package partition

import (
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// parkedFetch is a reader that waits for more bytes.
type parkedFetch struct {
	request    ident.RequestID
	from       ident.Offset
	after      ident.Offset // >= from
	bytesAfter int64        // count of sizes at after; unknownBytes: the first new batch will do
	bytesMin   int32
	bytesMax   int32
	isolation  Isolation
}

// unknownBytes marks a position that the machine cannot count from: the batches
// there were appended before this broker began to lead.
const unknownBytes = -1

// fetch answers a reader, or parks it.
func (m *Machine) fetch(c *Fetch, out *Out) {
	if code := m.readerRefusal(c.CurrentLeaderEpoch); code != wire.NoError && !m.mayFollowerServe(c, code) {
		m.refuseFetch(c.Request, code, out)
		return
	}
	if c.LastFetchedEpoch != ident.NoLeaderEpoch {
		epoch, end := m.epochs.end(c.LastFetchedEpoch, m.end)
		// A reader below the log start has nothing to compare, whatever the epochs say.
		if epoch == ident.NoLeaderEpoch || c.From < m.logStart {
			m.refuseFetch(c.Request, wire.OffsetOutOfRange, out)
			return
		}
		if epoch < c.LastFetchedEpoch || end < c.From {
			r := m.replyFetch(out, c.Request, c.From, c.From, c.BytesMax)
			r.Diverging, r.DivergingEpoch, r.DivergingEnd = true, epoch, end
			return
		}
	}
	// Between high watermark and log end there is nothing to read yet, but the offset
	// is a legal one: the reader may have seen it elsewhere.
	if c.From < m.logStart || c.From > m.end {
		m.refuseFetch(c.Request, wire.OffsetOutOfRange, out)
		return
	}
	if b := m.preferredReplica(c); b != ident.NoBroker {
		m.replyFetch(out, c.Request, c.From, c.From, c.BytesMax).Preferred = b
		return
	}
	f := parkedFetch{
		request: c.Request, from: c.From, after: min(max(c.From, c.After), m.end),
		bytesMin: c.BytesMin, bytesMax: c.BytesMax, isolation: c.Isolation,
	}
	if f.bytesAfter = m.sizes.at(f.after); m.role == Following {
		f.bytesAfter = unknownBytes // only a leader counts
	}
	if !c.Park || c.BytesMin <= 0 || m.satisfied(&f) {
		m.answerFetch(&f, out)
		return
	}
	if len(m.fetches) >= m.config.FetchWaitersMax {
		out.note(Note{Kind: NoteFetchFull})
		m.answerFetch(&f, out)
		return
	}
	m.fetches = append(m.fetches, f)
}

// mayFollowerServe tells whether a reader that asks a follower gets what it knows to be
// committed. While the log is being cut it is not at hand.
func (m *Machine) mayFollowerServe(c *Fetch, code wire.ErrorCode) bool {
	return code == wire.NotLeaderOrFollower && c.AnyReplica && m.role == Following && !m.cut.open
}

// preferredReplica is the one of the replicas near the reader that has most of the log,
// among those that are in sync, sound, and hold the reader's position.
func (m *Machine) preferredReplica(c *Fetch) ident.BrokerID {
	best, end := ident.NoBroker, ident.NoOffset
	if m.role != Leading {
		return best
	}
	for _, b := range c.Near {
		r := m.replicas.find(b)
		if r == nil || b == m.broker || !r.inISR || r.damaged || r.leaving || r.end < c.From || r.start > c.From || r.end <= end {
			continue
		}
		best, end = b, r.end
	}
	return best
}

// limit is the first offset that a reader may not see.
func (m *Machine) limit(i Isolation) ident.Offset {
	if i == ReadCommitted {
		return m.lastStable()
	}
	return m.highWatermark
}

// satisfied tells whether a parked reader may see as many new bytes as it wants.
func (m *Machine) satisfied(f *parkedFetch) bool {
	limit := m.limit(f.isolation)
	if limit <= f.after {
		return false
	}
	if f.bytesAfter == unknownBytes {
		return true
	}
	// The limit may be unknown too, when very many batches are above it.
	bytes := m.sizes.at(limit)
	return bytes == unknownBytes || bytes-f.bytesAfter >= int64(f.bytesMin)
}

// wakeFetches answers every parked reader that has enough now.
func (m *Machine) wakeFetches(out *Out) {
	m.sweepFetches(out, m.satisfied)
}

// answerFetches answers every parked reader with what there is.
func (m *Machine) answerFetches(out *Out) {
	for i := range m.fetches {
		m.answerFetch(&m.fetches[i], out)
	}
	m.fetches = m.fetches[:0]
}

// sweepFetches answers the parked readers that done picks, in the order they came.
func (m *Machine) sweepFetches(out *Out, done func(*parkedFetch) bool) {
	kept := m.fetches[:0]
	for i := range m.fetches {
		if f := &m.fetches[i]; done(f) {
			m.answerFetch(f, out)
		} else {
			kept = append(kept, *f)
		}
	}
	m.fetches = kept
}

// unpark ends the wait of one reader.
func (m *Machine) unpark(c *Unpark, out *Out) {
	for i := range m.fetches {
		if m.fetches[i].request == c.Request {
			m.answerFetch(&m.fetches[i], out)
			m.fetches = append(m.fetches[:i], m.fetches[i+1:]...)
			return
		}
	}
}

// rolled answers the readers whose range now ends with a segment: waiting cannot
// make their next answer larger.
func (m *Machine) rolled(c *Rolled, out *Out) {
	m.sweepFetches(out, func(f *parkedFetch) bool {
		return f.from < c.Base && m.limit(f.isolation) > f.from
	})
}

// answerFetch gives a reader the range it may read now.
func (m *Machine) answerFetch(f *parkedFetch, out *Out) {
	if f.from < m.logStart {
		m.refuseFetch(f.request, wire.OffsetOutOfRange, out)
		return
	}
	m.replyFetch(out, f.request, f.from, max(f.from, m.limit(f.isolation)), f.bytesMax)
}

// replyFetch answers a reader with a range and the current offsets.
func (m *Machine) replyFetch(out *Out, id ident.RequestID, from, upTo ident.Offset, bytesMax int32) *FetchReply {
	r := &m.reply(out, id, ReplyFetch, wire.NoError).Fetch
	*r = FetchReply{
		From: from, UpTo: upTo, BytesMax: bytesMax,
		HighWatermark: m.highWatermark, LastStable: m.lastStable(), LogStart: m.logStart,
		DivergingEpoch: ident.NoLeaderEpoch, DivergingEnd: ident.NoOffset, Preferred: ident.NoBroker,
	}
	return r
}

// refuseFetch answers a reader with a code and without offsets.
func (m *Machine) refuseFetch(id ident.RequestID, code wire.ErrorCode, out *Out) {
	m.reply(out, id, ReplyFetch, code).Fetch = FetchReply{
		From: ident.NoOffset, UpTo: ident.NoOffset,
		HighWatermark: ident.NoOffset, LastStable: ident.NoOffset, LogStart: ident.NoOffset,
		DivergingEpoch: ident.NoLeaderEpoch, DivergingEnd: ident.NoOffset, Preferred: ident.NoBroker,
	}
}
