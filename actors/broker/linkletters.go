package broker

import (
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

	in linkPieces
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
