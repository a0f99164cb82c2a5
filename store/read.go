package store

import (
	"errors"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// Read finds the batches from offset from on, wholly below upTo, at most bytesMax
// bytes, of one segment; the first batch is the one that holds from. With minOne
// the first batch is returned whatever its size. It is empty when from is at or
// above upTo, or the first batch is larger than bytesMax. The caller must Release
// the region. Errors: *OffsetError, ErrDamaged, ErrDirectoryOffline.
func (l *Log) Read(from, upTo ident.Offset, bytesMax int, minOne bool) (Region, error) {
	if err := l.usable(); err != nil {
		return Region{}, err
	}
	if from < l.start || from > l.end {
		return Region{}, &OffsetError{Partition: l.o.Partition, Offset: from, Start: l.start, End: l.end}
	}
	upTo, err := l.undamaged(from, min(upTo, l.end))
	if err != nil {
		return Region{}, err
	}
	if from >= upTo {
		return Region{next: from}, nil
	}
	i, pos, err := l.locate(from)
	if err != nil {
		return Region{}, err
	}
	s := l.segments[i]
	// A gap at a segment's end (compaction, truncation inside a batch) leads into
	// the next one.
	for pos >= s.size {
		if i++; i >= len(l.segments) || l.segments[i].base >= upTo {
			return Region{next: upTo}, nil
		}
		s, pos = l.segments[i], 0
	}
	r, err := l.cutRegion(i, pos, upTo, int64(bytesMax), minOne)
	r.from, r.made = from, l.generation
	return r, err
}

// ReadNow is Read for a caller that may not wait: ErrWouldWait when the way to the
// region leads over bytes that the kernel may have to fetch from the disk, a file
// that is not open, an index that has to be built, or damage that has to be walked
// around. Then Read, by somebody who may wait, gives the answer. The region itself
// need not be in memory; see Region.Resident.
func (l *Log) ReadNow(from, upTo ident.Offset, bytesMax int, minOne bool) (Region, error) {
	l.hurried = true
	r, err := l.Read(from, upTo, bytesMax, minOne)
	l.hurried = false
	return r, err
}

// loadIndexes takes in the index files of s.
func (l *Log) loadIndexes(s *segment) error {
	if l.hurried && !s.loaded {
		return ErrWouldWait
	}
	return s.loadIndexes()
}

// cutRegion makes the region of segment i that begins at pos.
func (l *Log) cutRegion(i int, pos int64, upTo ident.Offset, bytesMax int64, minOne bool) (Region, error) {
	s := l.segments[i]
	if err := l.reach(s); err != nil {
		return Region{}, err
	}
	limit, next := s.size, upTo
	switch {
	case i+1 < len(l.segments) && upTo >= l.segments[i+1].base:
		next = l.segments[i+1].base
	case upTo < l.end:
		var err error
		if limit, err = l.positionOf(s, upTo); err != nil {
			return Region{}, err
		}
	}
	if limit <= pos {
		return Region{next: next}, nil
	}
	if limit-pos > bytesMax {
		cut, after, err := l.boundary(s, pos, pos+max(bytesMax, 0), minOne)
		if err != nil {
			return Region{}, err
		}
		if cut == pos {
			return Region{next: after}, nil
		}
		if cut < limit {
			limit, next = cut, after
		}
	}
	r := Region{held: s.file, off: pos, n: int(limit - pos), next: next}
	if s == l.active && limit <= int64(len(s.file.bytes)) && pos >= s.size-mappedTail {
		r.mapped = s.file.bytes[pos:limit:limit]
	}
	s.file.retain()
	l.resume.note(resumePoint{next, s.base, limit})
	return r, nil
}

// mappedTail is how far below the log end bytes are read through the mapping: they
// were written a moment ago, so that they are present. Colder bytes never are read
// through it, because a page fault holds up the whole scheduler.
const mappedTail = 4 << 20

// locate finds the first batch that ends at or above o, which must lie in
// [start, end): segment index and position. The position is the segment's size
// when only a gap is left.
func (l *Log) locate(o ident.Offset) (int, int64, error) {
	i := l.segmentAt(o)
	if i < 0 {
		// start lies in no batch that is left; the first segment begins above.
		return 0, 0, nil
	}
	pos, err := l.positionOf(l.segments[i], o)
	return i, pos, err
}

// positionOf finds the position of the first batch of s that ends at or above o.
func (l *Log) positionOf(s *segment, o ident.Offset) (int64, error) {
	if o <= s.base {
		return 0, nil
	}
	for _, h := range l.holes {
		if h.base == s.base && o >= h.From && o < h.To {
			return h.pos, nil
		}
	}
	if s == l.active {
		if o >= l.end {
			return s.size, nil
		}
		if b, next, ok := l.recent.find(o); ok {
			// b begins at or below o. Whether o is in b or in a gap behind it
			// only b's header tells.
			h, err := l.headerAt(s, b.pos)
			if err != nil {
				return 0, err
			}
			switch {
			case h.LastOffset() >= o:
				return b.pos, nil
			case next.pos >= 0:
				return next.pos, nil
			default:
				return s.size, nil
			}
		}
	}
	if p, ok := l.resume.find(o); ok && p.base == s.base {
		return p.pos, nil
	}
	from, err := l.indexed(s, func() (place, error) { return s.index.byOffset(o) })
	if err != nil {
		return 0, err
	}
	pos, _, err := l.walk(s, from.pos, func(h record.View, _ int64) bool { return h.LastOffset() >= o })
	return pos, err
}

// boundary finds the last batch boundary of s at or below limit, beginning at the
// boundary pos, and the offset behind it. With minOne it is at least one batch on.
func (l *Log) boundary(s *segment, pos, limit int64, minOne bool) (int64, ident.Offset, error) {
	from := pos
	if b, ok := l.recent.floor(limit); ok && s == l.active {
		from = max(from, b.pos)
	} else {
		p, err := l.indexed(s, func() (place, error) { return s.index.byPosition(limit) })
		if err != nil {
			return 0, 0, err
		}
		from = max(from, p.pos)
	}
	at, h, err := l.walk(s, from, func(h record.View, at int64) bool {
		return at+int64(sizeOf(h)) > limit && (!minOne || at > pos)
	})
	if err != nil || h == nil {
		return at, 0, err // the one batch was the segment's last
	}
	return at, h.BaseOffset(), nil
}

// walk goes from batch to batch of s, from the boundary pos on, until stop says
// so, and returns where it stopped and the header there; at the segment's end the
// header is nil.
func (l *Log) walk(s *segment, pos int64, stop func(h record.View, at int64) bool) (int64, record.View, error) {
	for pos < s.size {
		if to, ok := l.holeAt(s, pos); ok {
			pos = to
			continue
		}
		h, err := l.headerAt(s, pos)
		if err != nil {
			if pos, err = l.hop(s, pos, err); err != nil {
				return 0, nil, err
			}
			continue
		}
		if stop(h, pos) {
			return pos, h, nil
		}
		pos += int64(sizeOf(h))
	}
	return pos, nil, nil
}

// sizeOf is the size that a header which headerAt has checked declares.
func sizeOf(h record.View) int {
	n, err := record.SizeOf(h)
	if err != nil {
		panic("store: a checked header lost its length: " + err.Error())
	}
	return n
}

// headerAt reads the header of the batch at pos of s. It is valid until the next
// call. ErrDamaged when there is none.
func (l *Log) headerAt(s *segment, pos int64) (record.View, error) {
	h := record.View(l.header)
	if s == l.active && s.file != nil && s.size-pos <= mappedTail && pos+record.HeaderSize <= int64(len(s.file.bytes)) {
		copy(h, s.file.bytes[pos:])
	} else {
		if err := l.reach(s); err != nil {
			return nil, err
		}
		var err error
		if l.hurried {
			_, err = s.file.file.ReadNow(h, pos)
		} else {
			_, err = s.file.file.ReadAt(h, pos)
		}
		if err != nil {
			if errors.Is(err, ErrWouldWait) {
				return nil, err
			}
			if isShort(err) {
				return nil, l.damaged(s, pos, err)
			}
			return nil, l.health.sift(err, "read "+s.name(suffixLog))
		}
	}
	size, err := record.SizeOf(h)
	switch {
	case err != nil:
		return nil, l.damaged(s, pos, err)
	case h.Magic() != record.Magic || pos+int64(size) > s.size || h.BaseOffset() < s.base || h.LastOffsetDelta() < 0:
		return nil, l.damaged(s, pos, ErrFormat)
	}
	return h, nil
}

// indexed asks the offset index of s for a place and believes it only when the log
// has such a batch there; else the index is built anew and asked again.
func (l *Log) indexed(s *segment, ask func() (place, error)) (place, error) {
	for range 2 {
		err := l.loadIndexes(s)
		var p place
		if err == nil {
			s.index.hurried = l.hurried
			p, err = ask()
			s.index.hurried = false
		}
		if errors.Is(err, ErrWouldWait) {
			return place{}, err
		}
		if err == nil {
			if p.pos == 0 && p.offset < s.base {
				return p, nil
			}
			if p.pos >= 0 && p.pos+record.HeaderSize <= s.size {
				if h, err := l.headerAt(s, p.pos); err == nil && h.LastOffset() == p.offset {
					return p, nil
				}
			}
		}
		if err := l.rebuildIndexes(s); err != nil {
			return place{}, err
		}
	}
	// The index was just built, and the log does not agree with it: the disk
	// gives different bytes for one place. Read from the beginning.
	return place{offset: s.base - 1}, nil
}
