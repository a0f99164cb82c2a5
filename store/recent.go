package store

import "github.com/troupe-broker/troupe/wire/ident"

// batchStart is where a batch begins: its base offset and its position.
type batchStart struct {
	offset ident.Offset
	pos    int64
}

// recentBatches remembers where the last batches of the active segment begin, so
// that readers near the end need no index. It costs two stores an append.
type recentBatches struct {
	ring *[64]batchStart // nil until the first is noted: it is a third of what an idle log holds
	n    uint64          // batches noted; the last min(n, 64) are in the ring
}

func (r *recentBatches) note(offset ident.Offset, pos int64) {
	if r.ring == nil {
		r.ring = new([64]batchStart)
	}
	r.ring[r.n%uint64(len(r.ring))] = batchStart{offset, pos}
	r.n++
}

func (r *recentBatches) clear() { r.n = 0 }

// find returns the last noted batch that begins at or below o: the one that holds
// o, if o is below the log end and not in a gap. ok is false when it is older than
// the ring.
func (r *recentBatches) find(o ident.Offset) (b batchStart, next batchStart, ok bool) {
	size := uint64(len(r.ring))
	oldest := r.n - min(r.n, size)
	lo, hi := oldest, r.n // the answer is at lo-1
	for lo < hi {
		mid := lo + (hi-lo)/2
		if r.ring[mid%size].offset <= o {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == oldest {
		return b, next, false
	}
	if lo < r.n {
		next = r.ring[lo%size]
	} else {
		next.pos = -1
	}
	return r.ring[(lo-1)%size], next, true
}

// floor returns the last noted batch that begins at or below position pos.
func (r *recentBatches) floor(pos int64) (b batchStart, ok bool) {
	size := uint64(len(r.ring))
	oldest := r.n - min(r.n, size)
	lo, hi := oldest, r.n
	for lo < hi {
		mid := lo + (hi-lo)/2
		if r.ring[mid%size].pos <= pos {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == oldest {
		return b, false
	}
	return r.ring[(lo-1)%size], true
}

// spot is a place between two batches of a segment, and what is known there of the one that follows: it does not begin below floor.
type spot struct {
	pos   int64
	floor ident.Offset // ident.NoOffset: an index entry has named the batch, and its header is believed
}

// resumePoint remembers where a read ended, for the read that continues there.
type resumePoint struct {
	offset ident.Offset
	base   ident.Offset // of the segment
	at     spot
}

// resumePoints keeps the last few; a consumer that reads on needs no index.
type resumePoints struct {
	at [8]resumePoint
	n  int // next to replace
}

func (r *resumePoints) note(p resumePoint) {
	for i := range r.at {
		if r.at[i].offset == p.offset {
			r.at[i] = p
			return
		}
	}
	r.at[r.n] = p
	r.n = (r.n + 1) % len(r.at)
}

func (r *resumePoints) find(o ident.Offset) (resumePoint, bool) {
	for i := range r.at {
		if r.at[i].offset == o && o > 0 {
			return r.at[i], true
		}
	}
	return resumePoint{}, false
}

func (r *resumePoints) clear() { *r = resumePoints{} }
