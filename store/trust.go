package store

import (
	"math"
	"sync"
)

// trust is which bytes of a segment this process knows to be as they were written: it wrote them, or has summed them up. What is in the page cache otherwise came
// there from the disk when somebody else read it, perhaps years after a bit had turned.
//
// Of what was summed up one stretch is remembered, for readers go on from where they are. One that begins elsewhere is summed up again, and begins another stretch.
type trust struct {
	mu       sync.Mutex
	own      int64 // from here on the bytes are this process's own
	from, to int64 // these were summed up
}

// found says that bytes below size were there before this process.
func (k *trust) found(size int64) {
	k.mu.Lock()
	k.own, k.from, k.to = size, 0, 0
	k.mu.Unlock()
}

// covers tells whether the bytes [from, to) are known.
func (k *trust) covers(from, to int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.from <= from && from < k.to {
		from = k.to
	}
	return from >= min(to, k.own)
}

// summed says that the bytes [from, to) were found to be sound.
func (k *trust) summed(from, to int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if from > k.to || to < k.from {
		k.from, k.to = from, to
		return
	}
	k.from, k.to = min(k.from, from), max(k.to, to)
}

// unknown is the size of a file of which nothing is known to be this process's own.
const unknown = int64(math.MaxInt64)

// Trusted tells whether this process knows that the region is as it was written: it wrote it, or [Region.Check] has been through it.
func (r *Region) Trusted() bool {
	return r.n == 0 || r.held.trust == nil || r.held.trust.covers(r.off, r.off+int64(r.n))
}
