package peer_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/troupe-broker/troupe/wire/peer"
)

// hot are the messages of every write, as many entries as a busy peer has.
func hot() []peer.Message {
	asks, progress, marks := &peer.Asks{Epoch: 4711}, &peer.Progress{Epoch: 4711}, &peer.Watermarks{Epoch: 4711}
	for i := range int32(100) {
		asks.List = append(asks.List, peer.Ask{Topic: topicA, Partition: i, LeaderEpoch: 5, Generation: 1, From: 1 << 40, End: 1 << 40, BytesMax: 1 << 20})
		progress.List = append(progress.List, peer.Position{Topic: topicB, Partition: i, LeaderEpoch: 7, End: 1 << 33, Flushed: 1 << 33})
		marks.List = append(marks.List, peer.Watermark{Topic: topicA, Partition: i, LeaderEpoch: 7, High: 1 << 33})
	}
	return []peer.Message{asks, progress, marks, &peer.Answer{Topic: topicA, From: 1 << 40, Payload: make([]byte, 16<<10)}}
}

func TestHotMessagesAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, m := range hot() {
		var frame []byte
		into := peer.New(m.Code())
		if n := testing.AllocsPerRun(100, func() {
			frame = m.AppendTo(frame[:0])
			b, err := peer.Open(frame)
			if err == nil {
				err = into.Decode(b)
			}
			if err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("writing and reading %v allocates %.1f times", m.Code(), n)
		}
	}
}

// allocated is how many bytes reading a frame allocates, into a new message.
func allocated(frame []byte) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if b, err := peer.Open(frame); err == nil && b.Code().Known() {
		m := peer.New(b.Code())
		if err := m.Decode(b); err == nil {
			runtime.KeepAlive(m)
		}
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What a frame costs beside its bytes: the message itself, and an error's words.
const smallBytes = 2 << 10

func TestDecodingCostsNoMoreThanItSays(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	worst, where := 0.0, ""
	visit := func(what string, frame []byte) {
		a := allocated(frame)
		for range 3 { // what others allocate meanwhile counts, too, and only adds
			a = min(a, allocated(frame))
		}
		if f := (float64(a) - smallBytes) / float64(len(frame)); f > worst {
			worst, where = f, what
		}
	}
	const elements = 2_000
	lists := []peer.Message{
		&peer.Asks{List: make([]peer.Ask, elements)}, &peer.Progress{List: make([]peer.Position, elements)},
		&peer.Watermarks{List: make([]peer.Watermark, elements)}, &peer.Withdraw{List: make([]peer.Withdrawn, elements)},
	}
	for _, m := range append(samples(), lists...) {
		frame := m.AppendTo(nil)
		visit(m.Code().String(), frame)
		cutFrame := bytes.Clone(frame[:len(frame)*9/10])
		if len(cutFrame) > peer.LengthSize {
			binary.BigEndian.PutUint32(cutFrame, uint32(len(cutFrame)-peer.LengthSize))
			visit(m.Code().String()+", cut", cutFrame)
		}
	}
	for _, code := range []peer.Code{peer.CodeAsks, peer.CodeProgress, peer.CodeWatermarks, peer.CodeWithdraw} {
		// The shortest elements that are allowed, and shorter ones that are not.
		element := append([]byte{0x91, 0xc4, 16}, make([]byte, 16)...)
		short := []byte{0x90}
		for _, e := range [][]byte{element, short} {
			frame := []byte{0, 0, 0, 0, 0x93, byte(code), 1, 0xdd, 0, 0, 0x10, 0}
			frame = append(frame, bytes.Repeat(e, 0x1000)...)
			binary.BigEndian.PutUint32(frame, uint32(len(frame)-peer.LengthSize))
			visit(code.String()+", short elements", frame)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		frame := make([]byte, 8<<10)
		for i := range frame {
			frame[i] = byte(rng.Uint32())
		}
		binary.BigEndian.PutUint32(frame, uint32(len(frame)-peer.LengthSize))
		frame[4], frame[5] = 0x9f, byte(1+rng.IntN(16))
		visit("noise", frame)
	}
	t.Logf("%.1f bytes for each byte (%s)", worst, where)
	if worst > peer.Amplification || 2*worst < peer.Amplification {
		t.Errorf("decoding allocates %.1f bytes for each byte (%s); Amplification is %d", worst, where, peer.Amplification)
	}
}

func BenchmarkHot(b *testing.B) {
	for _, m := range hot() {
		b.Run(m.Code().String()+"/write", func(b *testing.B) {
			var frame []byte
			for b.Loop() {
				frame = m.AppendTo(frame[:0])
			}
			b.SetBytes(int64(len(frame)))
		})
		b.Run(m.Code().String()+"/read", func(b *testing.B) {
			frame, into := m.AppendTo(nil), peer.New(m.Code())
			b.SetBytes(int64(len(frame)))
			for b.Loop() {
				body, err := peer.Open(frame)
				if err == nil {
					err = into.Decode(body)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
