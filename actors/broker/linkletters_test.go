package broker

import (
	"testing"

	"github.com/troupe-broker/troupe/wire/peer"
)

func TestWhoSendsALetterHearsWhetherAllOfItLeft(t *testing.T) {
	noLeaks(t)
	a, b := newSide(t, sideOptions{self: identityOf(1, 5)}), newSide(t, sideOptions{self: identityOf(2, 6)})
	fate := make(chan bool, 1)
	post1 := func(size int) bool {
		a.send(post{}, 2, peer.Control, &letter{from: 1, to: 2, data: make([]byte, size), sent: func(all bool) { fate <- all }})
		return <-fate
	}
	if post1(10) {
		t.Error("a letter left without a link")
	}
	meet(a, b)
	for _, size := range []int{10, peer.PieceMax + 1, 3 * peer.PieceMax} {
		if !post1(size) {
			t.Errorf("a letter of %d bytes was lost", size)
		}
		b.await("letter from 1 to 2", func(x told) bool { return len(x.data) == size })
	}
	if post1(peer.LetterMax + 1) {
		t.Error("a letter that is too long left")
	}
}
