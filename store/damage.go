package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// OffsetRange is [From, To).
type OffsetRange struct{ From, To ident.Offset }

// hole is a range of a log that cannot be read: its offsets, and the positions
// [pos, to) of the segment that begins at base. It is known from the moment that
// somebody ran into it; nothing but a healthy copy mends it. One that ends at or below
// the log start is nobody's damage any more. It is remembered while its bytes are in a
// segment of the log: what they say is not to be taken for a batch.
type hole struct {
	OffsetRange
	base    ident.Offset
	pos, to int64
}

// Damage lists the ranges that are known to be unreadable.
func (l *Log) Damage() []OffsetRange {
	var list []OffsetRange
	for _, h := range l.holes {
		if h.To > l.start {
			list = append(list, h.OffsetRange)
		}
	}
	return list
}

// passHoles forgets the holes below the log start whose bytes have gone with their segment.
func (l *Log) passHoles() {
	l.holes = slices.DeleteFunc(l.holes, func(h hole) bool {
		return h.To <= l.start && !slices.ContainsFunc(l.segments, func(s *segment) bool { return s.base == h.base })
	})
}

// Condemn notes that the batches in [from, to) are not to be served any more: a
// reader found their checksum wrong. From is where the first of them begins; where the
// next sound one does, the log finds out. When they are in the active segment, it is
// closed.
func (l *Log) Condemn(r OffsetRange, now ident.Millis) error {
	if err := l.usable(); err != nil {
		return err
	}
	if r.From < l.start || r.To > l.end || r.From >= r.To {
		return &OffsetError{Partition: l.o.Partition, Offset: r.From, Start: l.start, End: l.end}
	}
	h, err := l.span(max(l.segmentAt(r.From), 0), r)
	if err != nil {
		return err
	}
	l.condemn(h)
	if h.base == l.active.base {
		return l.Roll(now)
	}
	return nil
}

// span finds the positions of a damaged range, in segment i or, behind a gap, the next. What the headers there say may be damaged, too: it begins where the batches
// below end, and ends where a sound batch begins.
func (l *Log) span(i int, r OffsetRange) (hole, error) {
	s := l.segments[i]
	p, err := l.indexed(s, func() (place, error) { return s.index.byOffset(r.From - 1) })
	if err == nil {
		err = l.reach(s)
	}
	if err != nil {
		return hole{}, err
	}
	sc := l.scan(s, p.pos)
	for sc.next < r.From {
		if n := slices.IndexFunc(l.holes, func(h hole) bool { return h.base == s.base && sc.pos >= h.pos && sc.pos < h.to }); n >= 0 {
			sc.pos, sc.next = l.holes[n].to, max(sc.next, l.holes[n].To)
			continue
		}
		if sc.pos == sc.limit && i+1 < len(l.segments) && l.segments[i+1].base < r.To {
			return l.span(i+1, OffsetRange{l.segments[i+1].base, r.To})
		}
		before := sc.epoch
		v, at, err := sc.batch()
		if err == nil && v.NextOffset() <= r.From {
			continue
		}
		if err == nil {
			sc.pos, sc.next, sc.epoch = at, r.From, before // the range begins within, or the header says so
			break
		}
		h := hole{}
		if !isIOFailure(err) {
			h, err = sc.resync(s.base, l.behind(s))
		}
		if err != nil {
			return hole{}, l.sift(err, "read "+s.name(suffixLog))
		}
		if h.To > r.From {
			sc.pos, sc.next = at, h.From
			break
		}
		l.condemn(h) // nobody has come upon it yet
	}
	h, err := sc.resync(s.base, l.behind(s))
	return h, l.sift(err, "read "+s.name(suffixLog))
}

func (l *Log) condemn(h hole) {
	if h.From >= h.To {
		return
	}
	known := false
	// What overlaps is one: somebody has come upon the same place from another side.
	l.holes = slices.DeleteFunc(l.holes, func(o hole) bool {
		if o.OffsetRange == h.OffsetRange {
			known = true
			return true // an empty segment has been put where it was, perhaps
		}
		if o.base != h.base || o.From >= h.To || o.To <= h.From {
			return false
		}
		known = known || o.From <= h.From && o.To >= h.To
		h.From, h.To, h.pos, h.to = min(o.From, h.From), max(o.To, h.To), min(o.pos, h.pos), max(o.to, h.to)
		return true
	})
	if !known {
		l.news = append(l.news, h)
	}
	i, _ := slices.BinarySearchFunc(l.holes, h.From, func(x hole, want ident.Offset) int {
		return int(min(max(x.From-want, -1), 1))
	})
	l.holes = slices.Insert(l.holes, i, h)
}

