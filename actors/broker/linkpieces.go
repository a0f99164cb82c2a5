package broker

import (
	"fmt"
	"sync/atomic"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/peer"
)

// linkPiecesMax bounds what all links hold that is not whole yet: a snapshot of the metadata for each of some voters, or the registrations of all brokers.
const linkPiecesMax = 256 << 20

// linkPieces puts together what comes in pieces: letters, or requests. One is under way at a time, and the memory for it follows what has come.
type linkPieces struct {
	what  string        // for errors
	max   uint64        // bytes of a whole one
	held  *atomic.Int64 // bytes that all links hold
	into  []byte
	id    uint64
	total uint64
}

// arrived takes a piece, and returns the whole when it is there; it is the caller's.
func (p *linkPieces) arrived(id, offset, total uint64, data []byte) ([]byte, error) {
	end := offset + uint64(len(data))
	switch {
	case total > p.max:
		return nil, p.misfit("one of %d bytes: the limit is %d", total, p.max)
	case end < offset || end > total || len(data) == 0 && total > 0:
		return nil, p.misfit("%d bytes at %d of one of %d", len(data), offset, total)
	case offset == 0 && end == total:
		return append(make([]byte, 0, len(data)), data...), nil
	case offset == 0:
		p.drop()
		p.id, p.total = id, total
	case id != p.id || total != p.total || offset != uint64(len(p.into)):
		return nil, p.misfit("bytes at %d of number %d, with %d bytes of number %d there", offset, id, len(p.into), p.id)
	}
	if p.held.Add(int64(len(data))) > linkPiecesMax {
		p.held.Add(-int64(len(data)))
		return nil, p.misfit("%d bytes of number %d, and all connections hold %d already: the limit is %d", len(data), id, p.held.Load(), linkPiecesMax)
	}
	p.into = append(p.into, data...)
	if end < total {
		return nil, nil
	}
	whole := p.into
	p.drop()
	return whole, nil
}

// drop lets go of what is there: it is whole, or will never be.
func (p *linkPieces) drop() {
	p.held.Add(-int64(len(p.into)))
	p.into, p.id, p.total = nil, 0, 0
}

func (p *linkPieces) misfit(format string, args ...any) error {
	return &wire.ProtocolError{Code: peer.CodeLetterSize, Reason: "the pieces of a " + p.what + " do not fit: " + fmt.Sprintf(format, args...)}
}
