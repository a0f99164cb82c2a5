package peer

import (
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// DigestAsk wants to know what the leader's batches of a range of offsets sum up to, at most BytesMax of them; one batch may be more. It is as a [RangeAsk], and its
// answer another.
type DigestAsk RangeAsk

// Code implements Message.
func (*DigestAsk) Code() Code { return CodeDigestAsk }

// AppendTo implements Message.
func (m *DigestAsk) AppendTo(dst []byte) []byte { return (*RangeAsk)(m).appendAs(dst, CodeDigestAsk) }

// Decode implements Message.
func (m *DigestAsk) Decode(b Body) error { return (*RangeAsk)(m).Decode(b) }

// DigestAnswer is the digest of the batches that have offsets of [From, Next), or why there is none. How it is made stands where it is made: both sides have to
// agree, so that another way is another code.
type DigestAnswer struct {
	Topic       ident.TopicID
	Partition   int32
	LeaderEpoch ident.LeaderEpoch
	Ticket      ident.Generation // of the ask
	Result      wire.ErrorCode
	From, Next  ident.Offset
	High        ident.Offset // watermark
	Start       ident.Offset // of the leader's log
	Clean       ident.Offset // the leader may have compacted what is below
	Bytes       int32        // of the batches
	Digest      [16]byte
}

// Code implements Message.
func (*DigestAnswer) Code() Code { return CodeDigestAnswer }

// AppendTo implements Message.
func (m *DigestAnswer) AppendTo(dst []byte) []byte {
	at := len(dst)
	dst = appendPlace(appendArray(begin(dst, CodeDigestAnswer, 1), 12), m.Topic, m.Partition, m.LeaderEpoch, m.Ticket)
	dst = appendInt(dst, int64(m.Result))
	dst = appendInt(dst, int64(m.From))
	dst = appendInt(dst, int64(m.Next))
	dst = appendInt(dst, int64(m.High))
	dst = appendInt(dst, int64(m.Start))
	dst = appendInt(dst, int64(m.Clean))
	dst = appendInt(dst, int64(m.Bytes))
	return end(appendID(dst, m.Digest), at, 0)
}

// Decode implements Message.
func (m *DigestAnswer) Decode(b Body) error {
	r := b.r
	outer := r.enter()
	*m = DigestAnswer{
		Topic: r.mustID(), Partition: r.int32(), LeaderEpoch: ident.LeaderEpoch(r.int32()), Ticket: ident.Generation(r.uint64()), Result: wire.ErrorCode(r.int16()),
		From: ident.Offset(r.int64()), Next: ident.Offset(r.int64()), High: ident.Offset(r.int64()), Start: ident.Offset(r.int64()), Clean: ident.Offset(r.int64()),
		Bytes: r.int32(), Digest: r.id(),
	}
	r.leave(outer)
	return b.done(&r)
}
