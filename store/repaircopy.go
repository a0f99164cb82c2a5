package store

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// copy takes over sound batches of the source, up to position limit or some megabytes on, and looks at each of them. Other damage stays what it is.
func (r *Repair) copy(limit int64) error {
	f, err := r.log.o.FS.OpenFile(r.name, os.O_RDONLY, 0)
	if err != nil {
		if isNotExist(err) {
			return fmt.Errorf("%s has gone: %w", r.name, ErrRepairOver)
		}
		return r.sift(err, "open "+r.name)
	}
	err = r.copyFrom(f, limit)
	return errors.Join(err, r.sift(f.Close(), "close "+r.name))
}

func (r *Repair) copyFrom(f File, limit int64) error {
	if r.buf == nil {
		r.buf = make([]byte, scanBuffer)
	}
	for end := min(limit, r.at+repairStep); r.at < end; {
		if h, ok := r.otherAt(r.at); ok {
			if to := min(h.to, limit); r.below(h.To) {
				r.drop(to)
			} else if err := r.raw(f, to-r.at); err != nil {
				return err
			}
			r.order = max(r.order, h.To)
			continue
		}
		upTo := limit
		if i := slices.IndexFunc(r.others, func(h hole) bool { return h.pos > r.at && h.pos < h.to }); i >= 0 {
			upTo = min(upTo, r.others[i].pos)
		}
		if err := r.batches(f, upTo, end); err != nil {
			return err
		}
	}
	return nil
}

// otherAt finds other damage that covers a position.
func (r *Repair) otherAt(pos int64) (hole, bool) {
	i := slices.IndexFunc(r.others, func(h hole) bool { return pos >= h.pos && pos < h.to })
	if i < 0 {
		return hole{}, false
	}
	return r.others[i], true
}

// below tells whether what ends at an offset is to be left behind: it is what the segment begins with, below the log start. Nobody reads it or can be asked for it,
// and no checksum covers what it says of its offsets and epoch, against which what follows is held.
func (r *Repair) below(o ident.Offset) bool { return o <= r.start && !r.behind && r.segment.size == 0 }

// drop leaves behind what is there up to a position.
func (r *Repair) drop(to int64) { r.at, r.gone = to, to }

// batches copies batches up to position upTo, or until it is beyond end.
func (r *Repair) batches(f File, upTo, end int64) error {
	sc := newScanner(r.buf, f, r.at, upTo, r.segment.base)
	sc.check, sc.next, sc.epoch, sc.upTo = true, r.order, r.epoch, r.hole.To
	if r.behind {
		sc.upTo = r.bound
	}
	for r.at < end {
		v, at, err := sc.batch()
		switch {
		case errors.Is(err, errScanEnd):
			return nil
		case isIOFailure(err):
			return r.sift(err, "read "+r.name)
		case err != nil:
			bound := r.hole.From
			if r.behind {
				bound = r.bound
			}
			h, rerr := sc.resync(r.segment.base, bound)
			if rerr != nil {
				return r.sift(rerr, "read "+r.name)
			}
			if h.To <= r.start { // nobody reads it any more
				r.order = h.To
				if r.below(h.To) {
					r.drop(h.to)
					return nil
				}
				return r.raw(f, h.to-h.pos)
			}
			r.bad = h.OffsetRange
			return fmt.Errorf("position %d of %s: %w", at, r.name, errors.Join(ErrDamaged, err))
		}
		if r.below(v.NextOffset()) {
			r.drop(sc.pos)
			r.order, sc.epoch = sc.next, ident.NoLeaderEpoch
			continue
		}
		if base := max(v.BaseOffset(), r.start); v.LeaderEpoch() > r.epochs.of(base) && v.LastOffset() >= r.start {
			// A flipped bit that no checksum shows: the order does, of the batch behind it, which is sound.
			r.bad = OffsetRange{v.BaseOffset(), v.NextOffset()}
			return fmt.Errorf("position %d of %s: epoch %d, this log has epoch %d there: %w", at, r.name, v.LeaderEpoch(), r.epochs.of(base), ErrDamaged)
		}
		size := sc.pos - at
		s := r.segment
		if int64(len(v)) == size {
			if _, err := s.file.file.WriteAt(v, s.size); err != nil {
				return r.sift(err, "write "+s.file.file.Name())
			}
			s.appended(v, len(v), r.every)
			r.at += size
		} else {
			head := slices.Clone(v[:record.HeaderSize])
			was := s.size
			if err := r.raw(f, size); err != nil {
				return err
			}
			s.size = was
			s.appended(head, int(size), r.every)
			sc.n = 0 // raw has used the buffer
		}
		r.order, r.epoch = sc.next, sc.epoch
	}
	return nil
}

// raw copies n bytes of the source as they are.
func (r *Repair) raw(f File, n int64) error {
	s := r.segment
	for n > 0 {
		b := r.buf[:min(n, int64(len(r.buf)))]
		if _, err := f.ReadAt(b, r.at); err != nil {
			return r.sift(&ioError{err}, "read "+r.name)
		}
		if _, err := s.file.file.WriteAt(b, s.size); err != nil {
			return r.sift(err, "write "+s.file.file.Name())
		}
		s.size += int64(len(b))
		r.at += int64(len(b))
		n -= int64(len(b))
	}
	return nil
}

// moveHoles lets the other holes of the segment be where they are in the new file, of so many bytes: what was dropped from its beginning is gone, and what lies behind the range has moved.
func (l *Log) moveHoles(r *Repair, size int64) {
	moved := size - r.size
	l.holes = slices.DeleteFunc(l.holes, func(h hole) bool { return h.base == r.source.base && h.to <= r.gone && h.To <= r.start })
	for n := range l.holes {
		h := &l.holes[n]
		switch {
		case h.base != r.source.base:
		case h.pos >= r.hole.to && h.From >= r.hole.To:
			h.pos, h.to = h.pos+moved, h.to+moved
		case h.to <= r.hole.pos:
			h.pos, h.to = h.pos-r.gone, h.to-r.gone
		}
	}
}
