package peer

import (
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// RangeAsk wants the batches of a range of offsets that are damaged where they were, from the leader's disk, with their checksums looked at. It says nothing of how
// far the follower is. With ticket 0 it only wants the leader to look at the batch that has From, because it came damaged.
type RangeAsk struct {
	Topic       ident.TopicID
	Partition   int32
	LeaderEpoch ident.LeaderEpoch
	Ticket      ident.Generation // of the answer
	From, To    ident.Offset
	BytesMax    int32 // of the answer; one batch may be more
	Copies      bool  // many asks that have to meet the same log: the leader should not compact it for a while. Older builds do not know it
}

// Code implements Message.
func (*RangeAsk) Code() Code { return CodeRangeAsk }

// AppendTo implements Message.
func (m *RangeAsk) AppendTo(dst []byte) []byte { return m.appendAs(dst, CodeRangeAsk) }

func (m *RangeAsk) appendAs(dst []byte, code Code) []byte {
	at := len(dst)
	dst = appendPlace(appendArray(begin(dst, code, 1), 8), m.Topic, m.Partition, m.LeaderEpoch, m.Ticket)
	dst = appendInt(dst, int64(m.From))
	dst = appendInt(dst, int64(m.To))
	dst = appendInt(dst, int64(m.BytesMax))
	copies := uint64(0)
	if m.Copies {
		copies = 1
	}
	return end(appendUint(dst, copies), at, 0)
}

// Decode implements Message.
func (m *RangeAsk) Decode(b Body) error {
	r := b.r
	outer := r.enter()
	*m = RangeAsk{
		Topic: r.mustID(), Partition: r.int32(), LeaderEpoch: ident.LeaderEpoch(r.int32()), Ticket: ident.Generation(r.uint64()),
		From: ident.Offset(r.int64()), To: ident.Offset(r.int64()), BytesMax: r.int32(), Copies: r.uint8() != 0,
	}
	r.leave(outer)
	return b.done(&r)
}

// RangeAnswer is batches of a range that was asked for, or why there are none. Between From and Next the leader has no others.
type RangeAnswer struct {
	Topic       ident.TopicID
	Partition   int32
	LeaderEpoch ident.LeaderEpoch
	Ticket      ident.Generation // of the ask
	Result      wire.ErrorCode
	From, Next  ident.Offset
	High        ident.Offset // watermark
	Shape       uint64       // changes with what compaction and repairs do to the leader's log; 0: an older build, which does not tell
	Payload     []byte       // whole batches, whose checksums were right
}

// Code implements Message.
func (*RangeAnswer) Code() Code { return CodeRangeAnswer }

// AppendTo implements Message.
func (m *RangeAnswer) AppendTo(dst []byte) []byte {
	at := len(dst)
	dst = appendPlace(appendArray(begin(dst, CodeRangeAnswer, 2), 9), m.Topic, m.Partition, m.LeaderEpoch, m.Ticket)
	dst = appendInt(dst, int64(m.Result))
	dst = appendInt(dst, int64(m.From))
	dst = appendInt(dst, int64(m.Next))
	dst = appendInt(dst, int64(m.High))
	dst = appendUint(dst, m.Shape)
	return end(appendBin(dst, m.Payload), at, 0)
}

// Decode implements Message.
func (m *RangeAnswer) Decode(b Body) error {
	r := b.r
	outer := r.enter()
	*m = RangeAnswer{
		Topic: r.mustID(), Partition: r.int32(), LeaderEpoch: ident.LeaderEpoch(r.int32()), Ticket: ident.Generation(r.uint64()), Result: wire.ErrorCode(r.int16()),
		From: ident.Offset(r.int64()), Next: ident.Offset(r.int64()), High: ident.Offset(r.int64()), Shape: r.uint64(),
	}
	r.leave(outer)
	m.Payload = r.bin()
	return b.done(&r)
}
