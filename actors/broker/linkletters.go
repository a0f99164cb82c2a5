package broker

import (
	"fmt"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// linkLettersMax is how many bytes of letters in pieces wait for one peer. The quorum sends what is lost again.
const linkLettersMax = peer.LetterMax

// linkLetters cuts large letters into pieces, which go out between other frames, and puts together those that come.
type linkLetters struct {
	seq   uint64
	queue []*letter // larger than a piece; the first may be partly sent
	bytes int       // of the queue
	sent  uint64    // of the first
	first uint64    // its number

	into  []byte // a letter that comes in pieces
	from  uint64 // its number
	total uint64
}

// letter is a message to a member of the metadata quorum. It may be lost.
type letter struct {
	from, to ident.NodeID
	data     []byte
	// sent is called once, from anywhere, and may only enqueue: all of it was given to the connection, or it was lost before that. Nil: nobody asks.
	sent func(all bool)
}

func (m *letter) done(all bool) {
	if m.sent != nil {
		m.sent(all)
	}
}

// say implements outgoing. A letter for which there is no room is lost, which the quorum bears.
func (m *letter) say(l *linkActor) {
	q := &l.letters
	if len(m.data) <= peer.PieceMax {
		q.seq++
		l.append(&peer.Letter{To: m.to, From: m.from, Seq: q.seq, Total: uint64(len(m.data)), Data: m.data})
		m.done(true)
		return
	}
	if len(m.data) > peer.LetterMax || q.bytes+len(m.data) > linkLettersMax && len(q.queue) > 0 {
		m.done(false)
		return
	}
	q.queue = append(q.queue, m)
	q.bytes += len(m.data)
}

// Bytes implements runtime.Message.
func (m *letter) Bytes() int { return len(m.data) }

// Reject implements runtime.Rejecter.
func (m *letter) Reject(error) { m.done(false) }

// fail gives up what was not sent: the link has ended.
func (q *linkLetters) fail() {
	queue := q.queue
	q.queue, q.bytes, q.sent = nil, 0, 0
	for _, m := range queue {
		m.done(false)
	}
}

// piece appends the next piece of the first letter in the queue, and says whether there was one.
func (q *linkLetters) piece(l *linkActor) bool {
	if len(q.queue) == 0 {
		return false
	}
	m := q.queue[0]
	if q.sent == 0 {
		q.seq++
		q.first = q.seq
	}
	total := uint64(len(m.data))
	data := m.data[q.sent:min(total, q.sent+peer.PieceMax)]
	l.append(&peer.Letter{To: m.to, From: m.from, Seq: q.first, Offset: q.sent, Total: total, Data: data})
	if q.sent += uint64(len(data)); q.sent == total {
		q.queue[0] = nil
		q.queue = q.queue[1:]
		q.bytes -= len(m.data)
		q.sent = 0
		m.done(true)
	}
	return true
}

// arrived takes a letter, or a piece, and returns the letter when it is whole. The memory for it follows what has come.
func (q *linkLetters) arrived(m *peer.Letter) ([]byte, error) {
	end := m.Offset + uint64(len(m.Data))
	switch {
	case m.Total > peer.LetterMax:
		return nil, letterError("a letter of %d bytes: the limit is %d", m.Total, peer.LetterMax)
	case end < m.Offset || end > m.Total || len(m.Data) == 0 && m.Total > 0:
		return nil, letterError("a piece of %d bytes at %d of a letter of %d", len(m.Data), m.Offset, m.Total)
	case m.Offset == 0 && end == m.Total:
		return append(make([]byte, 0, len(m.Data)), m.Data...), nil
	case m.Offset == 0:
		q.into, q.from, q.total = append([]byte(nil), m.Data...), m.Seq, m.Total
		return nil, nil
	case m.Seq != q.from || m.Total != q.total || m.Offset != uint64(len(q.into)):
		return nil, letterError("a piece at %d of letter %d, with %d bytes of letter %d there", m.Offset, m.Seq, len(q.into), q.from)
	}
	q.into = append(q.into, m.Data...)
	if end < m.Total {
		return nil, nil
	}
	whole := q.into
	q.into, q.from, q.total = nil, 0, 0
	return whole, nil
}

func letterError(format string, args ...any) error {
	return &wire.ProtocolError{Code: peer.CodeLetterSize, Reason: "the pieces of a letter do not fit: " + fmt.Sprintf(format, args...)}
}
