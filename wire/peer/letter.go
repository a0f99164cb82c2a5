package peer

import "github.com/troupe-broker/troupe/wire/ident"

// Letter is a message of the metadata quorum from one member to another, or a piece
// of one that is larger than PieceMax. Pieces of a letter follow each other; other
// frames may come between them, pieces of another letter may not.
type Letter struct {
	To     ident.NodeID
	From   ident.NodeID
	Seq    uint64 // of the letter, rising on a connection
	Offset uint64 // of Data in the letter
	Total  uint64 // bytes of the letter
	Data   []byte
}

// Code implements Message.
func (*Letter) Code() Code { return CodeLetter }

// AppendTo implements Message.
func (m *Letter) AppendTo(dst []byte) []byte {
	at := len(dst)
	dst = appendArray(begin(dst, CodeLetter, 2), 5)
	dst = appendUint(dst, uint64(m.To))
	dst = appendUint(dst, uint64(m.From))
	dst = appendUint(dst, m.Seq)
	dst = appendUint(dst, m.Offset)
	dst = appendUint(dst, m.Total)
	return end(appendBin(dst, m.Data), at, 0)
}

// Decode implements Message.
func (m *Letter) Decode(b Body) error {
	r := b.r
	outer := r.enter()
	m.To, m.From, m.Seq, m.Offset, m.Total = ident.NodeID(r.uint64()), ident.NodeID(r.uint64()), r.uint64(), r.uint64(), r.uint64()
	r.leave(outer)
	m.Data = r.bin()
	return b.done(&r)
}

// Announcement is what brokers that have no cluster tell each other to found one.
type Announcement struct {
	Body []byte // the cluster package's
}

// Code implements Message.
func (*Announcement) Code() Code { return CodeAnnouncement }

// AppendTo implements Message.
func (m *Announcement) AppendTo(dst []byte) []byte {
	at := len(dst)
	dst = appendArray(begin(dst, CodeAnnouncement, 2), 0)
	return end(appendBin(dst, m.Body), at, 0)
}

// Decode implements Message.
func (m *Announcement) Decode(b Body) error {
	r := b.r
	r.leave(r.enter())
	m.Body = r.bin()
	return b.done(&r)
}
