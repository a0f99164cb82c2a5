package store

import (
	"errors"
	"fmt"
	"os"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// Append adds one batch, stamped with its base offset (at or above End) and
// leader epoch, whose length and checksum the caller has checked. The bytes are
// copied. It rolls the segment when size, time, index or offset range say so; now
// is the wall clock. All or nothing: on ErrNoSpace or any other error the log is
// as before. A base offset below End, or an epoch below the last one, panics.
func (l *Log) Append(v record.View, now ident.Millis) error {
	if err := l.usable(); err != nil {
		return err
	}
	base, next, epoch := v.BaseOffset(), v.NextOffset(), v.LeaderEpoch()
	if base < l.end || next <= base {
		panic(fmt.Sprintf("store: append of [%d, %d) to %s, which ends at %d", base, next, l.o.Partition, l.end))
	}
	if epoch < l.epochs.last() {
		panic(fmt.Sprintf("store: append of epoch %d to %s after epoch %d", epoch, l.o.Partition, l.epochs.last()))
	}
	if err := l.wake(); err != nil {
		return err
	}
	if err := l.takeUndone(); err != nil {
		return err
	}
	size := len(v)
	if l.mustRoll(v, size, now) {
		// A gap below the batch belongs to the new segment, so that the old one ends where this begins, unless the batch is too far for that.
		from := l.end
		if next-1-from > 1<<31-1 {
			from = base
		}
		if err := l.roll(from, int64(size), now); err != nil {
			return err
		}
	} else if l.sinceSnapshot > snapshotEvery {
		if err := l.snapshotProducers(); err != nil && !IsRetriable(err) {
			return err
		}
	}
	if err := l.write(v, int64(size)); err != nil {
		return err
	}
	// A gap below the batch, which compaction left in the leader's log, is the new
	// epoch's: so it takes in what another replica may still hold there of an older one.
	if epoch != l.epochs.last() && l.epochs.assign(epoch, l.end) {
		l.epochsChanged()
	}
	l.recent.note(base, l.active.size)
	l.active.appended(v, size, l.cfg.IndexIntervalBytes)
	l.end = next
	l.sinceSnapshot += int64(size)
	l.dirty.active = true
	l.remember()
	return nil
}

// write puts the batch behind the active segment's last one.
func (l *Log) write(v record.View, size int64) error {
	a, sf := l.active, l.active.file
	pos, need := a.size, a.size+size
	if need > sf.reserved.Load() {
		if err := sf.reserve(need, l.growth); err != nil {
			return l.sift(err, "reserve space in "+a.name(suffixLog))
		}
	}
	if sf.bytes == nil && l.cfg.Append == AppendMapped && !a.unmapped {
		sf.mapTo(int64(l.cfg.SegmentBytes))
		a.unmapped, sf.began = sf.bytes == nil, pos
	}
	if size < int64(l.cfg.AppendWriteMin) && need <= int64(len(sf.bytes)) && l.cfg.Append == AppendMapped {
		if need > sf.covered {
			if err := sf.cover(pos, need); err != nil {
				return l.sift(err, "write to "+a.name(suffixLog))
			}
		}
		copy(sf.bytes[pos:need], v)
	} else {
		if _, err := sf.file.WriteAt(v, pos); err != nil {
			return l.sift(err, "write to "+a.name(suffixLog))
		}
		sf.covered = max(sf.covered, roundUp(need, pageSize))
	}
	sf.keepAhead(need, l.growth, l.background)
	return nil
}

// mustRoll tells whether the batch has to go into a new segment. (Kafka:
// LogSegment.shouldRoll)
func (l *Log) mustRoll(v record.View, size int, now ident.Millis) bool {
	a := l.active
	if !a.relative(v.LastOffset()) {
		return true
	}
	if a.size == 0 {
		return false
	}
	return a.size+int64(size) > int64(l.cfg.SegmentBytes) ||
		l.waited(a, v.MaxTimestamp(), now) > l.segmentMs()-l.jitter(a) ||
		a.index.full(l.cfg.SegmentIndexBytes) || a.times.full(l.cfg.SegmentIndexBytes)
}

// waited is how long the segment has been collecting: by the records' timestamps
// if they have any, else by the clock.
func (l *Log) waited(s *segment, ts, now ident.Millis) int64 {
	if s.first >= 0 && ts >= 0 {
		return int64(ts - s.first)
	}
	return int64(now - s.created)
}

// segmentMs is the time that a segment may collect. One that is not closed is not
// compacted, so that max.compaction.lag.ms counts, too.
func (l *Log) segmentMs() int64 {
	if l.cfg.Compact && l.cfg.MaxCompactionLagMs > 0 {
		return min(l.cfg.SegmentMs, l.cfg.MaxCompactionLagMs)
	}
	return l.cfg.SegmentMs
}

// jitter is what segment.jitter.ms takes from segment.ms for one segment: a number
// that differs from partition to partition, so that they do not all roll at once,
// but not from run to run.
func (l *Log) jitter(s *segment) int64 {
	most := min(l.cfg.SegmentJitterMs, l.segmentMs())
	if most <= 0 {
		return 0
	}
	h := hash(logKey(l.o.Topic, l.o.Partition.Partition), uint64(s.base), 0)
	return int64(h % uint64(most))
}

// Roll closes the active segment, unless it is empty, and begins a new one.
func (l *Log) Roll(now ident.Millis) error {
	if err := l.usable(); err != nil {
		return err
	}
	if l.active.size == 0 {
		return nil
	}
	if err := l.wake(); err != nil {
		return err
	}
	return l.roll(l.end, 0, now)
}

// roll begins a new segment at base, with room for a first batch, and closes the
// active one. All that can fail for lack of space comes first.
func (l *Log) roll(base ident.Offset, need int64, now ident.Millis) error {
	old := l.active
	if base <= old.base {
		panic(fmt.Sprintf("store: %s rolled from segment %d to %d", l.o.Partition, old.base, base))
	}
	fresh, err := l.createSegment(base, need, now)
	if err != nil {
		return err
	}
	if err := errors.Join(l.snapshotProducers(), l.prepareClose(old)); err != nil {
		return errors.Join(err, l.discard(fresh))
	}
	if err := old.close(); err != nil {
		return errors.Join(l.sift(err, "close "+old.name(suffixLog)), l.discard(fresh))
	}
	l.dirty.active = false
	old.end = l.end
	l.keepOpen(old)
	l.closedSize += old.size
	l.segments = append(l.segments, fresh)
	l.active = fresh
	l.recent.clear()
	if err := l.soil(old); err != nil {
		return err
	}
	l.saveEnds()
	return l.sift(l.rememberFile(), "look at "+fresh.name(suffixLog))
}

// soil leaves a segment that was closed to the next sync: its file, which was
// written since its last sync or may have been, and its indexes.
func (l *Log) soil(s *segment) error {
	if err := l.reach(s); err != nil {
		return err
	}
	s.file.retain()
	l.dirty.closed = append(l.dirty.closed, s.file)
	for _, suffix := range []string{suffixIndex, suffixTimeIndex} {
		// A descriptor of its own: the index's own one is closed when it rests.
		f, err := l.o.FS.OpenFile(s.name(suffix), os.O_RDWR, 0)
		switch {
		case err == nil:
			l.dirty.files = append(l.dirty.files, f)
		case !isNotExist(err) && !IsExhausted(err): // an index is a cache, which need not be synced
			return l.sift(err, "open "+s.name(suffix))
		}
	}
	return nil
}

// prepareClose writes the indexes of a segment about to be closed: the last step
// that a full disk can refuse.
func (l *Log) prepareClose(s *segment) error {
	return l.sift(s.finishIndexes(), "write the indexes of "+s.name(suffixLog))
}

// createSegment makes a segment's file and remembers that its name has to be
// synced before anything out of it is acknowledged.
func (l *Log) createSegment(base ident.Offset, need int64, now ident.Millis) (*segment, error) {
	s := newSegment(l.o.FS, l.o.Path, base, now)
	if err := l.takeUndone(); err != nil {
		return nil, err
	}
	if err := l.clearWay(base); err != nil {
		return nil, l.sift(err, "make room for "+s.name(suffixLog))
	}
	// Before the name is there: should it have to go again, that is synced as well. A
	// name that came back after a power loss would end the segment before it.
	if need == 0 {
		l.unnamed = true // nothing can be acknowledged out of it yet
	} else if err := l.dirty.name(l.o.FS, l.o.Path); err != nil {
		return nil, l.sift(err, "open "+l.o.Path)
	}
	if err := s.create(l.onFail); err != nil {
		return nil, l.sift(err, "create "+s.name(suffixLog))
	}
	if need > 0 {
		if err := s.file.reserve(need, l.growth); err != nil {
			return nil, errors.Join(l.sift(err, "reserve space in "+s.name(suffixLog)), l.discard(s))
		}
	}
	return s, nil
}

// clearWay removes index files that a former segment of the same name left.
func (l *Log) clearWay(base ident.Offset) error {
	for _, suffix := range []string{suffixIndex, suffixTimeIndex, suffixTxnIndex} {
		if err := l.o.FS.Remove(segmentName(l.o.Path, base, suffix)); err != nil && !isNotExist(err) {
			return err
		}
	}
	return nil
}

// discard undoes createSegment.
func (l *Log) discard(s *segment) error {
	err := s.release()
	l.undone = s.base
	return errors.Join(err, l.takeUndone())
}

// takeUndone takes a file away that discard could not: some file systems need room for
// that, too. Nothing is appended before: a restart would take the file for the segment
// behind what is appended.
func (l *Log) takeUndone() error {
	if l.undone == 0 {
		return nil
	}
	name := segmentName(l.o.Path, l.undone, suffixLog)
	if err := l.o.FS.Remove(name); err != nil && !isNotExist(err) {
		return l.sift(err, "remove "+name)
	}
	l.undone = 0
	return nil
}

// fail hears of errors where no caller waits for them. A full disk is no failure,
// nor is a lack of descriptors: whoever needs them will be told.
func (l *Log) fail(err error) {
	switch {
	case IsRetriable(err):
	case isObstructed(err):
		_ = l.sift(err, "keep the files of "+l.o.Path) // the next call hears of it
	default:
		_ = l.health.fail(err) // whoever asks the directory hears of it
	}
}
