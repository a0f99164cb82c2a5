package broker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// testFrame is a Metadata request of a size, with content that tells frames apart.
func testFrame(size int, mark byte) []byte {
	f := bytes.Repeat([]byte{mark}, size)
	binary.BigEndian.PutUint32(f, uint32(size-4))
	binary.BigEndian.PutUint16(f[4:], uint16(wire.KeyProduce))
	binary.BigEndian.PutUint16(f[6:], 7)
	return f
}

type feeding struct {
	in      *intake
	granted int
	revoked int
	bodies  [][]byte
	held    []*requests
}

func (f *feeding) creditGranted() { f.granted++ }
func (f *feeding) creditRevoked() { f.revoked++ }

func newFeeding(pool *creditPool) *feeding {
	f := &feeding{}
	f.in = newIntake(pool, newBuffers(1<<20), wire.Scanner{Limit: 100 << 20}, f)
	return f
}

func still() ident.Instant { return 1 }

// feed gives bytes to the intake in pieces of at most step bytes, and takes what is complete. It stops when the intake waits for credit.
func (f *feeding) feed(t *testing.T, b []byte, step int, keep bool) (rest []byte) {
	t.Helper()
	for len(b) > 0 {
		space := f.in.space()
		if len(space) == 0 {
			return b
		}
		n := copy(space[:min(len(space), step)], b)
		b = b[n:]
		if err := f.in.advance(n, still); err != nil {
			t.Fatal(err)
		}
		f.take(keep)
	}
	return nil
}

func (f *feeding) take(keep bool) {
	r := f.in.take()
	if r == nil {
		return
	}
	for i := range r.frames {
		f.bodies = append(f.bodies, bytes.Clone(r.frames[i].body))
	}
	if keep {
		f.held = append(f.held, r)
		return
	}
	r.Reject(nil)
}

func (f *feeding) expect(t *testing.T, frames [][]byte) {
	t.Helper()
	if len(f.bodies) != len(frames) {
		t.Fatalf("%d frames came out, want %d", len(f.bodies), len(frames))
	}
	for i := range frames {
		if !bytes.Equal(f.bodies[i], frames[i][4:]) {
			t.Fatalf("frame %d differs", i)
		}
	}
}

func TestFramesComeOutAsTheyWentInHoweverTheyAreCut(t *testing.T) {
	sizes := []int{14, 20, 100, 1000, 4090, 4096, 4100, 9000, 1000, 65530, 65600, 70000, 14, 300000, 300000, 300001, 50, 8192, 8192, 8192, 16000, 64}
	for step := 1; step < 400000; step = step*3 + 1 {
		pool := newCreditPool(64<<20, nil)
		f := newFeeding(pool)
		var frames [][]byte
		var stream []byte
		for i, n := range sizes {
			frames = append(frames, testFrame(n, byte(i+1)))
			stream = append(stream, frames[i]...)
		}
		if rest := f.feed(t, stream, step, step%2 == 0); rest != nil {
			t.Fatalf("step %d: the intake waits in a large pool", step)
		}
		f.expect(t, frames)
		if !f.in.idle() {
			t.Fatalf("step %d: something is left", step)
		}
		for _, r := range f.held {
			r.Reject(nil)
		}
		if use := pool.use(); use.UsedBytes != 0 || use.SlotBusy {
			t.Fatalf("step %d: %d bytes of credit are lost, slot %v", step, use.UsedBytes, use.SlotBusy)
		}
	}
}

func TestRequestsThatAreHeldKeepTheirBytesWhileTheConnectionGoesOn(t *testing.T) {
	pool := newCreditPool(64<<20, nil)
	f := newFeeding(pool)
	var frames [][]byte
	for i := range 200 {
		frames = append(frames, testFrame(100+37*i, byte(i)))
		if rest := f.feed(t, frames[i], 5000, true); rest != nil {
			t.Fatal("the intake waits in a large pool")
		}
	}
	i := 0
	for _, r := range f.held {
		for _, fr := range r.frames {
			if !bytes.Equal(fr.body, frames[i][4:]) {
				t.Fatalf("the bytes of frame %d changed while it was held", i)
			}
			i++
		}
		r.Reject(nil)
	}
	if used := pool.use().UsedBytes; used != 0 {
		t.Errorf("%d bytes of credit are lost", used)
	}
}

