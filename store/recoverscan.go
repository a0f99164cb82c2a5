package store

import (
	"errors"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// resume returns a scanner over s that stands at or before the first batch that
// ends at or above o: on the batch of an index entry that the log confirms, or at
// the segment's beginning. p is that entry; p.pos 0 is the beginning.
func (v *recovery) resume(s *segment, o ident.Offset) (sc *scanner, p place, err error) {
	if err := v.l.reach(s); err != nil {
		return nil, p, err
	}
	if v.buf == nil {
		v.buf = v.l.o.scans.take()
	}
	beginning := func() (*scanner, place, error) {
		return v.scan(s, 0), place{offset: s.base - 1}, nil
	}
	if s.index.load() != nil || s.times.load() != nil {
		return beginning()
	}
	p, err = s.index.byOffset(o - 1)
	if err != nil || p.pos <= 0 || p.pos+record.HeaderSize > s.size {
		return beginning()
	}
	ok, err := v.confirm(s, p)
	if err != nil || !ok {
		if err != nil {
			return nil, p, err
		}
		return beginning()
	}
	return v.scan(s, p.pos), p, nil
}

// scan walks the batches of a segment from position pos on, within what is known of its offsets, and of its epochs where their file is believed.
func (v *recovery) scan(s *segment, pos int64) *scanner {
	l := v.l
	sc := newScanner(v.buf, s.file.file, pos, s.size, s.base)
	if i := l.segmentAt(s.base) + 1; i < len(l.segments) {
		sc.upTo = l.segments[i].base
		if sc.upTo <= v.epochsFrom {
			sc.epochs = &l.epochs
		}
	}
	return sc
}

// confirm tells whether the log has the batch that an index entry names.
func (v *recovery) confirm(s *segment, p place) (bool, error) {
	sc := newScanner(v.buf, s.file.file, p.pos, s.size, s.base)
	h, _, err := sc.batch()
	if err != nil {
		return false, ifIOFailure(err)
	}
	return h.LastOffset() == p.offset, nil
}

// confirmTime finds the batch that a time index entry names; ok is false when the
// log has none such.
func (v *recovery) confirmTime(s *segment, m moment) (pos int64, ok bool, err error) {
	p, err := s.index.byOffset(m.offset)
	if err != nil || p.pos < 0 || p.pos >= s.size {
		return 0, false, nil //nolint:nilerr // an index that cannot be read confirms nothing
	}
	sc := newScanner(v.buf, s.file.file, p.pos, s.size, s.base)
	for {
		h, at, err := sc.batch()
		if err != nil {
			return 0, false, ifIOFailure(err)
		}
		if h.LastOffset() >= m.offset {
			return at, h.LastOffset() == m.offset && h.MaxTimestamp() == m.timestamp, nil
		}
	}
}

// tail is where a scan of a segment stopped.
type tail struct {
	next ident.Offset // the offset after the last batch
	pos  int64        // the position after it
	torn bool         // bytes of something that is no batch follow
	kept bool         // the same, but below the durable mark: they are not to be cut off
}

// rebuild scans segment i of the log, s, from offset from on (or a little before),
// builds its indexes and state anew from there, and shows the batches. With check,
// batches that end above the durable mark have their checksums verified, and the
// first unsound one ends the segment; below the mark it is damage.
func (v *recovery) rebuild(s *segment, i int, from ident.Offset, check bool) (tail, error) {
	l := v.l
	sc, anew, err := v.prepare(s, from)
	if err != nil {
		return tail{}, err
	}
	if i+1 < len(l.segments) {
		sc.upTo = l.segments[i+1].base
	}
	t := tail{next: s.base, pos: sc.pos}
	for {
		// Below the mark everything was checked when it was appended and is on
		// disk; above it anything may be.
		sc.check = check && sc.next >= v.mark
		b, pos, err := sc.batch()
		if err != nil {
			if isIOFailure(err) {
				return t, l.sift(err, "read "+s.name(suffixLog))
			}
			if errors.Is(err, errScanEnd) || sc.next >= v.mark {
				t.torn = !errors.Is(err, errScanEnd) && !errors.Is(err, errScanZero)
				break
			}
			more, err := v.hurt(s, sc, err, sc.upTo)
			if err != nil {
				return t, err
			}
			if !more {
				t.kept = true
				break
			}
			continue
		}
		// A batch that was reached across a damaged range begins where it begins.
		s.size = pos
		s.appended(b, int(sc.pos-pos), l.cfg.IndexIntervalBytes)
		v.see(b)
		t.next, t.pos = sc.next, sc.pos
	}
	s.size, s.believed, s.loaded = t.pos, true, true
	v.r.Bytes += sc.read
	if anew && s.index.count() > 0 { // else there is nothing that could have been missing
		v.r.IndexesRebuilt++
	}
	return t, nil
}

// prepare brings segment state and indexes to a confirmed batch at or before
// offset from, and returns a scanner that stands on it. anew says that the indexes
// were dropped and the scan makes them again from the beginning.
func (v *recovery) prepare(s *segment, from ident.Offset) (sc *scanner, anew bool, err error) {
	sc, p, err := v.resume(s, from)
	if err != nil {
		return nil, false, v.l.sift(err, "read "+s.name(suffixLog))
	}
	if p.pos > 0 {
		ok, err := v.trim(s, p)
		if err != nil {
			return nil, false, v.l.sift(err, "cut the indexes of "+s.name(suffixLog))
		}
		if ok {
			return sc, false, nil
		}
	}
	if err := errors.Join(s.index.forget(), s.times.reset()); err != nil {
		return nil, false, v.l.sift(err, "remove the indexes of "+s.name(suffixLog))
	}
	s.top, s.first, s.sinceIndex = moment{ident.NoTimestamp, s.base}, ident.NoTimestamp, 0
	return v.scan(s, 0), true, nil
}

// trim cuts both indexes behind entry p and takes the segment's state from them.
// ok is false when the time index is not to be believed.
func (v *recovery) trim(s *segment, p place) (ok bool, err error) {
	if err := errors.Join(s.index.cutTo(p.offset+1, p.pos+1), s.times.cutTo(p.offset+1)); err != nil {
		return false, err
	}
	s.top = s.times.last
	from := int64(0)
	if s.times.count() > 0 {
		if from, ok, err = v.confirmTime(s, s.top); err != nil || !ok {
			return false, err
		}
	}
	// The time index may have lost entries that the offset index has: look at the batches between the last one and p. Where timestamps rise there are none.
	if ok, err := v.climb(s, from, p.pos); err != nil || !ok {
		return false, err
	}
	var head [record.HeaderSize]byte
	if _, err := s.file.file.ReadAt(head[:], 0); err != nil {
		return false, err
	}
	s.first, s.sinceIndex = record.View(head[:]).MaxTimestamp(), 0
	return true, nil
}

// climb raises the segment's greatest timestamp by the batches in [from, to].
func (v *recovery) climb(s *segment, from, to int64) (ok bool, err error) {
	sc := newScanner(v.buf, s.file.file, from, s.size, s.base)
	for sc.pos <= to {
		h, _, err := sc.batch()
		if err != nil {
			return false, ifIOFailure(err)
		}
		if ts := h.MaxTimestamp(); ts > s.top.timestamp {
			s.top = moment{ts, h.LastOffset()}
		}
	}
	return true, nil
}

// hurt handles a batch below the durable mark that is not there: it notes the
// damage and moves the scanner to the next sound batch. more is false when there is
// none; then everything up to bound, or up to the mark when bound is 0, is damage.
func (v *recovery) hurt(s *segment, sc *scanner, cause error, bound ident.Offset) (more bool, err error) {
	if isIOFailure(cause) {
		return false, v.l.sift(cause, "read "+s.name(suffixLog))
	}
	if bound == 0 {
		bound = v.mark
	}
	v.shown = 0
	h, err := sc.resync(s.base, bound)
	if err != nil {
		return false, v.l.sift(err, "read "+s.name(suffixLog))
	}
	if h.To > v.l.start { // else it is missing to nobody
		v.r.Whole = false
	}
	v.l.condemn(h)
	return sc.pos < sc.limit, nil
}

// rebuildIndexes builds both indexes of a segment of an open log from its batches.
// What cannot be read is left out.
func (l *Log) rebuildIndexes(s *segment) error {
	if l.hurried {
		return ErrWouldWait
	}
	if err := l.reach(s); err != nil {
		return err
	}
	if err := errors.Join(s.index.forget(), s.times.reset()); err != nil {
		return l.sift(err, "remove the indexes of "+s.name(suffixLog))
	}
	size := s.size
	s.top, s.first, s.sinceIndex, s.size = moment{ident.NoTimestamp, s.base}, ident.NoTimestamp, 0, 0
	sc := l.scan(s, 0)
	sc.limit = size
	var err error
	for {
		var b record.View
		var pos int64
		if b, pos, err = sc.batch(); err != nil {
			break
		}
		s.appended(b, int(sc.pos-pos), l.cfg.IndexIntervalBytes)
	}
	// Behind damage there may be a greater timestamp.
	s.size, s.believed, s.loaded = size, errors.Is(err, errScanEnd), true
	if isIOFailure(err) {
		return l.sift(err, "read "+s.name(suffixLog))
	}
	if s == l.active {
		return nil
	}
	// Synced at once: what was built should not have to be built again after a
	// power loss.
	if err := s.finishIndexes(); err != nil {
		return l.sift(err, "write the indexes of "+s.name(suffixLog))
	}
	return l.sift(errors.Join(s.times.sync(), s.index.sync()), "sync the indexes of "+s.name(suffixLog))
}
