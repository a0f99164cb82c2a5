package store

import (
	"errors"
	"fmt"

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
	var r Region
	for known := -1; known < len(l.news); { // else the way led around damage that nobody knew of, and what was asked for may lie in it
		r.Release()
		known = len(l.news)
		if err := l.read(&r, from, upTo, bytesMax, minOne); err != nil {
			return Region{}, err
		}
	}
	return r, nil
}

func (l *Log) read(r *Region, from, upTo ident.Offset, bytesMax int, minOne bool) error {
	*r = Region{next: from}
	if from < l.start || from > l.end {
		return &OffsetError{Partition: l.o.Partition, Offset: from, Start: l.start, End: l.end}
	}
	upTo, err := l.undamaged(from, min(upTo, l.end))
	if err != nil || from >= upTo {
		return err
	}
	i, at, err := l.locate(from)
	if err != nil {
		return err
	}
	s := l.segments[i]
	// A gap at a segment's end (compaction, truncation inside a batch) leads into
	// the next one.
	for at.pos >= s.size {
		if i++; i >= len(l.segments) || l.segments[i].base >= upTo {
			r.next = upTo
			return nil
		}
		s = l.segments[i]
		at = spot{0, s.base}
	}
	r.from, r.made, r.epoch = from, l.generation, l.epochs.of(from)
	return l.cutRegion(r, i, at, upTo, int64(bytesMax), minOne)
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

// cutRegion makes r the region of segment i that begins at a spot.
func (l *Log) cutRegion(r *Region, i int, at spot, upTo ident.Offset, bytesMax int64, minOne bool) error {
	s, pos := l.segments[i], at.pos
	if err := l.reach(s); err != nil {
		return err
	}
	limit, next := spot{s.size, upTo}, upTo
	switch {
	case i+1 < len(l.segments) && upTo >= l.segments[i+1].base:
		next = l.segments[i+1].base
		limit.floor = next
	case upTo < l.end:
		var err error
		if limit, err = l.positionOf(s, upTo); err != nil {
			return err
		}
	}
	if limit.pos <= pos {
		r.next = next
		return nil
	}
	if limit.pos-pos > bytesMax {
		cut, after, err := l.boundary(s, at, pos+max(bytesMax, 0), minOne)
		if err != nil {
			return err
		}
		if cut.pos == pos {
			r.next = after
			return nil
		}
		if cut.pos < limit.pos {
			limit, next = cut, after
		}
	}
	r.held, r.off, r.n, r.next = s.file, pos, int(limit.pos-pos), next
	r.floor, r.newest = at.floor, l.epochs.of(next-1)
	if s == l.active && limit.pos <= int64(len(s.file.bytes)) && pos >= s.size-mappedTail {
		r.mapped = s.file.bytes[pos:limit.pos:limit.pos]
	}
	s.file.retain()
	l.resume.note(resumePoint{next, s.base, limit})
	return nil
}

// mappedTail is how far below the log end bytes are read through the mapping: they
// were written a moment ago, so that they are present. Colder bytes never are read
// through it, because a page fault holds up the whole scheduler.
const mappedTail = 4 << 20

// locate finds the first batch that ends at or above o, which must lie in
// [start, end): segment index and position. The position is the segment's size
// when only a gap is left.
func (l *Log) locate(o ident.Offset) (int, spot, error) {
	i := l.segmentAt(o)
	if i < 0 {
		// start lies in no batch that is left; the first segment begins above.
		return 0, spot{0, l.segments[0].base}, nil
	}
	at, err := l.positionOf(l.segments[i], o)
	return i, at, err
}

// positionOf finds the position of the first batch of s that ends at or above o.
func (l *Log) positionOf(s *segment, o ident.Offset) (spot, error) {
	if o <= s.base {
		return spot{0, s.base}, nil
	}
	for _, h := range l.holes {
		if h.base == s.base && o >= h.From && o < h.To {
			return spot{h.pos, h.From}, nil
		}
	}
	if s == l.active {
		if o >= l.end {
			return spot{s.size, l.end}, nil
		}
		if b, next, ok := l.recent.find(o); ok {
			// b begins at or below o. Whether o is in b or in a gap behind it
			// only b's header tells.
			h, err := l.headerAt(s, b.pos)
			if err != nil {
				return spot{}, err
			}
			switch {
			case h.LastOffset() >= o:
				return spot{b.pos, b.offset}, nil
			case next.pos >= 0:
				return spot{next.pos, next.offset}, nil
			default:
				return spot{s.size, l.end}, nil
			}
		}
	}
	if p, ok := l.resume.find(o); ok && p.base == s.base {
		return p.at, nil
	}
	from, err := l.indexed(s, func() (place, error) { return s.index.byOffset(o) })
	if err != nil {
		return spot{}, err
	}
	at, _, err := l.walk(s, from.spot(s), func(h record.View, _ int64) bool { return h.LastOffset() >= o })
	return at, err
}

// boundary finds the last batch boundary of s at or below limit, beginning at the
// boundary at, and the offset behind it. With minOne it is at least one batch on.
func (l *Log) boundary(s *segment, at spot, limit int64, minOne bool) (spot, ident.Offset, error) {
	from := at
	if b, ok := l.recent.floor(limit); ok && s == l.active {
		if b.pos > from.pos {
			from = spot{b.pos, b.offset}
		}
	} else {
		p, err := l.indexed(s, func() (place, error) { return s.index.byPosition(limit) })
		if err != nil {
			return spot{}, 0, err
		}
		if p.pos > from.pos {
			from = p.spot(s)
		}
	}
	cut, h, err := l.walk(s, from, func(h record.View, pos int64) bool {
		return pos+int64(sizeOf(h)) > limit && (!minOne || pos > at.pos)
	})
	if err != nil || h == nil {
		return cut, 0, err // the one batch was the segment's last
	}
	return cut, h.BaseOffset(), nil
}

// spot is where a walk of s begins that an index entry leads to.
func (p place) spot(s *segment) spot {
	if p.pos == 0 {
		return spot{0, s.base}
	}
	return spot{p.pos, ident.NoOffset}
}

// walk goes from batch to batch of s, from the boundary at on, until stop says
// so, and returns where it stopped and the header there; at the segment's end the
// header is nil. No checksum covers the offset at which a batch begins: batches rise, and what does not is damaged.
func (l *Log) walk(s *segment, at spot, stop func(h record.View, pos int64) bool) (spot, record.View, error) {
	began, bound := at, l.behind(s)
	for at.pos < s.size {
		if behind, ok := l.holeAt(s, at.pos); ok {
			at = behind
			continue
		}
		h, err := l.headerAt(s, at.pos)
		if err == nil && at.floor == ident.NoOffset {
			at.floor = h.BaseOffset()
		}
		if err == nil && (h.BaseOffset() < at.floor || h.NextOffset() > bound) {
			err = l.damaged(s, at.pos, fmt.Errorf("offsets %d to %d where [%d, %d) are: %w", h.BaseOffset(), h.LastOffset(), at.floor, bound, ErrFormat))
		}
		stopped := err == nil && stop(h, at.pos)
		if stopped && h.BaseOffset() != at.floor {
			err = l.contradicted(s, at, h)
		}
		switch {
		case err != nil:
			if at, err = l.hop(s, began, at, err); err != nil {
				return spot{}, nil, err
			}
		case stopped:
			return at, h, nil
		default:
			at = spot{at.pos + int64(sizeOf(h)), h.NextOffset()}
		}
	}
	return at, nil, nil
}

// contradicted is an error when the batch behind one that leaps, and is not passed by, falls back; see [scanner.contradicted].
func (l *Log) contradicted(s *segment, at spot, h record.View) error {
	pos := at.pos + int64(sizeOf(h))
	if _, ok := l.holeAt(s, pos); ok || pos+record.HeaderSize > s.size {
		return nil
	}
	var kept [record.HeaderSize]byte
	copy(kept[:], h) // both are read into one place
	err := l.readHeader(s, pos, h)
	next, isBatch := h.BaseOffset(), h.Magic() == record.Magic
	if _, err := record.SizeOf(h); err != nil {
		isBatch = false
	}
	copy(h, kept[:])
	if err != nil || !isBatch || next < at.floor || next >= h.NextOffset() {
		return err // bytes that are no batch are no witness
	}
	return l.damaged(s, at.pos, fmt.Errorf("offsets %d to %d, then %d: %w", h.BaseOffset(), h.LastOffset(), next, ErrFormat))
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
	if err := l.readHeader(s, pos, h); err != nil {
		return nil, err
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

// readHeader reads what may be a header. ErrDamaged when the file ends before.
func (l *Log) readHeader(s *segment, pos int64, h record.View) error {
	if s == l.active && s.file != nil && s.size-pos <= mappedTail && pos+record.HeaderSize <= int64(len(s.file.bytes)) {
		copy(h, s.file.bytes[pos:])
		return nil
	}
	if err := l.reach(s); err != nil {
		return err
	}
	var err error
	if l.hurried {
		_, err = s.file.file.ReadNow(h, pos)
	} else {
		_, err = s.file.file.ReadAt(h, pos)
	}
	switch {
	case err == nil || errors.Is(err, ErrWouldWait):
		return err
	case isShort(err):
		return l.damaged(s, pos, err)
	}
	return l.health.sift(err, "read "+s.name(suffixLog))
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
