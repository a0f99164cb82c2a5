package broker

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/troupe-broker/troupe/wire/peer"
)

// alone is a claimant that nobody has to wake.
type alone struct{}

func (alone) creditGranted() {}
func (alone) creditRevoked() {}

func newTestIntake(pool *creditPool, paid bool) *linkIntake {
	return &linkIntake{pool: pool, store: newBuffers(1 << 20), owner: alone{}, limit: 16 << 20, paid: paid}
}

// feed gives an intake bytes in pieces of at most so many, and collects the frames. Each is let go at once, or kept until the end.
func feedIntake(t *testing.T, in *linkIntake, b []byte, piece func() int, keep bool) [][]byte {
	t.Helper()
	var got [][]byte
	var kept []*linkFrames
	w := &PeerWire{room: make(chan struct{}, 1)}
	for len(b) > 0 {
		space := in.space()
		if len(space) == 0 {
			t.Fatal("an intake that waits for nothing has no space")
		}
		n := copy(space[:min(len(space), max(piece(), 1))], b)
		b = b[n:]
		if err := in.advance(n); err != nil {
			t.Fatal(err)
		}
		if f := in.take(); f != nil {
			f.wire = w
			for i := range f.frames {
				got = append(got, bytes.Clone(f.frames[i].bytes))
			}
			kept = append(kept, f)
			if !keep {
				f.done()
				kept = nil
			}
		}
		in.unused()
	}
	for _, f := range kept {
		f.done()
	}
	return got
}

func TestFramesComeOutAsTheyWentIn(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for round := range 60 {
		stream, want := []byte(peer.Preface), [][]byte{}
		most := 1 << rng.IntN(20)
		for i := range 40 {
			size := rng.IntN(200)
			switch rng.IntN(4) {
			case 0:
				size = rng.IntN(40 << 10)
			case 1:
				size = rng.IntN(300 << 10)
			}
			if i == 0 || most < 64 {
				size %= 500
			}
			f := (&peer.Answer{Payload: bytes.Repeat([]byte{byte(i)}, size)}).AppendTo(nil)
			stream, want = append(stream, f...), append(want, f)
		}
		pool := newCreditPool(64<<20, nil)
		in := newTestIntake(pool, round%2 == 0)
		got := feedIntake(t, in, stream, func() int { return rng.IntN(most) }, round%3 == 0)
		in.close()
		if len(got) != len(want) {
			t.Fatalf("round %d: %d frames, want %d", round, len(got), len(want))
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("round %d: frame %d differs", round, i)
			}
		}
		if u := pool.use(); u.UsedBytes != 0 || u.SlotBusy {
			t.Fatalf("round %d: %+v is left", round, u)
		}
	}
}

func TestMemoryFollowsTheBytesOfAFrame(t *testing.T) {
	pool := newCreditPool(64<<20, nil)
	in := newTestIntake(pool, true)
	hello := (&peer.Ping{}).AppendTo([]byte(peer.Preface))
	feedIntake(t, in, hello, func() int { return 100 }, false)
	announced := binary.BigEndian.AppendUint32(nil, 16<<20)
	sent := 0
	for sent < 1<<20 {
		n := copy(in.space(), append(announced, make([]byte, 5000)...)[:5000])
		announced = nil
		if sent += n; in.advance(n) != nil {
			t.Fatal(in.broken)
		}
		if held := len(in.cur.buf); held > 2*growth*max(sent, linkChunkMin) {
			t.Fatalf("%d bytes were sent, %d are held", sent, held)
		}
	}
	in.close()
	if u := pool.use(); u.UsedBytes != 0 || u.SlotBusy {
		t.Errorf("%+v is left", u)
	}
}

