package store

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// segment is one file of a log with its two indexes. All but the last segment of
// a log are closed: their size and contents do not change any more.
type segment struct {
	base ident.Offset
	dir  string
	fs   FS

	file *segmentFile // nil: a closed segment that nobody has read yet
	size int64        // bytes of batches; the file may be longer while active
	end  ident.Offset // of a closed one, after its last batch; ident.NoOffset: not known

	index offsetIndex
	times timeIndex
	// loaded: the index files of a closed segment were looked at.
	loaded bool
	// believed: the time index is known to end with the segment's greatest
	// timestamp, so that top may be relied upon.
	believed bool
	top      moment // greatest timestamp so far, and the end of the batch that has it

	first      ident.Millis // maxTimestamp of the first batch; decides rolling by time
	created    ident.Millis // when this process created or opened the segment
	sinceIndex int64        // bytes since the last index entry

	unmapped bool // the file could not be mapped: pwrite it is

	void  *voidFrom // shared with every segmentFile that was opened for it
	trust *trust    // likewise
}

// voidFrom is the position from which on the bytes of a segment are no part of the log
// any more, plus one; 0: there is none. Once set it only falls.
type voidFrom struct{ atomic.Int64 }

// set is called by the log's owner alone.
func (v *voidFrom) set(pos int64) {
	if from := v.Load(); from == 0 || pos < from-1 {
		v.Store(pos + 1)
	}
}

// before tells whether what ends at pos is still part of the log.
func (v *voidFrom) before(pos int64) bool {
	from := v.Load()
	return from == 0 || pos < from
}

func newSegment(fs FS, dir string, base ident.Offset, now ident.Millis) *segment {
	return &segment{
		base:    base,
		dir:     dir,
		fs:      fs,
		index:   newOffsetIndex(fs, segmentName(dir, base, suffixIndex), base),
		times:   newTimeIndex(fs, segmentName(dir, base, suffixTimeIndex), base),
		top:     moment{ident.NoTimestamp, base},
		end:     ident.NoOffset,
		first:   ident.NoTimestamp,
		created: now,
		void:    &voidFrom{},
		trust:   &trust{},
	}
}

func (s *segment) name(suffix string) string { return segmentName(s.dir, s.base, suffix) }

// create makes the segment's file, which must not exist. The indexes appear when
// they are first written.
func (s *segment) create(failed func(error)) error {
	sf, err := openSegmentFile(s.fs, s.name(suffixLog), os.O_RDWR|os.O_CREATE|os.O_EXCL, failed)
	if err != nil {
		return err
	}
	sf.void, sf.trust = s.void, s.trust
	s.file, s.believed, s.loaded = sf, true, true
	return nil
}

// open opens the segment's file if it is not open.
func (s *segment) open(failed func(error)) error {
	if s.file != nil {
		return nil
	}
	sf, err := openSegmentFile(s.fs, s.name(suffixLog), os.O_RDWR, failed)
	if err != nil {
		return err
	}
	sf.void, sf.trust = s.void, s.trust
	s.file = sf
	return nil
}

// loadIndexes takes in the index files as they are. An error means that they have
// to be built anew.
func (s *segment) loadIndexes() error {
	if s.loaded {
		return nil
	}
	if err := errors.Join(s.index.load(), s.times.load()); err != nil {
		return err
	}
	s.loaded = true
	return nil
}

// appended notes a batch of the log that was just written at position size: the
// state in memory and, where it is due, the indexes. An index that cannot be
// written costs an entry, not the append.
func (s *segment) appended(v record.View, size int, interval int32) {
	pos := s.size
	if pos == 0 {
		s.first = v.MaxTimestamp()
	}
	last := v.LastOffset()
	if ts := v.MaxTimestamp(); ts > s.top.timestamp {
		s.top = moment{ts, last}
	}
	if s.sinceIndex > int64(interval) {
		s.note(last, pos)
	}
	s.sinceIndex += int64(size)
	s.size += int64(size)
}

// note adds an entry to both indexes. The time index is written before the offset
// index is, so that a process that dies never leaves offsets whose timestamps are
// not there: a restart takes the greatest timestamp up to an offset from the two.
func (s *segment) note(last ident.Offset, pos int64) {
	if s.index.bufferFull() && s.flushIndexes() != nil {
		return
	}
	if s.index.add(last, pos) != nil || s.times.add(s.top) != nil {
		// The table keeps its last consistent state and the next entry tries
		// again: an index is sparse anyway. A disk that is really broken says so
		// at the next sync of the log itself.
		return
	}
	s.sinceIndex = 0
}

// flushIndexes writes both indexes in their order; see note.
func (s *segment) flushIndexes() error {
	if err := s.times.flush(); err != nil {
		return err
	}
	return s.index.flush()
}

// relative tells whether offset o can be written relative to the base.
func (s *segment) relative(o ident.Offset) bool {
	return o >= s.base && o-s.base <= 1<<31-1
}

// finishIndexes gives the time index its last entry and writes both indexes: all of
// closing a segment that may need space. The segment can go on growing afterwards.
func (s *segment) finishIndexes() error {
	if s.size > 0 && s.top.timestamp >= 0 {
		if err := s.times.add(s.top); err != nil {
			return err
		}
	}
	return s.flushIndexes()
}

// close ends the active segment: the indexes are finished, and the reserved tail is
// cut off, last, so that a segment that could not be closed is as it was.
func (s *segment) close() error {
	if err := s.finishIndexes(); err != nil {
		return err
	}
	return s.file.seal(s.size)
}

// release gives up the segment's own reference of its file and closes the
// indexes. Sends in flight keep theirs.
func (s *segment) release() error {
	if s.file != nil {
		s.file.release()
		s.file = nil
	}
	return errors.Join(s.index.rest(), s.times.rest())
}

// suffixes of the files that make up a segment, the log last, so that what is left
// after a crash in the middle is still a segment.
var segmentSuffixes = []string{suffixIndex, suffixTimeIndex, suffixTxnIndex, suffixLog}

// renameSegment gives the segment's files the suffix of what is on its way out.
func renameSegment(fs FS, dir string, base ident.Offset) error {
	for _, suffix := range segmentSuffixes {
		name := segmentName(dir, base, suffix)
		if err := fs.Rename(name, name+suffixDeleted); err != nil && !isNotExist(err) {
			return fmt.Errorf("set segment %d aside: %w", base, err)
		}
	}
	return nil
}

// removeSegment unlinks the segment's files that were renamed.
func removeSegment(fs FS, dir string, base ident.Offset, add string) error {
	for _, suffix := range segmentSuffixes {
		if err := fs.Remove(segmentName(dir, base, suffix) + add); err != nil && !isNotExist(err) {
			return fmt.Errorf("unlink segment %d: %w", base, err)
		}
	}
	return nil
}
