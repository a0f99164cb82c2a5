package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Truncate cuts the log down to o, or to the base of the batch or the damaged range that
// holds o, and returns the new end. A follower does this when its leader's log says otherwise.
// It blocks on the disk. The order keeps every crash harmless:
//
//  1. the end, the flushed end and the generation change in memory (the caller's
//     machine did the same before it asked);
//  2. control block and durable mark are lowered, durably, so that no recovery
//     takes the bytes above for promised ones;
//  3. regions that reach above the new end become [Region.Void], so that nobody sends
//     what has not been sent: their bytes are about to change;
//  4. segments above are renamed .deleted, highest first, each durable before the
//     next, so that no crash leaves a hole;
//  5. the file that holds the new end is cut, with its indexes and snapshots;
//  6. the epoch file is cut;
//  7. the log continues in a new segment: a file that lost batches is never
//     appended to.
//
// What can be refused for lack of space or descriptors is refused before the first
// step: ErrNoSpace and ErrExhausted say that nothing has changed. After an error other
// than these, *OffsetError, ErrDamaged and ErrObstructed the directory is offline.
func (l *Log) Truncate(o ident.Offset, now ident.Millis) (ident.Offset, error) {
	if err := l.usable(); err != nil {
		return l.end, err
	}
	if o < l.start || o > l.end {
		return l.end, &OffsetError{Partition: l.o.Partition, Offset: o, Start: l.start, End: l.end}
	}
	if o == l.end {
		return l.end, nil
	}
	if err := l.finishSwaps(); err != nil {
		return l.end, err
	}
	i, at, err := l.locate(o)
	if err != nil {
		return l.end, err
	}
	if n := slices.IndexFunc(l.holes, func(h hole) bool { return o >= h.From && o < h.To }); n >= 0 {
		o = max(l.holes[n].From, l.start) // no batch is there to be cut at
	} else {
		h, err := l.headerAt(l.segments[i], at.pos)
		if err != nil {
			return l.end, err
		}
		o = max(min(o, h.BaseOffset()), l.start)
	}
	if err := l.reach(l.segments[i]); err != nil {
		return l.end, err
	}
	sp, err := l.setSpare()
	if err != nil {
		return l.end, err
	}
	if err := errors.Join(l.truncate(sp, i, at.pos, o, now), sp.drop()); err != nil {
		return l.end, l.health.fail(fmt.Errorf("truncate %s to %d: %w", l.o.Partition, o, err))
	}
	return l.end, nil
}

func (l *Log) truncate(sp *spare, i int, pos int64, o ident.Offset, now ident.Millis) error {
	s := l.segments[i]
	// 1
	l.end, l.flushed = o, min(l.flushed, o)
	l.dirtyFrom(o)
	l.newGeneration()
	// 2
	if err := l.forgetEnds(); err != nil {
		return err
	}
	l.standing.mark.Store(int64(min(l.mark(), o)))
	if err := sp.run(func() error { return l.announceCut(s, pos) }); err != nil {
		return err
	}
	// 3
	s.void.set(pos)
	for _, above := range l.segments[i+1:] {
		above.void.set(0)
	}
	// 4
	if pos == 0 && s.base >= o {
		i-- // the segment at the new end goes as a whole, or the first one, when what was below it is lost
	}
	if err := sp.run(func() error { return l.setAsideAbove(i, now) }); err != nil {
		return err
	}
	// 5
	if i >= 0 && l.segments[i] == s {
		if err := sp.run(func() error { return l.cutSegment(s, pos, o) }); err != nil {
			return err
		}
	}
	if err := l.dropSnapshotsAbove(o); err != nil {
		return err
	}
	l.holes = slices.DeleteFunc(l.holes, func(h hole) bool { return h.From >= o })
	for n := range l.holes {
		l.holes[n].To = min(l.holes[n].To, o)
	}
	// 6
	l.epochs.cutEnd(o)
	if err := sp.run(l.writeEpochsNow); err != nil {
		return err
	}
	// 7
	return l.continueAt(sp, o, now)
}

// announceCut lowers the control block and the durable mark.
func (l *Log) announceCut(s *segment, pos int64) error {
	if l.slot != nil {
		id, err := s.file.file.Identity()
		if err != nil {
			return err
		}
		l.slotState.file, l.slotState.base, l.slotState.size = fileKey(id), s.base, pos
		l.slotState.end, l.slotState.flushed, l.slotState.cutting = l.end, l.mark(), true
		l.slot.put(&l.slotState)
	}
	if l.o.persist == nil {
		return nil
	}
	return l.o.persist()
}

// setAsideAbove takes the segments above index i out of the log.
func (l *Log) setAsideAbove(i int, now ident.Millis) error {
	for n := len(l.segments) - 1; n > i; n-- {
		s := l.segments[n]
		if s.file != nil {
			s.file.freeze()
			l.clean(s.file)
		}
		if err := errors.Join(s.release(), setAside(l.o.FS, l.o.Path, []ident.Offset{s.base})); err != nil {
			return err
		}
		l.doomed = append(l.doomed, doomedSegment{s.base, now + ident.Millis(l.cfg.FileDeleteDelayMs)})
		l.segments = l.segments[:n]
	}
	return nil
}

