package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// runVerify finds the end of a log whose bytes above the durable mark may be
// anything: it checks every batch from there on, and the first unsound one ends
// the log.
func (v *recovery) runVerify() error {
	l := v.l
	// The segment that ends at the mark is looked at too: the one behind it may
	// have been created, and itself not yet cut to its end.
	first := max(l.segmentAt(v.mark-1), 0)
	at, err := l.loadSnapshot(max(v.mark, l.start))
	if err != nil {
		return err
	}
	v.replayFrom = at
	if err := v.replayBelow(first, l.segments[first].base); err != nil {
		return err
	}
	var t tail
	for i := first; i < len(l.segments); i++ {
		s := l.segments[i]
		if t, err = v.rebuild(s, i, min(v.mark, v.needed()), true); err != nil {
			return err
		}
		if i+1 == len(l.segments) {
			break
		}
		whole, err := v.joins(t, l.segments[i+1])
		if err != nil {
			return err
		}
		if !whole && !t.kept && t.next >= v.mark {
			// The segment lost its end, so what follows would be read across a
			// hole. None of it was ever acknowledged as durable.
			if err := v.setAsideFrom(i + 1); err != nil {
				return err
			}
			t.torn = true
			break
		}
		if err := v.closeSegment(s, t); err != nil {
			return err
		}
	}
	return v.finish(t)
}

// joins tells whether a segment that ends with t is followed by the next one
// without a hole.
func (v *recovery) joins(t tail, next *segment) (bool, error) {
	if t.next >= next.base {
		return true, nil
	}
	// A follower's batch that did not fit the reach of the former segment's
	// offsets began this one, further on.
	if err := v.l.reach(next); err != nil {
		return false, err
	}
	var head [record.HeaderSize]byte
	switch _, err := next.file.file.ReadAt(head[:], 0); {
	case isShort(err):
		return false, nil
	case err != nil:
		return false, v.l.sift(err, "read "+next.name(suffixLog))
	}
	last := record.View(head[:]).LastOffset()
	return last-t.next > 1<<31-1 && last-next.base <= 1<<31-1, nil // else the header is damaged
}

// closeSegment brings a verified segment that is not the last into the form of a
// closed one. Damage below the mark stays in the file, for whoever can mend it.
func (v *recovery) closeSegment(s *segment, t tail) error {
	if err := v.l.reach(s); err != nil {
		return err
	}
	if t.kept {
		s.file.freeze()
		s.size = t.pos
		return v.l.sift(s.flushIndexes(), "write the indexes of "+s.name(suffixLog))
	}
	if err := v.cut(s, t.pos); err != nil {
		return err
	}
	return v.l.sift(s.close(), "close "+s.name(suffixLog))
}

// finish makes the last segment the active one.
func (v *recovery) finish(t tail) (err error) {
	l := v.l
	s := l.segments[len(l.segments)-1]
	if err := l.reach(s); err != nil {
		return err
	}
	if lost := s.file.reserved.Load() - t.pos; t.torn && lost > 0 {
		v.r.CutBytes += lost
	}
	l.end = max(t.next, s.base)
	if l.end < v.mark {
		// The offsets up to the mark were acknowledged; they are lost here, but
		// never given to other records.
		v.r.Whole = false
		from := l.end
		if from > s.base {
			if err := v.closeSegment(s, t); err != nil {
				return err
			}
			// An empty one stands for what is lost; see findGap, and recheck.
			if s, err = l.createSegment(from, 0, v.now); err != nil {
				return err
			}
			l.segments = append(l.segments, s)
			t = tail{next: from}
		}
		l.condemn(hole{OffsetRange: OffsetRange{from, v.mark}, base: s.base, pos: t.pos, to: t.pos})
		l.end = v.mark
		return v.succeed(t)
	}
	if !t.torn && !t.kept {
		return v.cut(s, t.pos)
	}
	return v.succeed(t)
}

// succeed lets the log continue in a new segment: a file that lost batches is never
// appended to.
func (v *recovery) succeed(t tail) error {
	l := v.l
	s := l.segments[len(l.segments)-1]
	if s.base == l.end {
		if err := v.setAsideFrom(len(l.segments) - 1); err != nil {
			return err
		}
	} else if err := v.closeSegment(s, t); err != nil {
		return err
	}
	fresh, err := l.createSegment(l.end, 0, v.now)
	if err != nil {
		return err
	}
	l.segments = append(l.segments, fresh)
	return nil
}

