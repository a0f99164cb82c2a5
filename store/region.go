package store

import "github.com/troupe-broker/troupe/wire/ident"

// Region is a run of whole batches in one segment, held by reference: file and
// mapping stay open until Release. A Region is a value; it may be copied, but the
// copies share one reference, so Retain once for each further Release. All
// methods may be called from any goroutine. The zero Region is empty and needs no
// Release.
type Region struct {
	held   *segmentFile
	off    int64
	mapped []byte
	n      int
	base   ident.Offset
	next   ident.Offset
}

// Len is the number of bytes, 0 for the empty region.
func (r *Region) Len() int { return r.n }

// Base is the base offset of the first batch.
func (r *Region) Base() ident.Offset { return r.base }

// Next is the offset at which reading continues after this region.
func (r *Region) Next() ident.Offset { return r.next }
