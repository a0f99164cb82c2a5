package broker

import (
	"fmt"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// How the scrub of a follower compares what it has read with what its leader has. The checksums of both are right by then: a difference is no damage of a disk, but
// two replicas that were told different things, or a bug.
//
//	worker    ── a sound piece ──> partition ── DigestAsk ──> leader, which reads and sums up its own batches of these offsets
//	                               partition <── DigestAnswer: the same digest: go on, behind it
//	                               partition ── RangeAsk ──> leader, where it is another one
//	worker    <── both ── partition <── RangeAnswer
//	worker    ── differences ──> partition: told, and kept for `troupe partition verify`
//
// What is compared: what is committed by the follower's high watermark and the leader's, and is there and sound at both. A record that both have must be the same:
// key, value, headers, time, leader epoch and producer. Batches need not be the same bytes, as compaction leaves records out of them. A record that only one has is
// a difference only where neither log was compacted, as far as both know: not in a topic that is compacted, and not below what either has compacted before.
//
// What is not compared: what is damaged at one of the two, which is found and mended by other means; what is not committed; what a leader of an older build has,
// or one that does not answer. The report of a check says so.
//
// A difference is told, as an error and as a metric, and nothing is done about it: that the leader has something else does not make it right, and whoever read the
// records of either has read them. An operator decides, by `troupe partition repair --divergent` or by letting another replica lead.

// comparing is the piece that is being compared.
type comparing struct {
	timer   *runtime.Timer
	piece   *scrubPiece // nil: none
	own     []byte      // batches of the piece, from at on
	at, end ident.Offset
	next    ident.Offset // up to where the digests differed; 0: the digest is awaited
	whole   ident.Offset // from where on a record that only one has is a difference
	asks    int          // that were made for the piece

	leader     ident.BrokerID
	epoch      ident.LeaderEpoch
	generation ident.Generation
	ticket     ident.Generation // of the ask that is unanswered; 0: none is
}

// compareAsks is how many asks are made for a piece before it is paid for: each lets the leader read as much as a piece has.
const compareAsks = 8

// Why something was not compared. The texts are read by people.
const (
	notAnswered = "the leader did not answer in time"
	notLinked   = "this broker has no peer port"
	notLed      = "nobody leads the partition"
	notSteady   = "the leadership or the log changed meanwhile"
	notSound    = "the leader's copy is damaged there"
	notSame     = "the leader's answer makes no sense"
)

// Messages of a comparison.
type (
	// pieceRead tells that a piece was read, and brings what is sound of it, if it is to be compared.
	pieceRead struct {
		piece *scrubPiece
		bytes []byte
		bad   store.OffsetRange // what was found to be damaged; empty: nothing
		end   ident.Offset      // of what is to be compared
		next  ident.Offset      // where the scrub goes on

		generation ident.Generation // of the log, when it was read
	}
	// digestGiven is the leader's answer.
	digestGiven struct{ answer peer.DigestAnswer }
	// compareJob looks into what differs. It is its own answer.
	compareJob struct {
		replica         *replica
		ticket          ident.Generation
		mine, theirs    []byte
		from, to, whole ident.Offset
		found           differences
		spoilt          bool // the leader's batches came damaged, or in an order that no log has
	}
	// compared is a compareJob that is done.
	compared struct{ *compareJob }
)

// Bytes implements runtime.Message.
func (*pieceRead) Bytes() int   { return 0 }
func (*digestGiven) Bytes() int { return 0 }
func (*compareJob) Bytes() int  { return 0 }
func (*compared) Bytes() int    { return 0 }

// Owed implements runtime.Owed: a check that has lost one would be called whole, and has not compared it.
func (*pieceRead) Owed() {}

// Reject implements runtime.Rejecter: the partition has stopped.
func (m *pieceRead) Reject(error) { m.piece.done(m.next) }

// Reject implements runtime.Rejecter: the broker stops, or the pool is full. What is not compared is compared in another round, once nobody has answered for long enough.
func (*compareJob) Reject(error) {}

// cleanBelow is the offset below which records may be missing because of compaction.
func (p *partitionActor) cleanBelow() ident.Offset {
	if p.settings.log.Compact {
		return p.file.End()
	}
	return p.file.FirstDirty()
}

// mayCompare tells whether this replica can be compared with its leader now, or why not; a leader has nobody to be compared with.
func (p *partitionActor) mayCompare() (ok bool, why string) {
	switch {
	case p.machine.Role() == partition.Leading:
		return false, ""
	case p.shared.links == nil:
		return false, notLinked
	case p.machine.Role() != partition.Following || p.machine.Leader() == ident.NoBroker || p.machine.Cutting():
		return false, notLed
	}
	level := p.shared.image.Load().FeatureLevel(cluster.PeerVersion)
	if need := int16(peer.CodeDigestAsk.Since()); level < need {
		return false, fmt.Sprintf("%s is %d, and brokers compare from %d on", cluster.PeerVersion, level, need)
	}
	return true, ""
}

// take begins to compare a piece.
func (m *pieceRead) take(p *partitionActor, t *runtime.Turn) {
	c := &p.comparing
	if p.machine == nil || p.file == nil || p.checking == nil || p.checking.number != m.piece.number || c.piece != nil {
		m.piece.done(m.next)
		return
	}
	p.checking.read(m)
	if m.generation != p.file.Generation() { // what was read may be in no log any more
		p.checking.skip(notSteady)
		m.piece.done(m.next)
		return
	}
	if m.end <= m.piece.from {
		m.piece.done(m.next)
		return
	}
	m.piece.over = m.next
	if ok, why := p.mayCompare(); !ok {
		p.checking.skip(why)
		m.piece.done(m.next)
		return
	}
	*c = comparing{
		timer: c.timer, piece: m.piece, own: m.bytes, at: m.piece.from, end: min(m.end, p.machine.Offsets().HighWatermark),
		leader: p.machine.Leader(), epoch: p.machine.LeaderEpoch(), generation: m.generation,
	}
	if c.timer == nil {
		c.timer = t.NewTimer(signalCompare)
	}
	p.compareOn(t)
}

// compareOn goes on with what is left of the piece.
func (p *partitionActor) compareOn(t *runtime.Turn) {
	c := &p.comparing
	if c.asks >= compareAsks && c.at > c.piece.from && c.at < c.end {
		c.piece.over, c.end = c.at, c.at // the leader has much more there: the scrub pays for it before it goes on
	}
	if c.at >= c.end {
		p.compareEnds("")
		return
	}
	c.asks++
	c.own, c.next = batchesFrom(c.own, c.at), 0
	p.mending.asked++
	c.ticket = p.mending.asked
	p.shared.links.send(t, c.leader, peer.Data, &linkMessage{&peer.DigestAsk{
		Topic: p.replica.id, Partition: p.replica.tp.Partition, LeaderEpoch: c.epoch, Ticket: c.ticket, From: c.at, To: c.end, BytesMax: repairBytes,
	}})
	c.timer.Reset(repairAnswer)
}

// compareEnds lets the scrub go on. why: the rest of the piece was not compared.
func (p *partitionActor) compareEnds(why string) {
	c := &p.comparing
	if c.piece == nil {
		return
	}
	c.timer.Stop()
	if p.checking != nil && p.checking.number == c.piece.number {
		p.checking.skip(why)
		p.checking.deaf = p.checking.deaf || why == notAnswered
	}
	c.piece.done(c.piece.over)
	*c = comparing{timer: c.timer}
}

// comparable tells whether the comparison is still about the log and the leader that it began with.
func (p *partitionActor) comparable() bool {
	c := &p.comparing
	return p.machine != nil && p.file != nil && p.checking != nil && p.checking.number == c.piece.number && !p.machine.Cutting() && p.machine.Role() == partition.Following &&
		p.machine.Leader() == c.leader && p.machine.LeaderEpoch() == c.epoch && p.file.Generation() == c.generation
}

// take goes on behind what is the same, and asks for what is not.
func (m *digestGiven) take(p *partitionActor, t *runtime.Turn) {
	a, c := &m.answer, &p.comparing
	if c.piece == nil || c.next != 0 || c.ticket == 0 || a.Ticket != c.ticket {
		return // too late
	}
	next := min(a.Next, c.end)
	c.piece.remote += min(int64(max(a.Bytes, 0)), p.digestMost())
	switch {
	case !p.comparable() || a.LeaderEpoch != c.epoch:
		p.compareEnds(notSteady)
	case a.Result == wire.OffsetOutOfRange && a.Start > max(a.High, c.at): // no log begins behind what is committed
		p.compareEnds(notSame)
	case a.Result == wire.OffsetOutOfRange && a.Start > c.at: // retention has come by there first
		c.at = min(a.Start, c.end)
		p.compareOn(t)
	case a.Result == wire.CorruptMessage:
		p.compareEnds(notSound)
	case a.Result != wire.NoError || a.High < next: // it has become the leader just now
		p.compareEnds(notSteady)
	case next <= c.at || a.Bytes < 0:
		p.compareEnds(notSame)
	case digestOf(c.own, c.at, next) == a.Digest:
		p.checking.compared += int64(next - c.at)
		c.at = next
		p.compareOn(t)
	default:
		c.next, c.whole = next, max(a.Clean, p.cleanBelow())
		p.mending.asked++
		c.ticket = p.mending.asked
		p.shared.links.send(t, c.leader, peer.Data, &linkMessage{&peer.RangeAsk{
			Topic: p.replica.id, Partition: p.replica.tp.Partition, LeaderEpoch: c.epoch, Ticket: c.ticket, From: c.at, To: next, BytesMax: repairBytes,
		}})
		c.timer.Reset(repairAnswer)
	}
}

// digestMost is how many bytes a leader reads for a digest at most: what was asked for, or one batch that has more. It counts as no more, whatever it says: a word
// that nobody can check must not hold up the scrub.
func (p *partitionActor) digestMost() int64 {
	return repairBytes + int64(p.settings.rules.MaxMessageBytes)
}

// tookRecords tells whether an answer with batches is for the comparison, and has a worker look into them then.
func (p *partitionActor) tookRecords(t *runtime.Turn, a *peer.RangeAnswer) bool {
	c := &p.comparing
	if c.piece == nil || c.next == 0 || c.ticket == 0 || a.Ticket != c.ticket {
		return false
	}
	c.piece.remote += int64(len(a.Payload))
	next := min(a.Next, c.next)
	switch {
	case !p.comparable() || a.LeaderEpoch != c.epoch:
		p.compareEnds(notSteady)
	case a.Result == wire.CorruptMessage:
		p.compareEnds(notSound)
	case a.Result != wire.NoError || a.High < next:
		p.compareEnds(notSteady)
	case next <= c.at:
		p.compareEnds(notSame)
	default:
		_ = p.shared.pool.give(t, &compareJob{ // one that is refused is not answered
			replica: p.replica, ticket: c.ticket, mine: c.own, theirs: a.Payload, from: c.at, to: next, whole: c.whole,
		})
	}
	return true
}

// do implements job.
func (j *compareJob) do(t *runtime.Turn) {
	if n, _ := soundPrefix(j.theirs); n < len(j.theirs) || !rising(j.theirs) {
		j.spoilt = true
	} else {
		j.found = compareRecords(j.mine, j.theirs, j.from, j.to, j.whole)
	}
	_ = t.Send(j.replica.ref, &compared{j}) // one that has stopped compares nothing
}

// take keeps what differs, and goes on behind it.
func (m *compared) take(p *partitionActor, t *runtime.Turn) {
	c := &p.comparing
	if c.piece == nil || c.ticket != m.ticket {
		return
	}
	switch {
	case !p.comparable():
		p.compareEnds(notSteady)
		return
	case m.spoilt:
		p.compareEnds(notSame)
		return
	}
	for _, d := range m.found.list {
		if p.checked != nil && overlaps(p.checked.differs.list, d.OffsetRange) {
			continue // it was told
		}
		p.log.Error().Int64("offset", int64(d.From)).Int64("end", int64(d.To)).Int32("leader", int32(c.leader)).Str("difference", d.kind).
			Msg(codeDivergence + ": this replica and its leader differ in committed records, though the checksums of both are right; nothing was changed")
	}
	p.checking.differ(m.found, c.leader)
	p.replica.stats.differing.Store(max(p.replica.stats.differing.Load(), p.checking.differs.count()))
	p.checking.compared += int64(m.to - m.from)
	c.at = m.to
	p.compareOn(t)
}
