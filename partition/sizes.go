package partition

import (
	"slices"

	"github.com/troupe-broker/troupe/wire/ident"
)

// sizesMax bounds the batches between high watermark and log end whose sizes are
// remembered, 16 bytes each. Beyond it the oldest are forgotten, and readers that
// wait for a number of bytes are answered early.
const sizesMax = 8192

// sizes counts the bytes appended since this broker began to lead, so that a parked
// reader's min.bytes can be compared without a look at the log. It remembers the
// count at the high watermark and at the end of every batch above it.
type sizes struct {
	base  sizeMark   // at or below the high watermark; the oldest offset that is known
	marks []sizeMark // above base, rising; marks[:head] are spent
	head  int
}

// sizeMark says that bytes had been appended when the log ended at offset.
type sizeMark struct {
	offset ident.Offset
	bytes  int64
}

// reset starts counting at the log end.
func (s *sizes) reset(end ident.Offset) {
	*s = sizes{base: sizeMark{offset: end}, marks: s.marks[:0]}
}

// add counts a batch that ends at end.
func (s *sizes) add(end ident.Offset, bytes int32) {
	last := s.base
	if len(s.marks) > s.head {
		last = s.marks[len(s.marks)-1]
	}
	if len(s.marks)-s.head == sizesMax {
		s.base = s.marks[s.head]
		s.head++
	}
	// Moving down half of the slice at most keeps the cost of an append constant.
	if len(s.marks) == cap(s.marks) && s.head > len(s.marks)/2 {
		s.marks = s.marks[:copy(s.marks, s.marks[s.head:])]
		s.head = 0
	}
	s.marks = append(s.marks, sizeMark{offset: end, bytes: last.bytes + int64(bytes)})
}

// advance forgets what lies below the high watermark.
func (s *sizes) advance(highWatermark ident.Offset) {
	for s.head < len(s.marks) && s.marks[s.head].offset <= highWatermark {
		s.base = s.marks[s.head]
		s.head++
	}
	if s.head == len(s.marks) {
		s.marks, s.head = s.marks[:0], 0
	}
}

// at returns the count at offset o, or unknownBytes. An offset inside a batch counts
// as the batch's start: its reader gets the whole batch.
func (s *sizes) at(o ident.Offset) int64 {
	if o < s.base.offset {
		return unknownBytes
	}
	live := s.marks[s.head:]
	i, found := slices.BinarySearchFunc(live, o, func(m sizeMark, o ident.Offset) int { return compare(m.offset, o) })
	switch {
	case found:
		return live[i].bytes
	case i == 0:
		return s.base.bytes
	default:
		return live[i-1].bytes
	}
}
