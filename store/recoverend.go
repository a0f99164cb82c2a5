package store

import (
	"errors"

	"github.com/troupe-broker/troupe/wire/ident"
)

// runClean opens a log that was closed clean: the files end where the log ends.
// done is false when they do not; then nothing has been shown to the owner.
func (v *recovery) runClean() (done bool, err error) {
	l := v.l
	last := l.segments[len(l.segments)-1]
	end, err := v.measure(last, last.size, endOfTime)
	if err != nil || end < v.mark || end < l.start {
		return false, ifIOFailure(err)
	}
	v.mark = end
	return true, v.replayTo(end)
}

// runSameBoot opens a log whose end is in the control block. done is false when
// the block and the files do not agree.
func (v *recovery) runSameBoot() (done bool, err error) {
	l := v.l
	i := l.segmentAt(v.slot.base)
	if !v.held || i < 0 || l.segments[i].base != v.slot.base || l.segments[i].size < v.slot.size || v.slot.end < l.start {
		return false, nil
	}
	s := l.segments[i]
	if err := l.reach(s); err != nil {
		return false, err
	}
	id, err := s.file.file.Identity()
	if err != nil {
		return false, l.sift(err, "look at "+s.name(suffixLog))
	}
	if fileKey(id) != v.slot.file {
		return false, nil
	}
	// Segments above are a roll that was not finished, and hold nothing, or a
	// truncation that was not.
	for _, above := range l.segments[i+1:] {
		if above.base < v.slot.end && !v.slot.cutting {
			return false, nil
		}
	}
	if end, err := v.measure(s, v.slot.size, v.slot.end); err != nil || end != v.slot.end {
		return false, ifIOFailure(err)
	}
	if err := v.setAsideFrom(i + 1); err != nil {
		return false, err
	}
	if err := v.cut(s, v.slot.size); err != nil {
		return false, err
	}
	v.mark = min(v.mark, v.slot.end)
	if err := v.replayTo(v.slot.end); err != nil || !v.slot.cutting {
		return true, err
	}
	// Bytes above the end were never sent, unless a truncation was under way:
	// then the file lost batches.
	return true, v.succeed(tail{next: v.slot.end, pos: v.slot.size})
}

// measure walks the headers of a segment's end, from the last index entry below
// offset end on, and returns the offset after the last batch below size; an error
// when the batches do not end exactly there.
func (v *recovery) measure(s *segment, size int64, end ident.Offset) (ident.Offset, error) {
	sc, _, err := v.resume(s, end)
	if err != nil {
		return 0, err
	}
	sc.limit, sc.upTo = size, 0 // what begins behind may be left of a truncation
	for {
		if _, _, err := sc.batch(); err != nil {
			if errors.Is(err, errScanEnd) {
				return sc.next, nil
			}
			return 0, err
		}
	}
}

// endOfTime is above every offset.
const endOfTime = ident.Offset(1) << 62

// ifIOFailure hands on what is wrong with the disk and drops what is wrong with
// the bytes.
func ifIOFailure(err error) error {
	if isIOFailure(err) {
		return err
	}
	return nil
}

// replayTo reads again, without checking, what the owner and the epoch cache have
// to see of a log that ends at end, and builds the state of the last segment.
func (v *recovery) replayTo(end ident.Offset) error {
	l := v.l
	at, err := l.loadSnapshot(end)
	if err != nil {
		return err
	}
	v.replayFrom = at
	last := len(l.segments) - 1
	if err := v.replayBelow(last, l.segments[last].base); err != nil {
		return err
	}
	if _, err := v.rebuild(l.segments[last], last, v.needed(), false); err != nil {
		return err
	}
	l.end = end
	return nil
}

// needed is the lowest offset that the owner or the epoch cache has to see.
func (v *recovery) needed() ident.Offset {
	if v.l.o.OnBatch == nil {
		return v.epochsFrom
	}
	return min(v.replayFrom, v.epochsFrom)
}

// replayBelow shows the batches of the first n segments, as far as they are needed
// and below offset o. Their indexes are left alone.
func (v *recovery) replayBelow(n int, o ident.Offset) error {
	l := v.l
	for i, s := range l.segments[:n] {
		next := l.segments[i+1].base
		if next <= v.needed() || s.base >= o {
			continue
		}
		sc, _, err := v.resume(s, v.needed())
		if err != nil {
			return err
		}
		sc.upTo = next
		for sc.next < o {
			b, _, err := sc.batch()
			if errors.Is(err, errScanEnd) {
				break
			}
			if err != nil {
				more, err := v.hurt(s, sc, err, next)
				if err != nil {
					return err
				}
				if !more {
					break
				}
				continue
			}
			v.see(b)
		}
		v.r.Bytes += sc.read
	}
	return nil
}

// cut makes a segment's file end at size.
func (v *recovery) cut(s *segment, size int64) error {
	l := v.l
	if err := l.reach(s); err != nil {
		return err
	}
	if s.file.reserved.Load() != size {
		if err := s.file.file.Truncate(size); err != nil {
			return l.sift(err, "cut "+s.name(suffixLog))
		}
		s.file.reserved.Store(size)
		l.dirty.active = true
	}
	s.size = size
	return nil
}