// clean takes a file out of the next sync: it is on its way out of the log.
func (l *Log) clean(sf *segmentFile) {
	l.dirty.closed = slices.DeleteFunc(l.dirty.closed, func(x *segmentFile) bool {
		if x == sf {
			x.release()
		}
		return x == sf
	})
}

// cutSegment cuts the segment that holds the new end, and syncs it.
func (l *Log) cutSegment(s *segment, pos int64, o ident.Offset) error {
	if err := s.file.seal(pos); err != nil {
		return err
	}
	if err := s.file.file.Sync(); err != nil {
		return err
	}
	s.size, s.end, s.believed = pos, ident.NoOffset, false
	err := s.loadIndexes()
	if err == nil {
		err = errors.Join(s.index.cutTo(o, pos), s.times.cutTo(o))
	}
	if err != nil {
		if err := l.rebuildIndexes(s); err != nil {
			return err
		}
	}
	if _, err := l.topOf(s); err != nil {
		return err
	}
	if err := s.finishIndexes(); err != nil {
		return err
	}
	return errors.Join(s.times.sync(), s.index.sync())
}

func (l *Log) dropSnapshotsAbove(o ident.Offset) error {
	n := 0
	for n < len(l.snapshots) && l.snapshots[len(l.snapshots)-1-n] > o {
		n++
	}
	return l.dropSnapshots(0, n)
}

// writeEpochsNow replaces the epoch file in the owner's turn.
func (l *Log) writeEpochsNow() error {
	l.shared.Lock()
	defer l.shared.Unlock()
	if err := replaceFile(l.o.FS, filepath.Join(l.o.Path, epochsFile), l.epochs.encode(nil)); err != nil {
		return err
	}
	l.dirty.epochs, l.epochsWritten, l.bare = false, l.epochsChanges, false
	return nil
}

// continueAt begins a new active segment at o.
func (l *Log) continueAt(sp *spare, o ident.Offset, now ident.Millis) error {
	var fresh *segment
	err := sp.run(func() (err error) {
		fresh, err = l.createSegment(o, 0, now)
		return err
	})
	if err != nil {
		return err
	}
	l.segments = append(l.segments, fresh)
	l.active = fresh
	l.closedSize = 0
	for _, s := range l.segments[:len(l.segments)-1] {
		l.closedSize += s.size
	}
	l.recent.clear()
	l.resume.clear()
	l.dirty.active = false
	l.soilUnflushed()
	l.slotState.cutting = false
	return l.rememberFile()
}

// soilUnflushed leaves to the next sync what is left of the log above its flushed end. A
// sync that was under way when the log was cut says nothing any more, and what it took is
// dirty for nobody: without this the flushed end would stay behind until the next append.
func (l *Log) soilUnflushed() {
	for i, s := range l.segments[:len(l.segments)-1] {
		if l.segments[i+1].base > l.flushed && s.file != nil { // one that rests was synced
			s.file.retain()
			l.dirty.closed = append(l.dirty.closed, s.file)
		}
	}
}

// Restart drops everything and begins the log at o, which may lie above End: a
// follower does this when its leader's log begins above its own end. The order is
// that of Truncate.
func (l *Log) Restart(o ident.Offset, now ident.Millis) error {
	if err := l.usable(); err != nil {
		return err
	}
	if o < 0 {
		panic(fmt.Sprintf("store: restart of %s at %d", l.o.Partition, o))
	}
	if err := l.finishSwaps(); err != nil {
		return err
	}
	if err := l.reach(l.segments[0]); err != nil {
		return err
	}
	sp, err := l.setSpare()
	if err != nil {
		return err
	}
	if err := errors.Join(l.restart(sp, o, now), sp.drop()); err != nil {
		return l.health.fail(fmt.Errorf("restart %s at %d: %w", l.o.Partition, o, err))
	}
	return nil
}

func (l *Log) restart(sp *spare, o ident.Offset, now ident.Millis) error {
	first := l.segments[0]
	l.end, l.flushed, l.start = first.base, first.base, first.base
	l.dirtyFrom(first.base)
	l.newGeneration()
	if err := l.forgetEnds(); err != nil {
		return err
	}
	l.standing.mark.Store(int64(first.base))
	if err := sp.run(func() error { return l.announceCut(first, 0) }); err != nil {
		return err
	}
	for _, s := range l.segments {
		s.void.set(0)
	}
	if err := sp.run(func() error { return l.setAsideAbove(-1, now) }); err != nil {
		return err
	}
	if err := l.dropSnapshots(len(l.snapshots), 0); err != nil {
		return err
	}
	l.holes = nil
	l.epochs = epochs{}
	if err := sp.run(l.writeEpochsNow); err != nil {
		return err
	}
	l.start, l.end, l.flushed = o, o, o
	l.standing.start.Store(int64(o))
	l.standing.mark.Store(int64(o))
	// Durable before there is a segment: one that begins above the log start is
	// what a log looks like that lost records.
	if l.o.persist != nil {
		if err := sp.run(l.o.persist); err != nil {
			return err
		}
	}
	return l.continueAt(sp, o, now)
}