func TestAFrameWaitsForCreditAndNobodyWaitsForEver(t *testing.T) {
	pool := newCreditPool(1<<20, nil)
	other := &claim{owner: alone{}}
	if !pool.take(other, 1<<20, false) {
		t.Fatal("an empty pool refuses")
	}
	in := newTestIntake(pool, true)
	frame := (&peer.Answer{Payload: make([]byte, 60<<10)}).AppendTo(nil)
	stream := append((&peer.Ping{}).AppendTo([]byte(peer.Preface)), frame...)
	n := copy(in.space(), stream)
	if err := in.advance(n); err != nil || !in.waiting || in.granted() {
		t.Fatalf("%v, waits %v, while all memory is taken", err, in.waiting)
	}
	if len(in.space()) != 0 {
		t.Error("there is space without credit")
	}
	pool.release(other)
	if !in.granted() {
		t.Fatal("not granted though all memory is free")
	}
	rest := stream[n:]
	got := feedIntake(t, in, rest, func() int { return 1 << 20 }, false)
	if len(got) != 2 || !bytes.Equal(got[1], frame) { // the Ping came with the first bytes
		t.Errorf("got %d frames", len(got))
	}
	in.close()

	// A frame larger than the pool uses the slot, in any number of steps.
	in = newTestIntake(pool, true)
	large := (&peer.Answer{Payload: make([]byte, 5<<20)}).AppendTo(nil)
	got = feedIntake(t, in, append((&peer.Ping{}).AppendTo([]byte(peer.Preface)), large...), func() int { return 30_000 }, false)
	if len(got) != 2 || !bytes.Equal(got[1], large) {
		t.Errorf("got %d frames", len(got))
	}
	in.close()
	if u := pool.use(); u.UsedBytes != 0 || u.SlotBusy {
		t.Errorf("%+v is left", u)
	}
}

// Whatever comes, the intake finds the frames that a plain reading of it finds, and refuses where that does.
func FuzzLinkIntake(f *testing.F) {
	ping := (&peer.Ping{Number: 7}).AppendTo(nil)
	f.Add([]byte(peer.Preface), uint16(1), false)
	f.Add(append([]byte(peer.Preface), bytes.Repeat(ping, 9)...), uint16(5), true)
	f.Add(append([]byte(peer.Preface), 0, 0, 0, 0), uint16(9), false)
	f.Add((&peer.Answer{Payload: make([]byte, 30<<10)}).AppendTo(append([]byte(peer.Preface), ping...)), uint16(700), true)
	f.Add([]byte("GET / HTTP/1.1"), uint16(3), false)
	f.Fuzz(func(t *testing.T, stream []byte, piece uint16, keep bool) {
		pool := newCreditPool(8<<20, nil)
		in := &linkIntake{pool: pool, store: newBuffers(1 << 20), owner: alone{}, limit: 1 << 20, paid: true}
		w := &PeerWire{room: make(chan struct{}, 1)}
		var got [][]byte
		var kept []*linkFrames
		var broken error
		for rest := stream; len(rest) > 0 && broken == nil; {
			space := in.space()
			n := copy(space[:min(len(space), int(piece)+1)], rest)
			if n == 0 {
				t.Fatal("no space, though all memory is free")
			}
			rest = rest[n:]
			broken = in.advance(n)
			if frames := in.take(); frames != nil {
				frames.wire = w
				for i := range frames.frames {
					got = append(got, bytes.Clone(frames.frames[i].bytes))
				}
				if kept = append(kept, frames); !keep {
					frames.done()
					kept = nil
				}
			}
			in.unused()
		}
		in.close()
		for _, frames := range kept {
			frames.done()
		}
		if u := pool.use(); u.UsedBytes != 0 || u.SlotBusy {
			t.Fatalf("%+v is left", u)
		}
		want, bad := plainFrames(stream, 1<<20)
		if len(got) != len(want) || bad != (broken != nil) {
			t.Fatalf("%d frames, %v; want %d, bad %v", len(got), broken, len(want), bad)
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("frame %d differs", i)
			}
		}
	})
}

// plainFrames reads a stream that is all there.
func plainFrames(b []byte, limit int) (frames [][]byte, bad bool) {
	n := min(len(b), len(peer.Preface))
	if string(b[:n]) != peer.Preface[:n] {
		return nil, true
	}
	for b = b[n:]; len(b) >= peer.LengthSize; {
		size := int64(binary.BigEndian.Uint32(b))
		most := int64(limit)
		if len(frames) == 0 {
			most = peer.HelloMax
		}
		if size == 0 || size > most {
			return frames, true
		}
		if int64(len(b)) < peer.LengthSize+size {
			break
		}
		frames = append(frames, b[:peer.LengthSize+size])
		b = b[peer.LengthSize+size:]
	}
	return frames, false
}