// copySuspects writes everything above the durable mark into new files and syncs
// them: after a sync that failed, the page cache holds pages that look clean and
// are not on disk, and another sync of the same file would prove nothing.
func (v *recovery) copySuspects() error {
	l := v.l
	// The segment that ends at the mark is one of them: it was closed after the last
	// sync that worked, and that it was cut may be in memory only.
	for i := max(l.segmentAt(v.mark-1), 0); i < len(l.segments); i++ {
		s := l.segments[i]
		from := int64(0)
		base := s.base
		if s.base < v.mark {
			var err error
			if from, err = v.positionOfMark(s); err != nil {
				return err
			}
			switch {
			case from < s.size && i+1 < len(l.segments) && l.segments[i+1].base == v.mark:
				// A recovery before this one has copied them, and did not come to cut
				// them off here. The copy, which is next, would else be there twice.
				if err := syncDir(l.o.FS, l.o.Path); err != nil {
					return l.sift(err, "sync "+l.o.Path)
				}
				if err := v.cutCopied(s, from); err != nil {
					return l.sift(err, "cut "+s.name(suffixLog))
				}
				continue
			case from < s.size:
				base = v.mark
			case i+1 < len(l.segments):
				from = 0
			default:
				continue
			}
		}
		if err := v.copySegment(i, from, base); err != nil {
			return l.sift(err, "copy "+s.name(suffixLog))
		}
		if base != s.base {
			i++ // the copy is a segment of its own, and done
		}
	}
	// From here on the log is as after another boot, with everything on disk.
	return l.sift(v.remake(), "make "+l.o.Path+" anew")
}

// remake makes the directory and its identity durable, if they may be in memory only: nothing of the log was ever synced, and what was copied counts as
// flushed at once.
func (v *recovery) remake() error {
	l := v.l
	if !l.unmade {
		return nil
	}
	if err := replaceFile(l.o.FS, filepath.Join(l.o.Path, partitionMetaFile), encodePartitionMeta(l.o.Topic)); err != nil {
		return err
	}
	if err := syncDir(l.o.FS, filepath.Dir(l.o.Path)); err != nil {
		return err
	}
	l.unmade = false
	return nil
}

// positionOfMark finds where the first batch above the durable mark begins; the
// segment's size when there is none, or no way to tell.
func (v *recovery) positionOfMark(s *segment) (int64, error) {
	sc, _, err := v.resume(s, v.mark)
	if err != nil {
		return 0, v.l.sift(err, "read "+s.name(suffixLog))
	}
	for {
		b, pos, err := sc.batch()
		switch {
		case isIOFailure(err):
			return 0, v.l.sift(err, "read "+s.name(suffixLog))
		case err != nil:
			return s.size, nil //nolint:nilerr // what it is, is for the scan from there on to say
		case b.LastOffset() >= v.mark:
			return pos, nil
		}
	}
}

// copySegment copies the sound batches of segment i from position from on into a
// new file named by base. When it is the same name the new file replaces the old
// one; else the old one is cut where the new one begins.
func (v *recovery) copySegment(i int, from int64, base ident.Offset) error {
	l := v.l
	s := l.segments[i]
	if err := l.reach(s); err != nil {
		return err
	}
	sc := newScanner(v.buf, s.file.file, from, s.size, base)
	sc.check = true
	for {
		if _, _, err := sc.batch(); err != nil {
			if isIOFailure(err) {
				return err
			}
			break
		}
	}
	target := segmentName(l.o.Path, base, suffixLog)
	if err := copyRange(l.o.FS, target+suffixCopy, s.file.file, from, sc.pos); err != nil {
		return err
	}
	if base != s.base {
		// Compaction may have left nothing right below the mark, and what is cut here no longer reaches as far as it was written down.
		if err := l.forgetEnds(); err != nil {
			return err
		}
	}
	if err := l.o.FS.Rename(target+suffixCopy, target); err != nil {
		return err
	}
	if err := syncDir(l.o.FS, l.o.Path); err != nil {
		return err
	}
	fresh := newSegment(l.o.FS, l.o.Path, base, v.now)
	if err := fresh.open(l.onFail); err != nil {
		return err
	}
	fresh.size = fresh.file.reserved.Load()
	if base == s.base {
		l.segments[i] = fresh
		return s.release()
	}
	if err := v.cutCopied(s, from); err != nil {
		return err
	}
	l.segments = append(l.segments[:i+1], append([]*segment{fresh}, l.segments[i+1:]...)...)
	return nil
}

// cutCopied cuts off, durably, what is in a segment of its own.
func (v *recovery) cutCopied(s *segment, size int64) error {
	if err := v.cut(s, size); err != nil {
		return err
	}
	return s.file.file.Sync()
}

// copyRange writes the bytes [from, to) of f into a new file and syncs it.
func copyRange(fs FS, name string, f File, from, to int64) error {
	out, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if to > from {
		err = out.Allocate(0, to-from)
	}
	buf := make([]byte, scanBuffer)
	for at := from; at < to && err == nil; {
		n := int(min(int64(len(buf)), to-at))
		if _, err = f.ReadAt(buf[:n], at); err == nil || isShort(err) {
			_, err = out.WriteAt(buf[:n], at-from)
		}
		at += int64(n)
	}
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		if rm := fs.Remove(name); rm != nil && !isNotExist(rm) {
			err = errors.Join(err, rm)
		}
		return fmt.Errorf("copy: %w", err)
	}
	return nil
}