func TestAnEmptyPoolStopsTheReadingAfterEightBytes(t *testing.T) {
	pool := newCreditPool(1<<20, nil)
	hog := &applicant{name: "hog", told: new([]string)}
	hog.claim.owner = hog
	if !pool.take(&hog.claim, 1<<20, false) {
		t.Fatal("an empty pool refuses")
	}
	f := newFeeding(pool)
	want := testFrame(5000, 7)
	rest := f.feed(t, want, 1<<20, false)
	if got := len(want) - len(rest); got != peekSize {
		t.Fatalf("%d bytes were read without credit, want %d", got, peekSize)
	}
	if f.in.granted() {
		t.Fatal("credit was granted by nobody")
	}
	pool.release(&hog.claim)
	if f.granted != 1 {
		t.Fatalf("the waiting connection was told %d times", f.granted)
	}
	if !f.in.granted() {
		t.Fatal("no credit after all")
	}
	if rest = f.feed(t, rest, 1<<20, false); rest != nil {
		t.Fatal("the intake waits again")
	}
	f.expect(t, [][]byte{want})
	if used := pool.use().UsedBytes; used != 0 {
		t.Errorf("%d bytes of credit are lost", used)
	}
}

func TestAFrameThatOutgrowsItsChunkWaitsForCreditAndGoesOn(t *testing.T) {
	pool := newCreditPool(1<<20, nil)
	f := newFeeding(pool)
	hog := &applicant{name: "hog", told: new([]string)}
	hog.claim.owner = hog
	want := testFrame(90000, 9)
	head, tail := want[:2000], want[2000:]
	if rest := f.feed(t, head[:1], 1, false); rest != nil {
		t.Fatal("the intake waits in an empty pool")
	}
	pool.take(&hog.claim, pool.free, false)
	slot := &applicant{name: "slot", told: new([]string)}
	slot.claim.owner = slot
	if !pool.take(&slot.claim, 1<<20, true) {
		t.Fatal("the slot is not free")
	}
	rest := f.feed(t, head[1:], 1<<20, false)
	rest = append(bytes.Clone(rest), tail...)
	if !f.in.waiting {
		t.Fatal("the frame has credit that is not there")
	}
	pool.release(&hog.claim)
	if f.granted == 0 || !f.in.granted() {
		t.Fatal("the growing claim was not served")
	}
	if rest = f.feed(t, rest, 1<<20, false); rest != nil {
		t.Fatal("the intake waits again")
	}
	f.expect(t, [][]byte{want})
	pool.release(&slot.claim)
	if use := pool.use(); use.UsedBytes != 0 || use.SlotBusy {
		t.Errorf("%d bytes of credit are lost", use.UsedBytes)
	}
}

func TestAGiantGetsMemoryAsItsBytesCome(t *testing.T) {
	const size = 50<<20 + 3
	for _, step := range []int{1 << 20, 3_000_001, 64 << 20} {
		pool := newCreditPool(64<<20, nil)
		f := newFeeding(pool)
		want := testFrame(size, 7)
		rest := f.feed(t, want[:peekSize+100], 1<<20, false)
		if rest != nil {
			t.Fatal("the intake waits in a large pool")
		}
		if got := len(f.in.cur.buf); got > 2*growth*chunkMin {
			t.Errorf("a frame that is announced has a buffer of %d bytes before it is there", got)
		}
		for sent := peekSize + 100; sent < size; sent += step {
			if rest := f.feed(t, want[sent:min(sent+step, size)], step, false); rest != nil {
				t.Fatal("the intake waits in a large pool")
			}
			if f.in.cur != nil && len(f.in.cur.buf) > 2*growth*max(f.in.n, chunkMin) {
				t.Fatalf("step %d: a buffer of %d bytes for %d that came", step, len(f.in.cur.buf), f.in.n)
			}
		}
		f.expect(t, [][]byte{want})
		if use := pool.use(); use.UsedBytes != 0 || use.SlotBusy {
			t.Errorf("step %d: %d bytes of credit are lost, slot %v", step, use.UsedBytes, use.SlotBusy)
		}
	}
}