// NewDamage tells of the ranges that were found to be unreadable since it was asked
// last, by whatever read them. When one is in the active segment, that is closed, so
// that nothing more is appended to a file that has lost something; an error is that
// of closing it.
func (l *Log) NewDamage(now ident.Millis) (list []OffsetRange, err error) {
	roll := false
	for _, h := range l.news {
		if h.To > l.start {
			list = append(list, h.OffsetRange)
		}
		roll = roll || h.base == l.active.base
	}
	l.news = nil
	if len(list) > 0 || l.damageUnsaved.Load() {
		l.saveDamage()
	}
	if roll {
		err = l.Roll(now)
	}
	return list, err
}

// condemnAt condemns what begins at pos of s, where a batch with base offset from is
// not what it was: up to the next sound batch.
func (l *Log) condemnAt(s *segment, pos int64, from ident.Offset) error {
	sc := l.scan(s, pos)
	sc.next = max(from, s.base)
	h, err := sc.resync(s.base, l.behind(s))
	if err != nil {
		return l.sift(err, "read "+s.name(suffixLog))
	}
	l.condemn(h)
	return nil
}

// behind is the offset at which what follows segment s begins.
func (l *Log) behind(s *segment) ident.Offset {
	if i := l.segmentAt(s.base); i+1 < len(l.segments) {
		return l.segments[i+1].base
	}
	return l.end
}

// undamaged lowers upTo to the first damaged offset above from.
func (l *Log) undamaged(from, upTo ident.Offset) (ident.Offset, error) {
	for _, h := range l.holes {
		switch {
		case from >= h.From && from < h.To:
			return 0, &Error{
				Code:    CodeDamaged,
				Message: fmt.Sprintf("offsets [%d, %d) of %s are damaged; restore the partition from a replica or a backup, or delete the records below %d", h.From, h.To, l.o.Partition, h.To),
				Err:     ErrDamaged,
			}
		case from < h.From:
			upTo = min(upTo, h.From)
		}
	}
	return upTo, nil
}

// holeAt tells where a known hole that covers a position ends.
func (l *Log) holeAt(s *segment, pos int64) (behind spot, ok bool) {
	for _, h := range l.holes {
		if h.base == s.base && pos >= h.pos && pos < h.to {
			return spot{h.to, h.To}, true
		}
	}
	return spot{}, false
}

// hop leads a walk that began at one spot over a place where no batch is: to the next sound one. cause is what the walk ran into at another spot. When a batch before
// that has misled the walk, by a length or an offset that was wrong, it leads back to what is behind that one.
func (l *Log) hop(s *segment, began, at spot, cause error) (spot, error) {
	if !errors.Is(cause, ErrDamaged) {
		return at, cause
	}
	if l.hurried {
		return at, ErrWouldWait
	}
	if err := l.reach(s); err != nil {
		return at, err
	}
	// From the segment's beginning, to find the offset at which the hole begins; with checksums, which a length that is wrong does not match.
	sc := l.scan(s, 0)
	sc.check = true
	for sc.pos <= at.pos {
		here := spot{sc.pos, sc.next}
		_, _, err := sc.batch()
		switch {
		case err == nil && here.pos == at.pos && here != at:
			return here, nil
		case err == nil:
			continue
		case isIOFailure(err):
			return at, l.sift(err, "read "+s.name(suffixLog))
		}
		h, err := sc.resync(s.base, l.behind(s))
		if err != nil {
			return at, l.sift(err, "read "+s.name(suffixLog))
		}
		behind, known := l.holeAt(s, h.pos)
		l.condemn(h)
		if h.From < h.To && h.to > began.pos && (!known || behind.pos < h.to) { // each time it leads back, more is known
			break
		}
	}
	return spot{sc.pos, sc.next}, nil
}

func (l *Log) damaged(s *segment, pos int64, cause error) error {
	return &Error{
		Code:    CodeDamaged,
		Message: fmt.Sprintf("no sound batch at position %d of %s: %v; restore the partition from a replica or a backup, or delete the records below it", pos, s.name(suffixLog), cause),
		Err:     ErrDamaged,
	}
}

