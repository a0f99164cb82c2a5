package peer_test

import (
	"bytes"
	"testing"

	"github.com/troupe-broker/troupe/wire/peer"
)

// What reads as a message is written in one way only, and that reads the same.
func FuzzDecode(f *testing.F) {
	for _, m := range samples() {
		f.Add(m.AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		size, complete, err := peer.Scan(frame, 1<<16)
		if err != nil || !complete {
			return
		}
		b, err := peer.Open(frame[:size])
		if err != nil || !b.Code().Known() {
			return
		}
		m := peer.New(b.Code())
		if m.Decode(b) != nil {
			return
		}
		canonical := m.AppendTo(nil)
		again := peer.New(b.Code())
		if err := again.Decode(body(t, canonical)); err != nil {
			t.Fatalf("%v: our own frame %x does not parse: %v", b.Code(), canonical, err)
		}
		if once := again.AppendTo(nil); !bytes.Equal(once, canonical) {
			t.Fatalf("%v: %x is written as %x the second time", b.Code(), canonical, once)
		}
	})
}

// A message that is read into one that was used before is the same as read into a new
// one: nothing of the old is left.
func FuzzDecodeAgain(f *testing.F) {
	for i, m := range samples() {
		f.Add(m.AppendTo(nil), samples()[(i+1)%len(samples())].AppendTo(nil))
		f.Add(m.AppendTo(nil), m.AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		used := map[peer.Code]peer.Message{}
		for _, frame := range [][]byte{first, second} {
			size, complete, err := peer.Scan(frame, 1<<16)
			if err != nil || !complete {
				return
			}
			b, err := peer.Open(frame[:size])
			if err != nil || !b.Code().Known() {
				return
			}
			m := used[b.Code()]
			if m == nil {
				m = peer.New(b.Code())
				used[b.Code()] = m
			}
			fresh := peer.New(b.Code())
			got, want := m.Decode(b), fresh.Decode(b)
			if (got == nil) != (want == nil) {
				t.Fatalf("%v: %v into a used message, %v into a new one", b.Code(), got, want)
			}
			if got != nil {
				return
			}
			if a, b := m.AppendTo(nil), fresh.AppendTo(nil); !bytes.Equal(a, b) {
				t.Fatalf("a used message reads as %x, a new one as %x", a, b)
			}
		}
	})
}
