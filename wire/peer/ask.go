package peer

import (
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Asks is what a follower wants, some partitions at a time.
type Asks struct {
	Epoch ident.BrokerEpoch // of who asks
	List  []Ask
}

// Ask is what a follower wants of one partition, and how far it is there. From may run
// ahead of End; only End and Flushed say what it has.
type Ask struct {
	Topic       ident.TopicID
	Partition   int32
	LeaderEpoch ident.LeaderEpoch
	Generation  ident.Generation
	From        ident.Offset
	End         ident.Offset
	Flushed     ident.Offset
	LastEpoch   ident.LeaderEpoch // of the last batch before End
	BytesMax    int32
	Start       ident.Offset // of its log
}

// Code implements Message.
func (*Asks) Code() Code { return CodeAsks }

// AppendTo implements Message.
func (m *Asks) AppendTo(dst []byte) []byte {
	at := len(dst)
	dst = beginList(dst, CodeAsks, m.Epoch, len(m.List))
	for i := range m.List {
		a := &m.List[i]
		dst = appendPlace(appendArray(dst, 10), a.Topic, a.Partition, a.LeaderEpoch, a.Generation)
		dst = appendInt(dst, int64(a.From))
		dst = appendInt(dst, int64(a.End))
		dst = appendInt(dst, int64(a.Flushed))
		dst = appendInt(dst, int64(a.LastEpoch))
		dst = appendInt(dst, int64(a.BytesMax))
		dst = appendInt(dst, int64(a.Start))
	}
	return end(dst, at, 0)
}

// Decode implements Message.
func (m *Asks) Decode(b Body) error {
	r := b.r
	outer := beginElements(&r, &m.Epoch, &m.List)
	for i := range m.List {
		inner := r.enter()
		m.List[i] = Ask{
			Topic: r.mustID(), Partition: r.int32(), LeaderEpoch: ident.LeaderEpoch(r.int32()), Generation: ident.Generation(r.uint64()),
			From: ident.Offset(r.int64()), End: ident.Offset(r.int64()), Flushed: ident.Offset(r.int64()), LastEpoch: ident.LeaderEpoch(r.int32()),
			BytesMax: r.int32(), Start: ident.Offset(r.int64()),
		}
		r.leave(inner)
	}
	r.leave(outer)
	return b.done(&r)
}

// Answer is records of one partition, or why there are none.
type Answer struct {
	Topic          ident.TopicID
	Partition      int32
	LeaderEpoch    ident.LeaderEpoch
	Generation     ident.Generation // of the ask
	Result         wire.ErrorCode
	From           ident.Offset // of the ask; the records begin there, or in the batch that has it
	High           ident.Offset // watermark
	Start          ident.Offset // of the leader's log
	DivergingEpoch ident.LeaderEpoch
	DivergingEnd   ident.Offset // NoOffset: the logs agree
	Payload        []byte       // whole batches
}

// Code implements Message.
func (*Answer) Code() Code { return CodeAnswer }

// AppendTo implements Message.
func (m *Answer) AppendTo(dst []byte) []byte {
	return append(m.AppendHead(dst, len(m.Payload)), m.Payload...)
}

// AppendHead appends the frame up to its payload, of which so many bytes have to
// follow.
func (m *Answer) AppendHead(dst []byte, payload int) []byte {
	at := len(dst)
	dst = appendPlace(appendArray(begin(dst, CodeAnswer, 2), 10), m.Topic, m.Partition, m.LeaderEpoch, m.Generation)
	dst = appendInt(dst, int64(m.Result))
	dst = appendInt(dst, int64(m.From))
	dst = appendInt(dst, int64(m.High))
	dst = appendInt(dst, int64(m.Start))
	dst = appendInt(dst, int64(m.DivergingEpoch))
	dst = appendInt(dst, int64(m.DivergingEnd))
	return end(appendBinHead(dst, payload), at, payload)
}

// Decode implements Message.
func (m *Answer) Decode(b Body) error {
	r := b.r
	outer := r.enter()
	*m = Answer{
		Topic: r.mustID(), Partition: r.int32(), LeaderEpoch: ident.LeaderEpoch(r.int32()), Generation: ident.Generation(r.uint64()), Result: wire.ErrorCode(r.int16()),
		From: ident.Offset(r.int64()), High: ident.Offset(r.int64()), Start: ident.Offset(r.int64()), DivergingEpoch: ident.LeaderEpoch(r.int32()), DivergingEnd: ident.Offset(r.int64()),
	}
	r.leave(outer)
	m.Payload = r.bin()
	return b.done(&r)
}

// Withdraw takes back asks: their answers are not wanted any more.
type Withdraw struct {
	Epoch ident.BrokerEpoch // of who asked
	List  []Withdrawn
}

// Withdrawn names the asks of one partition and generation.
type Withdrawn struct {
	Topic       ident.TopicID
	Partition   int32
	LeaderEpoch ident.LeaderEpoch
	Generation  ident.Generation
}

// Code implements Message.
func (*Withdraw) Code() Code { return CodeWithdraw }

// AppendTo implements Message.
func (m *Withdraw) AppendTo(dst []byte) []byte {
	at := len(dst)
	dst = beginList(dst, CodeWithdraw, m.Epoch, len(m.List))
	for i := range m.List {
		w := &m.List[i]
		dst = appendPlace(appendArray(dst, 4), w.Topic, w.Partition, w.LeaderEpoch, w.Generation)
	}
	return end(dst, at, 0)
}

// Decode implements Message.
func (m *Withdraw) Decode(b Body) error {
	r := b.r
	outer := beginElements(&r, &m.Epoch, &m.List)
	for i := range m.List {
		inner := r.enter()
		m.List[i] = Withdrawn{Topic: r.mustID(), Partition: r.int32(), LeaderEpoch: ident.LeaderEpoch(r.int32()), Generation: ident.Generation(r.uint64())}
		r.leave(inner)
	}
	r.leave(outer)
	return b.done(&r)
}
