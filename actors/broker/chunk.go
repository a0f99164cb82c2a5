package broker

import (
	"sync"
	"sync/atomic"

	"github.com/troupe-broker/troupe/wire"
)

// chunk is a buffer with requests in it, and the credit for them. The intake of a connection fills it; complete requests in it do not change any more,
// but for the record batches in them, which belong to the partition that appends them. Who holds bytes of it holds a reference; the last release gives
// buffer and credit back.
type chunk struct {
	claim claim
	buf   []byte
	refs  atomic.Int32
	pool  *creditPool
	store *buffers
}

var chunks = sync.Pool{New: func() any { return new(chunk) }}

func newChunk(pool *creditPool, store *buffers, owner claimant) *chunk {
	c := chunks.Get().(*chunk)
	c.pool, c.store, c.claim.owner = pool, store, owner
	c.refs.Store(1)
	return c
}

func (c *chunk) retain() { c.refs.Add(1) }

func (c *chunk) release() {
	switch n := c.refs.Add(-1); {
	case n > 0:
		return
	case n < 0:
		panic("broker: a chunk of requests was released twice")
	}
	if c.buf != nil {
		c.store.put(c.buf)
	}
	c.pool.release(&c.claim)
	c.buf, c.pool, c.store, c.claim.owner = nil, nil, nil, nil
	chunks.Put(c)
}

// frame is one complete request in a chunk.
type frame struct {
	chunk *chunk // one reference is the frame's
	body  []byte // header and body, aliases the chunk
	api   *wire.API
}

// requests is the message by which an intake hands complete requests to its session.
type requests struct{ frames []frame }

var requestsPool = sync.Pool{New: func() any { return new(requests) }}

// Bytes is 0: the memory of requests is bounded by the credit pool.
func (r *requests) Bytes() int { return 0 }

// Reject lets go of requests that the session will not take any more.
func (r *requests) Reject(error) {
	for i := range r.frames {
		r.frames[i].chunk.release()
	}
	r.recycle()
}

func (r *requests) recycle() {
	clear(r.frames)
	r.frames = r.frames[:0]
	requestsPool.Put(r)
}