// resync moves the scanner from a place where no batch is to the next sound one:
// one whose header continues the log, whose checksum is right, and behind which
// another batch or the end follows. The last condition keeps a batch that a client
// hid inside a record's value from being taken for one of the log. Without one the
// scanner stands at its limit, and the hole ends at bound.
func (s *scanner) resync(base, bound ident.Offset) (hole, error) {
	const magicAt = 16
	h := hole{OffsetRange: OffsetRange{s.next, bound}, base: base, pos: s.pos, to: s.limit}
	piece := make([]byte, scanBuffer)
	for at := s.pos + 1; at+record.HeaderSize <= s.limit; {
		got, err := s.file.ReadAt(piece[:min(int64(len(piece)), s.limit-at)], at)
		s.read += int64(got)
		if err != nil && !isShort(err) {
			return h, err
		}
		if got < record.HeaderSize {
			break
		}
		for i := 0; i+record.HeaderSize <= got; i++ {
			skip := bytes.IndexByte(piece[i+magicAt:got], record.Magic)
			if skip < 0 || i+skip+record.HeaderSize > got {
				break
			}
			i += skip
			first, ok, err := s.try(at + int64(i))
			if err != nil {
				return h, err
			}
			if ok {
				h.To, h.to = first, at+int64(i)
				s.pos, s.n, s.next = h.to, 0, first
				return h, nil
			}
		}
		at += int64(got - record.HeaderSize + 1)
	}
	s.pos, s.n = s.limit, 0
	return h, nil
}

// try tells whether a sound batch of this log begins at pos, and its base offset.
func (s *scanner) try(pos int64) (ident.Offset, bool, error) {
	t := newScanner(make([]byte, 4096), s.file, pos, s.limit, s.base)
	t.next, t.epoch, t.upTo, t.epochs, t.newest, t.check = s.next, s.epoch, s.upTo, s.epochs, s.newest, true
	v, _, err := t.batch()
	if err != nil {
		return 0, false, ifIOFailure(err)
	}
	first := v.BaseOffset()
	switch _, _, err = t.batch(); {
	case err == nil, errors.Is(err, errScanEnd), errors.Is(err, errScanZero):
		return first, true, nil
	default:
		return 0, false, ifIOFailure(err)
	}
}

// Unread is what an error means that a region of the log gave: to its reader a part of
// it is missing, to the log it is like one that it has met itself.
func (l *Log) Unread(err error) error { return l.sift(err, "read records of "+l.o.Partition.String()) }

// Check reads the region and verifies the checksum of each batch. What no checksum
// covers, its offsets and its epoch, has to be what the log allows there: batches rise,
// from the end of the one before the region up to Next. It returns the
// length of the sound prefix in bytes, and the offsets of the batch behind it when
// that is unsound. It may wait for the disk.
//
// buf is what it reads into, a few KiB at least; nil: memory of its own.
func (r *Region) Check(buf []byte) (sound int64, bad OffsetRange, err error) {
	if r.n == 0 {
		return 0, OffsetRange{}, nil
	}
	sc := newScanner(buf, r.held.file, r.off, r.off+int64(r.n), r.floor)
	sc.upTo, sc.newest, sc.check = r.next, r.newest, true
	for {
		next, epoch := sc.next, sc.epoch
		v, at, err := sc.batch()
		if err == nil && (v.LastOffset() < r.from || v.BaseOffset() <= r.from && r.epoch >= 0 && v.LeaderEpoch() > r.epoch) {
			sc.pos, sc.next, sc.epoch, err = at, next, epoch, fmt.Errorf("at position %d: offsets %d to %d of epoch %d, where %d of epoch %d has to be: %w", at, v.BaseOffset(), v.LastOffset(), v.LeaderEpoch(), r.from, r.epoch, ErrFormat)
		}
		switch {
		case err == nil:
		case errors.Is(err, errScanEnd):
			if r.held.trust != nil {
				r.held.trust.summed(r.off, r.off+int64(r.n))
			}
			return int64(r.n), OffsetRange{}, nil
		case isIOFailure(err):
			return sc.pos - r.off, OffsetRange{}, err
		default:
			if sc.pos == r.off {
				sc.next = r.firstOffset() // nothing was read that would say where it begins
			}
			h, rerr := sc.resync(0, r.next)
			return h.pos - r.off, h.OffsetRange, rerr
		}
	}
}

// firstOffset is the base offset of the first batch by its header, which has no checksum of its own; or what was asked for, when that is not in such a batch.
func (r *Region) firstOffset() ident.Offset {
	head := record.View(make([]byte, record.HeaderSize))
	if n, err := r.ReadAt(head, 0); n < len(head) || err != nil && !isShort(err) {
		return r.from
	}
	if head.Magic() != record.Magic || head.LastOffsetDelta() < 0 || head.BaseOffset() < r.floor || head.BaseOffset() > r.from || head.LastOffset() < r.from {
		return r.from
	}
	return head.BaseOffset()
}
