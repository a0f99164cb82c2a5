package partition

import (
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// listOffsets answers from the offsets the machine knows, or bounds a search in the
// log.
func (m *Machine) listOffsets(c *ListOffsets, out *Out) {
	none := ListOffsetsReply{UpTo: ident.NoOffset, Offset: ident.NoOffset, LeaderEpoch: ident.NoLeaderEpoch}
	if code := m.readerRefusal(c.CurrentLeaderEpoch); code != wire.NoError {
		m.reply(out, c.Request, ReplyListOffsets, code).ListOffsets = none
		return
	}
	// Below the epoch's start lie records that an earlier leader may have shown. Until
	// the high watermark is back there, "the end" would be a step backwards, and
	// "no such record" may be wrong.
	unsettled := wire.NoError
	if m.highWatermark < m.epochStart {
		unsettled = wire.OffsetNotAvailable
	}
	a := none
	code := wire.NoError
	switch c.Timestamp {
	case LatestTimestamp:
		if code = unsettled; code == wire.NoError {
			a.Offset = m.limit(c.Isolation)
			a.LeaderEpoch = m.epochs.of(a.Offset)
		}
	case EarliestTimestamp, EarliestLocalTimestamp:
		a.Offset = m.logStart
		a.LeaderEpoch = m.epochs.of(m.logStart)
	case LatestTieredTimestamp, EarliestPendingTimestamp:
		// Nothing is tiered, nothing waits to be.
	default:
		a.Search, a.SearchFailed, a.UpTo = true, unsettled, m.limit(c.Isolation)
	}
	m.reply(out, c.Request, ReplyListOffsets, code).ListOffsets = a
}

// EpochOf is the leader epoch of the record at an offset that a search in the log
// found, or ident.NoLeaderEpoch.
func (m *Machine) EpochOf(o ident.Offset) ident.LeaderEpoch { return m.epochs.of(o) }

// epochEnd answers where a leader epoch ended.
func (m *Machine) epochEnd(c *EpochEnd, out *Out) {
	code := m.readerRefusal(c.CurrentLeaderEpoch)
	a := EpochEndReply{Epoch: ident.NoLeaderEpoch, End: ident.NoOffset}
	if code == wire.NoError {
		a.Epoch, a.End = m.epochs.end(c.Epoch, m.end)
	}
	m.reply(out, c.Request, ReplyEpochEnd, code).EpochEnd = a
}

// describeProducers answers with the producers' state. A follower's is as good as a
// leader's.
func (m *Machine) describeProducers(c *DescribeProducers, out *Out) {
	code := wire.NoError
	if m.role == Stopped || m.role == Unassigned {
		code = m.refusal()
	}
	r := m.reply(out, c.Request, ReplyDescribeProducers, code)
	if code == wire.NoError {
		r.Producers = DescribeProducersReply{Producers: m.producers.describe()}
	}
}