func TestAFrameThatIsNoneEndsTheConnectionAndItsCredit(t *testing.T) {
	for name, bad := range map[string][]byte{
		"negative": {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
		"giant":    {0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0},
		"short":    {0, 0, 0, 1, 0, 0, 0, 0},
		"unknown":  {0, 0, 0, 50, 0x7f, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			pool := newCreditPool(1<<20, nil)
			f := newFeeding(pool)
			good := testFrame(50, 1)
			space := f.in.space()
			n := copy(space, append(bytes.Clone(good), bad...))
			err := f.in.advance(n, still)
			var protocol *wire.ProtocolError
			var unsupported *wire.UnsupportedError
			if !errors.As(err, &protocol) && !errors.As(err, &unsupported) {
				t.Fatalf("error %v, want a protocol error", err)
			}
			f.take(false)
			f.expect(t, [][]byte{good})
			f.in.close()
			if used := pool.use().UsedBytes; used != 0 {
				t.Errorf("%d bytes of credit are lost", used)
			}
		})
	}
}

func TestASteadyStreamOfRequestsAllocatesNothing(t *testing.T) {
	if RaceEnabled {
		t.Skip("the race detector makes pools forget")
	}
	for _, size := range []int{1000, 66000} {
		pool := newCreditPool(64<<20, nil)
		f := newFeeding(pool)
		stream := bytes.Repeat(testFrame(size, 3), 8)
		once := func() {
			for b := stream; len(b) > 0; {
				space := f.in.space()
				n := copy(space, b)
				b = b[n:]
				if err := f.in.advance(n, still); err != nil {
					t.Fatal(err)
				}
				if r := f.in.take(); r != nil {
					r.Reject(nil)
				}
			}
		}
		for range 20 {
			once()
		}
		if n := testing.AllocsPerRun(200, once); n > 0.1 {
			t.Errorf("frames of %d bytes: %v allocations for 8 of them", size, n)
		}
	}
}

func TestBuffersAreAtMostAQuarterLarger(t *testing.T) {
	last := 0
	for n := 1; n <= bufferPooledMax; n += 1 + n/64 {
		class, size := classOf(n)
		if size < n || n > bufferMin && size > n+n/4+1 {
			t.Fatalf("a buffer of %d for %d bytes", size, n)
		}
		if class >= classCount || class < last {
			t.Fatalf("class %d for %d bytes after class %d", class, n, last)
		}
		if c, s := classOf(size); c != class || s != size {
			t.Fatalf("a buffer of %d is of class %d and comes back to %d", size, class, c)
		}
		last = class
	}
	if last != classCount-1 {
		t.Errorf("the last class is %d, want %d", last, classCount-1)
	}
	b := newBuffers(10 << 20)
	x := b.get(5000)
	b.put(x[:10])
	if y := b.get(5000); &y[0] != &x[0] {
		t.Error("a buffer that was given back is not used again")
	}
}

