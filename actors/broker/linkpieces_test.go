package broker

import (
	"bytes"
	"sync/atomic"
	"testing"

	"github.com/troupe-broker/troupe/wire/peer"
)

// Brokers that begin what they never end: each may hold a letter of 64 MiB here, and there may be hundreds of connections.
func TestAllConnectionsTogetherHoldABoundedPartOfWhatIsNotWhole(t *testing.T) {
	var held atomic.Int64
	piece := make([]byte, peer.PieceMax)
	begin := func() (*linkPieces, error) {
		p := &linkPieces{what: "letter", max: peer.LetterMax, held: &held}
		for offset := uint64(0); offset+peer.PieceMax < peer.LetterMax; offset += peer.PieceMax {
			if whole, err := p.arrived(1, offset, peer.LetterMax, piece); err != nil || whole != nil {
				return p, err
			}
		}
		return p, nil
	}
	var all []*linkPieces
	for {
		p, err := begin()
		all = append(all, p)
		if err != nil {
			break
		}
		if len(all) > 2*linkPiecesMax/peer.LetterMax {
			t.Fatal("there is no bound")
		}
	}
	if n := held.Load(); n > linkPiecesMax || n < linkPiecesMax-peer.PieceMax {
		t.Errorf("%d bytes are held, of %d", n, linkPiecesMax)
	}
	for _, p := range all {
		p.drop()
	}
	if n := held.Load(); n != 0 {
		t.Errorf("%d bytes are held when all have ended", n)
	}
	p := &linkPieces{what: "letter", max: peer.LetterMax, held: &held}
	if whole, err := p.arrived(2, 0, 6, []byte("abc")); whole != nil || err != nil {
		t.Fatal(whole, err)
	}
	if whole, err := p.arrived(2, 3, 6, []byte("def")); err != nil || !bytes.Equal(whole, []byte("abcdef")) || held.Load() != 0 {
		t.Errorf("%q, %v, %d bytes held", whole, err, held.Load())
	}
}
