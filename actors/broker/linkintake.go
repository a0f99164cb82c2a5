package broker

import (
	"sync"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/peer"
)

const (
	// linkChunkMin is the buffer that a link reads into without credit.
	linkChunkMin = 16 << 10
	// linkBurstMax bounds the buffer that is taken because the frames before were as large.
	linkBurstMax = 1 << 20
)

// linkIntake cuts the bytes of a link into frames. Small frames share a buffer; one that does not fit has its own, for which, on a connection that brings
// records, there is credit first. Between frames it holds no buffer. It is used by one goroutine at a time.
type linkIntake struct {
	pool  *creditPool
	store *buffers
	owner claimant
	limit int  // of frames after the first, which is a greeting
	paid  bool // buffers above linkChunkMin need credit

	greeted int // bytes of the preface that were seen
	first   bool

	cur     *chunk
	n       int    // bytes in cur
	at      int    // where the first incomplete frame begins
	end     int    // cur is filled up to here
	next    *chunk // where that frame goes on; waits for credit
	size    int    // of next
	waiting bool
	proven  int // the largest frame so far
	predict int // the size of a buffer for what comes next
	ready   []linkFrame
	broken  error
}

// linkFrame is one complete frame in a chunk, of which it has a reference.
type linkFrame struct {
	chunk *chunk
	bytes []byte // length field included
}

// linkFrames is the message by which an intake hands over complete frames.
type linkFrames struct {
	frames []linkFrame
	wire   *PeerWire
}

var linkFramesPool = sync.Pool{New: func() any { return new(linkFrames) }}

// Bytes is 0: PeerWire bounds how many are under way, and the pool of credit what they hold.
func (*linkFrames) Bytes() int { return 0 }

// Reject implements runtime.Rejecter.
func (f *linkFrames) Reject(error) { f.done() }

// done lets go of the frames.
func (f *linkFrames) done() {
	for i := range f.frames {
		f.frames[i].chunk.release()
	}
	f.wire.handled()
	clear(f.frames)
	f.frames, f.wire = f.frames[:0], nil
	linkFramesPool.Put(f)
}

var _ runtime.Rejecter = (*linkFrames)(nil)

// space returns where the next bytes go. It is empty while the intake waits for credit.
func (in *linkIntake) space() []byte {
	if in.waiting {
		return nil
	}
	if in.cur == nil {
		in.begin()
	}
	return in.cur.buf[in.n:in.end]
}

// begin takes a buffer for what comes next.
func (in *linkIntake) begin() {
	c := newChunk(in.pool, in.store, in.owner)
	size := linkChunkMin
	if in.predict > size && in.predict <= linkBurstMax {
		_, class := classOf(in.predict)
		if !in.paid || !in.pool.needsSlot(class, int64(class)) && in.pool.tryTake(&c.claim, int64(class)) {
			size = in.predict
		}
	}
	c.buf = in.store.get(size)
	in.use(c, 0, size)
}

func (in *linkIntake) use(c *chunk, n, end int) { in.cur, in.n, in.at, in.end = c, n, 0, end }

// unused gives back the buffer of a space into which nothing was read.
func (in *linkIntake) unused() {
	if in.cur != nil && in.n == 0 {
		in.drop()
	}
}

func (in *linkIntake) drop() {
	in.cur.release()
	in.cur, in.n, in.at, in.end = nil, 0, 0, 0
}

// advance takes in n bytes that were put into the space.
func (in *linkIntake) advance(n int) error {
	in.n += n
	if in.broken == nil {
		in.broken = in.scan()
	}
	return in.broken
}

// scan finds the complete frames of cur and decides where the bytes of an incomplete one go.
func (in *linkIntake) scan() error {
	for ; in.greeted < len(peer.Preface) && in.at < in.n; in.at++ {
		if in.cur.buf[in.at] != peer.Preface[in.greeted] {
			return &wire.ProtocolError{Code: peer.CodeNotAPeer, Reason: "the other side does not speak the protocol of Troupe's brokers: is this a peer port?"}
		}
		in.greeted++
	}
	for in.at < in.n {
		limit := in.limit
		if !in.first {
			limit = peer.HelloMax
		}
		size, complete, err := peer.Scan(in.cur.buf[in.at:in.n], limit)
		if err != nil {
			return err
		}
		if !complete {
			in.rest(size)
			return nil
		}
		in.first = true
		in.cur.retain()
		in.ready = append(in.ready, linkFrame{chunk: in.cur, bytes: in.cur.buf[in.at : in.at+size : in.at+size]})
		in.proven, in.predict = max(in.proven, size), size
		in.at += size
	}
	if in.at == in.n {
		in.drop()
	}
	return nil
}

// rest decides where the incomplete frame at the end of cur goes on. size is 0 when even its length is not there.
func (in *linkIntake) rest(size int) {
	switch room := len(in.cur.buf) - in.at; {
	case size == 0 && room >= linkChunkMin/2, size > 0 && size <= room:
		in.end = len(in.cur.buf)
		if size > linkChunkMin {
			in.end = in.at + size // what follows a large frame is not to be moved
		}
	default:
		in.continueIn(size)
	}
}

// continueIn starts a chunk for a frame of this size.
func (in *linkIntake) continueIn(size int) {
	got := max(in.n-in.at, linkChunkMin)
	in.size = max(size, linkChunkMin)
	if size > in.proven { // memory follows the bytes
		in.size = min(in.size, growth*got)
	}
	c := newChunk(in.pool, in.store, in.owner)
	in.next = c
	if in.paid && in.size > linkChunkMin {
		_, class := classOf(in.size)
		slot := in.pool.needsSlot(class, int64(class))
		switch {
		case in.cur.claim.slot:
			in.pool.hand(&in.cur.claim, &c.claim)
		case in.cur.claim.bytes > 0:
			in.waiting = !in.pool.grow(&c.claim, int64(class), slot)
		default:
			in.waiting = !in.pool.take(&c.claim, int64(class), slot)
		}
	}
	if !in.waiting {
		in.move()
	}
}

// move goes on in next, which has credit now.
func (in *linkIntake) move() {
	c := in.next
	in.next = nil
	c.buf = in.store.get(in.size)
	n := copy(c.buf, in.cur.buf[in.at:in.n])
	in.cur.release()
	in.use(c, n, in.size)
}

// granted goes on after credit was granted; false: it was not, after all.
func (in *linkIntake) granted() bool {
	switch {
	case !in.waiting:
		return true
	case !in.pool.has(&in.next.claim):
		return false
	}
	in.waiting = false
	in.move()
	return true
}

// take returns the complete frames, or nil when there are none.
func (in *linkIntake) take() *linkFrames {
	if len(in.ready) == 0 {
		return nil
	}
	f := linkFramesPool.Get().(*linkFrames)
	f.frames = append(f.frames, in.ready...)
	clear(in.ready)
	in.ready = in.ready[:0]
	return f
}

// close lets go of everything. Frames that were taken live on.
func (in *linkIntake) close() {
	for i := range in.ready {
		in.ready[i].chunk.release()
	}
	in.ready = nil
	if in.next != nil {
		in.next.release()
		in.next = nil
	}
	if in.cur != nil {
		in.drop()
	}
	in.waiting = false
}
