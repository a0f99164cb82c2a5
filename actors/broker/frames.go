package broker

import (
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

const (
	// peekSize is what is read of a frame before there is credit for it: its length, key and version.
	peekSize = wire.LengthSize + 4
	// chunkMin and chunkMax bound the buffer that small frames are read into, many at a time.
	chunkMin = 4 << 10
	chunkMax = 64 << 10
	// exactMin is the frame size from which the end of a buffer is put where a frame is expected to end, so that none has to be moved.
	exactMin = 8 << 10
	// burstMax bounds the buffer that such frames are read into, as many at a time as came the last time, and one more when they filled it: read by one
	// call and answered by one. They should stay in the processor's cache until they are appended. A larger frame has a buffer of its own.
	burstMax = 256 << 10
	// growth is by how much the buffer of a frame that is larger than any before on its connection outgrows what was received of it: memory and credit
	// follow the bytes. A client that announces much and sends little holds little, and those who wait for memory do not wait for it.
	growth = 4
)

// intake cuts the bytes of one connection into requests. It owns no socket: whoever has bytes asks space where to put them, tells advance how many came,
// and takes complete requests with take. Between requests it holds no buffer and no credit.
//
//	idle ── space ──> a chunk, if there is credit at once ───────┐
//	  └───> else only the first 8 bytes of the frame, into peek  │
//	           └── advance ──> credit for this frame ── waiting ─┤
//	                                                             v
//	               idle <── all complete ── filling ── advance ──┤
//	                                                             └──> a frame that does not fit: credit for a larger chunk ── waiting
//
// It is used by one goroutine at a time.
type intake struct {
	pool    *creditPool
	store   *buffers
	scanner wire.Scanner
	owner   claimant

	peek   [peekSize]byte
	peeked int

	cur   *chunk // being filled
	n     int    // bytes received in cur
	at    int    // where the first incomplete frame begins
	limit int    // cur is filled up to here
	count int    // frames completed in cur
	need  int64  // credit for them beside the buffer

	next     *chunk // where the incomplete frame continues; waits for credit
	stash    []byte // its first bytes, when they must not keep cur; at most a chunk of small frames
	nextSize int
	waiting  bool // for credit, of next or, if that is nil, of cur
	filling  bool // cur's claim is in the pool's list of those whose bytes arrive
	broken   error

	ready []frame

	// What was received before teaches about what comes.
	proven      int   // the largest frame so far
	predict     int   // bytes
	predictNeed int64 // credit
	small       int   // size of a chunk for small frames
}

func newIntake(pool *creditPool, store *buffers, scanner wire.Scanner, owner claimant) *intake {
	return &intake{pool: pool, store: store, scanner: scanner, owner: owner, predict: chunkMin, predictNeed: 2 * chunkMin, small: chunkMin}
}

// idle says whether nothing of a request has been received.
func (in *intake) idle() bool { return in.cur == nil && in.peeked == 0 && in.stash == nil }

// partial says whether the first bytes of a request have been received, with credit, and the others have not.
func (in *intake) partial() bool { return in.cur != nil && in.n > in.at && !in.waiting }

// space returns where the next bytes go. It is empty while the intake waits for credit.
func (in *intake) space() []byte {
	switch {
	case in.waiting:
		return nil
	case in.cur != nil:
		return in.cur.buf[in.n:in.limit]
	case in.peeked > 0:
		return in.peek[in.peeked:]
	}
	c := newChunk(in.pool, in.store, in.owner)
	if !in.pool.tryTake(&c.claim, in.predictNeed) {
		c.release()
		return in.peek[:]
	}
	c.buf = in.store.get(in.predict)
	in.use(c, 0)
	if in.predict >= exactMin {
		in.limit = in.predict
	}
	return in.cur.buf[:in.limit]
}

// use makes c, with n bytes in it, the chunk that is filled.
func (in *intake) use(c *chunk, n int) {
	in.cur, in.n, in.at, in.limit, in.count, in.need = c, n, 0, len(c.buf), 0, 0
}

// unused gives back the buffer of a space into which nothing was read.
func (in *intake) unused() {
	if in.cur != nil && in.n == 0 && !in.waiting {
		in.drop()
	}
}

// drop leaves cur to the complete frames in it.
func (in *intake) drop() {
	in.leave()
	in.cur.release()
	in.cur, in.n, in.at = nil, 0, 0
}

// stall notes that no more bytes are there now, though a request has begun.
func (in *intake) stall(now ident.Instant) {
	if in.partial() && !in.filling {
		in.pool.startFilling(&in.cur.claim, now)
		in.filling = true
	}
}

// advance takes in n bytes that were put into the space. now is when they came, read only if needed. An error ends the connection; complete requests
// before it can still be taken.
func (in *intake) advance(n int, now func() ident.Instant) error {
	if in.broken != nil {
		return in.broken
	}
	if in.cur == nil {
		in.peeked += n
		if in.peeked < peekSize {
			return nil
		}
		f, err := in.scanner.Scan(in.peek[:])
		if err != nil {
			return in.stop(err)
		}
		in.continueIn(f)
		return nil
	}
	in.n += n
	if in.filling {
		in.cur.claim.progress.Store(int64(now()))
	}
	return in.scan()
}

// stop remembers that the connection is over.
func (in *intake) stop(err error) error {
	in.broken = err
	return err
}

// scan finds the complete frames of cur, sees to the credit for them, and decides where the bytes of an incomplete one go.
func (in *intake) scan() error {
	for in.at < in.n {
		f, err := in.scanner.Scan(in.cur.buf[in.at:in.n])
		if err != nil {
			in.cover()
			return in.stop(err)
		}
		if !f.Complete {
			in.cover()
			if !in.waiting {
				in.rest(f)
			}
			return nil
		}
		in.cur.retain()
		in.ready = append(in.ready, frame{chunk: in.cur, body: f.Body, api: f.API})
		in.need += f.API.Memory(f.Size) - int64(f.Size)
		in.proven = max(in.proven, f.Size)
		in.count++
		in.at += f.Size
	}
	in.cover()
	if !in.waiting {
		in.finish()
	}
	return nil
}

// cover makes sure that the claim of cur covers its buffer and the frames in it.
func (in *intake) cover() {
	missing := int64(len(in.cur.buf)) + in.need - in.cur.claim.bytes
	if in.cur.claim.slot || missing <= 0 {
		return
	}
	in.leave()
	if !in.pool.grow(&in.cur.claim, missing, in.pool.needsSlot(0, in.cur.claim.bytes+missing)) {
		in.waiting = true
	}
}

// leave takes the claim of cur off the list of those whose bytes arrive.
func (in *intake) leave() {
	if in.filling {
		in.pool.stopFilling(&in.cur.claim)
		in.filling = false
	}
}

// rest decides where the incomplete frame f at the end of cur goes on.
func (in *intake) rest(f wire.Frame) {
	room := len(in.cur.buf) - in.at
	switch {
	case f.API != nil && f.Size <= room:
		if in.limit = max(in.limit, in.at+f.Size); f.Size < exactMin {
			in.limit = len(in.cur.buf)
		}
	case f.API == nil && room >= peekSize:
		in.limit = len(in.cur.buf)
	case f.API == nil:
		in.peeked = copy(in.peek[:], in.cur.buf[in.at:in.n])
		in.drop()
	default:
		in.continueIn(f)
	}
}

// continueIn starts a chunk for the frame f, whose first bytes are at the end of cur or, without one, in peek.
func (in *intake) continueIn(f wire.Frame) {
	c := newChunk(in.pool, in.store, in.owner)
	got := max(in.n-in.at, in.peeked, chunkMin)
	in.next, in.nextSize = c, f.Size
	switch {
	case f.Size > in.proven:
		in.nextSize = min(f.Size, growth*got)
	case in.cur != nil && in.count > 0:
		in.learn()
		in.nextSize = max(f.Size, in.predict)
	}
	_, size := classOf(in.nextSize)
	slot := in.pool.needsSlot(size, int64(size))
	switch {
	case in.cur == nil:
		in.waiting = !in.pool.take(&c.claim, int64(size), slot)
	case in.cur.claim.slot && in.count > 0:
		// The slot is given back when the requests before this one are answered, and must not wait for this one.
		in.stash = append(in.stash, in.cur.buf[in.at:in.n]...)
		in.drop()
		in.waiting = !in.pool.take(&c.claim, int64(size), slot)
	case in.cur.claim.slot:
		in.leave()
		in.pool.hand(&in.cur.claim, &c.claim)
	default:
		in.leave()
		in.waiting = !in.pool.grow(&c.claim, int64(size), slot)
	}
	if !in.waiting {
		in.move()
	}
}

// move goes on in next, which has credit now.
func (in *intake) move() {
	c := in.next
	in.next = nil
	c.buf = in.store.get(in.nextSize)
	n := 0
	switch {
	case in.cur != nil:
		n = copy(c.buf, in.cur.buf[in.at:in.n])
		in.drop()
	case in.stash != nil:
		n = copy(c.buf, in.stash)
		in.stash = nil
	default:
		n = copy(c.buf, in.peek[:in.peeked])
		in.peeked = 0
	}
	in.use(c, n)
	in.limit = in.nextSize
}

// finish ends a chunk that holds nothing but complete frames.
func (in *intake) finish() {
	in.learn()
	in.drop()
}

// learn guesses the next chunk from the frames that are complete in cur.
func (in *intake) learn() {
	if in.count > 0 && in.at >= in.count*exactMin {
		if size, need := in.burst(); !in.pool.needsSlot(size, need) {
			in.predict, in.predictNeed = size, need
			return
		}
	}
	switch {
	case in.n == len(in.cur.buf):
		in.small = min(2*len(in.cur.buf), chunkMax)
	case in.n < in.small/4:
		in.small = max(in.small/2, chunkMin)
	}
	in.predict = in.small
	in.predictNeed = int64(in.small) + min(max(in.need, chunkMin), in.pool.size/16)
}

// burst is the size of a buffer for the next frames, if they are like those in cur, and the credit for them.
func (in *intake) burst() (size int, need int64) {
	each := (in.at + in.count - 1) / in.count
	n := in.count
	if in.n == in.limit {
		n++
	}
	n = min(n, max(burstMax/each, 1))
	_, buffer := classOf(n * each)
	return n * each, int64(buffer) + in.need*int64(n)/int64(in.count)
}

// granted goes on after the owner was told that credit was granted, and says whether it was.
func (in *intake) granted() bool {
	claim := (*claim)(nil)
	switch {
	case !in.waiting:
		return true
	case in.next != nil:
		claim = &in.next.claim
	default:
		claim = &in.cur.claim
	}
	if !in.pool.has(claim) {
		return false
	}
	in.waiting = false
	if in.next != nil {
		in.move()
		return true
	}
	if in.broken == nil {
		// The frames of cur are covered; what follows them was not looked at.
		_ = in.scan()
	}
	return true
}

// take returns the complete requests, or nil when there are none or they wait for credit.
func (in *intake) take() *requests {
	if len(in.ready) == 0 || in.waiting && in.next == nil {
		return nil
	}
	r := requestsPool.Get().(*requests)
	r.frames = append(r.frames, in.ready...)
	clear(in.ready)
	in.ready = in.ready[:0]
	return r
}

// close lets go of everything. Requests that were taken live on.
func (in *intake) close() {
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
	in.waiting, in.peeked, in.stash = false, 0, nil
}