// TestConnectionsThatShareAPoolAllGetThrough lets many connections send frames of all sizes through a pool that is much too small, with requests answered
// late and in any order. Whatever the interleaving, somebody can always go on.
func TestConnectionsThatShareAPoolAllGetThrough(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		pool := newCreditPool(1<<20, nil)
		type connection struct {
			*feeding
			frames [][]byte
			stream []byte
		}
		var conns []*connection
		for range 12 {
			c := &connection{feeding: newFeeding(pool)}
			for range 1 + r.IntN(12) {
				size := 14 + r.IntN([]int{100, 5000, 70_000, 300_000}[r.IntN(4)])
				f := testFrame(size, byte(r.IntN(256)))
				c.frames = append(c.frames, f)
				c.stream = append(c.stream, f...)
			}
			conns = append(conns, c)
		}
		idle := 0
		for done := 0; done < len(conns); {
			c := conns[r.IntN(len(conns))]
			before := len(c.stream) + len(c.held) + len(c.bodies)
			switch {
			case len(c.held) > 0 && r.IntN(3) == 0:
				i := r.IntN(len(c.held))
				c.held[i].Reject(nil)
				c.held = append(c.held[:i], c.held[i+1:]...)
			case c.in.waiting:
				if c.in.granted() {
					c.take(true)
					idle = 0
				}
			default:
				n := min(len(c.stream), 1+r.IntN(100_000))
				rest := c.feed(t, c.stream[:n], 1+r.IntN(70_000), true)
				c.stream = c.stream[n-len(rest):]
			}
			idle++
			if len(c.stream)+len(c.held)+len(c.bodies) != before {
				idle = 0
			}
			if idle > 20_000 {
				t.Fatalf("seed %d: nobody gets on: %+v", seed, pool.use())
			}
			done = 0
			for _, c := range conns {
				if len(c.stream) == 0 && len(c.held) == 0 && len(c.bodies) == len(c.frames) {
					done++
				}
			}
		}
		for _, c := range conns {
			c.expect(t, c.frames)
		}
		if use := pool.use(); use.UsedBytes != 0 || use.SlotBusy || use.Waiting != 0 {
			t.Fatalf("seed %d: in the end %+v", seed, use)
		}
	}
}

func FuzzIntake(f *testing.F) {
	f.Add(testFrame(40, 1), uint16(7))
	f.Add(append(testFrame(5000, 1), testFrame(20, 2)...), uint16(4096))
	f.Add([]byte{0, 0, 0, 20, 0, 18, 0, 99}, uint16(1))
	f.Fuzz(func(t *testing.T, stream []byte, step uint16) {
		pool := newCreditPool(1<<20, nil)
		c := newFeeding(pool)
		for b := stream; len(b) > 0; {
			space := c.in.space()
			if len(space) == 0 {
				t.Fatal("one connection alone waits for credit")
			}
			n := copy(space[:min(len(space), int(step)+1)], b)
			b = b[n:]
			if err := c.in.advance(n, still); err != nil {
				break
			}
			c.take(false)
			if c.in.waiting && !c.in.granted() {
				t.Fatal("one connection alone waits for credit")
			}
			c.take(false)
		}
		c.in.close()
		if use := pool.use(); use.UsedBytes != 0 || use.SlotBusy {
			t.Fatalf("%+v is lost", use)
		}
	})
}

func TestFramesOfMiddleSizeAreReadSeveralAtATimeWhenTheyComeSo(t *testing.T) {
	const size = 64_800
	reads := func(f *feeding, stream []byte) (n int) {
		for len(stream) > 0 {
			k := copy(f.in.space(), stream)
			stream = stream[k:]
			if err := f.in.advance(k, still); err != nil {
				t.Fatal(err)
			}
			f.take(false)
			n++
		}
		return n
	}
	pool := newCreditPool(64<<20, nil)
	f := newFeeding(pool)
	frame := testFrame(size, 5)
	burst := bytes.Repeat(frame, 8)
	for range 4 {
		reads(f, burst)
	}
	if n := reads(f, burst); n > 3 {
		t.Errorf("8 frames that were there took %d reads, want at most 3", n)
	}
	// One at a time again: the buffer shrinks to what comes.
	for range 4 {
		reads(f, frame)
	}
	if got := max(len(f.in.space()), f.in.predict); got > 2*size {
		t.Errorf("%d bytes of buffer for a client with one request of %d in flight", got, size)
	}
	f.in.unused()
	if !f.in.idle() || pool.use().UsedBytes != 0 {
		t.Errorf("%d bytes of credit are held for nothing", pool.use().UsedBytes)
	}
}
